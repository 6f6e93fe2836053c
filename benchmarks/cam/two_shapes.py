"""Of two shapes in one picture, does the heat lie on the one that was asked for?

A map may lie on the object because it lies on whatever stands out, whichever class is asked. Here a second shape of
another class is pasted beside the first, and each is asked for once: a map that is the same for every class puts half
of its heat on either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.cam.localise import AT_ONCE, SLOW, Subject, jobs, load, mean, prepared, score
from inspector.cam.engine.maps import Axes, heat_grid
from inspector.errors import ExplainError

# Far from the seeds of training and of the other table.
SEED = 771_000
# Pixels between the two shapes, at least.
APART = 2

Mask = NDArray[np.bool_]
Pair = tuple[NDArray[np.uint8], tuple[int, int], tuple[Mask, Mask]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One method on one sample, means over pictures (of two maps each) with their standard errors.

    share: of the heat on the two shapes, what lies on the asked one; half where there is none. asked, other: of maps
    whose hottest pixel lies on the asked shape, on the other.
    """

    sample: str
    of: str
    pictures: int
    share: float
    share_error: float
    asked: float
    asked_error: float
    other: float
    other_error: float


def pairs(count: int) -> Iterator[Pair]:
    """(picture (64, 64, 3), classes, masks) of two shapes of two classes, apart from each other."""
    from sample_models.shapes import CLASSES, draw_scene

    rng = np.random.default_rng(SEED)
    around = np.ones((2 * APART + 1, 2 * APART + 1), np.uint8)
    while count:
        first, second = (int(label) for label in rng.choice(len(CLASSES), size=2, replace=False))
        (picture, mask), (pasted, its_mask) = (draw_scene(rng, label, 64, 64) for label in (first, second))
        if not (cv2.dilate(its_mask.astype(np.uint8), around).astype(bool) & mask).any():
            yield np.where(its_mask[..., None], pasted, picture), (first, second), (mask, its_mask)
            count -= 1


def choose(names: Iterable[str], *, pictures: int, slow: int, device: str) -> Iterator[Choice]:
    """Every method that the trained model has maps of."""
    made = list(pairs(pictures))
    for name in names:
        subject = load(name, AT_ONCE, device)
        batch = prepared([picture for picture, _, _ in made], subject.preprocessing).to(device)
        for together in jobs():
            count = min(pictures, slow) if together[0] in SLOW else pictures
            yield from _judge(subject, batch[:count], made[:count], together)


def _judge(subject: Subject, batch: Tensor, made: Sequence[Pair], ids: Sequence[str]) -> Iterator[Choice]:
    found: dict[str, list[tuple[float, ...]]] = {}
    for first in range(0, len(made), AT_ONCE):
        part = made[first : first + AT_ONCE]
        classes = [[asked[n] for _, asked, _ in part] for n in (0, 1)]
        axes = Axes(layers=[subject.layer], methods=ids, classes=classes)
        grids = heat_grid(subject.trained, batch[first : first + AT_ONCE], axes, lenient=True)
        for method, *both in zip(ids, *(row for (row,) in grids), strict=True):
            if any(isinstance(maps, ExplainError) for maps in both):
                continue
            for index, (_, _, masks) in enumerate(part):
                choices = [_choice(maps.heat[index], masks[n], masks[1 - n]) for n, maps in enumerate(both)]
                found.setdefault(method, []).append(tuple(sum(numbers) / 2 for numbers in zip(*choices, strict=True)))
    for method, choices in found.items():
        (share, share_error), (asked, asked_error), (other, other_error) = (
            mean([choice[n] for choice in choices]) for n in range(3)
        )
        yield Choice(
            sample=subject.name,
            of=method,
            pictures=len(choices),
            share=share,
            share_error=share_error,
            asked=asked,
            asked_error=asked_error,
            other=other,
            other_error=other_error,
        )


def _choice(heat: Tensor, asked: Mask, other: Mask) -> tuple[float, float, float]:
    """(share of the heat on both that is on the asked, whether it points at the asked, at the other)."""
    (here, points_here), (there, points_there) = (score(heat, torch.from_numpy(mask)) for mask in (asked, other))
    return (here / (here + there) if here + there > 0 else 0.5, points_here, points_there)
