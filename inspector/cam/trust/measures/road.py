"""ROAD: remove the hottest or the coldest pixels so that their shape does not give the class away.

Source: Rong and others, "A Consistent and Efficient Evaluation Strategy for Attribution Methods", ICML 2022 (arXiv
2202.00449): removed pixels become the weighted mean of their neighbours (1/6 beside, 1/12 diagonally), plus a little
noise.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from inspector.cam.trust.measure import Case, Measure, Measured, by_heat

SHARES = (0.2, 0.4, 0.6, 0.8)
NOISE = 0.01
_MOST_STEPS = 2000
_PRECISION = 3e-4
# Below this side the mean is start enough.
_SMALL = 8


def road(case: Case) -> Measured:
    """Half the difference of the probability without the coldest and without the hottest pixels, over four shares."""
    order = by_heat(case.heat)
    points, differences = [], []
    for number, share in enumerate(SHARES):
        count = round(share * len(order))
        pictures = []
        for side, some in enumerate((order[len(order) - count :], order[:count])):
            case.scene.progress(2 * number + side, 2 * len(SHARES), "removing pixels")
            mask = torch.zeros(len(order), dtype=torch.bool)
            mask[some.cpu()] = True
            mask = mask.reshape(case.heat.shape).to(case.picture.device)
            noise = NOISE * case.scene.noise(2 * number + side)[0]
            pictures.append(torch.where(mask, impute(case.picture, mask) + noise, case.picture))
        cold, hot = case.probabilities(torch.stack(pictures)).tolist()
        points.append((share, hot))
        differences.append((cold - hot) / 2)
    return Measured(value=sum(differences) / len(differences), curve=tuple(points))


def impute(picture: Tensor, mask: Tensor) -> Tensor:
    """(C, H, W) with every masked pixel the weighted mean of its neighbours, known or imputed themselves.

    mask: (H, W) of bool. The linear system is symmetric and positive as long as one pixel is known, so conjugate
    gradients solve it; a picture without known pixels becomes its own mean.
    """
    if not bool(mask.any()):
        return picture
    if bool(mask.all()):
        return picture.mean(dim=(1, 2), keepdim=True).expand_as(picture)
    values = picture.double()[:, None]
    degree = spread(torch.ones_like(values[:1]))
    unknown = mask.to(values)[None, None]

    # degree x - spread(x) = spread(known), on the unknown pixels.
    right = spread(values * (1 - unknown)) * unknown
    x = _start(values, mask).double() * unknown
    rest = (right - degree * x + spread(x)) * unknown
    way = rest / degree
    size = (rest * way).sum(dim=(2, 3), keepdim=True)
    enough = _PRECISION**2 * (right * right).sum(dim=(2, 3), keepdim=True).clamp_min(1e-30)
    for _ in range(_MOST_STEPS):
        if bool(((rest * rest).sum(dim=(2, 3), keepdim=True) <= enough).all()):
            break
        bent = (degree * way - spread(way)) * unknown
        along = (way * bent).sum(dim=(2, 3), keepdim=True)
        step = torch.where(along > 0, size / along.clamp_min(1e-300), 0)
        x = x + step * way
        rest = rest - step * bent
        scaled = rest / degree
        new = (rest * scaled).sum(dim=(2, 3), keepdim=True)
        way = scaled + torch.where(size > 0, new / size.clamp_min(1e-300), 0) * way
        size = new
    return torch.where(mask, x[:, 0].to(picture), picture)


def _start(values: Tensor, mask: Tensor) -> Tensor:
    """(C, 1, H, W) to begin with: the solution at half the size, since smooth parts take most of the steps."""
    known = (~mask).to(values)[None, None]
    if min(mask.shape) < _SMALL:
        return ((values * known).sum(dim=(2, 3), keepdim=True) / known.sum()).expand_as(values)
    share = functional.avg_pool2d(known, 2, ceil_mode=True)
    half = functional.avg_pool2d(values * known, 2, ceil_mode=True) / share.clamp_min(1e-12)
    solved = impute(half[:, 0], (share == 0)[0, 0])[:, None]
    return functional.interpolate(solved, size=mask.shape, mode="bilinear", align_corners=False)


def spread(x: Tensor) -> Tensor:
    """(N, 1, H, W): each pixel's neighbours, a sixth of those beside it and a twelfth of those across corners; 0 beyond
    the edges. As (1, 2, 1) down and across less the pixel itself: a convolution in float64 takes 2.5 times as long."""
    wide = functional.pad(x, (1, 1, 1, 1))
    across = wide[..., :-2] + 2 * wide[..., 1:-1] + wide[..., 2:]
    return (across[..., :-2, :] + 2 * across[..., 1:-1, :] + across[..., 2:, :] - 4 * x) / 12


MEASURE = Measure(
    id="road",
    title="ROAD",
    paper="Rong 2022, arXiv 2202.00449",
    says="How much more the hottest pixels matter than the coldest, removed without leaving their outline.",
    higher=True,
    compute=road,
    passes=2 * len(SHARES),
)
