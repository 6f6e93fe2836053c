"""A tensor that is left out because another of the file is the same, number for number: the second half of a tie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor, same_bits
from inspector.keys.operations.entry import Moment, Operation
from inspector.keys.report import Step, StepKind

LEAVE_OUT = "leave-out"


def _check(step: Step, tensors: Mapping[str, RawTensor]) -> str:
    ours, other = tensors[step.sources[0]], tensors[step.beside[0]]
    # By their bytes: a NaN is a copy of itself.
    if same_bits(ours, other):
        return ""
    return f"{step.source} is no copy of {step.beside[0]}: leaving it out would lose its numbers."


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        lines += [
            f"if not torch.equal(state[{step.source!r}], state[{step.beside[0]!r}]):",
            f"    raise ValueError({f'{step.source} is no copy of {step.beside[0]}'!r})",
            f"del state[{step.source!r}]",
        ]
    return lines


OPERATION = Operation(
    id="drop-copy",
    kinds=(StepKind.DROP,),
    way="copy",
    says="leave out {}, a copy",
    moment=Moment.FILE,
    lines=_lines,
    check=_check,
    otherwise=f"Choose tied-weights={LEAVE_OUT} if that loss is what you want.",
)
