"""A tensor without a place and a place without a tensor, of one shape and with a word in common: offered as a pair."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspector.checkpoint.types import Shape
from inspector.keys.placing.by_order import Pairs, Sides
from inspector.keys.placing.kinds import kind_of
from inspector.keys.placing.roles import is_counter, is_other_quantity, roles_of, split_name
from inspector.keys.placing.tree import Leaf, exchanged
from inspector.keys.report import Ambiguity, Evidence
from inspector.keys.rules import related_names
from inspector.keys.rules.entry import Link, Move, Questions
from inspector.keys.rules.folded_weights import is_part_of

SAME, OTHER = "same", "other"
# Words that say nothing about which tensor it is.
_BARE = frozenset(
    {"weight", "weights", "bias", "param", "parameter", "data", "tensor", "module", "model", "net", "layer", "layers"}
    | {"block", "blocks", "new", "old", "my", "the", "w", "b"}
)
# More than a few layers under other names are a question of their own.
_MOST = 8


@dataclass(frozen=True, slots=True)
class Related:
    """What came of asking: links by the user's word, tensors held until then, whether one was said to be another."""

    links: list[Link]
    held: list[Leaf]
    declined: bool


def ask_related(links: Sequence[Link], sides: Sides, order: Pairs, questions: Questions) -> Related:
    """Pairs among what is left over. order: where the whole sequence would put each tensor, () where it says nothing;
    a pair that it contradicts is not offered."""
    ours = {link.source.name for link in links}
    theirs = {link.target.name for link in links}
    goes = {leaf.name: place.name for leaf, place in order}
    extra = [x for x in sides.leaves if x.name not in ours and not is_counter(x)]
    empty = [x for x in sides.places if x.name not in theirs and not is_counter(x)]
    filled = {link.target.name: link.target.shape for link in links}
    pairs = [
        (leaf, place)
        for leaf, place in _pairs(extra, empty, sides)
        if goes.get(leaf.name, place.name) == place.name and not _is_of_another_set(leaf, place, extra, filled)
    ]
    made: list[Link] = []
    held: list[Leaf] = []
    declined = False
    for leaf, place in pairs if len(pairs) <= _MOST else ():
        answer = questions.ask(_question(leaf, place), place=leaf.name)
        if answer is None:
            held.append(leaf)
        elif answer == SAME:
            move = Move(
                related_names.RULE.id, f"read {leaf.name} as {place.name}", (("is", place.name),), change=(SAME,)
            )
            made.append(Link(leaf, place, (move,), Evidence.CHOSEN))
        else:
            declined = True
    return Related(made, held, declined)


def _pairs(extra: Sequence[Leaf], empty: Sequence[Leaf], sides: Sides) -> list[tuple[Leaf, Leaf]]:
    """Each with the one of its shape that shares a word with it, where that has no other either."""
    if not extra or not empty or len(extra) * len(empty) > 10_000:
        return []
    ours, theirs = (
        dict(zip((x.name for x in side), roles_of(side), strict=True)) for side in (sides.leaves, sides.places)
    )
    # A matrix the other way round is one only where nothing of its own shape is there for either.
    shapes = {leaf.shape for leaf in extra}, {place.shape for place in empty}
    fitting = [
        (leaf, place)
        for leaf in extra
        for place in empty
        if place.shape
        and (
            leaf.shape == place.shape
            or (_is_turned(leaf, place) and leaf.shape not in shapes[1] and place.shape not in shapes[0])
        )
        and _words(leaf.name) & _words(place.name)
        # A weight norm's direction is no weight, though its name and shape are.
        and not is_part_of(leaf.name, place.name)
        # A deviation is no variance, and a logarithm of one neither.
        and not is_other_quantity(ours[leaf.name], theirs[place.name])
        and not is_part_of(place.name, leaf.name)
    ]
    alone = [
        (leaf, place)
        for leaf, place in fitting
        if sum(one is leaf for one, _ in fitting) == 1 and sum(other is place for _, other in fitting) == 1
    ]
    # Of the layers that are paired so, what shapes alone do not tell: their biases.
    layers = {(split_name(leaf.name)[0], split_name(place.name)[0]) for leaf, place in alone}
    beside = []
    for leaf, place in fitting:
        (module, own), (other, there) = split_name(leaf.name), split_name(place.name)
        if (module, other) in layers and own == there and (leaf, place) not in alone:
            beside.append((leaf, place))
    return [*alone, *beside]


def _is_of_another_set(leaf: Leaf, place: Leaf, extra: Sequence[Leaf], filled: Mapping[str, Shape | None]) -> bool:
    """Whether what lies beside the tensor is a second set of what is placed already: its part in the gap of the first
    would mix the two."""
    ours, theirs = exchanged(split_name(leaf.name)[0], split_name(place.name)[0])
    for other in extra if ours != theirs else ():
        path = tuple(other.name.split("."))
        name = ".".join((*theirs, *path[len(ours) :]))
        if path[: len(ours)] == ours and name in filled and filled[name] in (None, other.shape):
            return True
    return False


def _is_turned(leaf: Leaf, place: Leaf) -> bool:
    """Whether both are called weight and the one is the other turned round."""
    ours, theirs = leaf.shape or (), place.shape or ()
    own = leaf.name.rpartition(".")[2] == place.name.rpartition(".")[2] == "weight"
    return own and len(ours) == 2 and ours == theirs[::-1]


def _words(name: str) -> set[str]:
    """The words of a name, without numbers: {"fc"} of "fc2_param"."""
    spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return {word for word in re.findall(r"[a-z]+", spelled) if word not in _BARE and len(word) > 1}


def _question(leaf: Leaf, place: Leaf) -> Ambiguity:
    kind = kind_of(place)
    alike = (
        f"both are {kind}" if leaf.shape == place.shape else f"the shape of one is the other's turned round ({kind})"
    )
    return Ambiguity(
        id=related_names.RULE.id,
        question=(
            f"{leaf.name} has no place in the target, and {place.name} no tensor in the file; {alike}. Are "
            "they one tensor under two names?"
        ),
        options=((SAME, "yes, one tensor under two names"), (OTHER, "no, they are something else")),
    )
