"""What the members of a run hold. Numbers lie packed: a hundred members of a thousand tensors are ten million bytes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.training_place import Place
from inspector.compare.report import Way
from inspector.events.report import EventLog
from inspector.findings import Finding
from inspector.health.roles import Role


class Measure(StrEnum):
    """What is known of a tensor at each member, as float64; NaN where it is not known.

    RMS .. MAXIMUM, of the finite numbers. ZERO: share of zeros. ZERO_ROWS: rows along axis 0 that are zero (filters, of
    a convolution), of tensors with two or more dimensions. NOT_FINITE: numbers that are NaN or infinite.
    MOVED: ||now - before||, UPDATE: that over ||before||, FLIPS: share of numbers with another sign, all since the
    member before. FROM_FIRST: ||now - first||, FROM_LAST: ||last - now||.
    """

    RMS = "rms"
    MEAN = "mean"
    STD = "std"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    ZERO = "zero"
    ZERO_ROWS = "zero_rows"
    NOT_FINITE = "not_finite"
    MOVED = "moved"
    UPDATE = "update"
    FLIPS = "flips"
    FROM_FIRST = "from_first"
    FROM_LAST = "from_last"


MEASURES = tuple(Measure)
#: Bins of a histogram.
BINS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One checkpoint of the run. at: where it stands on the axis. state: label of the state dict that was read.
    way: how its names were found to be the run's. tensors: of the run's tensors, how many it has."""

    name: str
    nbytes: int
    place: Place
    at: float
    state: str
    way: Way
    tensors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A file that is no member. broken: it could not be read, else it belongs to something else."""

    name: str
    why: str
    broken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTensor:
    """One tensor of the run, as its first member has it. kind: of a norm's statistics and counters too."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    numel: int
    role: Role

    @property
    def is_learned(self) -> bool:
        """Whether an optimizer moves it: no statistics that a forward pass gathers, no buffer."""
        return self.role not in _NOT_LEARNED


_NOT_LEARNED = (Role.RUNNING_MEAN, Role.RUNNING_VAR, Role.BUFFER, Role.MASK, Role.COUNTER, Role.MOMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSeries:
    """One number that the files state, at each member. values: float64, NaN where one does not state it."""

    name: str
    values: bytes

    @property
    def array(self) -> NDArray[np.float64]:
        """(members,)."""
        return np.frombuffer(self.values, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A run, in its order.

    ordered_by: "epoch and step", "epoch", "step" or "name". axis: what `Member.at` counts: "step", "epoch" or
    "checkpoint" (the first is 1). tensors: the floating ones that all of it is about.
    measured: (tensors, measures, members) float64 in native byte order; spans: (tensors, members, 2), the ends of each
    histogram; counts: (tensors, members, BINS) float32, what lies beyond being in the outermost bins.
    stated: numbers that differ between members, in the files' order. logs: event files found beside.
    passed: (name, why) of what is no checkpoint. read_nbytes: tensor bytes that were read.
    notes: what was not measured, and why.
    """

    says: str
    members: tuple[Member, ...]
    left_out: tuple[LeftOut, ...]
    ordered_by: str
    axis: str
    tensors: tuple[RunTensor, ...]
    measured: bytes
    spans: bytes
    counts: bytes
    stated: tuple[StatedSeries, ...] = ()
    logs: tuple[EventLog, ...] = ()
    findings: tuple[Finding, ...] = ()
    passed: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    read_nbytes: int = 0
    seconds: float = 0.0

    @property
    def places(self) -> NDArray[np.float64]:
        """(members,): where each stands on the axis."""
        return np.array([member.at for member in self.members])

    def series(self, measure: Measure) -> NDArray[np.float64]:
        """(tensors, members)."""
        return self._cube()[:, MEASURES.index(measure), :]

    def histograms(self) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Ends (tensors, members, 2) and counts (tensors, members, BINS); ends are NaN where nothing is finite."""
        shape = (len(self.tensors), len(self.members))
        return (
            np.frombuffer(self.spans, np.float64).reshape(*shape, 2),
            np.frombuffer(self.counts, np.float32).reshape(*shape, BINS),
        )

    def _cube(self) -> NDArray[np.float64]:
        return np.frombuffer(self.measured, np.float64).reshape(len(self.tensors), len(MEASURES), len(self.members))
