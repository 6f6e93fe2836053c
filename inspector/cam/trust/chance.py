"""Could chance have drawn this map? The answer to a picture partly covered, beside how much of the heat is left.

Parts of the picture are covered at random and the answers are correlated with the heat that is left in sight (Bhatt and
others, "Evaluating and Aggregating Feature-based Model Explanations", IJCAI 2020, arXiv 2005.00631, section 3). Here
the parts are rectangles of many sizes, since nobody knows the size of what is looked for: squares strewn over the
picture hide a bit of it each time and never the whole. And heat counts above or below the map's mean: how much of the
picture is left says nothing of a map. The same passes serve every map, so that a thousand maps of noise cost no pass:
the test is the map's place among them, a Monte Carlo test of one number, whose level needs no correction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import torch
from torch import Tensor
from torch.nn import functional

from inspector.cam.trust.measure import Case
from inspector.cam.trust.measures.perturbation import blurred

# Half of them under a blur, the same parts again under the mean colour.
COVERS = 512
# Of each of two kinds: on the layer's grid, and smooth.
RANDOM_MAPS = 499
# Of random maps, at most so many shall be called better than noise.
PROMISED = 0.05
# How many of them may do as well as one that is. The test is exact: at 5 % a count of 1,000 maps is above 50 as often
# as below, and the draws that a map is held against are off by a further 1 % (docs/measurements.md).
LEVEL = 0.04
# Squares of each side of the picture; rectangles at once, and squares of their sides, at most.
_CELLS = 8
_RECTANGLES = 4
_LONGEST = 4
# Of answers that are plain numbers; below, nothing in the picture moves them.
_LEAST_MOVE = 0.05
# So many times the odds of a probability have to change. Of random starts of the sample transformer they change by 3.1
# times at most, trained by 360 at least, also where the probability hardly leaves 1 (docs/measurements.md).
_LEAST_TIMES = 4.0
# A probability beyond is taken as this one: what float32 has left there is rounding.
_SURE = 1e-6
# So many pixels of maps of noise are correlated at once: a thousand maps of a large picture would not fit into memory.
_PIXELS_AT_ONCE = 1 << 20
# Of a sum: below, it is rounding that varies.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """correlation: of the heat left in sight with the answer, NaN for a map that is the same everywhere.
    mean, spread: of `maps` random maps' correlations. share: of random maps that do at least as well, the map counted
    with them, the larger share of two kinds of noise; small where chance would hardly draw such a map. lowest, highest:
    of all answers to the `covers` partly covered pictures. share_moved: highest less lowest, relative to the larger
    where answers are plain numbers. times: the odds of the highest over those of the lowest, NaN of plain numbers."""

    correlation: float
    mean: float
    spread: float
    share: float
    lowest: float
    highest: float
    share_moved: float
    times: float
    maps: int = 2 * RANDOM_MAPS
    covers: int = COVERS

    @property
    def moves(self) -> bool:
        """Whether what is in sight changes the answer at all."""
        return not (self.share_moved < _LEAST_MOVE if math.isnan(self.times) else self.times < _LEAST_TIMES)

    @property
    def beats_noise(self) -> bool:
        return self.share <= LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """sight: (M, cells, cells) in {0, 1}, 1 where the picture shows. answers: (2, M) of the target, in float64, to the
    picture where it shows: what does not is blurred first, of the mean colour then."""

    sight: Tensor
    answers: Tensor

    def correlations(self, heats: Tensor) -> Tensor:
        """(K,) for maps (K, H, W) in [0, 1]; NaN where either is constant.

        Pearson's, over all covered pictures. Answers count from their mean under each cover, so that the cover that
        moves them more weighs more.
        """
        heats = heats.double().cpu()
        left = _summed(heats - heats.mean(dim=(1, 2), keepdim=True)).flatten(1) @ self.sight.flatten(1).T
        left = left - left.mean(dim=1, keepdim=True)
        # Of a map that is the same everywhere only rounding is left.
        flat = left.abs().amax(dim=1) <= _ROUNDING * heats.abs().sum(dim=(1, 2))
        answers = self.answers - self.answers.mean(dim=1, keepdim=True)
        found = left @ answers.sum(dim=0) / (math.sqrt(2) * left.norm(dim=1) * answers.norm())
        return torch.where(flat, math.nan, found)


def cover_parts(case: Case) -> Covered:
    """The answers to `COVERS` pictures of which rectangles are covered, by a blur or by the mean colour: what one cover
    hides the other may not, since a blurred corner is still bright."""
    sight = _sights(COVERS // 2, torch.Generator().manual_seed(case.scene.seed))
    picture = case.picture
    shown = _enlarged(sight, (picture.shape[1], picture.shape[2])).bool().to(picture.device)[:, None]
    blur, answers = blurred(picture), []
    for number, cover in enumerate((blur, torch.zeros_like(blur))):
        for first in range(0, len(shown), case.at_once):
            case.scene.progress(number * len(shown) + first, COVERS, "covering parts of the picture")
            some = shown[first : first + case.at_once]
            answers.append(case.probabilities(torch.where(some, picture, cover)).cpu())
    return Covered(sight=sight, answers=torch.cat(answers).reshape(2, -1))


def chance(covered: Covered, heat: Tensor, noise: Iterable[Iterable[Tensor]], *, shares: bool) -> Chance:
    """heat: (H, W). noise: of each kind, maps (H, W). shares: whether answers are probabilities."""
    own = float(covered.correlations(heat[None])[0])
    by_kind = [of_noise(covered, maps) for maps in noise]
    others = torch.cat(by_kind)
    lowest, highest = float(covered.answers.min()), float(covered.answers.max())
    unit = 1.0 if shares else max(abs(lowest), abs(highest), 1e-300)
    return Chance(
        correlation=own,
        mean=float(others.mean()),
        spread=float(others.std(correction=min(1, others.numel() - 1))),
        # Smooth noise is luckier than rough: the map has to beat each kind.
        share=max(share_as_good(own, correlations) for correlations in by_kind),
        lowest=lowest,
        highest=highest,
        share_moved=(highest - lowest) / unit,
        times=_odds(highest) / _odds(lowest) if shares else math.nan,
        maps=len(others),
    )


def of_noise(covered: Covered, maps: Iterable[Tensor]) -> Tensor:
    """(K,) correlations of maps (H, W), less those that have none."""
    found = torch.cat([covered.correlations(some) for some in _stacked(maps)])
    return found[found.isfinite()]


def _stacked(maps: Iterable[Tensor]) -> Iterator[Tensor]:
    """(K, H, W), a few maps (H, W) at once."""
    rest = iter(maps)
    for first in rest:
        yield torch.stack([*chain([first], islice(rest, max(0, _PIXELS_AT_ONCE // first.numel() - 1)))])


def share_as_good(own: float, others: Tensor) -> float:
    """Of the others and the map itself, how many do at least as well; 1 for a map without a correlation."""
    return 1.0 if math.isnan(own) else (int((others >= own).sum()) + 1) / (len(others) + 1)


def _odds(share: float) -> float:
    sure = min(max(share, _SURE), 1 - _SURE)
    return sure / (1 - sure)


def _sights(count: int, generator: torch.Generator) -> Tensor:
    """(count, cells, cells) of 1, and 0 in one to four rectangles, which may reach over the edges so that every square
    is covered as often."""
    sights = torch.ones(count, _CELLS, _CELLS, dtype=torch.float64)

    def drawn(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    for sight in sights:
        for _ in range(drawn(1, _RECTANGLES)):
            down, across = drawn(1, _LONGEST), drawn(1, _LONGEST)
            top, left = drawn(1 - down, _CELLS - 1), drawn(1 - across, _CELLS - 1)
            sight[max(0, top) : top + down, max(0, left) : left + across] = 0
    return sights


def _squares(side: int) -> Tensor:
    """(side,): the number of the square that each row of pixels lies in."""
    return torch.arange(side) * _CELLS // side


def _enlarged(cells: Tensor, size: tuple[int, int]) -> Tensor:
    """(M, H, W): each pixel takes its square's number."""
    down, across = (_squares(side) for side in size)
    return cells[:, down][:, :, across]


def _summed(heats: Tensor) -> Tensor:
    """(K, cells, cells): each square's sum of (K, H, W)."""
    down, across = (functional.one_hot(_squares(side), _CELLS).double() for side in heats.shape[1:])
    return down.T @ heats @ across
