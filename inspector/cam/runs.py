"""A checkpoint as a model that runs; `inspector.ready_model` makes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.architectures.types import Recognition
from inspector.cam.report import Preprocessing
from inspector.cam.targets.answers import AnswerKind
from inspector.checkpoint.training_place import Place

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadyModel:
    """A checkpoint as a model that runs, and what the file says of its use.

    name: what to call the file. sha256: of its bytes, "" where nobody took it. model: in evaluation mode, every weight
    from the file. recognition: None for code of one's own. architecture: label of what it was built as.
    preprocessing: of pictures, `assumed` where nobody states it. class_names: in the order of the outputs, () where
    they are not stated. answer: how the scores are meant, None where it is not stated. place: in its training.
    weights: label of the state dict that runs. others: labels of those that could have run as well (an average of the
    weights, a second network of the same shapes). loaded: how many tensors came from the file, a clause.
    """

    name: str
    model: nn.Module
    architecture: str
    preprocessing: Preprocessing
    sha256: str = ""
    recognition: Recognition | None = None
    class_names: tuple[str, ...] = ()
    answer: AnswerKind | None = None
    place: Place = field(default_factory=Place)
    weights: str = ""
    others: tuple[str, ...] = ()
    loaded: str = ""

    @property
    def weights_note(self) -> str:
        """Which of several sets of weights runs; "" where the file has one."""
        if not self.others:
            return ""
        return f"The weights are {self.weights!r}; the file also holds {', '.join(map(repr, self.others))}."
