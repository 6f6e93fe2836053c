"""Recurrent matrices whose names say in which order their gates lie: weight_ih_ifog, W_hh_zrn, bias_ih_iofc.

torch's LSTM has input, forget, cell, output below each other (i f g o), its GRU reset, update, new (r z n); ONNX has
i o f c and z r h, TensorFlow's first cells i j f o, other codes still others. Shapes are the same, so what the letters
say is done: the names are read as the target's, and the gates are put into its order. A cell's letter is g, c, j or z;
update is z or u, new is n, h or c. A word that is no order (weight_ih_x) may stand for one: then that is asked, and
not which of the two is ih. Sources: torch nn/modules/rnn.py; ONNX operators LSTM and GRU; TensorFlow
rnn_cell_impl.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from inspector.checkpoint.types import Shape
from inspector.keys.operations import blocks
from inspector.keys.placing.roles import split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Ambiguity, Cost, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Move, Questions, Rule, Spelling, leave_out, settle
from inspector.keys.rules.transposed import is_square, is_turned
from inspector.units import counted

AS_PLACED, LEAVE_OUT = "as-placed", "leave-out"
# torch's own orders, by their number of gates.
_TORCH_ORDERS = {4: "ifgo", 3: "rzn"}
# What others write for torch's letters.
_LETTERS = {4: {"c": "g", "j": "g", "z": "g"}, 3: {"u": "z", "h": "n", "c": "n"}}
_WORDS = {"input": "i", "forget": "f", "cell": "g", "candidate": "g", "output": "o", "reset": "r", "update": "z"} | {
    "new": "n"
}
# Words of the same letters.
_NO_ORDERS = frozenset({"run", "cur", "urn", "cru", "hur"})
_KINDS = {"weight": "weight", "weights": "weight", "w": "weight", "kernel": "weight", "bias": "bias", "b": "bias"}
_SIDES = {"ih": "ih", "i2h": "ih", "xh": "ih", "hh": "hh", "h2h": "hh"}
_BOTH_IN_ONE = re.compile(r"(w|b)(ih|hh)")
_SEPARATORS = re.compile(r"[./]")
_LAYER = re.compile(r"l[0-9]{1,3}")


class _Named(NamedTuple):
    """What a recurrent tensor's own name says of it. gates: the order of its gates in torch's letters, "" for none.
    other: a word that says nothing known."""

    kind: str
    side: str
    layer: str
    back: bool
    gates: str
    other: str

    @property
    def place(self) -> _Named:
        """What it is in its layer, whatever the order of its gates."""
        return self._replace(gates="", other="")


def _order_in(words: Sequence[str]) -> str:
    """'ifgo' of ('iofc',), ('zr', 'n') or ('update', 'reset', 'new') in torch's letters, "" for no order."""
    if words and all(word in _WORDS for word in words):
        return _in_torchs_letters("".join(_WORDS[word] for word in words).replace("g", "n" if len(words) == 3 else "g"))
    said = "".join(words)
    return "" if said in _NO_ORDERS else _in_torchs_letters(said)


def _in_torchs_letters(said: str) -> str:
    order = _TORCH_ORDERS.get(len(said))
    if order is None:
        return ""
    letters = _LETTERS[len(said)]
    made = "".join(letters.get(letter, letter) for letter in said)
    return made if sorted(made) == sorted(order) else ""


@lru_cache(maxsize=4096)
def _named(own: str) -> _Named | None:
    """What the last segment of a name says, None where it is none of a recurrent layer's."""
    kind, side, layer, back = "", "", "", False
    rest: list[str] = []
    for word in own.lower().split("_"):
        joined = _BOTH_IN_ONE.fullmatch(word)
        if joined is not None:
            kind, side = _KINDS[joined[1]], joined[2]
        elif word in _KINDS and not kind:
            kind = _KINDS[word]
        elif word in _SIDES and not side:
            side = _SIDES[word]
        elif _LAYER.fullmatch(word) and not layer:
            layer = word
        elif word == "reverse":
            back = True
        else:
            rest.append(word)
    gates = _order_in(rest)
    other = "" if gates else "_".join(rest)
    if not side or (not kind and not gates) or (other and not other.isalpha()):
        return None
    return _Named(kind or "weight", side, layer or "l0", back, gates, other)


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    """The file's names as the target has them, where one of the two says an order."""
    theirs: dict[_Named, set[str]] = {}
    # Of thousands of tensors few have other last names.
    for own in {place.name.rpartition(".")[2] for place in places}:
        named = _named(own)
        if named is not None and not named.other:
            theirs.setdefault(named.place, set()).add(own)
    if not theirs:
        return
    others = _others(leaves)
    for leaf in leaves:
        module, own = split_name(leaf.name)
        named = _named(own)
        if named is None:
            continue
        goals = theirs.get(named.place, set())
        if len(goals) != 1 or own in goals:
            continue
        (goal,) = goals
        wanted = _named(goal)
        if wanted is not None and (named.gates or wanted.gates or others.get(module) == {named.other} != {""}):
            move = Move(RULE.id, f'call "{own}" of the file "{goal}"', change=(own, goal))
            yield Spelling(leaf, f"{module}.{goal}" if module else goal, move)


def _others(leaves: Sequence[Leaf]) -> dict[str, set[str]]:
    """Module -> the words without a meaning in its recurrent tensors' names."""
    found: dict[str, set[str]] = {}
    for leaf in leaves:
        module, own = split_name(leaf.name)
        named = _named(own)
        if named is not None:
            found.setdefault(module, set()).add(named.other)
    return found


def _steps(left: Leftovers) -> Iterator[Step]:
    links = (*left.settled, *left.permuted)
    recurrent = {own for own in {link.target.name.rpartition(".")[2] for link in links} if _named(own) is not None}
    if not recurrent:
        return
    yield from _doubted(left)
    shapes = {tensor.name: tensor.shape for tensor in left.target.tensors}
    for link in links:
        if link.target.name.rpartition(".")[2] not in recurrent:
            continue
        orders = _orders(left.spelled.get(link.source.name, link.source.name), link.target)
        if orders is None:
            continue
        ours, theirs = orders
        value = f"blocks:{'-'.join(str(ours.find(letter)) for letter in theirs)}"
        if link.target.name in left.turned:
            value = blocks.turned(value) if is_turned(link) or is_square(link) else ""
        says = f"The file's name has the gates in the order {' '.join(ours)}, the target {' '.join(theirs)}."
        if not value:
            yield leave_out(link, rule=RULE.id, reason=f"{says} It lies the other way round, besides.")
        elif len(ours) != len(theirs) or not _has_gates(link.target, len(ours), shapes):
            yield leave_out(link, rule=RULE.id, reason=f"{says} It has another number of gates.")
        else:
            yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, value=value)


def _doubted(left: Leftovers) -> Iterator[Step]:
    """What has a word beside it that may stand for another order of its gates."""
    doubted: dict[str, list[Link]] = {}
    for link in left.settled if left.spelled else ():
        own = left.spelled.get(link.source.name)
        named = _named(split_name(own)[1]) if own else None
        if named is not None and named.other and _named(split_name(link.target.name)[1]) is not None:
            doubted.setdefault(named.other, []).append(link)
    for word, links in doubted.items():
        names = [left.spelled[link.source.name] for link in links]
        answer = left.questions.ask(
            Ambiguity(
                id=RULE.id,
                question=(
                    f'"{word}" in the names of {counted(len(links), "recurrent tensor")} ({names[0]} as '
                    f"{links[0].target.name} first) says nothing of the order of their gates that is known, and no "
                    "shape shows it; each loads. Do the gates lie in the target's order?"
                ),
                options=((AS_PLACED, "yes: place them"), (LEAVE_OUT, "no, or not known: leave them out")),
            ),
            place=word,
        )
        if answer == LEAVE_OUT:
            yield from (leave_out(link, rule=RULE.id, reason="The order of its gates is not known.") for link in links)


def _orders(own: str, place: Leaf) -> tuple[str, str] | None:
    """The orders of the gates on both sides where they differ; whoever says none has torch's under torch's names.

    own: the file's name.
    """
    named = _named(split_name(place.name)[1])
    if named is None:
        return None
    ours, theirs = _stated(own), _stated(place.name)
    if ours == theirs:
        return None
    gates = len(ours or theirs)
    orders = (ours or _TORCH_ORDERS[gates], theirs or _TORCH_ORDERS[gates])
    return orders if orders[0] != orders[1] else None


def _has_gates(place: Leaf, gates: int, shapes: Mapping[str, Shape | None]) -> bool:
    """Whether a place of the target has the rows of so many gates: its layer's hidden matrix has units as columns."""
    module, own = split_name(place.name)
    hidden = own.replace("ih", "hh").replace("bias", "weight")
    shape = shapes.get(f"{module}.{hidden}" if module else hidden) or ()
    units = len(shape) != 2 or shape[0] == gates * shape[1]
    return units and (place.shape is None or (len(place.shape) > 0 and place.shape[0] % gates == 0))


@lru_cache(maxsize=4096)
def _stated(name: str) -> str:
    """The order that a whole name says: weight_ih_ifog, lstm/weight_ih_ifog, lstm_weight_ih_ifog, lstm_ifog.w_ih."""
    for segment in reversed(_SEPARATORS.split(name)[-2:]):
        named = _named(segment)
        words = (_order_in((word,)) for word in segment.lower().split("_"))
        if order := (named.gates if named is not None else "") or next(filter(None, words), ""):
            return order
    return ""


RULE = Rule(
    id="gate-letters",
    title="Order of gates in names",
    says=(
        "Reads recurrent matrices whose names say the order of their gates (weight_ih_ifog, W_hh_zrn) as the target's, "
        "and puts the gates into its order."
    ),
    cost=Cost.LOSSLESS,
    done="the gates of {tensors} are named and ordered as the target has them",
    spells=_spells,
    steps=_steps,
)
