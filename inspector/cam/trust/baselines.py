"""Maps that know nothing of the model: what a measure says of them, any method has to beat."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from inspector.cam.engine.tensors import enlarge, normalise

# Standard deviation of the centred Gaussian, of each side.
_WIDTH = 0.25


def random_map(size: tuple[int, int], grid: tuple[int, int], seed: int = 0) -> Tensor:
    """(H, W) in [0, 1]: uniform noise on a layer's grid (h, w), enlarged as a layer's map is."""
    noise = torch.rand(1, *grid, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return enlarge(normalise(noise), size)[0]


def halved(grid: tuple[int, int]) -> tuple[int, int]:
    """Half the cells of each side, two at least where there are two."""
    height, width = (max(min(side, 2), side // 2) for side in grid)
    return height, width


def centred_gaussian(size: tuple[int, int]) -> Tensor:
    """(H, W) in [0, 1]: pictures mostly show their subject in the middle."""
    down, across = (
        torch.exp(-((((torch.arange(n, dtype=torch.float64) + 0.5) / n - 0.5) / _WIDTH) ** 2) / 2) for n in size
    )
    made = down[:, None] * across[None]
    return made / made.max()


def edges(picture: Tensor) -> Tensor:
    """(H, W) in [0, 1]: the size of the brightness's slope (Sobel); 0 for one colour. picture: (C, H, W)."""
    grey = picture.double().mean(dim=0)[None, None]
    sobel = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]], dtype=torch.float64, device=picture.device)
    padded = functional.pad(grey, (1, 1, 1, 1), mode="replicate")
    across = functional.conv2d(padded, sobel[None, None])
    down = functional.conv2d(padded, sobel.T[None, None])
    return normalise(torch.hypot(across, down)[0])[0]
