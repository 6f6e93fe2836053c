"""Which tensors could change places without the sequence of shapes telling.

Order places tensors only under the assumption that file and target list the parts of the network in one order. Another
author may list the children of any module in another order (query and key; the shortcut and the last convolution). Such
an order is told apart by the sequence of tokens, unless it reads the same; then the parts that moved are symmetric.

So every order of the children of one module that reads the same is found. Parts of one name with numbers (conv1,
conv2; 0, 1) are listed by number by everyone, and torch's layers list weight before bias. Modules inside each other
that are all reordered, so that one change hides the other, are not looked for: a ResNet read as one with its norms
before the convolutions is another network, and that the file is the target's network is what the user accepts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

# In this order in every layer of torch.
_LAYER = frozenset({"weight", "bias", "running_mean", "running_var", "num_batches_tracked"})
# A module whose children could come in more ways than this is not tried out: all alike in it count as symmetric.
_MOST_STATES = 2000
_STEM = re.compile(r"(.*?)[0-9]+")

State = tuple[int, ...]


@dataclass(eq=False, slots=True)
class _Part:
    """A module or tensor of the target. start, length: its tensors in the sequence."""

    start: int
    length: int = 0
    parts: dict[str, _Part] = field(default_factory=dict)


def symmetric(names: Sequence[str], tokens: Sequence[Hashable], lanes: Sequence[Hashable] = ()) -> set[int]:
    """Positions of the tensors that could change places.

    names: the target's, in order. tokens: equal where two tensors could be exchanged for all that is known; a tensor
    that its name has placed has a token of its own. lanes: of each tensor, where only the order within each is known
    (`by_kind.py`), and not how they lie among each other.
    """
    sequence = _Sequence(tokens, lanes or [0] * len(tokens))
    root = _Part(0, len(names))
    for i, name in enumerate(names):
        node = root
        for segment in name.split("."):
            part = node.parts.get(segment)
            if part is None:
                part = node.parts[segment] = _Part(i)
            node = part
            node.length += 1
            if i >= node.start + node.length:
                # The parts of a module do not stand together: there is no order of children to speak of.
                return _alike(tokens, range(len(tokens)))
    found: set[int] = set()
    # Blocks that are alike have one answer.
    known: dict[Hashable, list[int]] = {}
    pending = [root]
    while pending:
        part = pending.pop()
        pending.extend(child for child in part.parts.values() if child.parts)
        if part.parts.keys() <= _LAYER:
            continue
        if lanes:
            found |= _moved(part, sequence)
            continue
        children = [(name, child.start - part.start, child.length) for name, child in part.parts.items()]
        key = tuple(children), tuple(tokens[part.start : part.start + part.length])
        if key not in known:
            known[key] = [at - part.start for at in _moved(part, sequence)]
        found.update(part.start + at for at in known[key])
    return found


class _Sequence:
    """The tokens, lane by lane. A place in it is one number for each lane."""

    def __init__(self, tokens: Sequence[Hashable], lanes: Sequence[Hashable]) -> None:
        self.tokens = tokens
        numbers = {lane: n for n, lane in enumerate(dict.fromkeys(lanes))}
        self._lanes: list[list[Hashable]] = [[] for _ in numbers]
        self._positions: list[list[int]] = [[] for _ in numbers]
        before = [0] * len(numbers)
        # For each position, how many of each lane come before it.
        self._before: list[State] = [tuple(before)]
        for i, (token, lane) in enumerate(zip(tokens, lanes, strict=True)):
            n = numbers[lane]
            self._lanes[n].append(token)
            self._positions[n].append(i)
            before[n] += 1
            self._before.append(tuple(before))

    def place(self, position: int) -> State:
        return self._before[position]

    def after(self, child: _Part, at: State) -> State | None:
        """Where the sequence goes on behind this child if it begins there; None where it does not read the same."""
        starts, ends = self._before[child.start], self._before[child.start + child.length]
        behind = tuple(place + end - start for place, start, end in zip(at, starts, ends, strict=True))
        for lane, start, end, place, then in zip(self._lanes, starts, ends, at, behind, strict=True):
            if lane[start:end] != lane[place:then]:
                return None
        return behind

    def moved(self, child: _Part, at: State) -> set[int]:
        """The positions that this child has and would have, in the lanes where these differ."""
        starts, ends = self._before[child.start], self._before[child.start + child.length]
        found: set[int] = set()
        for positions, start, end, place in zip(self._positions, starts, ends, at, strict=True):
            if start != place:
                found.update(positions[start:end], positions[place : place + end - start])
        return found


def _moved(part: _Part, sequence: _Sequence) -> set[int]:
    """What another order of this module's children brings elsewhere, where the sequence reads the same."""
    groups = _groups(part)
    if len(groups) < 2:
        return set()
    first: State = (0,) * len(groups)
    last: State = tuple(len(group) for group in groups)
    ways: dict[State, list[tuple[_Part, State, State]]] = {}
    pending = [(first, sequence.place(part.start))]
    while pending:
        state, at = pending.pop()
        if state in ways:
            continue
        if len(ways) == _MOST_STATES:
            return _alike(sequence.tokens, range(part.start, part.start + part.length))
        ways[state] = []
        for i, group in enumerate(groups):
            if state[i] < len(group):
                child = group[state[i]]
                behind = sequence.after(child, at)
                if behind is not None:
                    then = (*state[:i], state[i] + 1, *state[i + 1 :])
                    ways[state].append((child, at, then))
                    pending.append((then, behind))
    # Only what lies on a way to the end is an order that reads the same; more children are placed from state to state.
    good, found = {last}, set()
    for state in sorted(ways, key=sum, reverse=True):
        for child, at, then in ways[state]:
            if then in good:
                good.add(state)
                found |= sequence.moved(child, at)
    return found


def _groups(part: _Part) -> list[list[_Part]]:
    """Children whose order among each other nobody changes, group by group."""
    groups: dict[str, list[_Part]] = {}
    for name, child in part.parts.items():
        stem = _STEM.fullmatch(name)
        # No segment has a dot in it, so these keys are no names.
        key = "layer." if name in _LAYER else f"{stem[1]}.#" if stem is not None else name
        groups.setdefault(key, []).append(child)
    return list(groups.values())


def _alike(tokens: Sequence[Hashable], among: range) -> set[int]:
    count = Counter(tokens)
    return {i for i in among if count[tokens[i]] > 1}
