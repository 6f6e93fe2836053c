"""Weights that run and that no state dict holds: made inside forward, kept in a plain list, or in a plain attribute."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from inspector.doctor.frames import forward_code, is_own, shown_file
from inspector.doctor.observations import Foreign
from inspector.doctor.record import Recorder
from inspector.doctor.report import SourceLine
from inspector.errors import InspectorError
from inspector.findings import Finding, FindingKind, Severity
from inspector.side_files import read_text
from inspector.units import counted, human_shape

MADE_IN_FORWARD = FindingKind("layer-made-in-forward", Severity.ERROR, "Weights are made anew in each forward")
PLAIN_CONTAINER = FindingKind("layers-in-plain-container", Severity.ERROR, "Layers lie in a plain list or dict")
PLAIN_TENSOR = FindingKind("tensor-in-plain-attribute", Severity.WARNING, "A tensor is neither parameter nor buffer")

_MOST_DEPTH = 3


def plain_tensors(model: nn.Module) -> dict[int, Tensor]:
    """Tensors in plain attributes, to be asked for before a pass: what a forward keeps for later is none of these."""
    return {id(tensor): tensor for _, tensor in named_plain_tensors(model)}


def named_plain_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """(dotted name, tensor) of what modules hold as neither parameter nor buffer: plain attributes."""
    for path, module in model.named_modules():
        for place, _, value in _attributes_of(path, module):
            if isinstance(value, Tensor):
                yield place, value


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAttribute:
    """Weights that hang in a plain attribute. place: dotted name; name: of the attribute; module: whose it is.

    layers: modules in a list, tuple, set or dict. weights: their parameters and those that lie there bare, none of
    which the model knows.
    """

    place: str
    name: str
    module: nn.Module
    value: Any
    layers: tuple[nn.Module, ...]
    weights: tuple[Tensor, ...]

    def found(self) -> Finding:
        """What is said of it."""
        line = line_of_attribute(self.module, self.name)
        return _plain_container(self.place, self.value, list(self.layers), list(self.weights), line)


def plain_containers(model: nn.Module) -> Iterator[PlainAttribute]:
    """Layers and parameters that no state dict of the model holds, by the attribute that keeps them."""
    registered = {id(module) for module in model.modules()}
    known = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    for path, module in model.named_modules():
        for place, name, value in _attributes_of(path, module):
            hidden = tuple(dict.fromkeys(_modules_in(value, registered)))
            weights: list[Tensor] = [p for one in hidden for p in one.parameters() if id(p) not in known]
            weights += [t for t in _parameters_in(value) if id(t) not in known]
            if weights:
                yield PlainAttribute(
                    place=place, name=name, module=module, value=value, layers=hidden, weights=tuple(weights)
                )


def plain_tensor_found(place: str, module: nn.Module, value: Tensor) -> Finding:
    """What is said of a tensor in a plain attribute."""
    name = place.rpartition(".")[2]
    return _plain_tensor(place, name, value, line_of_attribute(module, name))


def find_own_layers(model: nn.Module, recorder: Recorder, before: Mapping[int, Tensor]) -> Iterator[Finding]:
    """before: the plain tensors that were there before the pass."""
    containers = {one.place: one for one in plain_containers(model) if is_own_class(one.module)}
    explained = {id(tensor) for one in containers.values() for tensor in one.weights}
    for path, module in model.named_modules():
        if not is_own_class(module):
            continue
        for place, name, value in _attributes_of(path, module):
            if place in containers:
                yield containers[place].found()
                continue
            used = isinstance(value, Tensor) and id(value) in recorder.used and before.get(id(value)) is value
            if used and not is_computed(module, name):
                yield _plain_tensor(place, name, value, line_of_attribute(module, name))
    yield from _made_in_forward([one for one in recorder.foreign if one.ident not in explained])


def _attributes_of(path: str, module: nn.Module) -> Iterator[tuple[str, str, Any]]:
    """(dotted name, name, value) of the plain ones of a module."""
    for name, value in vars(module).items():
        if name not in ("_modules", "_parameters", "_buffers"):
            yield f"{path}.{name}" if path else name, name, value


def is_own_class(module: nn.Module) -> bool:
    """Whether its class was written by the person, and not by a library that is installed."""
    name = file_of(module)
    return bool(name) and is_own(name) and shown_file(name) == name.replace("\\", "/").rpartition("/")[2]


def file_of(module: nn.Module) -> str:
    """Of its class's forward; "" where that is no plain Python."""
    code = forward_code(module)
    return code.co_filename if code is not None else ""


def _modules_in(value: Any, registered: set[int], depth: int = 0) -> Iterator[nn.Module]:
    if isinstance(value, nn.Module):
        if depth and id(value) not in registered:
            yield value
    elif depth < _MOST_DEPTH:
        parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple | set) else ()
        for part in parts:
            yield from _modules_in(part, registered, depth + 1)


def _parameters_in(value: Any) -> Iterator[Tensor]:
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple | set) else ()
    for part in parts:
        if isinstance(part, nn.Parameter):
            yield part


def is_computed(module: nn.Module, name: str) -> bool:
    """weight_norm, spectral_norm and pruning keep the weight that they compute in a plain attribute."""
    return any(f"{name}_{end}" in module._parameters for end in ("orig", "g", "v", "bar"))


def _plain_container(
    place: str, value: Any, hidden: list[nn.Module], weights: list[Tensor], line: SourceLine | None
) -> Finding:
    kind = type(value).__name__
    what = counted(len(hidden), "layer") if hidden else counted(len(weights), "parameter")
    instead = "nn.ModuleDict" if isinstance(value, Mapping) else "nn.ModuleList"
    if not hidden:
        instead = "nn.ParameterDict" if isinstance(value, Mapping) else "nn.ParameterList"
    return PLAIN_CONTAINER.found(
        f"{place} is a plain {kind} of {what} ({sum(t.numel() for t in weights):,} weights), which is in no state "
        f"dict, goes to no device and is never trained{_at(line)}.",
        subjects=(place,),
        evidence=_evidence(line, ("weights", sum(t.numel() for t in weights))),
        remedy=f"Make it an {instead}.",
    )


def _plain_tensor(place: str, name: str, value: Tensor, line: SourceLine | None) -> Finding:
    trained = value.requires_grad
    return PLAIN_TENSOR.found(
        f"{place}, a tensor of {human_shape(tuple(value.shape))}, is a plain attribute: model.to(device) leaves it "
        f"behind and no state dict holds it{_at(line)}.",
        subjects=(place,),
        evidence=_evidence(line),
        remedy=_outermost(line)
        or (f"self.{name} = nn.Parameter(...)" if trained else f'self.register_buffer("{name}", ...)'),
    )


def _outermost(line: SourceLine | None) -> str:
    """A Parameter that something was computed from, or .to() was called of: what is kept is no Parameter."""
    try:
        tree = ast.parse(line.text if line is not None else "")
    except (SyntaxError, ValueError):
        return ""
    value = tree.body[0].value if tree.body and isinstance(tree.body[0], ast.Assign) else None
    made = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("Parameter")]
    if value is None or len(made) != 1 or made[0] is value or len(made[0].args) != 1:
        return ""
    parameter, what = made[0], "what is computed from a Parameter"
    if isinstance(value, ast.BinOp):
        words = {ast.Mult: "product", ast.Div: "quotient", ast.Add: "sum", ast.Sub: "difference"}
        what = f"the {words.get(type(value.op), 'result')} of a Parameter"
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        what = f"what .{value.func.attr}() gives of a Parameter"
    inner, name = parameter.args[0], ast.unparse(parameter.func)

    class Unwrapped(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            return inner if node is parameter else self.generic_visit(node)

    target = ast.unparse(tree.body[0].targets[0])  # type: ignore[attr-defined]
    return f"{what[0].upper()}{what[1:]} is no Parameter: {target} = {name}({ast.unparse(Unwrapped().visit(value))})"


def _made_in_forward(foreign: list[Foreign]) -> Iterator[Finding]:
    by_line: dict[SourceLine | None, list[Foreign]] = {}
    for one in foreign:
        by_line.setdefault(one.line, []).append(one)
    for line, group in by_line.items():
        places = list(dict.fromkeys(one.inside or "the model itself" for one in group))
        shapes = ", ".join(human_shape(shape) for shape in list(dict.fromkeys(one.shape for one in group))[:4])
        named = ", ".join(places[:3]) + (f" and {len(places) - 3:,} more" if len(places) > 3 else "")
        where = f"{len(places)} modules ({named}) run" if len(places) > 1 else f"{named[0].upper()}{named[1:]} runs"
        where = where if places[0] == "the model itself" or len(places) > 1 else f"{named} runs"
        yield MADE_IN_FORWARD.found(
            f"{where} weights that are none of the model's ({shapes}): made in its forward "
            f"they are new at each call, and in no state dict{_at(line)}.",
            subjects=tuple(dict.fromkeys(one.inside for one in group)),
            evidence=_evidence(line),
            remedy="Make the layer in __init__ and call it in forward.",
        )


def _at(line: SourceLine | None) -> str:
    return f" ({line.file}, line {line.line}: {line.text})" if line is not None else ""


def _evidence(line: SourceLine | None, *more: tuple[str, int]) -> tuple[tuple[str, str | int | float | bool], ...]:
    where: tuple[tuple[str, str | int | float | bool], ...] = ()
    if line is not None:
        where = (("file", line.file), ("line", line.line), ("text", line.text))
    return (*where, *more)


def line_of_attribute(module: nn.Module, name: str) -> SourceLine | None:
    """Where the class sets self.NAME first."""
    file = file_of(module)
    try:
        text = read_text(file, "source")
        tree = ast.parse(text)
    except (InspectorError, SyntaxError, ValueError, RecursionError):
        return None
    names = {one.__name__ for one in inspect.getmro(type(module))}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in names:
            for inner in (one for one in ast.walk(node) if isinstance(one, ast.stmt)):
                targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target] if isinstance(inner, ast.AnnAssign) else []  # fmt: skip  # noqa: E501
                flat = [t for one in targets for t in (one.elts if isinstance(one, ast.Tuple) else [one])]
                for target in flat:
                    if isinstance(target, ast.Attribute) and target.attr == name:
                        line = text.splitlines()[inner.lineno - 1].strip()
                        return SourceLine(file=shown_file(file), line=inner.lineno, text=line[:400])
    return None
