"""What a model is run on: random numbers of a shape, or tensors from a file."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from inspector.checkpoint.torch_bridge import to_torch
from inspector.checkpoint.types import Checkpoint
from inspector.doctor.frames import forward_code
from inspector.errors import ModelError, UsageError
from inspector.units import human_shape

SEED = 0
_SIDE = 224
_MOST_INPUTS = 32
_SIZE_HINT = "Say what the model takes: 3x224x224 for pictures, or 128 for so many numbers or tokens (--input-size)."


def random_input(model: nn.Module, shape: tuple[int, ...] | None, *, batch: int = 1) -> tuple[Tensor, str]:
    """(input, how it was made). shape: without the batch; None for what the first layer takes.

    Standard normal numbers from a fixed seed; token numbers below the table's length where the first layer looks up.
    Raises ModelError where nothing tells what the model takes.
    """
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear, nn.Embedding, nn.RNNBase)
    first = next((m for m in model.modules() if isinstance(m, kinds)), None)
    assumed = "" if shape else ", a shape assumed from the first layer"
    if shape is None:
        if isinstance(first, nn.Conv2d):
            shape = (first.in_channels, _SIDE, _SIDE)
        elif isinstance(first, nn.Linear):
            shape = (first.in_features,)
        else:
            raise ModelError("Nothing tells what this model takes.", hint=_SIZE_HINT)
    size = (batch, *shape)
    tokens = isinstance(first, nn.Embedding) and len(shape) == 1
    made = random_tensor(size, below=first.num_embeddings if isinstance(first, nn.Embedding) and tokens else 0)
    return made, f"random {'tokens' if tokens else 'numbers'} {human_shape(size)}, seed {SEED}{assumed}"


def random_tensor(size: tuple[int, ...], *, below: int = 0) -> Tensor:
    """Standard normal numbers, or whole ones from 0 to below - 1; the same each time."""
    generator = torch.Generator().manual_seed(SEED)
    if below:
        return torch.randint(0, below, size, generator=generator)
    return torch.randn(size, generator=generator)


def tensors_of(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The tensors of a file by name, in its order. Raises UsageError where there are none or too many, ReadError."""
    infos = checkpoint.tensors
    if not 0 < len(infos) <= _MOST_INPUTS:
        raise UsageError(
            f"{checkpoint.origin.name} holds {len(infos):,} tensors, and an input is 1 to {_MOST_INPUTS}.",
            hint="Save what goes into the model alone.",
        )
    return {info.name: to_torch(checkpoint, info) for info in infos}


def arguments_of(model: nn.Module, tensors: dict[str, Tensor]) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """By name where the forward takes all of these names, else by their order."""
    code = forward_code(model)
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount] if code is not None else ()
    if tensors and all(name in names for name in tensors):
        return (), dict(tensors)
    return tuple(tensors.values()), {}


def batched(tensor: Tensor, batch: int) -> Tensor:
    """The one sample as often as asked."""
    return tensor if batch == 1 or tensor.shape[0] != 1 else tensor.expand(batch, *tensor.shape[1:]).contiguous()
