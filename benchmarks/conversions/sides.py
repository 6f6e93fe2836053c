"""One side of a pair: a network as one library writes it, how it is run, and how it is saved.

A side knows nothing of the other. What no file holds (epsilons, strides, an activation) is set alike by whoever builds
the two, and the pair says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Run = Callable[[Any, Tensor], Tensor]


def plainly(model: nn.Module, x: Tensor) -> Tensor:
    """The answer of a model that takes one tensor and gives one."""
    made = model(x)
    if isinstance(made, Tensor):
        return made
    if hasattr(made, "logits"):
        return made.logits
    return made.last_hidden_state if hasattr(made, "last_hidden_state") else made[0]


def save_state(model: nn.Module, folder: Path) -> Path:
    """As everyone saves: torch.save of the state dict."""
    path = folder / "model.pth"
    torch.save(model.state_dict(), path)
    return path


@dataclass(frozen=True, kw_only=True)
class Side:
    """library: who calls it so. build: a network in evaluation mode. save: writes its weights into a folder.

    run: its answer to an input in the precision that the network is in. own: whether the code is the library's own;
    False: written here after what the library publishes, since it cannot be installed. to_double: in float64.
    can_be_target: whether it is a torch module that a state dict goes into. fixed: parameters that keep their initial
    values (by the end of their names), as a table that the library itself never trains.
    """

    library: str
    build: Callable[[], Any]
    run: Run = plainly
    save: Callable[[Any, Path], Path] = save_state
    own: bool = True
    can_be_target: bool = True
    randomise: Callable[[Any, int], None] | None = None
    double: Callable[[Any], Any] | None = None
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two sides that compute the same. both: converted in both directions.

    accept: rules that somebody who knows the two networks would accept. answers: option by question id, what that
    person would say; a question that is not among them is answered by trying every option.
    partial: the file holds a part of the target, and only that part is compared ("the head is missing").
    same: what is set alike on both sides because no file holds it. rounds: by how much answers may differ in float64,
    where one of the two takes a step in float32 in any case. impossible: why no weights of the target give the file's
    answers, or nothing says which; then a plan that calls itself complete is the mistake.
    """

    id: str
    ours: Side
    theirs: Side
    input: Callable[[], Tensor]
    both: bool = True
    accept: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False
    same: str = ""
    rounds: float = 1e-9
    impossible: str = ""


def picture(size: int, channels: int = 3, batch: int = 2) -> Callable[[], Tensor]:
    """Noise of [batch, channels, size, size], the same for both sides."""

    def made() -> Tensor:
        return torch.randn(batch, channels, size, size, generator=torch.Generator().manual_seed(7), dtype=torch.float64)

    return made


def tokens(vocabulary: int, length: int = 9, batch: int = 2, start: int = 3) -> Callable[[], Tensor]:
    """Token ids of [batch, length], none of them a padding."""

    def made() -> Tensor:
        return torch.randint(start, vocabulary, (batch, length), generator=torch.Generator().manual_seed(7))

    return made
