"""What a corruption is: from an intact state dict a damaged file, the target, and the truth about every place."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from torch import Tensor

Shape = tuple[int, ...]
State = dict[str, Tensor]


class Row(NamedTuple):
    """A tensor of a damaged file. place: the target key it truly belongs to, None where it belongs nowhere."""

    key: str
    tensor: Tensor
    place: str | None


@dataclass(frozen=True)
class Damaged:
    """file: as it is given to the tools. truth: what a right repair puts on each place of the target.

    placeable: the places that the file has a tensor for. computed: those that can only be filled with numbers that are
    not in the file, such as a resized grid: neither right nor wrong.
    """

    file: State
    truth: State
    placeable: frozenset[str]
    computed: frozenset[str] = frozenset()

    @property
    def goal(self) -> dict[str, Shape]:
        return {name: tuple(tensor.shape) for name, tensor in self.truth.items()}


class Answer(StrEnum):
    """What the right answer to a damaged file is.

    REPAIR: a complete plan. PART: what is there is placed, and the plan says what is missing. REFUSE: nobody can
    repair this, whatever is accepted. WAIT: not without a word of the user, which a user who knows the truth does not
    give. TELL: names and shapes are the target's, and what is wrong shows nowhere: a finding has to say so.
    """

    REPAIR = "repair"
    PART = "part"
    REFUSE = "refuse"
    WAIT = "wait"
    TELL = "tell"


Make = Callable[[State, random.Random], Damaged]


@dataclass(frozen=True)
class Corruption:
    """One kind. accept: what a user who knows the truth accepts; answers: what that user says to a question, by kind.
    at: what they say of one tensor of it, by its name, where it is asked about place by place.

    simple: one cause, so one or two rules should say it. drawn: chance has a part in it, so each seed is a case.
    """

    name: str
    make: Make
    accept: tuple[str, ...] = ()
    expects: Answer = Answer.REPAIR
    simple: bool = True
    drawn: bool = False
    answers: Mapping[str, str] = field(default_factory=dict)
    at: Mapping[str, Callable[[str], str]] = field(default_factory=dict)


def damaged(rows: Iterable[Row], truth: State, computed: Iterable[str] = ()) -> Damaged:
    """The file that these rows make. Two rows of one name make no file: an empty one, which is no case."""
    listed = list(rows)
    file = {row.key: row.tensor for row in listed}
    if len(file) < len(listed):
        return Damaged({}, truth, frozenset())
    places = frozenset(row.place for row in listed if row.place is not None)
    away = frozenset(computed)
    return Damaged(file, truth, places - away, away)


def renamed(rename: Callable[[str], str]) -> Make:
    return lambda own, _: damaged((Row(rename(name), tensor, name) for name, tensor in own.items()), own)


def rebuilt(change: Callable[[str, Tensor], Tensor]) -> Make:
    """The same names on other tensors, which can be brought back."""
    return lambda own, _: damaged((Row(name, change(name, tensor), name) for name, tensor in own.items()), own)


def lost(change: Callable[[str, Tensor], Tensor]) -> Make:
    """The same names on other tensors; what was changed is gone, and its place cannot be filled."""

    def make(own: State, _: random.Random) -> Damaged:
        rows = []
        for name, tensor in own.items():
            other = change(name, tensor)
            rows.append(Row(name, other, name if other is tensor else None))
        return damaged(rows, own)

    return make
