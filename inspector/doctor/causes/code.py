"""What Python itself says of the model's code: arguments, attributes, values that are no tensors, recursion."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.lines import RUNS, outcome
from inspector.doctor.causes.statements import NoTensor, names_used_whole, no_tensor_called
from inspector.doctor.constructors import line_that_makes, parsed_source
from inspector.doctor.frames import forward_code, is_own, source_line
from inspector.doctor.report import Diagnosis, SourceLine, Sureness
from inspector.doctor.rewriting import statements_of
from inspector.doctor.scene import Scene, kinds_in
from inspector.units import counted, with_article


def find_no_forward(scene: Scene) -> Diagnosis | None:
    """A module without forward was called."""
    if not isinstance(scene.error, NotImplementedError) or type(scene.layer).forward is not nn.Module.forward:
        return None
    layer = scene.layer
    if isinstance(layer, nn.ModuleList | nn.ModuleDict):
        each = (
            "for layer in self.layers:\n    x = layer(x)"
            if isinstance(layer, nn.ModuleList)
            else "x = self.layers[name](x)"
        )
        return Diagnosis(
            cause="no-forward",
            says=f"{scene.path} is a container without a forward and was called.",
            fix="Call what is in it, or make it an nn.Sequential.",
            code=each,
        )
    own = [name for name in vars(type(layer)) if not name.startswith("__") and callable(getattr(layer, name, None))]
    near = difflib.get_close_matches("forward", [name.lower() for name in own], n=1, cutoff=0.6)
    said = f" It has a method {next(n for n in own if n.lower() == near[0])}: a slip of the pen?" if near else ""
    at, inside = _class_line(layer)
    if inside is not None:
        return Diagnosis(
            cause="no-forward",
            says=f"{scene.path} has no method forward: `def forward` stands inside __init__ and is a local function "
            "there.",
            fix="Indent it less, as far as __init__ itself.",
            change=inside,
        )
    return Diagnosis(
        cause="no-forward",
        says=f"{scene.path} has no method forward.{said}",
        fix="Write `def forward(self, x):` in the class, indented as its __init__ is.",
        change=at,
    )


def _forward_line(module: nn.Module | None) -> SourceLine | None:
    """Where the forward of a person's own class begins."""
    code = forward_code(module) if module is not None else None
    return source_line(code.co_filename, code.co_firstlineno) if code is not None and is_own(code.co_filename) else None


def _class_line(module: nn.Module) -> tuple[SourceLine | None, SourceLine | None]:
    """(where the class begins, where a forward is indented into another of its methods)."""
    init = vars(type(module)).get("__init__")
    code = getattr(init, "__code__", None)
    file = code.co_filename if code is not None else ""
    parsed = parsed_source(file) if file and is_own(file) else None
    if parsed is None:
        return None, None
    for node in ast.walk(parsed[0]):
        if not isinstance(node, ast.ClassDef) or node.name != type(module).__name__:
            continue
        methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        nested = [
            one
            for method in methods
            for one in ast.walk(method)
            if isinstance(one, ast.FunctionDef) and one is not method and one.name == "forward"
        ]
        at = source_line(file, node.lineno)
        return at, source_line(file, nested[0].lineno) if nested else None
    return None, None


_ARGUMENTS = re.compile(r"positional argument|unexpected keyword|multiple values for argument|required .{0,20}argument")


def find_arguments(scene: Scene) -> Diagnosis | None:
    """Too few, too many or unknown arguments of a module's forward."""
    if not isinstance(scene.error, TypeError) or scene.call is None or not _ARGUMENTS.search(scene.text):
        return None
    call = scene.call
    try:
        signature = inspect.signature(type(call.module).forward)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(call.module, *call.args, **call.kwargs)
    except TypeError:
        pass
    else:
        return None
    names = list(signature.parameters)[1:]
    needs = [
        name
        for name, one in list(signature.parameters.items())[1:]
        if one.default is inspect.Parameter.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    missing = [name for i, name in enumerate(needs) if i >= len(call.args) and name not in call.kwargs]
    unknown = [name for name in call.kwargs if name not in names]
    says = f"{scene.path} takes ({', '.join(names)})"
    if missing:
        at_top = len(scene.raised.calls) == 1
        return Diagnosis(
            cause="missing-argument",
            says=f"{says} and was called without {', '.join(missing)}.",
            fix="Give one input for each." if at_top else f"Hand over {', '.join(missing)} where it is called.",
            code="q = k = v = x\nout, weights = attention(q, k, v)"
            if isinstance(call.module, nn.MultiheadAttention)
            else "",
        )
    if unknown:
        near = [name for name in names if name in unknown[0] or unknown[0] in name]
        near += difflib.get_close_matches(unknown[0], names, n=1, cutoff=0.5)
        return Diagnosis(
            cause="unknown-argument",
            says=f"{says} and was called with {unknown[0]}=.",
            fix=f"Is {near[0]} meant?" if near else "Leave it out, or add it to forward.",
        )
    fix = "nn.Sequential hands on one value: call its parts yourself where one takes several."
    return Diagnosis(
        cause="too-many-arguments",
        says=f"{says} and was called with {counted(len(call.args), 'argument')} ({kinds_in(call.args)}).",
        fix=fix if isinstance(call.module, nn.Sequential) else "Leave out those that forward does not take.",
    )


_NOT_TENSOR = re.compile(
    r"must be Tensor, not (\w+)|got \((?!Tensor|Parameter)[\w.]+|"
    r"'(tuple|list|dict|OrderedDict|NoneType|str|int|float|ndarray|\w+Output|\w+)' object has no attribute '(\w+)'|"
    r"unsupported operand type\(s\)|expected Tensor as element|only Tensors|tuple indices must be|"
    r"'(NoneType)' object is not (?:subscriptable|iterable|callable)|(list) indices must be|"
    r"can only concatenate|bad operand type for unary|not supported between instances|"
    # A tensor times a tuple, and a tensor at the place of one.
    r"only integer tensors of a single element|tensors used as indices must be",
)


def _not_tensor(scene: Scene) -> NoTensor | None:
    """What stands where a tensor should, and which module gave it."""
    pool: list[Any] = []
    if scene.call is not None and scene.is_torch_layer:
        pool += [scene.given]
    if scene.frame is not None:
        statement = scene.frame.statement
        mentioned = None if statement is None else names_used_whole(statement)
        pool += [v for name, v in scene.frame.variables.items() if mentioned is None or name in mentioned]
    for value in pool:
        made = scene.recorder.gave_no_tensor.get(id(value))
        if made is not None and made[2] is value and not isinstance(value, Tensor | int | bool):
            return NoTensor(value, made[0], made[1])
    return no_tensor_called(scene)


def find_not_tensor(scene: Scene) -> Diagnosis | None:
    """A tuple, dict or None stands where a tensor should."""
    if not isinstance(scene.error, TypeError | AttributeError | IndexError) or not _NOT_TENSOR.search(scene.text):
        return None
    found = _not_tensor(scene)
    if found is None:
        value = scene.given
        if scene.is_torch_layer and scene.call is not None and scene.call.args and not isinstance(value, Tensor):
            return _given_no_tensor(scene, value)
        return None
    value, path, kind = found.value, found.path, found.kind
    place = f"{path or 'the model itself'} ({kind})"
    taken = f"{scene.path} was given all of it"
    if found.written and scene.frame is not None:
        taken = f"{scene.frame.where.file}, line {scene.frame.where.line} takes all of it"
    if value is None:
        return Diagnosis(
            cause="gives-none",
            says=f"{place} gives back None: its forward has no return, or one without a value.",
            fix="End its forward with `return x`.",
            change=_forward_line(dict(scene.model.named_modules()).get(path)),
        )
    if isinstance(value, tuple | list):
        parts = ", ".join(type(part).__name__ for part in value)
        recurrent = kind in ("LSTM", "GRU", "RNN")
        name = path.rpartition(".")[2]
        code = f"x, state = {name if name.isidentifier() else 'lstm'}(x)" if recurrent else "x = x[0]"
        if kind == "MultiheadAttention":
            code = "x, weights = attention(x, x, x)"
        code = f"{found.written}[0]" if found.written else code
        return Diagnosis(
            cause="tuple-handed-on",
            says=f"{place} gives {with_article(type(value).__name__)} of {counted(len(value), 'part')} ({parts}), "
            f"and {taken}.",
            fix="Hand on the part that is meant."
            + (
                " nn.Sequential cannot: call the recurrent layer yourself."
                if recurrent and _in_sequential(scene)
                else ""
            ),
            code=code,
            change=line_that_makes(scene.model, path) if recurrent and path and _in_sequential(scene) else None,
        )
    keys = list(value)[:6] if isinstance(value, Mapping) else []
    return Diagnosis(
        cause="tuple-handed-on",
        says=f"{place} gives {with_article(type(value).__name__)}"
        + (f" with {', '.join(map(str, keys))}" if keys else "")
        + f", and {taken}.",
        fix="Hand on the part that is meant.",
        code=f'{found.written or "x = x"}["{keys[0]}"]' if keys else "",
    )


def _in_sequential(scene: Scene) -> bool:
    return any(isinstance(call.module, nn.Sequential) for call in scene.raised.calls)


def _given_no_tensor(scene: Scene, value: Any) -> Diagnosis:
    kind = type(value).__name__
    says = f"{scene.path} was given {with_article(kind)}, not a tensor."
    if value is None:
        return Diagnosis(
            cause="none-given", says=says, fix="Look at who should have made it.", sureness=Sureness.LIKELY
        )
    if isinstance(value, PackedSequence):
        return _packed(scene, value, says)
    if isinstance(value, tuple | list) and any(isinstance(part, Tensor) for part in value):
        return _put_together(scene, value, says)
    if kind == "ndarray":
        fix, code = "Make it a tensor.", "x = torch.from_numpy(x).float()"
    elif isinstance(value, Mapping):
        fix, code = "Hand over its values by name.", "model(**batch)"
    elif "Image" in kind:
        fix, code = "Make it a tensor.", "x = torchvision.transforms.functional.to_tensor(picture).unsqueeze(0)"
    else:
        fix, code = "Make it a tensor.", "x = torch.as_tensor(x)"
    return Diagnosis(cause="not-a-tensor", says=says, fix=fix, code=code)


def _put_together(scene: Scene, value: Any, says: str) -> Diagnosis:
    """Several tensors in one tuple or list: the ways to make one of them, each tried."""
    frame = scene.frame
    variables = frame.variables if frame is not None else {}
    name = next((name for name, one in variables.items() if one is value), "")
    ways = ("torch.cat({0}, -1)", "torch.stack(list({0}))", "torch.cat({0})", "{0}[0]", "{0}[-1]")
    if name:
        for way in ways:
            code = f"{name} = {way.format(name)}"
            statements = statements_of(code) or []
            if outcome(scene, lambda one, new=statements: [*new, one]) == "":  # type: ignore[misc]
                return Diagnosis(
                    cause="not-a-tensor",
                    says=says,
                    fix="Hand on one of its tensors, or put them together as it is meant.",
                    code=code,
                    tried=(RUNS,),
                )
    return Diagnosis(
        cause="not-a-tensor",
        says=says,
        fix=f"Hand on one of its tensors ({name or 'x'}[0]), or put them together (torch.stack, torch.cat).",
    )


def _packed(scene: Scene, value: PackedSequence, says: str) -> Diagnosis:
    """What a recurrent layer gives for packed sequences, before a layer that takes tensors."""
    frame = scene.frame
    variables = frame.variables if frame is not None else {}
    name = next((name for name, one in variables.items() if one is value), "")
    first = next((m.batch_first for _, m in scene.modules_called() if isinstance(m, nn.RNNBase)), True)
    padded = "" if name else "x"
    code = f"{name or padded}, lengths = torch.nn.utils.rnn.pad_packed_sequence({name or padded}, batch_first={first})"
    tried: tuple[str, ...] = ()
    if frame is not None and name:
        statements = statements_of(code) or []
        if outcome(scene, lambda one: [*statements, one]) == "":
            tried = (RUNS,)
    return Diagnosis(
        cause="not-a-tensor",
        says=says,
        fix="Unpack it before, which gives padded sequences and their lengths; a layer that takes each position by "
        f"itself can also be given {name or 'x'}.data, the rows of all sequences without padding.",
        code=code,
        tried=tried,
    )


_ATTRIBUTE = re.compile(r"'([\w.]+)' object has no attribute '(\w+)'")


def find_attribute(scene: Scene) -> Diagnosis | None:
    """A name that the module does not have."""
    match = _ATTRIBUTE.search(scene.text)
    if not isinstance(scene.error, AttributeError) or match is None:
        return None
    holder = next(
        (c.module for c in reversed(scene.raised.calls) if type(c.module).__name__ == match[1]),
        None,
    )
    if match[2] in ("_modules", "_parameters", "_buffers", "_forward_hooks", "_backward_hooks", "training"):
        return Diagnosis(
            cause="no-super-init",
            says=f"{match[1]} was made without nn.Module's own __init__.",
            fix="Begin its __init__ with the line below.",
            code="super().__init__()",
        )
    if holder is None and match[1] in ("Tensor", "Parameter"):
        return Diagnosis(
            cause="no-such-attribute",
            says=f"A tensor has no {match[2]}.",
            fix=nearest(match[2], dir(torch.Tensor)) or "Look at what the line was meant to call.",
        )
    if holder is None:
        return None
    if match[2] in local_names(type(holder)):
        return Diagnosis(
            cause="no-such-attribute",
            says=f"{match[1]} has no {match[2]}: __init__ makes it without self.",
            fix="Keep it with self. in __init__.",
            code=f"self.{match[2]} = ...",
        )
    names = [
        name for name in (*holder._modules, *holder._parameters, *holder._buffers, *vars(holder)) if name[0] != "_"
    ]
    return Diagnosis(
        cause="no-such-attribute",
        says=f"{match[1]} has no {match[2]}.",
        fix=nearest(match[2], names) or "Set it in __init__.",
    )


def local_names(kind: type) -> tuple[str, ...]:
    """Variables of a class's own __init__ that are none of its arguments."""
    code = getattr(vars(kind).get("__init__"), "__code__", None)
    return () if code is None else code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]


def nearest(name: str, names: list[str]) -> str:
    """Which of these may be meant, as a question; "" for none."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"Is {near[0]} meant?" if near else ""


def find_recursion(scene: Scene) -> Diagnosis | None:
    """A forward that calls itself without end."""
    if not isinstance(scene.error, RecursionError):
        return None
    seen: dict[int, int] = {}
    for call in scene.raised.calls:
        seen[id(call.module)] = seen.get(id(call.module), 0) + 1
    path = next((scene.name_of(c.path, c.module) for c in scene.raised.calls if seen[id(c.module)] > 2), scene.path)
    return Diagnosis(
        cause="endless-recursion",
        says=f"The forward of {path} calls itself without end.",
        fix="Inside forward call the layers, not self(x) and not what calls forward again.",
    )


CAUSES = (
    Cause(kinds=("endless-recursion",), find=find_recursion),
    Cause(kinds=("no-forward",), find=find_no_forward),
    Cause(kinds=("missing-argument", "unknown-argument", "too-many-arguments"), find=find_arguments),
    Cause(kinds=("gives-none", "tuple-handed-on", "none-given", "not-a-tensor"), find=find_not_tensor),
    Cause(kinds=("no-such-attribute", "no-super-init"), find=find_attribute),
)
