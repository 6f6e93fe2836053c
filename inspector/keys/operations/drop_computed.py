"""A buffer that is left out because the network computes it itself, and its numbers are the computed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.computed import COMPUTED
from inspector.keys.operations.entry import Moment, Operation, argument_of
from inspector.keys.report import Step, StepKind

LEAVE_OUT = "leave-out"
# Frequencies were computed by other machines; a half has 11 bits. Another base is off by far more.
_ROUNDING = 2.0**-9


def _check(step: Step, tensors: Mapping[str, RawTensor]) -> str:
    held = tensors[step.sources[0]].numbers
    kind = COMPUTED[argument_of(step)]
    made = kind.make(held.shape)
    wide, wanted = held.astype(np.float64), made.astype(np.float64)
    if made.dtype.kind == held.dtype.kind == "f":
        same = bool(np.isclose(wide, wanted, rtol=_ROUNDING, atol=0.0).all())
    else:
        same = np.array_equal(wide, wanted)
    return "" if same else f"{step.source} is not {kind.what}: leaving it out would lose what it says."


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        kind = COMPUTED[argument_of(step)]
        says = f"{step.source} is not {kind.what}"
        lines += [
            *kind.lines(step.shape or ()),
            f"if not torch.allclose(state[{step.source!r}].double(), buffer.double(), rtol={_ROUNDING!r}, atol=0.0):",
            f"    raise ValueError({says!r})",
            f"del state[{step.source!r}]",
        ]
    return lines


OPERATION = Operation(
    id="drop-computed",
    kinds=(StepKind.DROP,),
    way="computed",
    says="leave out {}, which the network computes itself",
    moment=Moment.FILE,
    lines=_lines,
    check=_check,
    otherwise=f"Choose computed-buffers={LEAVE_OUT} if that loss is what you want.",
)
