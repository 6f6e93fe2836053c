"""A tensor without a place and a place without a tensor, of one shape and with a word in common: offered as a pair."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspector.checkpoint.level_words import QUANTITY_WORDS
from inspector.checkpoint.types import Shape
from inspector.keys.placing.by_order import Pairs, Sides
from inspector.keys.placing.kinds import kind_of, shown
from inspector.keys.placing.roles import is_counter, is_other_quantity, roles_of, split_name
from inspector.keys.placing.tree import Leaf, exchanged
from inspector.keys.placing.words import words_of
from inspector.keys.report import Ambiguity, Evidence
from inspector.keys.rules import related_names, twins
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
# Of more no answer is meant.
_MOST_RIVALS = 4


@dataclass(frozen=True, slots=True)
class Related:
    """What came of asking: links by the user's word, tensors held until then, whether one was said to be another, and
    what another was taken for."""

    links: list[Link]
    held: list[Leaf]
    declined: bool
    dropped: list[tuple[Leaf, Move]]


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
    dropped: list[tuple[Leaf, Move]] = []
    for wanted, rivals in _rivals(extra, empty).items():
        answer = questions.ask(_which(wanted, rivals), place=wanted)
        if answer is None:
            held += [leaf for both in rivals.values() for leaf, _ in both]
            continue
        declined = True
        for module, both in rivals.items():
            if module == answer:
                move = Move(related_names.RULE.id, f"read {module} as {wanted}", (("is", wanted),), change=(SAME,))
                made += [Link(leaf, other, (move,), Evidence.CHOSEN) for leaf, other in both]
            elif answer in rivals:
                dropped += [(leaf, twins.NOT_CHOSEN) for leaf, _ in both]
    return Related(made, held, declined, dropped)


def _rivals(extra: Sequence[Leaf], empty: Sequence[Leaf]) -> dict[str, dict[str, list[tuple[Leaf, Leaf]]]]:
    """Of each module that is empty, those of the file that are called like it with a word more, and hold what it does:
    fc_old and fc_new for fc. One alone is offered as a pair."""
    ours, theirs = _by_module(extra), _by_module(empty)
    if len(ours) * len(theirs) > 10_000:
        return {}
    found: dict[str, dict[str, list[tuple[Leaf, Leaf]]]] = {}
    for place, there in theirs.items():
        for module, here in ours.items():
            alike = here.keys() == there.keys() and all(here[own].shape == there[own].shape for own in here)
            if alike and _says_more(module, place):
                found.setdefault(place, {})[module] = [(here[own], there[own]) for own in here]
    taken = Counter(module for rivals in found.values() for module in rivals)
    return {
        place: rivals
        for place, rivals in found.items()
        if 2 <= len(rivals) <= _MOST_RIVALS and all(taken[module] == 1 for module in rivals)
    }


def _by_module(side: Sequence[Leaf]) -> dict[str, dict[str, Leaf]]:
    found: dict[str, dict[str, Leaf]] = {}
    for leaf in side:
        module, own = split_name(leaf.name)
        if module:
            found.setdefault(module, {})[own] = leaf
    return found


def _says_more(module: str, place: str) -> bool:
    """Whether one level of the file's has a word more than the target's, and no other differs."""
    one, other = exchanged(module, place)
    if not one or len(other) != 1:
        return False
    own, there = set(words_of(one[-1])), set(words_of(other[0]))
    return there < own and not (own - there) & QUANTITY_WORDS


def _which(place: str, rivals: Mapping[str, Sequence[tuple[Leaf, Leaf]]]) -> Ambiguity:
    first = [pairs[0] for pairs in rivals.values()]
    names = " and ".join(leaf.name for leaf, _ in first)
    return Ambiguity(
        id=f"{related_names.RULE.id}:which",
        question=f"{names} have the name of {shown(first[0][1])} with a word more, and no other tensor has it. Which "
        "one is it?",
        options=(
            *((module, f'the tensors under "{module}"') for module in rivals),
            (OTHER, "none of them, or not known: leave them out"),
        ),
    )


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
