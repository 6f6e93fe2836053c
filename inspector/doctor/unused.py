"""Layers and parameters that no pass uses, and that no code of their class mentions behind __init__."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence, Set
from types import CodeType

from torch import nn

from inspector.doctor.own_layers import line_of_attribute
from inspector.doctor.report import SourceLine
from inspector.doctor.shared import called_instead
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import counted, human_shape

UNUSED = FindingKind("never-used", Severity.NOTICE, "Weights that the forward never uses", (Severity.WARNING,))
_CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
# Whoever asks so may take any of them.
_BY_ANY_NAME = {
    "getattr", "_modules", "_parameters", "children", "named_children", "modules", "named_modules", "get_submodule",
    "parameters", "named_parameters", "get_parameter", "__dict__", "vars", "eval", "state_dict",
}  # fmt: skip
_MOST = 12


def find_unused(
    model: nn.Module,
    called: Set[str],
    used: Set[int],
    lines: Mapping[str, Sequence[SourceLine | None]] | None = None,
) -> Iterator[Finding]:
    """called: paths of the modules that ran; used: ids of the tensors that operators were given. lines: of each call,
    by path.

    A name that some method beside __init__ mentions is a branch that was not taken: an auxiliary head, an alternative.
    Of a list or dict whose entries ran in part the others are alternatives, too (experts, feature taps).
    """
    found = 0
    for path, module in model.named_modules():
        if path not in called or _is_torchs(module) or found >= _MOST:
            continue
        children = {
            name: child
            for name, child in module._modules.items()
            if child is not None and any(True for _ in child.parameters())
            if not any(id(p) in used for p in child.parameters()) and not _ran(_joined(path, name), called)
        }
        own = {name: p for name, p in module._parameters.items() if p is not None and id(p) not in used}
        names = _mentioned(model, path, module) if children or own else set()
        if names & _BY_ANY_NAME:
            continue
        for name, child in children.items():
            if name not in names:
                found += 1
                finding = _module(_joined(path, name), name, child, module)
                instead = called_instead(module, name, path, lines or {})
                yield finding if instead is None else _instead(finding, *instead)
        for name, parameter in own.items():
            if name not in names:
                found += 1
                place = _joined(path, name)
                what = f"The parameter {place} of {human_shape(tuple(parameter.shape))}"
                yield _told(place, what, parameter.numel(), module, name)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_torchs(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.")


def _ran(place: str, called: Set[str]) -> bool:
    return place in called or any(path.startswith(f"{place}.") for path in called)


def _mentioned(model: nn.Module, path: str, module: nn.Module) -> set[str]:
    """Names in all methods but __init__, of the module's class and of those it lies in."""
    found: set[str] = set()
    parts = path.split(".") if path else []
    for end in range(len(parts) + 1):
        holder = model.get_submodule(".".join(parts[:end]))
        if not _is_torchs(holder):
            found |= _names_of(type(holder))
    # A forward that was handed over or set on the object itself.
    for value in vars(module).values():
        code = getattr(value, "__code__", None)
        if isinstance(code, CodeType):
            found |= _names_in(code)
    return found


def _names_of(kind: type) -> set[str]:
    found: set[str] = set()
    for one in inspect.getmro(kind):
        if one.__module__.startswith("torch.") or one is object:
            continue
        for name, value in vars(one).items():
            function = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
            code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
            if name != "__init__" and isinstance(code, CodeType):
                found |= _names_in(code)
    return found


def _names_in(code: CodeType) -> set[str]:
    found = {*code.co_names, *(one for one in code.co_consts if isinstance(one, str))}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names_in(constant)
    return found


def _module(place: str, name: str, child: nn.Module, holder: nn.Module) -> Finding:
    weights = sum(p.numel() for p in child.parameters())
    what = f"{place} ({type(child).__name__})"
    if isinstance(child, _CONTAINERS):
        what = f"{place} ({type(child).__name__} of {counted(len(child), 'entry', 'entries')})"
    return _told(place, what, weights, holder, name)


def _instead(finding: Finding, place: str, line: SourceLine | None) -> Finding:
    """A layer just like it was called once more than the others: a name that was copied and not changed."""
    at = f" ({line.file}, line {line.line}: {line.text})" if line is not None else ""
    name = finding.subjects[0].rpartition(".")[2]
    return dataclasses.replace(
        finding,
        severity=Severity.WARNING,
        says=f"{place} is called a second time{at}, while {finding.says}",
        remedy=f"Is self.{name} meant in that line? Both have the same shapes.",
    )


def _told(place: str, what: str, weights: int, holder: nn.Module, name: str) -> Finding:
    line = line_of_attribute(holder, name)
    at = f" ({line.file}, line {line.line}: {line.text})" if line is not None else ""
    used = "nothing outside __init__ mentions it" if line is not None else "no method mentions it"
    evidence: tuple[tuple[str, str | int | float | bool], ...] = (("weights", weights),)
    if line is not None:
        evidence = (("file", line.file), ("line", line.line), ("text", line.text), *evidence)
    return UNUSED.found(
        f"{what} is never used: {counted(weights, 'weight')} that this pass did not touch, and {used}{at}.",
        subjects=(place,),
        evidence=evidence,
        remedy="Was another layer called in its place? Else take it out: it is saved, and never trained.",
    )
