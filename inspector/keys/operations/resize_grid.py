"""Position embeddings of a picture cut into another square grid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, argument_of
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def resize_grid(embedding: Tensor, shape: tuple[int, ...], tokens: int) -> Tensor:
    """Position embeddings (1, tokens + n * n, width) for another square grid, in their own dtype.

    The first `tokens` stay; the grid is resized bicubically (align_corners False), computed in float32.
    """
    import torch

    before, grid = embedding[:, :tokens], embedding[:, tokens:]
    old, new = math.isqrt(grid.shape[1]), math.isqrt(shape[1] - tokens)
    picture = grid.float().reshape(1, old, old, -1).permute(0, 3, 1, 2)
    picture = torch.nn.functional.interpolate(picture, size=(new, new), mode="bicubic", align_corners=False)
    grid = picture.permute(0, 2, 3, 1).reshape(1, new * new, -1).to(embedding.dtype)
    return torch.cat([before, grid], dim=1)


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    from inspector.checkpoint.torch_bridge import by_torch

    return by_torch(lambda held: resize_grid(held, step.shape or (), int(argument_of(step))), tensors[step.sources[0]])


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        tokens = int(argument_of(step))
        new = math.isqrt((step.shape or (0, 0))[1] - tokens)
        lines += [
            f"old = state[{step.target!r}]",
            f"side = int((old.shape[1] - {tokens}) ** 0.5)",
            f"grid = old[:, {tokens}:].float().reshape(1, side, side, -1).permute(0, 3, 1, 2)",
            f'grid = torch.nn.functional.interpolate(grid, size=({new}, {new}), mode="bicubic", align_corners=False)',
            f"grid = grid.permute(0, 2, 3, 1).reshape(1, {new * new}, -1).to(old.dtype)",
            f"state[{step.target!r}] = torch.cat([old[:, :{tokens}], grid], dim=1)",
        ]
    return lines


OPERATION = Operation(
    id="resize-grid",
    kinds=(StepKind.ADAPT,),
    way="resize-grid",
    says="adapt {}",
    make=_make,
    lines=_lines,
    by_torch=True,
)
