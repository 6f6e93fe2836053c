"""Layers that take as many as two or three widths put out before them: what an attention or a decoder's step joins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement

from inspector.architectures.structure.projections import role_of
from inspector.architectures.structure.types import CONVOLUTIONS, RECURRENT, Claim, Layer, LayerKind, Topic

_WEIGHTED = CONVOLUTIONS | RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX, LayerKind.EMBEDDING}
_TAKERS = RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX, LayerKind.TRANSPOSED}
_MOST_CLAIMS, _MOST_WIDTHS = 6, 24
# Below them a sum of two widths is found by chance.
_LEAST_TAKEN, _LEAST_PART = 64, 8
_MOST_READINGS = 2

Sum = tuple[int, ...]


def sums(layers: Sequence[Layer], told: str, *, ordered: bool) -> Iterator[Claim]:
    """One claim for each width that no layer puts out. told: sentences about sums already."""
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED and layer.outputs and layer.inputs]
    given = {layer.outputs for layer in weighted}
    made: Counter[int] = Counter()
    last: Layer | None = None
    said: set[int] = set()
    # What an earlier layer takes as well comes from where that one's does.
    taken: set[int | None] = set()
    for layer in weighted if ordered else ():
        if last is not None and layer.inputs not in given | taken and layer.name not in told and _may_join(layer):
            found = _readings(layer, made, last.outputs or 0)
            if 0 < len(found) <= _MOST_READINGS and len(said) < _MOST_CLAIMS:
                said.add(layer.inputs or 0)
                yield _claim(layer, found, weighted)
        taken.add(layer.inputs)
        made[layer.outputs or 0] += 1
        last = layer


def _may_join(layer: Layer) -> bool:
    point = layer.kind is LayerKind.CONVOLUTION and max(layer.kernel) == 1
    return (layer.kind in _TAKERS or point) and role_of(layer) is None and (layer.inputs or 0) >= _LEAST_TAKEN


def _readings(layer: Layer, made: Counter[int], before: int) -> Sequence[Sum]:
    """Pairs first, of what the layer before puts out and another; then three widths, none twice. A recurrent layer
    is given what comes from farther away as well."""
    widths = sorted(made)
    total = layer.inputs or 0
    if len(widths) > _MOST_WIDTHS:
        return []
    pairs = [
        parts
        for parts in combinations_with_replacement(widths, 2)
        if sum(parts) == total and min(parts) >= _LEAST_PART and all(parts.count(one) <= made[one] for one in parts)
    ]
    near = [parts for parts in pairs if before in parts]
    if near or (pairs and layer.kind in RECURRENT):
        return near or pairs
    if pairs:
        return []
    threes = [p for p in combinations(widths, 3) if sum(p) == total and before in p and p[0] >= _LEAST_PART]
    return threes if layer.kind is not LayerKind.CONVOLUTION else []


def _ends(weighted: Sequence[Layer]) -> frozenset[str]:
    """Paths of layers behind which another module begins."""
    parents = [one.path.rpartition(".")[0] for one in weighted]
    following = [*parents[1:], None]
    return frozenset(
        one.path for one, parent, after in zip(weighted, parents, following, strict=True) if parent != after
    )


def _claim(layer: Layer, readings: Sequence[Sum], weighted: Sequence[Layer]) -> Claim:
    texts = [" + ".join(f"{width:,}" for width in sorted(parts, reverse=True)) for parts in readings]
    says = f"{layer.name} takes {layer.inputs:,} = {' or '.join(texts)}"
    if len(readings) == 1:
        says += ": widths that layers before it put out, likely joined."
    else:
        says += ": widths that layers before it put out add up so."
    index = next(place for place, one in enumerate(weighted) if one is layer)
    names = []
    ends = _ends(weighted[:index])
    for width in sorted(set(readings[0]), reverse=True):
        makers = [one for one in reversed(weighted[:index]) if one.outputs == width]
        # What a module ends in goes on from it; what stands inside is taken by the next.
        last = [one for one in makers if one.path in ends] or makers
        several = f", or another of {len(makers):,} of that width" if len(makers) > 1 else ""
        names.append(f"{width:,} by {last[0].name}{several}")
    return Claim(
        topic=Topic.JOINS,
        says=says,
        evidence=f"{layer.evidence}; no layer puts out so many; {', '.join(names)}",
        value=layer.inputs,
        path=layer.path,
    )
