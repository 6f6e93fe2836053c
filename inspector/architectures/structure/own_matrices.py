"""Matrices that a module keeps itself, under a name of its author's: what they take and put out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inspector.architectures.structure.types import Claim, Layer, LayerKind, Topic

_MOST = 4
_NAMES = frozenset({"w", "weight", "weights", "kernel", "theta", "lin"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """A matrix of (rows, columns) and the other tensors of its module."""

    path: str
    name: str
    rows: int
    columns: int
    scores: str = ""


def own_matrices(layers: Sequence[Layer]) -> Iterator[Claim]:
    """Modules of one matrix, stored as in x out, where a vector beside it has twice its columns (graph attention,
    Velickovic 2018, eq. 3) or a later one takes all that equal ones put out side by side."""
    found = _found(layers)
    builds: dict[tuple[int, int, str], list[_Own]] = {}
    for one in found:
        builds.setdefault((one.rows, one.columns, one.scores), []).append(one)
    groups = list(builds.values())
    for place, group in enumerate(groups[:_MOST]):
        first = group[0]
        before = groups[place - 1] if place else []
        joined = bool(before) and sum(one.columns for one in before) == first.rows
        if not first.scores and not joined:
            continue
        names = first.path if len(group) == 1 else f"{first.path} to {group[-1].path} each"
        verb = "takes" if len(group) == 1 else "take"
        verbs = "puts" if len(group) == 1 else "put"
        says = f"{names} {verb} {first.rows:,} values and {verbs} out {first.columns:,} by a matrix {first.name}"
        if joined:
            says += f"; {first.rows:,} = {len(before):,} x {before[0].columns:,}, as many as {before[0].path} to "
            says += f"{before[-1].path} put out side by side" if len(before) > 1 else "it"
        if first.scores:
            says += f"; {first.scores} has 2 x {first.columns:,} numbers, as a score of two such vectors "
            says += "(graph attention) has"
            if len(group) > 1:
                says += f": likely {len(group):,} heads"
        yield Claim(
            topic=Topic.OWN,
            says=f"{says}.",
            evidence=f"{first.name} {first.rows}x{first.columns}, {first.scores}".rstrip(", "),
            value=first.columns,
            path=first.path,
        )


def _found(layers: Sequence[Layer]) -> list[_Own]:
    inside: dict[str, dict[str, list[int]]] = {}
    for layer in layers:
        sizes = layer.more.split("x")
        if layer.kind is LayerKind.TENSOR and all(size.isdecimal() for size in sizes):
            parent, _, name = layer.path.rpartition(".")
            inside.setdefault(parent, {})[name] = [int(size) for size in sizes]
    found = []
    for path, tensors in inside.items():
        matrices = [name for name, shape in tensors.items() if len(shape) == 2 and min(shape) > 1]
        if not path or len(matrices) != 1 or matrices[0].lower() not in _NAMES:
            continue
        rows, columns = tensors[matrices[0]]
        scores = next((n for n, shape in tensors.items() if sorted(shape)[-1] == 2 * columns and _is_row(shape)), "")
        found.append(_Own(path=path, name=matrices[0], rows=rows, columns=columns, scores=scores))
    return found


def _is_row(shape: Sequence[int]) -> bool:
    return sum(size != 1 for size in shape) == 1
