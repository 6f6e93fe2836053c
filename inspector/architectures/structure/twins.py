"""Parts of one name's level that are built alike: two networks in one file, a stem for each stream."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from inspector.architectures.structure.blocks import blocks_of
from inspector.architectures.structure.paths import above
from inspector.architectures.structure.types import NORMS, Claim, Layer, LayerKind, Stack, Topic
from inspector.architectures.structure.wording import is_weighty
from inspector.units import counted

_LEAST_LAYERS = 2
_MOST_DEPTH = 3
_MOST_NAMED, _MOST_PAIRS = 6, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
    """paths: of the modules, in the file's order. exact: whether all their tensors agree, norms and loose ones too."""

    paths: tuple[str, ...]
    layers: tuple[Layer, ...]
    exact: bool
    differs: str = ""


def twins_of(layers: Sequence[Layer], stacks: Sequence[Stack] = ()) -> tuple[Twins, ...]:
    """Modules beside each other, in no stack, with the same layers by name, kind, kernel and widths; none inside
    another pair. Of numbered ones all shapes are equal."""
    blocks = blocks_of(stacks)
    found: list[Twins] = []
    told: set[str] = set()
    for depth in range(1, _MOST_DEPTH + 1):
        inside: dict[str, list[Layer]] = {}
        for layer in layers:
            parts = layer.path.split(".")
            if len(parts) > depth:
                inside.setdefault(".".join(parts[:depth]), []).append(layer)
        builds: dict[object, list[str]] = {}
        for path, group in inside.items():
            parent, _, last = path.rpartition(".")
            if (
                told.intersection((path, *above(path)))
                or last.isdecimal()
                or blocks.keys() & {path, *above(path)}
                or sum(map(is_weighty, group)) < _LEAST_LAYERS
            ):
                continue
            build = tuple(_build(layer, path) for layer in group if layer.kind not in NORMS | {LayerKind.TENSOR})
            builds.setdefault((parent, build), []).append(path)
        alike = [paths for paths in builds.values() if len(paths) > 1 and _is_told(paths, inside)]
        told.update(path for paths in alike for path in paths)
        found += [_made([(path, inside[path]) for path in paths]) for paths in alike]
    # What is not said of a pair must not be left out of the rows.
    return tuple(found[:_MOST_PAIRS])


def _build(layer: Layer, path: str) -> tuple[object, ...]:
    return layer.path[len(path) :], layer.kind, layer.kernel, layer.inputs, layer.outputs, layer.more, layer.biased


def _is_told(paths: Sequence[str], inside: Mapping[str, Sequence[Layer]]) -> bool:
    numbered = any(path[-1:].isdecimal() for path in paths)
    return not numbered or len({tuple(_build(layer, path) for layer in inside[path]) for path in paths}) == 1


def _made(group: Sequence[tuple[str, Sequence[Layer]]]) -> Twins:
    whole = {tuple(_build(layer, path) for layer in layers) for path, layers in group}
    norms = [sum(layer.kind in NORMS for layer in layers) for _, layers in group]
    differs = ""
    if len(set(norms)) > 1:
        told = [
            f"{path} {counted(number, 'norm') if number else 'none'}"
            for (path, _), number in zip(group, norms, strict=True)
        ]
        differs = f"norms differ: {', '.join(told[:_MOST_NAMED])}"
    return Twins(
        paths=tuple(path for path, _ in group), layers=tuple(group[0][1]), exact=len(whole) == 1, differs=differs
    )


def twins(pairs: Sequence[Twins], stacks: Sequence[Stack] = ()) -> Iterator[Claim]:
    """One claim for each; blocks of the same layers are named with them."""
    for pair in pairs:
        *most, last = pair.paths[:_MOST_NAMED]
        says = f"{', '.join(most)} and {last} are built alike, "
        if len(pair.paths) > _MOST_NAMED:
            left = len(pair.paths) - _MOST_NAMED
            says = f"{', '.join([*most, last])} and {left:,} more ({len(pair.paths):,} in all) are built alike, "
        if pair.exact:
            says += "all shapes equal"
        else:
            says += "with equal convolutions and matrices"
            says += f"; {pair.differs}" if pair.differs else ""
        own = _alike(pair.layers, pair.paths[0])
        like = [one for one in stacks if one.equal and _alike(one.layers, one.block_name(0)) == own]
        if pair.exact and like:
            says += f", and as {like[0].block_name(0)} to {like[0].block_name(-1)} are"
        weights = sum(map(is_weighty, pair.layers))
        yield Claim(
            topic=Topic.REPEATS,
            says=f"{says}.",
            evidence=f"the same names and shapes in {counted(len(pair.paths), 'module')}, {weights:,} layers in each",
            value=len(pair.paths),
            path=pair.paths[0],
        )


def _alike(layers: Sequence[Layer], path: str) -> tuple[object, ...]:
    return tuple(_build(layer, path) for layer in layers)


def again_of(pairs: Sequence[Twins]) -> frozenset[str]:
    """Paths of all but the first of exact twins."""
    return frozenset(path for pair in pairs if pair.exact for path in pair.paths[1:])


def is_again(path: str, again: Collection[str]) -> bool:
    """Whether it is in a later one of exact twins, of which the first has been told."""
    return any(one in again for one in (path, *above(path)))
