"""Relative position biases of a window of another size, resized as a picture. The argument is how many rows are kept.

A table has (2 w - 1)^2 rows for a window of w x w, one per difference of two places, and BEiT's three more for the
class token. Bicubic, as Swin's own fine-tuning code does it (Swin-Transformer, utils.py, load_pretrained).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, argument_of
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def resize_table(table: Tensor, rows: int, kept: int) -> Tensor:
    """(old rows, heads) to (rows, heads), in its own dtype, computed in float32; the last `kept` rows stay."""
    import torch

    grid, rest = table[: table.shape[0] - kept], table[table.shape[0] - kept :]
    old, new = math.isqrt(grid.shape[0]), math.isqrt(rows - kept)
    picture = grid.float().t().reshape(1, -1, old, old)
    picture = torch.nn.functional.interpolate(picture, size=(new, new), mode="bicubic", align_corners=False)
    return torch.cat([picture.reshape(-1, new * new).t().to(table.dtype), rest])


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    from inspector.checkpoint.torch_bridge import by_torch

    rows = (step.shape or (0,))[0]
    return by_torch(lambda held: resize_table(held, rows, int(argument_of(step))), tensors[step.sources[0]])


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        kept = int(argument_of(step))
        new = math.isqrt((step.shape or (0,))[0] - kept)
        lines += [
            f"table = state[{step.target!r}]",
            f"end = table.shape[0] - {kept}",
            "side = int(end ** 0.5)",
            "grid = table[:end].float().t().reshape(1, -1, side, side)",
            f'grid = torch.nn.functional.interpolate(grid, size=({new}, {new}), mode="bicubic", align_corners=False)',
            f"grid = grid.reshape(-1, {new * new}).t().to(table.dtype)",
            f"state[{step.target!r}] = torch.cat([grid, table[end:]])",
        ]
    return lines


OPERATION = Operation(
    id="resize-table",
    kinds=(StepKind.ADAPT,),
    way="resize-table",
    says="adapt {}",
    make=_make,
    lines=_lines,
    by_torch=True,
)
