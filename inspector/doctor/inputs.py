"""What a model is run on: random numbers of a shape, or tensors from a file."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from inspector.architectures.types import Given
from inspector.checkpoint.torch_bridge import to_torch
from inspector.checkpoint.types import Checkpoint
from inspector.doctor.frames import forward_code
from inspector.errors import ModelError, UsageError
from inspector.forward.bare import bare_copy
from inspector.forward.inputs import blank_of, proposed_inputs, stated_input
from inspector.forward.watch import Listener, watch
from inspector.units import human_shape

SEED = 0
_MOST_INPUTS = 32
_SIZE_HINT = "Say what the model takes: 3x224x224 for pictures, or 128 for so many numbers or tokens (--input-size)."


def random_input(model: nn.Module, shape: tuple[int, ...] | None, *, batch: int = 1) -> tuple[Tensor, str]:
    """(input, how it was made). shape: without the batch; None for the first usual one that runs, else the likeliest.

    Standard normal numbers from a fixed seed, in float32 as a loader gives them; token numbers below the table's length
    where the first layer looks up. Raises ModelError where nothing tells what the model takes.
    """
    given, assumed = (stated_input(model, (batch, *shape)), "") if shape is not None else _usual_input(model, batch)
    tokens = given.dtype == "int64"
    made = random_tensor(given.shape, below=given.below or 0)
    return made, f"random {'tokens' if tokens else 'numbers'} {human_shape(given.shape)}, seed {SEED}{assumed}"


def _usual_input(model: nn.Module, batch: int) -> tuple[Given, str]:
    proposed = list(proposed_inputs(model, batch))
    if not proposed:
        raise ModelError("Nothing tells what this model takes.", hint=_SIZE_HINT)
    failed: list[str] = []
    for given, _ in proposed:
        if _runs(model, given):
            without = f"; {', '.join(failed[:3])} {'do' if len(failed) > 1 else 'does'} not run" if failed else ""
            return given, f", a shape assumed from the first layers{without}"
        failed.append(human_shape(given.shape[1:]))
    # Where its numbers decide, none runs on shapes alone: the run itself will tell.
    return proposed[0][0], ", a shape assumed from the first layers"


def _runs(model: nn.Module, given: Given) -> bool:
    try:
        watch(bare_copy(model), [blank_of(given)], {}, Listener())
    except Exception:  # noqa: BLE001 - whatever is wrong with the model, the run itself will tell
        return False
    return True


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
