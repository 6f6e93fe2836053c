"""What stands behind the names of TorchScript code while it is followed, and how a branch is taken back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from inspector.graph.types import Parameter
from inspector.readers.unpickle.stand_ins import Call


class _Unknown:
    def __repr__(self) -> str:
        return "…"


UNKNOWN = _Unknown()
# In the order in which they are made: what a branch made itself is told from what it found.
_numbers = count()


@dataclass(slots=True, eq=False)
class Data:
    """What an operator made, or a list of values. made: by which node; None where no operator did. items: of a list or
    tuple whose members are known one by one. Operators that change what they are given change `made`; a tuple is never
    changed."""

    made: str | None = None
    items: list[Value] | None = None
    is_tuple: bool = False
    number: int = field(default_factory=_numbers.__next__)


@dataclass(frozen=True, slots=True)
class Known:
    """A constant: its value, or UNKNOWN."""

    value: object = UNKNOWN


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor of the file."""

    parameter: Parameter


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """An object of the file whose class the code defines. stub: as the pickle has it."""

    path: str
    stub: Call
    kind: str


@dataclass(frozen=True, slots=True)
class Name:
    """A dotted name: torch.add, ops.aten.add, __torch__.a.f."""

    dotted: str


Value = Data | Known | Weight | Module | Name


@dataclass(slots=True, eq=False)
class Frame:
    """A function that runs. group: what its operators lie in."""

    names: dict[str, Value]
    group: str
    module: Module | None = None
    result: Value | None = None


@dataclass(slots=True, eq=False)
class Changes:
    """What a branch left behind: names with their last value; of the lists and tensors that it found, what made them
    last."""

    names: dict[str, Value] = field(default_factory=dict)
    data: dict[Data, tuple[str | None, list[Value] | None]] = field(default_factory=dict)


class Journal:
    """Notes what is changed, so that a branch can be taken back at the cost of its changes."""

    def __init__(self) -> None:
        self._notes: list[tuple[dict[str, Value], str, Value | None] | tuple[Data, str | None, list[Value] | None]] = []
        self._open = 0

    def name(self, names: dict[str, Value], name: str, value: Value) -> None:
        """Give a name its value."""
        if self._open:
            self._notes.append((names, name, names.get(name)))
        names[name] = value

    def change(self, data: Data, made: str) -> None:
        """An operator has changed a tensor or list."""
        if self._open:
            self._notes.append((data, data.made, data.items))
        data.made, data.items = made, None

    @property
    def is_open(self) -> bool:
        """Whether a branch is being followed."""
        return self._open > 0

    def begin(self) -> tuple[int, int]:
        """A branch begins; what `take_back` is to be given."""
        self._open += 1
        return len(self._notes), next(_numbers)

    def take_back(self, mark: tuple[int, int], frame: Frame) -> Changes:
        """What has changed since then in the frame, which is as it was before."""
        changes = Changes()
        notes = self._notes[mark[0] :]
        del self._notes[mark[0] :]
        own: dict[Data, tuple[str | None, list[Value] | None]] = {}
        self._open -= 1
        for note in notes:
            if isinstance(note[0], Data):
                (changes.data if note[0].number < mark[1] else own)[note[0]] = (note[0].made, note[0].items)
            elif note[0] is frame.names:
                changes.names[str(note[1])] = frame.names[str(note[1])]
        for name, value in changes.names.items():
            if isinstance(value, Data) and (value in changes.data or value in own):
                # What is taken back below is kept here.
                changes.names[name] = Data(value.made, value.items, value.is_tuple)
        for note in reversed(notes):
            if isinstance(note[0], Data):
                note[0].made, note[0].items = note[1], note[2]
            elif note[2] is None:
                note[0].pop(str(note[1]), None)
            else:
                note[0][str(note[1])] = note[2]
        return changes


def makers(values: Iterable[Value], most: int) -> tuple[list[str], list[Parameter]]:
    """The nodes and the file's tensors that values are made of, lists taken apart; at most so many."""
    nodes: dict[str, None] = {}
    weights: dict[Parameter, None] = {}
    for value in _flat(values, most):
        if isinstance(value, Data) and value.made is not None:
            nodes[value.made] = None
        elif isinstance(value, Weight):
            weights[value.parameter] = None
    return list(nodes), list(weights)


def _flat(values: Iterable[Value], most: int) -> Iterator[Value]:
    stack = [iter(values)]
    while stack and most:
        value = next(stack[-1], None)
        if value is None:
            stack.pop()
            continue
        most -= 1
        yield value
        if isinstance(value, Data) and value.items is not None and len(stack) < 64:
            stack.append(iter(value.items))


def is_same(one: Value | None, other: Value | None) -> bool:
    """Whether two branches left the same."""
    if one is other:
        return True
    if isinstance(one, Known) and isinstance(other, Known):
        return one.value is not UNKNOWN and type(one.value) is type(other.value) and one.value == other.value
    if isinstance(one, Module) and isinstance(other, Module):
        return one.stub is other.stub
    if isinstance(one, Data) and isinstance(other, Data):
        return one.made is not None and one.made == other.made
    return isinstance(one, Weight | Name) and one == other
