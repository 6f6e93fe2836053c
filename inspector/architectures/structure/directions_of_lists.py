"""Convolutions of one list that run one way alone, by the widths of all of them: steps up, and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from inspector.architectures.structure.heads import is_called_head
from inspector.architectures.structure.types import BY_PLACES, Layer, LayerKind

_LEAST_STEPS, _LEAST_OUTPUTS = 3, 2


def with_lists(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """In no order but that of the numbers in their names. Steps of even kernels run backwards where each then takes
    what the one of the number before puts out, and forwards it would put out what that one takes; a list called
    outputs, of a single place each, runs forwards where nothing puts out what it would take backwards."""
    made: dict[str, Layer] = {}
    for group in _lists(layers):
        rest = [one for one in layers if one.kind is LayerKind.CONVOLUTION]
        given = {one.outputs for one in rest}
        if _are_steps_up(group) and group[0].outputs in given:
            for number, one in enumerate(group):
                why = f"{group[number - 1].inputs:,} by the number before" if number else f"{one.outputs:,} put out"
                made[one.path] = replace(
                    one,
                    kind=LayerKind.TRANSPOSED,
                    inputs=one.outputs,
                    outputs=one.inputs,
                    evidence=f"{one.evidence}; {why}",
                    more="" if one.more == BY_PLACES else one.more,
                )
        elif _are_outputs(group) and given >= {one.inputs for one in group} and group[0].outputs not in given:
            for one in group:
                made[one.path] = replace(
                    one,
                    kind=LayerKind.CONVOLUTION,
                    evidence=f"{one.evidence}, its name, and nothing puts out {one.outputs:,}",
                    more="" if one.more == BY_PLACES else one.more,
                )
    return tuple(made.get(layer.path, layer) for layer in layers)


def _lists(layers: Sequence[Layer]) -> Iterator[list[Layer]]:
    """Numbered layers of one module, by their numbers, all of open direction and other widths in than out."""
    found: dict[str, list[tuple[int, Layer]]] = {}
    for layer in layers:
        parent, _, last = layer.path.rpartition(".")
        if last.isdecimal() and parent and len(last) < 6:
            found.setdefault(parent, []).append((int(last), layer))
    for numbered in found.values():
        group = [layer for _, layer in sorted(numbered, key=lambda one: one[0])]
        if all(one.kind is LayerKind.EITHER_CONVOLUTION and one.inputs != one.outputs for one in group):
            yield group


def _are_steps_up(group: Sequence[Layer]) -> bool:
    """As stored each puts out what it takes backwards."""
    even = all(max(one.kernel) > 1 and all(size == 1 or size % 2 == 0 for size in one.kernel) for one in group)
    return len(group) >= _LEAST_STEPS and even and all(a.inputs == b.outputs for a, b in pairwise(group))


def _are_outputs(group: Sequence[Layer]) -> bool:
    points = all(set(one.kernel) == {1} for one in group) and len({one.outputs for one in group}) == 1
    return len(group) >= _LEAST_OUTPUTS and points and all(is_called_head(one) for one in group)
