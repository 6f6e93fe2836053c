"""Spectral norm worked out: the kernel divided by its largest singular value, as the saved vectors estimate it.

sigma = u (W v), Miyato 2018, equation 19, with W as a matrix of its first dimension by the rest: what torch's layer
computes in evaluation. With the argument "first" it is looked at whether the first dimension is meant: each step of
training ends with u = W v / |W v|, and over another dimension that does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Moment, Operation, argument_of
from inspector.keys.report import Step, StepKind

if TYPE_CHECKING:
    from torch import Tensor


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    from inspector.checkpoint.torch_bridge import by_torch

    return by_torch(_folded, *(tensors[name] for name in step.sources))


def _folded(kernel: Tensor, left: Tensor, right: Tensor) -> Tensor:
    import torch

    return kernel / torch.dot(left, torch.mv(kernel.reshape(kernel.shape[0], -1), right))


# What one step of an optimizer may have changed since; over the wrong dimension next to nothing of W v is along u.
_MOST_ASIDE = 0.1


def _aside(kernel: RawTensor, left: RawTensor, right: RawTensor) -> float:
    """The share of W v that is not along u."""
    w, u, v = (x.numbers.astype(np.float64) for x in (kernel, left, right))
    product = w.reshape(w.shape[0], -1) @ v
    length = float(np.linalg.norm(product))
    return float(np.linalg.norm(product - (u @ product) * u)) / length if length > 0 else 1.0


def _check(step: Step, tensors: Mapping[str, RawTensor]) -> str:
    if argument_of(step) == "first" and not _aside(*(tensors[name] for name in step.sources)) <= _MOST_ASIDE:
        return (
            f"{step.source} has as many inputs as outputs, and the vectors beside it do not show that its spectral "
            "norm is over its first dimension: it may be a transposed convolution's."
        )
    made = _make(step, tensors).numbers
    if bool(np.isfinite(made).all()) or not bool(np.isfinite(tensors[step.sources[0]].numbers).all()):
        return ""
    return f"The vectors beside {step.source} give it a largest singular value of zero: nothing can be divided by it."


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        kernel, left, right = (f"state[{name!r}]" for name in step.sources)
        lines += [
            f"kernel = {kernel}",
            f"sigma = torch.dot({left}, torch.mv(kernel.reshape(kernel.shape[0], -1), {right}))",
            f"made[{step.target!r}] = kernel / sigma",
        ]
    return lines


OPERATION = Operation(
    id="fold-spectral-norm",
    kinds=(StepKind.MERGE,),
    way="spectral-norm",
    says="work out the spectral norm of {}",
    moment=Moment.FILE,
    make=_make,
    lines=_lines,
    check=_check,
    otherwise="The layer was saved before its first step in training.",
    by_torch=True,
)
