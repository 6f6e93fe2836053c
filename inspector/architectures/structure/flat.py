"""One long list of layers in words: pairs and threes of equal layers that repeat are said once with their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from inspector.architectures.structure.types import Layer

_LONGEST_PERIOD = 4
_LEAST_TIMES = 2
_FARTHEST, _DIGITS = 16, 7

Said = Callable[[Sequence[Layer]], Sequence[str]]


def flat_text(layers: Sequence[Layer], every: Sequence[Layer], said: Said) -> list[str]:
    """ "3x3 convolutions 3-16-32", "8 times (1x1 convolution 128-64, 3x3 convolution 64-128)".

    every: the norms between them as well. said: layers that do not repeat, in words. A pair is of another sort where a
    number is left out behind it and not behind the other.
    """
    gaps = _gaps(layers, every)
    signs = [(*_widths(layer), gap) for layer, gap in zip(layers, gaps, strict=True)]
    texts: list[str] = []
    loose: list[Layer] = []
    place = 0
    left_out = False
    while place < len(layers):
        period, times = _repeat(signs, place)
        if times < _LEAST_TIMES:
            loose.append(layers[place])
            place += 1
            continue
        texts += said(loose) if loose else []
        loose = []
        inside = layers[place : place + period]
        behind = gaps[place + period - 1] > 1
        left_out = left_out or behind
        texts.append(f"{times:,} times ({', '.join(said(inside))}{', a number left out' if behind else ''})")
        place += period * times
    texts += said(loose) if loose else []
    if left_out:
        texts[-1] += "; where a number is left out, something without weights stands (as the sum of a shortcut does)"
    return texts


def _repeat(signs: Sequence[object], place: int) -> tuple[int, int]:
    """(period, times) of what repeats from here on, the most layers first; (1, 1) where nothing does."""
    best = (1, 1)
    for period in range(2, _LONGEST_PERIOD + 1):
        one = signs[place : place + period]
        if len(one) < period or len(set(one)) == 1:
            break
        times = 1
        while list(signs[place + times * period : place + (times + 1) * period]) == list(one):
            times += 1
        if times > 1 and period * times > best[0] * best[1]:
            best = (period, times)
    return best


def _gaps(layers: Sequence[Layer], every: Sequence[Layer]) -> list[int]:
    """How many numbers of the list between a layer and the next are in no name, and one; norms have theirs too."""
    taken = {at for layer in every if (at := _place(layer.path)) is not None}
    gaps = []
    for before, after in pairwise([_place(layer.path) for layer in layers]):
        gap = 1
        if before is not None and after is not None and before[0] == after[0] and after[1] - before[1] <= _FARTHEST:
            gap += sum((before[0], number) not in taken for number in range(before[1] + 1, after[1]))
        gaps.append(gap)
    # What stands behind the last is not in the list: as behind those like it.
    like = (place for place in range(len(gaps) - 1, -1, -1) if _widths(layers[place]) == _widths(layers[-1]))
    return [*gaps, next((gaps[place] for place in like), 1)]


def _widths(layer: Layer) -> tuple[object, ...]:
    return layer.kind, layer.kernel, layer.inputs, layer.outputs


def _place(path: str) -> tuple[str, int] | None:
    """(what stands before it, number) of the innermost numbered module."""
    names = path.split(".")
    at = next((place for place in range(len(names) - 1, -1, -1) if names[place].isdecimal()), None)
    return (".".join(names[:at]), int(names[at])) if at is not None and len(names[at]) < _DIGITS else None
