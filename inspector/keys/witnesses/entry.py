"""What a witness is, and what it is given: a question, and for each option the tensors that it would make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inspector.architectures.types import Target
from inspector.checkpoint.casts import has_numbers
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.raw_tensor import RawTensor
from inspector.checkpoint.types import Shape
from inspector.errors import InspectorError
from inspector.keys.apply import make_one
from inspector.keys.report import Ambiguity, Step
from inspector.keys.witnesses.types import Statement

Floats = NDArray[np.float64]

#: Of more layers than these some are passed over, evenly: what is said of a question does not change by more.
MOST_LAYERS = 24
#: In a trained tensor hardly a number is exactly zero. One with more was pruned, and says nothing.
MOST_ZEROS = 0.02


@dataclass(slots=True)
class Scene:
    """One question about the file's numbers.

    plans: for each option that leads to a plan, its steps by the target's names. names: of the file. read: a tensor of
    the file. Of a layer the file's tensors are held until `forget`, so that every option is made of one reading.
    """

    question: Ambiguity
    target: Target
    plans: Mapping[str, Mapping[str, Step]]
    names: Sequence[str]
    read: Callable[[str], RawTensor]
    _held: dict[str, RawTensor] = field(default_factory=dict)
    _shapes: dict[str, Shape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shapes = {t.name: t.shape for t in self.target.tensors if t.shape is not None}

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """The target's."""
        return self._shapes

    def differs(self, name: str) -> bool:
        """Whether the options make other tensors of it: only of such the question is."""
        made = [_way(steps[name]) for steps in self.plans.values() if name in steps]
        return len(set(made)) > 1

    def tensor(self, option: str, name: str, *, dense: bool = True) -> Floats | None:
        """The target's tensor under this option, as float64; None where there is none of plain, finite numbers, or
        where too many are zero that should not be (dense)."""
        step = self.plans[option].get(name)
        if step is None or step.source is None:
            return None
        try:
            raw = make_one(step, self._load)
        except (InspectorError, KeyError):
            return None
        if not has_numbers(raw.dtype) or not DTYPES[raw.dtype].floating or "complex" in raw.dtype:
            return None
        if DTYPES[raw.dtype].itemsize < 2:
            return None  # of eight bits or fewer: rounded too coarsely
        numbers = np.asarray(raw.numbers, dtype=np.float64)
        if not numbers.size or not np.isfinite(numbers).all() or (dense and np.mean(numbers == 0) > MOST_ZEROS):
            return None
        return numbers

    def forget(self) -> None:
        """Let go of a layer."""
        self._held.clear()

    def _load(self, source: str) -> RawTensor:
        if source not in self._held:
            self._held[source] = self.read(source)
        return self._held[source]


def _way(step: Step) -> tuple[object, ...]:
    return step.kind, step.sources, step.value, step.rows, step.axes, step.shape


def some(layers: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """At most `MOST_LAYERS` of them, evenly."""
    if len(layers) <= MOST_LAYERS:
        return list(layers)
    return [layers[round(i * (len(layers) - 1) / (MOST_LAYERS - 1))] for i in range(MOST_LAYERS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """One entry of `WITNESSES`.

    id: stable. title: what is looked at, a few words. questions: ids of those that it is asked about (before a colon).
    listens: what it says, None where there is nothing to look at. source: where the test is from.
    """

    id: str
    title: str
    questions: frozenset[str]
    listens: Callable[[Scene], Statement | None]
    source: str
