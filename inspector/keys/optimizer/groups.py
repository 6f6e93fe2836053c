"""An optimizer's groups by the names of their parameters: learning rate, weight decay and whatever else each one sets.

Only what `map.py` proves is named. Where the file's numbers cannot be read as parameters for certain, the settings and
how many entries each group has are still there, and why nothing is named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.checkpoint.values import Value, ValueKind
from inspector.keys.folding import folded_line
from inspector.keys.optimizer.map import OptimizerMap, map_optimizers
from inspector.units import counted

_LISTS = ("params", "param_names")
_DEEPEST = 4
_SHOWN = 8
_FEW = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """One group. settings: (name, value as text) in the file's order. entries: how many parameters it lists.

    names: these parameters, () where it is not proved which they are. modules: the same folded, for people.
    """

    settings: tuple[tuple[str, str], ...]
    entries: int
    names: tuple[str, ...] = ()
    modules: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerReport:
    """One optimizer of the file. label: where it is. kind: what its state looks like, "" where it keeps none.

    says: the answer in one sentence. by: what names rest on ("name", "index and shape"), "" where there are none.
    outside: parameters of the weights that are in no group. refusal: why nothing is named, "" where it is. asks: what
    the names would be if its groups were made by kind of parameter, which only its author knows.
    """

    label: str
    kind: str
    says: str
    by: str
    groups: tuple[GroupReport, ...]
    outside: tuple[str, ...] = ()
    refusal: str = ""
    asks: str = ""


def describe_optimizers(
    checkpoint: Checkpoint, state: StateDict | None, buffers: Collection[str] = ()
) -> tuple[OptimizerReport, ...]:
    """Every optimizer of the file against one of its state dicts. buffers: what of that is known to be no parameter."""
    mapped = {one.path: one for one in map_optimizers(checkpoint, state, buffers)} if state is not None else {}
    found = []
    for path, value in _optimizers(checkpoint.root, ()):
        one = mapped.get(path)
        found.append(_described(one, value) if one is not None else _bare(path, value, state))
        mapped.pop(path, None)
    # Of what keeps no groups as torch does (pieces of a sharded training), the reason alone.
    return (*found, *(_described(one, None) for one in mapped.values()))


def _optimizers(value: Value, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Value]]:
    """Whatever has a state and groups, as torch writes an optimizer, with state in it or without."""
    if value.kind not in (ValueKind.MAPPING, ValueKind.SEQUENCE):
        return
    children = dict(value.children)
    groups = children.get("param_groups")
    if "state" in children and groups is not None and groups.kind is ValueKind.SEQUENCE:
        yield path, value
    elif len(path) < _DEEPEST:
        for label, child in value.children:
            yield from _optimizers(child, (*path, label))


def _described(found: OptimizerMap, value: Value | None) -> OptimizerReport:
    groups = _groups(value) if value is not None else ()
    if not found.refusal and len(groups) == len(found.groups):
        groups = tuple(
            replace(group, names=own.names, modules=folded_line(own.names, _SHOWN))
            for group, own in zip(groups, found.groups, strict=True)
        )
    named = set(found.names)
    return OptimizerReport(
        label=found.label,
        kind=found.kind,
        says=found.says,
        by=found.by,
        groups=groups,
        outside=tuple(name for name in found.listed if name not in named),
        refusal=found.refusal,
        asks=found.asks,
    )


def _bare(path: tuple[str, ...], value: Value, state: StateDict | None) -> OptimizerReport:
    label = " / ".join(path) or "the file itself"
    groups = _groups(value)
    why = "it keeps no tensor that its entries could be checked by"
    if state is None:
        why = "the file holds no weights that its parameters could be"
    entries = counted(sum(group.entries for group in groups), "parameter")
    return OptimizerReport(
        label=label,
        kind="",
        says=f"{label}: {entries} in {counted(len(groups), 'group')}, which ones cannot be told: {why}.",
        by="",
        groups=groups,
        refusal=why,
    )


def _groups(value: Value) -> tuple[GroupReport, ...]:
    listed = dict(value.children)["param_groups"]
    return tuple(_group(group) for _, group in listed.children)


def _group(group: Value) -> GroupReport:
    inside = dict(group.children)
    params = inside.get("params")
    return GroupReport(
        settings=tuple((label, _text(child)) for label, child in group.children if label not in _LISTS),
        entries=params.size if params is not None else 0,
    )


def _text(value: Value) -> str:
    """A setting as it is written: betas are two numbers."""
    inside = [child for _, child in value.children]
    whole = value.kind is ValueKind.SEQUENCE and 0 < len(inside) == value.size <= _FEW
    if whole and not any(child.children for child in inside):
        return f"({', '.join(child.says for child in inside)})"
    return value.says
