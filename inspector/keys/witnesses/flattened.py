"""In which order a picture was flattened: read in the right one, neighbouring places have like weights.

What a trained unit looks for moves little from one place to the next. Read as channels, height and width in another
order, neighbours are other channels or places far apart. Never trained, all orders are alike. Height and width
exchanged look the same, and are not asked about.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np

from inspector.keys.rules import flattened_kernel
from inspector.keys.rules.channels_flattened import CHANNELS_FIRST, CHANNELS_LAST, FLATTEN_ORDER
from inspector.keys.witnesses.entry import Floats, Scene, Witness
from inspector.keys.witnesses.judging import bearings
from inspector.keys.witnesses.types import Statement

#: Half the mean squared difference of neighbours, over the variance: 1 where they have nothing in common. What is read
#: right lies below the first, and below what is read wrong by at least the second.
_SMOOTH, _APART = 0.9, 0.05
#: In this share of the rows; and so many standard deviations of their mean.
_AGREEING, _ABOVE = 0.75, 5.0
_FEWEST = 16  # rows


def _listens(scene: Scene) -> Statement | None:
    options = [x for x, _ in scene.question.options if x == CHANNELS_FIRST or x.startswith(CHANNELS_LAST)]
    if len(options) < 2 or not all(option in scene.plans for option in options):
        return None
    winners: set[str] = set()
    taking_part = set(options)
    smooth, rough, agree, rows = [], [], 0, 0
    for name, sizes in _flattened(scene, options[1:]):
        rough_by: dict[str, Floats] = {}
        for option in options:
            # Channel by channel it may be of any of these pictures.
            ways = [sizes[option]] if option in sizes else list(sizes.values())
            read = [x for way in ways if (x := _roughness(scene.tensor(option, name), way)) is not None]
            if read:
                rough_by[option] = min(read, key=lambda x: float(x.mean()))
        scene.forget()
        if len(rough_by) < 2 or CHANNELS_FIRST not in rough_by or any(len(x) < _FEWEST for x in rough_by.values()):
            return None
        taking_part &= set(rough_by)
        winner, second = sorted(rough_by, key=lambda option: float(rough_by[option].mean()))[:2]
        best, other = rough_by[winner], rough_by[second]
        apart = other - best
        share = int((apart > 0).sum())
        sure = (
            best.mean() <= _SMOOTH
            and apart.mean() >= _APART
            and share >= _AGREEING * len(apart)
            and apart.mean() >= _ABOVE * apart.std() / math.sqrt(len(apart))
        )
        if not sure:
            return None
        winners.add(winner)
        smooth.append(float(best.mean()))
        rough.append(float(other.mean()))
        agree, rows = agree + share, rows + len(apart)
    if len(winners) != 1:
        return None
    says = (
        f"In {agree:,} of {rows:,} rows neighbouring places of the picture then have the liker weights (difference "
        f"{np.mean(smooth):.2f} of what is expected without order, {np.mean(rough):.2f} in the other order)."
    )
    return Statement(
        question=scene.question.id,
        witness=WITNESS.id,
        options=bearings((option for option, _ in scene.question.options), winners, taking_part),
        agree=agree,
        layers=rows,
        says=says,
    )


def _flattened(scene: Scene, options: Sequence[str]) -> Iterator[tuple[str, dict[str, tuple[int, int, int]]]]:
    """(target's name, channels, height and width by option) of what the question is about."""
    for name in scene.plans[options[0]]:
        sizes = {}
        for option in options:
            step = scene.plans[option].get(name)
            found = re.match(r"flattened:([0-9]+),([0-9]+),([0-9]+)", step.value) if step is not None else None
            if found is not None:
                channels, height, width = map(int, found.groups())
                side = math.isqrt(height * width)
                if height == 1 and side * side == width:
                    # Behind convolutions only the number of places is known. Other pictures than squares are left open.
                    height = width = side
                sizes[option] = channels, height, width
        if sizes and scene.differs(name):
            yield name, sizes


def _roughness(tensor: Floats | None, sizes: tuple[int, int, int]) -> Floats | None:
    """(rows,) half the mean squared difference of neighbouring places, over the variance of the row."""
    if tensor is None or min(sizes[1:]) < 2 or tensor.size != len(tensor) * math.prod(sizes):
        return None
    pictures = tensor.reshape(len(tensor), *sizes)
    down, across = np.diff(pictures, axis=2), np.diff(pictures, axis=3)
    pairs = down[0].size + across[0].size
    squares = (down**2).sum(axis=(1, 2, 3)) + (across**2).sum(axis=(1, 2, 3))
    variance = pictures.reshape(len(tensor), -1).var(axis=1)
    if variance.min() <= 0:
        return None
    found: Floats = squares / (2 * pairs * variance)
    return found


WITNESS = Witness(
    id="neighbours",
    title="Neighbouring places of a picture",
    questions=frozenset({flattened_kernel.RULE.id, FLATTEN_ORDER}),
    listens=_listens,
    source="von Neumann's ratio (1941) of mean squared successive difference to variance, over both directions",
)
