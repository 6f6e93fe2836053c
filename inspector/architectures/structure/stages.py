"""Modules of one numbering that are no blocks of one build: stages of more and fewer layers, up and down again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

from inspector.architectures.structure.blocks import blocks_of
from inspector.architectures.structure.paths import above
from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Stack, Topic

_NUMBERED = re.compile(r"(.*?)_?(\d{1,3})(_?[A-Za-z]{0,4})")
_LEAST, _MOST, _MOST_SHOWN = 3, 4, 12
_WEIGHTED = CONVOLUTIONS | {LayerKind.LINEAR, LayerKind.MATRIX}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Modules beside each other whose names differ by a number, in the file's order, with their weighted layers."""

    parent: str
    names: tuple[str, ...]
    layers: tuple[tuple[Layer, ...], ...]

    @property
    def where(self) -> str:
        """ "stage1 to stage6", with the module that they are in."""
        before = f"{self.parent}." if self.parent else ""
        return f"{before}{self.names[0]} to {before}{self.names[-1]}"


def stages_of(layers: Sequence[Layer], stacks: Sequence[Stack]) -> tuple[Stages, ...]:
    """None that lie in a block; names of one stem and ending."""
    blocks = blocks_of(stacks)
    inside = _inside(layers, blocks)
    groups: dict[tuple[str, str, str], dict[str, list[Layer]]] = {}
    for layer in layers:
        if layer.kind not in _WEIGHTED:
            continue
        names = layer.path.split(".")
        for depth, name in enumerate(names[:-1]):
            match = _NUMBERED.fullmatch(name)
            if match is not None and match[1] and ".".join(names[:depth]) not in inside:
                parent = ".".join(names[:depth])
                groups.setdefault((parent, match[1], match[3]), {}).setdefault(name, []).append(layer)
                break
    return tuple(
        Stages(parent=key[0], names=tuple(group), layers=tuple(map(tuple, group.values())))
        for key, group in groups.items()
        if len(group) >= _LEAST
    )


def _inside(layers: Sequence[Layer], blocks: Collection[str]) -> set[str]:
    """Modules with layers that are a block or lie in one."""
    within: dict[str, bool] = {}
    for layer in layers:
        way = list(takewhile(lambda path: path not in within, above(layer.path)))
        for path in reversed(way):
            within[path] = path in blocks or (bool(path) and within.get(path.rpartition(".")[0], False))
    return {path for path, is_inside in within.items() if is_inside}


def stages(found: Sequence[Stages], stacks: Sequence[Stack]) -> Iterator[Claim]:
    """How many layers each has, and what it puts out; stages of one size that stand in one stack are told there."""
    blocks = blocks_of(stacks)
    rows = {stack.path for stack in stacks}
    said = 0
    for one in found:
        counts = [len(layers) for layers in one.layers]
        prefix = f"{one.parent}." if one.parent else ""
        # Of blocks of one build, and of stages of such blocks, other sentences tell.
        whole = all(f"{prefix}{name}" in blocks for name in one.names)
        staged = all(f"{prefix}{name}." in rows for name in one.names)
        if said >= _MOST or whole or staged or len(set(counts)) == 1 or max(counts) < 2:
            continue
        kinds = Counter(layer.kind for layers in one.layers for layer in layers)
        conv = all(kind in CONVOLUTIONS for kind in kinds)
        what = "convolutions" if conv else "layers with weights"
        ends = [layers[-1].outputs or 0 for layers in one.layers]
        begins = [layers[0].inputs or 0 for layers in one.layers]
        inside = Counter(layer.outputs or 0 for layers in one.layers for layer in layers[:-1])
        width, number = inside.most_common(1)[0]
        often = 5 * number >= 4 * inside.total() and width not in ends
        narrow = f", inside mostly {width:,}" if often else ""
        yield Claim(
            topic=Topic.REPEATS,
            says=f"{one.where}: {len(counts):,} stages of {_listed(counts)} {what}; they take {_listed(begins)} and "
            f"put out {_listed(ends)}{narrow}.",
            evidence="numbered modules with their layers, in the file's order",
            value=len(counts),
            path=f"{prefix}{one.names[0]}",
        )
        said += 1


def _listed(numbers: Sequence[int]) -> str:
    """ "14, 12, 10, 8", "64 each", at most twelve."""
    if len(set(numbers)) == 1:
        return f"{numbers[0]:,} each"
    shown = [f"{n:,}" + (f" ({count} times)" if count > 2 else "") for n, count in _runs(numbers)]
    spread = [
        text for (n, count), text in zip(_runs(numbers), shown, strict=True) for _ in range(1 if count > 2 else count)
    ]
    return ", ".join(spread[:_MOST_SHOWN]) + (" ..." if len(spread) > _MOST_SHOWN else "")


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    return [(number, len(list(group))) for number, group in groupby(numbers)]
