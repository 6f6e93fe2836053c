"""Could chance have drawn this map? The answer to a picture a third covered, beside how much of the heat is left.

Parts of the picture are covered at random and the answers are ranked beside the heat that is left in sight (Bhatt and
others, "Evaluating and Aggregating Feature-based Model Explanations", IJCAI 2020, arXiv 2005.00631, section 3; here
squares under a blur, and rank correlations). The same passes serve every map, so that a thousand maps of noise cost no
pass: the test is the map's place among them, a Monte Carlo test of one number, whose level needs no correction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.cam.trust.correlation import ranks
from inspector.cam.trust.measure import Case
from inspector.cam.trust.measures.perturbation import blurred

COVERS = 256
# Of each of two kinds: on the layer's grid, and smooth.
RANDOM_MAPS = 499
# Of random maps, at most so many shall be called better than noise.
PROMISED = 0.05
# How many of them may do as well as one that is. The test is exact: at 5 % a count of 1,000 maps is above 50 as often
# as below, and the draws that a map is held against are off by a further 1 % (docs/measurements.md).
LEVEL = 0.04
# Squares of each side of the picture, and how many of all are covered: of half of them, small things are mostly gone.
_CELLS = 8
_HIDDEN = 21
# Maps that are enlarged and summed together.
_AT_ONCE = 111
# Of the answers; below, nothing in the picture moves it.
_LEAST_MOVE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """correlation: Spearman's, of the heat left in sight with the answer, NaN for a map that is the same everywhere.
    mean, spread: of `maps` random maps' correlations. share: of random maps that do at least as well, the map counted
    with them, the larger share of two kinds of noise; small where chance would hardly draw such a map. lowest, highest:
    where nine tenths of the answers lie (5 and 95 %) over partly covered pictures, `covers` in all, under the cover
    that moves them more. share_moved: highest less lowest, relative to the larger where answers are plain numbers."""

    correlation: float
    mean: float
    spread: float
    share: float
    lowest: float
    highest: float
    share_moved: float
    maps: int = 2 * RANDOM_MAPS
    covers: int = COVERS

    @property
    def moves(self) -> bool:
        """Whether what is in sight changes the answer at all."""
        return not self.share_moved < _LEAST_MOVE

    @property
    def beats_noise(self) -> bool:
        return self.share <= LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """sight: (M, cells, cells) in {0, 1}, 1 where the picture shows. answers: (M,) of the target, in float64: under
    the blur first, under the mean colour then, as many of each."""

    sight: Tensor
    answers: Tensor

    @property
    def spans(self) -> list[tuple[float, float]]:
        """Under each cover, where nine tenths of the answers lie."""
        return [(float(a.quantile(0.05)), float(a.quantile(0.95))) for a in self.answers.chunk(2)]

    def correlations(self, heats: Tensor) -> Tensor:
        """(K,) for maps (K, H, W) in [0, 1]; NaN where either is constant."""
        size = (heats.shape[1], heats.shape[2])
        sight = _enlarged(self.sight, size).flatten(1)
        left = heats.double().cpu().flatten(1) @ sight.T
        of_answers = [ranks(answers) for answers in self.answers.chunk(2)]
        rows = [
            [_correlation(ranks(_rounded(part)), a) for part, a in zip(row.chunk(2), of_answers, strict=True)]
            for row in left
        ]
        # An answer that one cover leaves as it is has no ranks there.
        return torch.tensor(rows, dtype=torch.float64).nanmean(dim=1)


def cover_parts(case: Case) -> Covered:
    """The answers to `COVERS` pictures of which a third of the squares is covered, by a blur or by the mean colour:
    what one cover hides the other may not, since a blurred corner is still bright."""
    generator = torch.Generator().manual_seed(case.scene.seed)
    order = torch.rand(COVERS // 2, _CELLS * _CELLS, generator=generator).argsort(dim=1)
    sight = (order >= _HIDDEN).double().reshape(-1, _CELLS, _CELLS).repeat(2, 1, 1)
    picture = case.picture
    shown = _enlarged(sight, (picture.shape[1], picture.shape[2])).bool().to(picture.device)
    blur, answers = blurred(picture), []
    for first in range(0, COVERS, case.at_once):
        case.scene.progress(first, COVERS, "covering parts of the picture")
        some = shown[first : first + case.at_once, None]
        covers = [blur if first + n < COVERS // 2 else torch.zeros_like(blur) for n in range(len(some))]
        answers.append(case.probabilities(torch.where(some, picture, torch.stack(covers))).cpu())
    return Covered(sight=sight, answers=torch.cat(answers))


def chance(covered: Covered, heat: Tensor, noise: Sequence[Sequence[Tensor]], *, shares: bool) -> Chance:
    """heat: (H, W). noise: of each kind, maps (H, W). shares: whether answers are probabilities."""
    own = float(covered.correlations(heat[None])[0])
    by_kind = [of_noise(covered, maps) for maps in noise]
    others = torch.cat(by_kind)
    lowest, highest = max(covered.spans, key=lambda span: span[1] - span[0])
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
        maps=len(others),
    )


def of_noise(covered: Covered, maps: Sequence[Tensor]) -> Tensor:
    """(K,) correlations of maps (H, W), less those that have none."""
    parts = [maps[first : first + _AT_ONCE] for first in range(0, len(maps), _AT_ONCE)]
    found = torch.cat([covered.correlations(torch.stack(list(part))) for part in parts])
    return found[found.isfinite()]


def share_as_good(own: float, others: Tensor) -> float:
    """Of the others and the map itself, how many do at least as well; 1 for a map without a correlation."""
    return 1.0 if math.isnan(own) else (int((others >= own).sum()) + 1) / (len(others) + 1)


def _enlarged(cells: Tensor, size: tuple[int, int]) -> Tensor:
    """(M, H, W): each pixel takes its square's number."""
    down, across = (torch.arange(n) * _CELLS // n for n in size)
    return cells[:, down][:, :, across]


def _rounded(values: Tensor) -> Tensor:
    """Equal sums in another order differ in the last digits, which are no rank."""
    size = float(values.abs().max())
    return (values / size * 1e9).round() if size > 0 else values


def _correlation(one: Tensor, other: Tensor) -> float:
    a, b = one - one.mean(), other - other.mean()
    below = float(a.norm() * b.norm())
    return float(a @ b) / below if below > 0 else math.nan
