"""Small modules that several tests of the doctor share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn


class Net(nn.Module):
    """Layers by name, and a forward that is given."""

    def __init__(self, forward: Callable[..., Any], **layers: Any) -> None:
        super().__init__()
        self._forward_of = forward
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._forward_of(self, *args, **kwargs)
