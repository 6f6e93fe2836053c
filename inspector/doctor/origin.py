"""Which operator made the first NaN or infinity, and in which line."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from inspector.doctor.frames import line_of_frame, nearest_own_frame
from inspector.doctor.modes import SEED
from inspector.doctor.record import unwatched
from inspector.doctor.report import SourceLine
from inspector.doctor.trials import as_it_was
from inspector.forward.watch import ForwardError, Listener, Operation, tensors_in, watch


@dataclass(frozen=True, slots=True)
class Origin:
    """operator: its plain name. inside: path of the module that called it. line: of the model's own code."""

    operator: str
    inside: str
    line: SourceLine | None


class _Search(Listener):
    def __init__(self) -> None:
        self.found: Origin | None = None

    def operation(self, operation: Operation) -> None:
        if self.found is not None:
            return
        with unwatched():
            name = operation.operator._schema.name.partition("::")[2]
            if not any(map(_bad, tensors_in(operation.output))):
                return
            # Memory that nobody has written yet holds anything; of a mask -inf is meant.
            if name.startswith(("empty", "new_empty", "full", "masked_fill", "scalar_tensor")):
                return
            if any(map(_bad, tensors_in((operation.args, dict(operation.kwargs))))):
                return
            frame = nearest_own_frame(sys._getframe())
            line = None if frame is None else line_of_frame(frame)
            self.found = Origin(name.strip("_"), operation.inside.path if operation.inside else "", line)


def _bad(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and not tensor.is_meta and not bool(tensor.isfinite().all())


def find_origin(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], *, training: bool) -> Origin | None:
    """The first operator that gives what is not finite and got only finite numbers; None where there is none."""
    search = _Search()
    with as_it_was(model):
        model.train(training)
        torch.manual_seed(SEED)
        try:
            watch(model, args, kwargs, search)
        except ForwardError:
            return None
    return search.found
