"""A copy of a model on the meta device, where a forward pass costs no memory and computes no value."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from inspector.errors import ModelError, NeedsValues
from inspector.flops.refusals import REAL_RUN, first_line
from inspector.forward.bare import bare_copy


def to_meta(model: nn.Module, *, label: str) -> nn.Module:
    """A copy of the model on the meta device in eval mode; the model itself is left as it is.

    Parameters that are shared stay shared. label: its name in messages. Raises ModelError for what cannot be copied, or
    runs where no operator can be seen.
    """
    check_countable(model, label=label)
    try:
        return bare_copy(model).eval()
    except Exception as error:
        raise ModelError(
            f"{label} cannot be copied, and counting would change it: {first_line(error)}",
            hint="Locks, open files and generators in a module cannot be copied: make them in forward.",
        ) from error


def check_countable(model: nn.Module, *, label: str, values: bool = False) -> None:
    """Raise ModelError, naming the module, where the work cannot be seen or its size is not known yet.

    values: whether it will run with real numbers, as quantised layers must.
    """
    if not isinstance(model, nn.Module):
        raise ModelError(f"{label} is a {type(model).__name__}, not a torch.nn.Module.")
    for path, module in model.named_modules():
        name = f"{label}: {path or 'the model itself'} ({type(module).__name__})"
        if isinstance(module, torch.jit.ScriptModule):
            raise ModelError(
                f"{name} is TorchScript: what it computes runs out of sight and cannot be counted.",
                hint="Build the Python module instead, without torch.jit.",
            )
        if any(map(is_lazy, (*module._parameters.values(), *module._buffers.values()))):
            raise ModelError(
                f"{name} has no shape before the first forward pass: it is a lazy module.",
                hint="Run one input through the model first.",
            )
        if hasattr(module, "_packed_params") and not values:
            raise NeedsValues(
                f"{name} is quantised: its packed weights cannot be left without numbers.",
                hint=f"{REAL_RUN} Or count the model before it was quantised.",
            )
