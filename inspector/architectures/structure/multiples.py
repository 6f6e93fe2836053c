"""Widths that are several times another one: channels joined, numbers of a patch, bands of a spectrum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from inspector.architectures.structure.flow import given_widths, is_joined
from inspector.architectures.structure.fourier import mel_bands
from inspector.architectures.structure.projections import role_of
from inspector.architectures.structure.types import CONVOLUTIONS, RECURRENT, Claim, Layer, LayerKind, Topic

_WEIGHTED = CONVOLUTIONS | RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX}
_TIMES = (3, 4)
_LEAST_WIDTH = 16


def multiples(layers: Sequence[Layer], *, ordered: bool) -> Iterator[Claim]:
    """What may be read off whatever stands between, in the order of the file where that counts."""
    weighted = [one for one in layers if one.kind in _WEIGHTED and one.inputs and one.outputs]
    if ordered:
        yield from _several_of_the_last(weighted)
        yield from _patches(weighted)
    yield from _bands(layers, weighted)


def _several_of_the_last(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """A convolution that takes three or four times what the one before it puts out: a linear layer may take places of
    a map."""
    given = given_widths(weighted)
    for before, layer in pairwise(weighted):
        times, rest = divmod(layer.inputs or 0, before.outputs or 1)
        both = before.kind is LayerKind.CONVOLUTION and layer.kind is LayerKind.CONVOLUTION
        if rest or times not in _TIMES or not both or layer.inputs in given or (before.outputs or 0) < _LEAST_WIDTH:
            continue
        # Two of other widths make it as well, or both are branches on the same.
        if before.inputs == layer.inputs:
            continue
        if is_joined(layer.inputs or 0, given, most=2) or role_of(before) is not None or role_of(layer) is not None:
            continue
        yield Claim(
            topic=Topic.JOINS,
            says=f"{layer.name} takes {layer.inputs:,} = {times} x {before.outputs:,}: {times} times what "
            f"{before.name} before it puts out, likely joined with as wide ones, as branches or "
            "statistics of it.",
            evidence=f"{layer.evidence}; no layer puts out so many",
            value=layer.inputs,
            path=layer.path,
        )
        return


def _patches(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """A last layer that puts out the numbers of a patch that the first takes."""
    first, last = (weighted[0], weighted[-1]) if weighted else (None, None)
    if first is None or last is None or first.kind not in CONVOLUTIONS or last.kind in CONVOLUTIONS:
        return
    places = math.prod(first.kernel)
    if any(one.inputs == last.outputs for one in weighted):
        return
    if len(first.kernel) < 2 or min(first.kernel) < 2 or last.outputs != (first.inputs or 0) * places:
        return
    sizes = " x ".join(f"{size:,}" for size in (first.inputs or 0, *first.kernel))
    yield Claim(
        topic=Topic.JOINS,
        says=f"{last.name} puts out {last.outputs:,} = {sizes}: as many as {first.name} takes of "
        f"{first.inputs:,} channels in one place of its kernel, as where a patch comes out again.",
        evidence=f"{first.evidence}; {last.evidence}",
        value=last.outputs,
        path=last.path,
    )


def _bands(layers: Sequence[Layer], weighted: Sequence[Layer]) -> Iterator[Claim]:
    """The first layer behind a bank of filters that takes as many as there are."""
    bands = mel_bands(layers)
    first = weighted[0] if weighted else None
    if first is not None and bands is not None and first.inputs == bands[1]:
        yield Claim(
            topic=Topic.FED,
            says=f"{first.name} takes {first.inputs:,} channels, as many as {bands[0]} has filters: the bands of a "
            "spectrum.",
            evidence=first.evidence,
            value=first.inputs,
            path=first.path,
        )
