"""Small modules that several tests of the doctor share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn


def forward_written(folder: Path, expression: str) -> Callable[..., Any]:
    """A forward of (m, x) whose line stands in a file, as a person's does."""
    place = folder / "written.py"
    place.write_text(
        f"import torch\nfrom torch.nn import functional as F\ndef forward(m, x):\n    return {expression}\n"
    )
    names: dict[str, Any] = {}
    exec(compile(place.read_text(), str(place), "exec"), names)
    found: Callable[..., Any] = names["forward"]
    return found


class Net(nn.Module):
    """Layers by name, and a forward that is given."""

    def __init__(self, forward: Callable[..., Any], **layers: Any) -> None:
        super().__init__()
        self._forward_of = forward
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._forward_of(self, *args, **kwargs)
