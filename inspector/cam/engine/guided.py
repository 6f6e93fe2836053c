"""ReLUs that let only what is positive back, modules and functions alike, in this thread and for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from inspector.errors import ExplainError

_RELUS = frozenset(
    {
        functional.relu,
        functional.relu6,
        functional.hardtanh,
        functional.relu_,
        functional.hardtanh_,
        torch.relu,
        torch.relu_,
        torch.Tensor.relu,
        torch.Tensor.relu_,
    }
)


class _Guide(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if func in _RELUS and isinstance(made, Tensor):
            self.seen += 1
            if made.requires_grad:
                # The ReLU's own backward then drops what did not pass forwards.
                made.register_hook(lambda gradient: gradient.clamp_min(0))  # type: ignore[no-untyped-call]
        return made


@contextmanager
def guided() -> Iterator[None]:
    """Inside, a forward and its backward are guided. Raises ExplainError at the end when no ReLU ran."""
    with _Guide() as guide:
        yield
    if not guide.seen:
        raise ExplainError(
            "Guided backpropagation is defined by ReLUs, and none ran in this model.",
            hint="Gradient saliency or SmoothGrad work with any activation.",
        )
