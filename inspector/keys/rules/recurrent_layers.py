"""The layers of one recurrent module, and a recurrent module per layer: rnn.weight_ih_l1 and rnns.1.weight_ih_l0.

torch counts the layers of an LSTM in the tensors' own names, from 0; who writes a module per layer counts these, from 0
or 1 (`lstms.0`, `lstm1`). The numbers say which is which where there are as many on both sides, each with all the
tensors and shapes of its counterpart, and the two modules are called by a word of one meaning. Where a second module of
either side would fit as well, nothing is done.

One layer in one direction is a cell (torch/nn/modules/rnn.py): nn.LSTM's weight_ih_l0 is nn.LSTMCell's weight_ih, with
its gates in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.types import Shape
from inspector.keys.placing.roles import split_name
from inspector.keys.placing.synonyms import EMPTY, PARTS
from inspector.keys.placing.tree import Leaf, numbered
from inspector.keys.placing.words import words_of
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling

_LAYER = re.compile(r"((?:weight|bias)_(?:ih|hh|hr)_l)([0-9]{1,3})(|_reverse)")


@dataclass(slots=True)
class _Stack:
    """Layers in order. place: what stands above. name: of the one module, or of those per layer, without their number.

    listed: whether their number is a segment of its own. layers: by number, the tensors by name without it.
    """

    place: str
    name: str
    listed: bool = False
    layers: dict[int, dict[tuple[str, str], Leaf]] = field(default_factory=dict)

    @property
    def in_order(self) -> list[dict[tuple[str, str], Leaf]]:
        return [self.layers[number] for number in sorted(self.layers)]

    @property
    def is_whole(self) -> bool:
        """Whether it is counted from 0 or 1 without a gap, and there is something to count."""
        first = min(self.layers, default=2)
        return len(self.layers) > 1 and first < 2 and max(self.layers) - first == len(self.layers) - 1


def _stacks(leaves: Sequence[Leaf]) -> tuple[list[_Stack], list[_Stack]]:
    """(modules of several layers, rows of modules with one layer each)."""
    modules: dict[str, dict[int, dict[tuple[str, str], Leaf]]] = {}
    # Of thousands of tensors few have other last names.
    known: dict[str, re.Match[str] | None] = {}
    for leaf in leaves:
        module, _, last = leaf.name.rpartition(".")
        if last not in known:
            known[last] = _LAYER.fullmatch(last)
        found = known[last]
        if found is not None and module:
            modules.setdefault(module, {}).setdefault(int(found[2]), {})[found[1], found[3]] = leaf
    one: list[_Stack] = []
    rows: dict[tuple[str, str, bool], _Stack] = {}
    for module, layers in modules.items():
        place, name = split_name(module)
        if set(layers) != {0}:
            one.append(_Stack(place, name, layers=layers))
            continue
        number = numbered(name)
        if number is None or (not number[0] and not place):
            continue
        listed = not number[0]
        above, stem = split_name(place) if listed else (place, number[0])
        row = rows.setdefault((above, stem, listed), _Stack(above, stem, listed))
        row.layers[number[1]] = layers[0]
    return [x for x in one if x.is_whole and 0 in x.layers], [x for x in rows.values() if x.is_whole]


def _shapes(stack: _Stack) -> list[dict[tuple[str, str], Shape | None]]:
    return [{key: leaf.shape for key, leaf in layer.items()} for layer in stack.in_order]


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    yield from _cells(leaves, places)
    ours, theirs = _stacks(leaves), _stacks(places)
    for at in (0, 1):
        # Modules of several layers of the file and rows of modules of the target, then the other way round.
        for stack in ours[at]:
            goals = [x for x in theirs[1 - at] if _shapes(x) == _shapes(stack)]
            rivals = [x for x in ours[at] if _shapes(x) == _shapes(stack)]
            if len(goals) == len(rivals) == 1 and set(words_of(stack.name)) & set(words_of(goals[0].name)):
                yield from _spelled(stack, goals[0], is_one=not at)


_CELL = re.compile(r"((?:weight|bias)_(?:ih|hh))(_l0|)")
# What a recurrent module is called, of the words of `synonyms.py`.
_RECURRENT = frozenset({"rnn", "cell", "cells", "lstmcell", "grucell", "rnncell"})


def _cells(leaves: Sequence[Leaf], places: Sequence[Leaf]) -> Iterator[Spelling]:
    """A module of one layer as a cell, or back, where there is no other recurrent module on either side."""
    ours, theirs = _recurrent(leaves), _recurrent(places)
    if len(ours) != 1 or len(theirs) != 1:
        return
    (module, one), (goal, other) = *ours.items(), *theirs.items()
    names = {_CELL.fullmatch(own) for own in one}, {_CELL.fullmatch(own) for own in other}
    ends = [{found[2] if found else None for found in side} for side in names]
    if {*map(len, ends)} != {1} or ends[0] == ends[1] or None in ends[0] | ends[1]:
        return
    (end,), (wanted,) = ends
    shapes = [{_CELL.sub(r"\1", own): leaf.shape for own, leaf in side.items()} for side in (one, other)]
    called = [set(words_of(split_name(name)[1])) for name in (module, goal)]
    if shapes[0] != shapes[1] or not all(words & _RECURRENT for words in called):
        return
    # Another word (onnx_lstm) may tell of another order of the gates.
    if called[0] - called[1] - _RECURRENT - PARTS - EMPTY:
        return
    move = Move(RULE.id, f'call the layer of "{module}" the {"cell" if end else "layer"} "{goal}"', change=(module,))
    for own, leaf in one.items():
        yield Spelling(leaf, f"{goal}.{own.removesuffix(end or '')}{wanted}", move)


def _recurrent(side: Sequence[Leaf]) -> dict[str, dict[str, Leaf]]:
    """Module -> its tensors by their own names, of all modules that have a recurrent one's."""
    found: dict[str, dict[str, Leaf]] = {}
    for leaf in side:
        module, _, own = leaf.name.rpartition(".")
        if own.startswith(("weight_hh", "weight_ih", "bias_hh", "bias_ih", "weight_hr")):
            found.setdefault(module, {})[own] = leaf
    return found


def _spelled(stack: _Stack, goal: _Stack, *, is_one: bool) -> Iterator[Spelling]:
    start = f"{stack.place}." if stack.place else ""
    says = "a module per layer" if is_one else "the layers of one module"
    move = Move(RULE.id, f'call "{stack.name}" {says}, "{goal.name}"', change=(stack.place, stack.name))
    numbers = sorted(goal.layers)
    for at, layer in enumerate(stack.in_order):
        module = goal.name + ("." if goal.listed else "") + str(numbers[at]) if is_one else goal.name
        for (before, after), leaf in layer.items():
            yield Spelling(leaf, f"{start}{module}.{before}{0 if is_one else at}{after}", move)


RULE = Rule(
    id="recurrent-layers",
    title="Layers of recurrent modules",
    says=(
        "Counts the layers of a recurrent module as a module per layer, or the other way round: rnn.weight_ih_l1 and "
        "rnns.1.weight_ih_l0; calls the one layer of a module a cell, or back."
    ),
    cost=Cost.LOSSLESS,
    done="the layers of recurrent modules are counted as the target counts them",
    spells=_spells,
)
