"""Random numbers for every parameter and every statistic, such that each of them is heard in the answer.

What a library starts with hides mistakes: norms at one, biases and position embeddings at zero, layer scale at 1e-6.
"""

from __future__ import annotations

import re
import zlib

import torch
from torch import Tensor, nn

_SCALES = re.compile(r"(gamma|lambda|layer_scale|layerscale)", re.IGNORECASE)
_NOT_TRAINED = re.compile(r"(num_batches_tracked|position_ids|token_type_ids|relative_position_index|_index$|mask$)")


def randomise(model: nn.Module, seed: int, fixed: tuple[str, ...] = ()) -> None:
    """In place. Matrices keep the size of what goes through them, norms lie around one, variances above zero."""
    named = [*model.named_parameters(), *model.named_buffers()]
    kept = set(model.state_dict())
    with torch.no_grad():
        for name, tensor in named:
            if not tensor.is_floating_point() or name not in kept or _NOT_TRAINED.search(name) or name.endswith(fixed):
                continue
            tensor.copy_(random_like(name, tensor, seed))


def random_like(name: str, tensor: Tensor, seed: int) -> Tensor:
    """Numbers for the tensor of this name, (out, in, ...)."""
    chance = torch.Generator().manual_seed(zlib.crc32(f"{name} {seed}".encode()))
    last = name.rpartition(".")[2]
    noise = torch.randn(tensor.shape, generator=chance)
    if last == "running_var":
        return noise.abs() + 0.5
    if "logit_scale" in last:
        return 1 + 0.3 * noise
    if last == "running_mean" or last.endswith("bias"):
        return 0.3 * noise
    if _SCALES.search(last) or (tensor.ndim < 2 and last in ("weight", "g", "scale")):
        return 1 + 0.3 * noise
    if tensor.ndim < 2:
        return 0.3 * noise
    if "pos" in last or "token" in last or "table" in last or "embed" in name:
        return 0.7 * noise
    return noise * (tensor[0].numel() ** -0.5)
