"""Deletion and insertion: how fast the class goes when the hottest pixels go, and comes when they come.

Source: Petsiuk and others, "RISE: Randomized Input Sampling for Explanation of Black-box Models", BMVC 2018 (arXiv
1806.07421), section 4.2. Deleted pixels become 0 after preprocessing, the mean colour; insertion starts from a blurred
picture.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from inspector.cam.trust.measure import Case, Measure, Measured, area, by_heat

STEPS = 24
# Of the shorter side, so wide that nothing is recognised.
_BLUR = 1 / 12


def deletion(case: Case) -> Measured:
    """Area under the probability while the hottest pixels are deleted."""
    return _curve(case, start=case.picture, end=torch.zeros_like(case.picture))


def insertion(case: Case) -> Measured:
    """Area under the probability while the hottest pixels are put into a blurred picture."""
    return _curve(case, start=blurred(case.picture), end=case.picture)


def _curve(case: Case, start: Tensor, end: Tensor) -> Measured:
    order = by_heat(case.heat).to(start.device)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device)
    points: list[tuple[float, float]] = []
    shares = [number / STEPS for number in range(STEPS + 1)]
    for first in range(0, len(shares), case.at_once):
        some = shares[first : first + case.at_once]
        case.scene.progress(first, len(shares), "changing pixels, the hottest first")
        changed = [(rank < round(share * len(order))).reshape(case.heat.shape) for share in some]
        pictures = torch.stack([torch.where(mask, end, start) for mask in changed])
        points += zip(some, case.probabilities(pictures).tolist(), strict=True)
    return Measured(value=area(points), curve=tuple(points))


def blurred(picture: Tensor) -> Tensor:
    """(C, H, W) under a Gaussian as wide as a twelfth of the shorter side."""
    sigma = max(1.0, min(picture.shape[1:]) * _BLUR)
    radius = int(3 * sigma)
    kernel = torch.exp(-((torch.arange(-radius, radius + 1, dtype=torch.float64) / sigma) ** 2) / 2)
    kernel = (kernel / kernel.sum()).to(picture)
    made = picture[:, None]
    for shape, size in (((1, 1, -1, 1), (0, 0, radius, radius)), ((1, 1, 1, -1), (radius, radius, 0, 0))):
        made = functional.conv2d(functional.pad(made, size, mode="replicate"), kernel.reshape(shape))
    return made[:, 0]


DELETION = Measure(
    id="deletion",
    title="Deletion",
    paper="Petsiuk 2018, arXiv 1806.07421",
    says="Mean probability while the hottest pixels are taken away first.",
    higher=False,
    compute=deletion,
    passes=STEPS + 1,
)
INSERTION = Measure(
    id="insertion",
    title="Insertion",
    paper="Petsiuk 2018, arXiv 1806.07421",
    says="Mean probability while the hottest pixels are put into a blurred picture.",
    higher=True,
    compute=insertion,
    passes=STEPS + 1,
)
