"""What Python or torch says in words that need no more evidence: names, keys, indices, checks, values in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from torch import nn

from inspector.doctor.causes.code import local_names, nearest
from inspector.doctor.causes.entry import Cause
from inspector.doctor.frames import without_folders
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.doctor.values_named import value_of
from inspector.units import counted, with_article

_MESSAGES = (
    (
        "in-place-on-leaf",
        re.compile(r"leaf Variable that requires grad|view of a leaf Variable"),
        "A parameter, or an input that requires a gradient, is changed in place{line}.",
        "Make a new tensor instead (w + 1, not w += 1), or change it under torch.no_grad().",
    ),
    (
        "in-place-needed",
        re.compile(r"modified by an inplace operation"),
        "A tensor that the backward pass needs was changed in place{line}.",
        "Take out inplace=True and += behind the operation that needs it.",
    ),
    (
        "numpy-of-gradient",
        re.compile(r"Can't call numpy\(\) on Tensor that requires grad"),
        "A tensor that belongs to a graph of gradients is to become an array{line}.",
        "x.detach().cpu().numpy(); better, stay with torch inside of forward.",
    ),
    (
        "truth-of-many",
        re.compile(r"[Bb]oolean value of Tensor with (?:more than one|no) value|truth value of a"),
        "An `if`, `and`, `or` or `not` asks for the truth of a tensor with several values{line}.",
        "Say what is meant: x.any(), x.all(), x is not None, torch.where(...).",
    ),
    (
        "number-of-many",
        re.compile(r"cannot be converted to Scalar|only one element tensors|only integer tensors of a single element"),
        "A tensor with several values is used as one number{line}.",
        "Reduce it first: x.sum(), x.mean(), x[0].",
    ),
    (
        "size-is-no-integer",
        re.compile(
            r"'float' object cannot be interpreted as an integer|(?:must be tuple of ints|must be int).{0,80}float"
        ),
        "A size is no whole number{line}.",
        "Divide with //, or make it int(...).",
    ),
    (
        "division-by-zero",
        re.compile(r"^(?:float |integer )?(?:division|modulo)(?: or modulo)? by zero$"),
        "A number of the model's own is divided by zero{line}.",
        "Look at where it is set.",
    ),
    (
        "unknown-argument",
        re.compile(r"^[\w.]+\(\) got an unexpected keyword argument"),
        "A function was called by a keyword that it does not take{line}: {text}.",
        "torch calls it dim where NumPy says axis, and keepdim where NumPy says keepdims.",
    ),
    (
        "no-gpu",
        re.compile(
            r"Found no NVIDIA driver|not compiled with CUDA enabled|No CUDA GPUs are available|No HIP GPUs|"
            r"Cannot access accelerator device|no CUDA-capable device|CUDA driver version is insufficient|"
            r"PyTorch is not linked with support for (?:cuda|mps)|driver on your system is too old"
        ),
        "A GPU is asked for{line}, and this machine has none that torch can use.",
        "Use the device of the input or of the weights: .to(x.device), not .cuda().",
    ),
    (
        "no-memory",
        re.compile(r"out of memory|not enough memory|can't allocate memory|Cannot allocate|MemoryError", re.IGNORECASE),
        "The pass asked for more memory than there is{line}.",
        "A smaller batch or input; torch.no_grad() to predict.",
    ),
    (
        "uninitialised",
        re.compile(r"uninitialized parameter"),
        "A lazy module has no shape before its first forward pass{line}.",
        "Run one input through the model before anything else is done with it.",
    ),
)


def find_message(scene: Scene) -> Diagnosis | None:
    """Errors that say by themselves what they are."""
    for cause, pattern, says, fix in _MESSAGES:
        if pattern.search(scene.text) or (cause == "no-memory" and isinstance(scene.error, MemoryError)):
            line = f" in {scene.frame.where.file}, line {scene.frame.where.line}" if scene.frame is not None else ""
            return Diagnosis(cause=cause, says=says.format(line=line, text=scene.first_line.rstrip(".")), fix=fix)
    return None


def find_name(scene: Scene) -> Diagnosis | None:
    """A name that was never set."""
    if not isinstance(scene.error, NameError) or scene.frame is None:
        return None
    name = scene.error.name or ""
    if isinstance(scene.error, UnboundLocalError):
        return Diagnosis(
            cause="name-not-set",
            says=f"{scene.first_line.rstrip('.')}: no branch that ran has set it.",
            fix="Set it before the branches.",
        )
    if name and _is_local_of_init(scene.frame.variables.get("self"), name):
        return Diagnosis(
            cause="name-not-set",
            says=f"The name {name} is not known in {scene.frame.where.file}, line {scene.frame.where.line}: __init__ "
            "makes it without self.",
            fix="Keep it: self. in __init__, and here as well.",
            code=f"self.{name} = ...  # in __init__\nself.{name}(...)  # in forward",
        )
    known = [*scene.frame.variables, "torch", "nn", "F", "math", "np"]
    holder = scene.frame.variables.get("self")
    said = f"self.{name} exists." if holder is not None and name and hasattr(holder, name) else nearest(name, known)
    imports = {"F": "import torch.nn.functional as F", "nn": "from torch import nn", "torch": "import torch",
               "math": "import math", "np": "import numpy as np", "einops": "import einops"}  # fmt: skip
    return Diagnosis(
        cause="name-not-set",
        says=f"The name {name} is not known in {scene.frame.where.file}, line {scene.frame.where.line}.",
        fix="Import it." if name in imports else said or "Set or import it.",
        code=imports.get(name, ""),
    )


def _is_local_of_init(holder: Any, name: str) -> bool:
    """Whether a module's __init__ sets a variable of that name and lets go of it."""
    return isinstance(holder, nn.Module) and name in local_names(type(holder))


def find_key(scene: Scene) -> Diagnosis | None:
    """A dict or list of the model's own that lacks what was asked for."""
    if (
        not isinstance(scene.error, KeyError | IndexError)
        or scene.frame is None
        or isinstance(scene.error, RuntimeError)
    ):
        return None
    statement = scene.frame.statement
    if statement is None:
        return None
    holders = [n.value for n in ast.walk(statement) if isinstance(n, ast.Subscript)]
    for holder in holders:
        value = value_of(holder, scene.frame.variables)
        if isinstance(scene.error, KeyError) and isinstance(value, Mapping | nn.ModuleDict | nn.ParameterDict):
            key = scene.error.args[0] if scene.error.args else ""
            if key in value:
                continue
            keys = ", ".join(map(repr, list(value)[:8]))
            return Diagnosis(
                cause="no-such-key",
                says=f"{ast.unparse(holder)} has no {key!r}; it has {keys or 'nothing'}.",
                fix=_of_module(scene, str(key), list(map(str, value)))
                or nearest(str(key), [str(one) for one in value])
                or "Ask for one that is there.",
            )
        listed = isinstance(value, list | tuple | nn.ModuleList | nn.Sequential)
        if isinstance(scene.error, IndexError) and listed and "out of range" in scene.text:
            entries = counted(len(value), "entry", "entries")
            return Diagnosis(
                cause="index-out-of-range",
                says=f"{ast.unparse(holder)} has {entries}, and one beyond was asked for.",
                fix="Counting begins at 0.",
            )
    return None


def _of_module(scene: Scene, key: str, keys: list[str]) -> str:
    """What is missing is called like a module, and so are the others: nothing put this one there."""
    modules = {**{p.rpartition(".")[2]: (p, m) for p, m in scene.model.named_modules() if p}, **{
        p: (p, m) for p, m in scene.model.named_modules() if p
    }}  # fmt: skip
    if key not in modules or not keys or not all(one in modules for one in keys):
        return ""
    path, module = modules[key]
    ran = any(call.path == path and call.ended for call in scene.recorder.calls)
    hooked = [modules[one][0] for one in keys if modules[one][1]._forward_hooks]
    says = f"{path} is a module that {'ran' if ran else 'did not run'}, and nothing put it there"
    if ran and hooked and not module._forward_hooks:
        return (
            f"{says}: {', '.join(hooked[:3])} {'has' if len(hooked) == 1 else 'have'} a forward hook, {path} has none."
        )
    return f"{says}: look where the others are put in."


_NOT_CALLABLE = re.compile(r"'(\w+)' object is not callable")
_WRONG_KIND = re.compile(
    r"unsupported operand type\(s\) for .{1,6}: '(?P<a>\w+)' and '(?P<b>\w+)'|"
    r"expected Tensor as element .{1,30}got (?P<c>\w+)|must be Tensor, not (?P<d>\w+)|"
    r"can only concatenate (?P<e>\w+) \(not|'(?P<f>tuple|list|NoneType)' object has no attribute|"
    r"bad operand type for unary .: '(?P<g>\w+)'"
)


def _named(scene: Scene, kind: str, *, called: bool) -> str:
    """What of the failing statement has a value of that class; called: among what is called."""
    if scene.frame is None or scene.frame.statement is None:
        return ""
    for node in ast.walk(scene.frame.statement):
        one = node.func if called and isinstance(node, ast.Call) else node
        if not isinstance(one, ast.Name | ast.Attribute) or (called and one is node):
            continue
        if _is_known(one, scene.frame.variables) and type(value_of(one, scene.frame.variables)).__name__ == kind:
            return ast.unparse(one)
    return ""


def _is_known(node: ast.expr, variables: Mapping[str, Any]) -> bool:
    """Whether None stands there, and is not only what is not found."""
    if isinstance(node, ast.Name):
        return node.id in variables
    holder = value_of(node.value, variables) if isinstance(node, ast.Attribute) else None
    return isinstance(holder, nn.Module) and isinstance(node, ast.Attribute) and hasattr(holder, node.attr)


def find_wrong_kind(scene: Scene) -> Diagnosis | None:
    """A number is called, or text is added to a tensor."""
    if not isinstance(scene.error, TypeError | AttributeError):
        return None
    match = _NOT_CALLABLE.search(scene.text)
    name = _named(scene, match[1], called=True) if match is not None else ""
    if match is not None and name:
        return Diagnosis(
            cause="not-callable",
            says=f"{name} is a {match[1]} and was called like a layer.",
            fix="Make it a layer in __init__ (nn.Dropout(0.5), not 0.5), or leave out the brackets.",
        )
    match = _WRONG_KIND.search(scene.text)
    for kind in filter(lambda kind: kind not in (None, "Tensor", "Parameter"), match.groups() if match else ()):
        name = _named(scene, kind, called=False)
        if name:
            return Diagnosis(
                cause="none-given" if kind == "NoneType" else "not-a-tensor",
                says=f"{name} is {'None' if kind == 'NoneType' else with_article(kind)}, and a tensor is wanted there.",
                fix="Give it a value before, or ask for it: if x is None."
                if kind == "NoneType"
                else "Take the part that is meant, as x[0]."
                if kind in ("tuple", "list")
                else "Make it a tensor.",
            )
    return None


def find_assertion(scene: Scene) -> Diagnosis | None:
    """The model's own check failed."""
    if scene.frame is None:
        return None
    # Also what it raises itself, in a line that says so.
    raises = isinstance(scene.frame.statement, ast.Raise) and isinstance(
        scene.error, ValueError | RuntimeError | TypeError
    )
    if not isinstance(scene.error, AssertionError) and not raises:
        return None
    text = scene.first_line if scene.text.strip() else scene.frame.where.text
    return Diagnosis(
        cause="own-check",
        says=f"A check of the model's own failed in {scene.frame.where.file}, line {scene.frame.where.line}: "
        f"{without_folders(text).rstrip('.')}.",
        fix="It says itself what it wants.",
        sureness=Sureness.CERTAIN,
    )


CAUSES = (
    Cause(kinds=("name-not-set",), find=find_name),
    Cause(kinds=("not-callable", "none-given", "not-a-tensor"), find=find_wrong_kind),
    Cause(kinds=("no-such-key", "index-out-of-range"), find=find_key),
    Cause(kinds=tuple(cause for cause, *_ in _MESSAGES), find=find_message),
)
LAST = (Cause(kinds=("own-check",), find=find_assertion),)
