"""What of a model torch can watch, run and differentiate; what it cannot is said with what to do instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from inspector.errors import ExplainError


def refuse_program(model: nn.Module) -> None:
    """Raises ExplainError for TorchScript, whose layers are no Python modules."""
    if isinstance(model, torch.jit.ScriptModule):
        raise ExplainError(
            "This is a TorchScript program: what its layers put out cannot be seen or changed from outside.",
            hint="Give the Python model that it was made from, with these weights.",
        )


def is_compiled(module: nn.Module) -> bool:
    """By `torch.compile(module)` or `module.compile()`."""
    return module._compiled_call_impl is not None or "_orig_mod" in module._modules


def modules_of(model: nn.Module) -> list[nn.Module]:
    """Every module once, as `modules()` without the names that it makes up on the way."""
    found, seen = [model], {model}
    for around in found:  # it grows while it is walked
        for module in around._modules.values():
            if module is not None and module not in seen:
                seen.add(module)
                found.append(module)
    return found


def mixes_pictures(model: nn.Module) -> bool:
    """Whether a picture's answer depends on those beside it: a batch norm that keeps no statistics takes the batch's,
    in evaluation mode too."""
    return any(isinstance(m, _BatchNorm) and m.running_mean is None for m in modules_of(model))


def running_eagerly() -> AbstractContextManager[object]:
    """Compiled modules run as they are written: inside of a compiled program no hook is called."""
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance


@contextmanager
def differentiating() -> Iterator[None]:
    """Raises ExplainError for what torch cannot differentiate."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        if "checkpoint" in str(error):
            raise ExplainError(
                "The model computes parts of itself again for the gradient (checkpointing), without what was kept.",
                hint="Switch that off, by set_grad_checkpointing(False) or gradient_checkpointing_disable().",
            ) from error
        raise ExplainError(
            f"torch cannot differentiate this model: {first_line(error)}",
            hint="EigenCAM, Score-CAM, Ablation-CAM and occlusion need no gradient.",
        ) from error


def first_line(error: Exception) -> str:
    """torch's own words, as a sentence."""
    text = str(error).strip().splitlines()
    return text[0].rstrip(".") + "." if text else f"{type(error).__name__}."
