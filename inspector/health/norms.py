"""The batch norms of a state dict: modules with running statistics, whatever their name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.weights.rows import elements

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNorm:
    """One of them: y = scale (x - mean) / sqrt(var + eps) + shift, per channel.

    names: the last names of its tensors. mean, var: (channels,). scale, shift: (channels,), None where the norm has
    none or they cannot be read.
    batches: how many batches it has seen, None where the file does not tell (norms frozen by construction, files from
    before torch 0.4.1).
    """

    module: str
    names: Mapping[Role, str]
    channels: int
    mean: Values
    var: Values
    scale: Values | None
    shift: Values | None
    batches: int | None

    def name_of(self, role: Role) -> str:
        """The name in the state dict of its tensor of that role; of the module where it has none."""
        return f"{self.module}.{self.names.get(role, '')}".strip(".")

    @property
    def affine_moved(self) -> bool:
        """Whether it was trained: a shift that is not 0; without a shift, a scale that is neither 1 nor 0 throughout.

        Scales beside shifts of 0 prove nothing: some begin at random around 1 (DCGAN), some at 0 (residual branches).
        """
        if self.shift is not None:
            return bool(np.any(self.shift != 0))
        return self.scale is not None and not (np.all(self.scale == 1) or np.all(self.scale == 0))

    @property
    def stats_default(self) -> bool:
        """Whether the running statistics are what they start as: means of 0, variances of 1."""
        return bool(np.all(self.mean == 0) and np.all(self.var == 1))


def batch_norms(subject: Subject) -> Sequence[BatchNorm]:
    """In the state dict's order; one without elements, or whose statistics cannot be read, is left out."""
    found: tuple[BatchNorm, ...] | None = subject.own_memo.get("batch norms")
    if found is None:
        found = subject.own_memo["batch norms"] = tuple(_batch_norms(subject))
    return found


def _batch_norms(subject: Subject) -> Iterator[BatchNorm]:
    for module, tensors in subject.modules_with(Role.RUNNING_VAR):
        parts = {one.role: one for one in tensors}
        mean, var = (_values(subject, parts.get(role)) for role in (Role.RUNNING_MEAN, Role.RUNNING_VAR))
        if mean is None or var is None or len(mean) != len(var) or not len(var):
            continue
        scale, shift = (_values(subject, parts.get(role)) for role in (Role.NORM_SCALE, Role.NORM_SHIFT))
        yield BatchNorm(
            module=module,
            names={role: one.last for role, one in parts.items()},
            channels=len(var),
            mean=mean,
            var=var,
            scale=scale if scale is not None and len(scale) == len(var) else None,
            shift=shift if shift is not None and len(shift) == len(var) else None,
            batches=_count(parts.get(Role.COUNTER)),
        )


def _values(subject: Subject, one: Examined | None) -> Values | None:
    """The elements of a floating one-dimensional tensor that was measured."""
    if one is None or one.statistics is None or not one.floating or len(one.tensor.shape) != 1:
        return None
    short = elements(one.statistics)
    if len(short) == one.statistics.numel:
        return short
    return subject.array(one)


def _count(one: Examined | None) -> int | None:
    if one is None or one.statistics is None or one.statistics.finite != 1:
        return None
    return int(one.statistics.maximum)
