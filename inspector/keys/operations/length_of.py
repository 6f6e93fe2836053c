"""The length of each filter of a kernel, as weight norm keeps it beside the kernel as direction: g = |w|, v = w."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Moment, Operation, argument_of
from inspector.keys.report import Step, StepKind


def lengths_of(kernel: RawTensor, dim: int) -> RawTensor:
    """The norm over every dimension but one, by torch's own function: (out, 1, ...) for dim 0, () for dim -1."""
    import torch

    from inspector.checkpoint.torch_bridge import by_torch

    return by_torch(lambda held: torch.norm_except_dim(held, 2, dim), kernel)


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    return lengths_of(tensors[step.sources[0]], int(argument_of(step)))


def _check(step: Step, tensors: Mapping[str, RawTensor]) -> str:
    if not _make(step, tensors).numbers.all():
        return f"{step.source} has a filter of length zero, which weight norm cannot hold: it would compute NaN."
    return ""


def _lines(steps: Sequence[Step]) -> list[str]:
    return [f"made[{s.target!r}] = torch.norm_except_dim(state[{s.source!r}], 2, {argument_of(s)})" for s in steps]


OPERATION = Operation(
    id="length-of",
    kinds=(StepKind.TIE,),
    way="length",
    says="take {} from the length of each filter",
    moment=Moment.FILE,
    make=_make,
    lines=_lines,
    check=_check,
    otherwise="Build the model without weight norm.",
    by_torch=True,
)
