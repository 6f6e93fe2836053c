"""Sets of weights that lie apart in the file and are the parts of the target: {"encoder": ..., "decoder": ...}.

GANs, autoencoders, backbones with heads and agents are saved so, a state dict per module. A set is a part where the
target has a module of its contents: the same relative names and shapes, or the same shapes, or its name and about its
contents. Where several sets and several modules hold the same (two towers, a copy beside), names decide if they decide
all of them, else the user. A copy with averaged weights is never a part beside what it is a copy of.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

from inspector.architectures.types import Target
from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.gathered import gather
from inspector.checkpoint.nested import EMA_NAME
from inspector.checkpoint.types import Checkpoint, Gathered, Shape, StateDict, StateRole
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.findings import FindingKind, Severity
from inspector.keys.loading import access_of
from inspector.keys.placing.tree import Leaf, Node, grow, is_most, overlap
from inspector.keys.placing.words import pieces_of, read, relation
from inspector.keys.report import Ambiguity
from inspector.keys.rules.entry import Questions
from inspector.units import counted

PARTS_APART = FindingKind("parts-apart", Severity.NOTICE, "Parts of the model that lie apart")

# More sets than a model has parts are checkpoints of a run, or a file made to be slow.
_MOST_SETS = 48
_MOST_PLACES = 400
_DEEPEST = 3
# Of three sets there are six orders; more are no question for anybody.
_MOST_ALIKE = 3
# How well contents agree: the same names and shapes; the same shapes; most of them, or as many numbers.
_EXACT, _SHAPES, _MOSTLY = 4, 3, 2
# What of a set's name says only that it is one, and what a wrapper around it may be called.
_FILLER = re.compile(
    "state|dict|statedict|modelstate|model|net|network|weights?|params?|module|sd|ckpt|checkpoint|pretrained|best|last|the"
)
# Of these, what tells one set from another of the same part.
_OF_A_MOMENT = frozenset({"best", "last", "pretrained"})
_AROUND = WRAPPER_SEGMENTS | {"module", "model", "net", "network"}
# Beside the words of `placing/synonyms.py`: what the halves of a GAN and of an autoencoder are called in a dict.
_SHORT = {
    "g": "generator",
    "gen": "generator",
    "netg": "generator",
    "d": "discriminator",
    "dis": "discriminator",
    "disc": "discriminator",
    "discr": "discriminator",
    "netd": "discriminator",
}


@dataclass(frozen=True)
class _Set:
    """One set of the file, below the parent that all parts share."""

    state: StateDict
    name: tuple[str, ...]

    @cached_property
    def node(self) -> Node:
        """Its tensors as a tree, without what wraps all of them."""
        return grow([Leaf(t.name, t.shape) for t in self.state.tensors])

    @cached_property
    def inner(self) -> Node:
        return _unwrapped(self.node)

    @cached_property
    def words(self) -> tuple[str, ...]:
        return _words(self.name)

    @property
    def label(self) -> str:
        return ".".join(self.name)


@dataclass(frozen=True)
class _Place:
    """A module of the target that a set may be."""

    node: Node

    @property
    def label(self) -> str:
        return ".".join(self.node.path)

    @cached_property
    def words(self) -> tuple[str, ...]:
        return _words(self.node.path[-1:])


def gathered_sets(
    checkpoint: Checkpoint, target: Target, questions: Questions
) -> Iterator[tuple[StateDict, Questions]]:
    """Sets of the file put together as the target has them, for each place of the file where parts lie side by side.

    Each with what is asked of it: which of several equal sets is which part. While that is not answered, one way is
    shown. questions: the user's answers.
    """
    sets = [state for state in checkpoint.weight_sets if state.path]
    if not 2 <= len(sets) <= _MOST_SETS or any(tensor.shape is None for tensor in target.tensors):
        return
    goal = grow(Leaf(tensor.name, tensor.shape) for tensor in target.tensors)
    parents = dict.fromkeys(state.path[:n] for state in sets for n in range(len(state.path)))
    found = list(_by_parent(checkpoint, sets, goal, parents, questions))
    # Sets of one training step lie side by side: what would mix those of two is no question then.
    unasked = [one for one in found if not one[1].asked]
    yield from unasked or found


def _by_parent(
    checkpoint: Checkpoint,
    sets: Sequence[StateDict],
    goal: Node,
    parents: Iterable[tuple[str, ...]],
    questions: Questions,
) -> Iterator[tuple[StateDict, Questions]]:
    places = _places(goal)
    for parent in parents:
        below = [_Set(s, s.path[len(parent) :]) for s in sets if s.path[: len(parent)] == parent]
        # What has one level in common is told from there.
        if len(below) < 2 or len({one.name[0] for one in below}) < 2:
            continue
        own = questions.again()
        found = _assign(below, places, own)
        if len(found) < 2:
            continue
        found |= _loose(checkpoint, parent, goal, found)
        if is_most(sum(one.node.size for one in found), goal.size):
            order = sorted(found, key=lambda one: _at(one.state, checkpoint))
            parts = [
                Gathered(
                    prefix=f"{found[one].label}." if found[one].label else "",
                    path=one.state.path,
                    access=access_of(checkpoint, one.state),
                    is_module=one.state.is_module,
                )
                for one in order
            ]
            yield gather(checkpoint.state_dicts, parts, parent), own


def say_gathered(state: StateDict) -> str:
    """Which sets are put together, and as which parts."""
    said = [
        f'"{part.path[-1]}" as {part.prefix.rstrip(".")}' if part.prefix else "what lies beside them"
        for part in state.gathered
    ]
    more = f" and {len(said) - 4} more" if said[4:] else ""
    return (
        f"{counted(len(said), 'set')} of tensors lie apart in the file and are one model: {', '.join(said[:4])}{more}."
    )


def _at(state: StateDict, checkpoint: Checkpoint) -> int:
    """Where it lies in the file, by its first tensor."""
    first = state.tensors[0].path
    return next((i for i, tensor in enumerate(checkpoint.tensors) if tensor.path == first), 0)


def _unwrapped(node: Node) -> Node:
    while not node.leaves and len(node.children) == 1 and next(iter(node.children)) in _AROUND:
        node = next(iter(node.children.values()))
    return node


def _words(name: Sequence[str]) -> tuple[str, ...]:
    """What a name says of its part: words of one meaning as one, numbers, nothing that every set may be called."""
    pieces = [_SHORT.get(piece, piece) for segment in name for piece in pieces_of(segment)]
    told = tuple(piece for piece in pieces if not _FILLER.fullmatch(piece))
    return told or tuple(pieces)


def _places(goal: Node) -> list[_Place]:
    found: list[_Place] = []
    level = [goal]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in node.children.values() if child.size]
        found += map(_Place, level)
    return found[:_MOST_PLACES]


def _shapes(node: Node) -> Counter[Shape | None]:
    return Counter(leaf.shape for name, leaf in node.walk() if name.rpartition(".")[2] not in BOOKKEEPING)


def _named(node: Node) -> dict[str, Shape | None]:
    return {name: s for name, s in node.shapes.items() if name.rpartition(".")[2] not in BOOKKEEPING}


def _contents(one: _Set, place: _Place) -> int:
    """How well the set's contents agree with the module's, 0 for not."""
    ours, theirs = _named(one.inner), _named(_unwrapped(place.node))
    if ours == theirs or ours == _named(place.node) or _named(one.node) == _named(place.node):
        return _EXACT
    if _shapes(one.node) == _shapes(place.node):
        return _SHAPES
    common = overlap(one.node, place.node)
    if is_most(common, one.node.size) and is_most(common, place.node.size):
        return _MOSTLY
    # Fused or turned matrices: as many numbers. A head for other classes: the same names.
    same = _numel(one.node) == _numel(place.node)
    return _MOSTLY if same or (ours.keys() == theirs.keys() and one.inner.forms == _unwrapped(place.node).forms) else 0


def _numel(node: Node) -> int:
    return sum(math.prod(shape or ()) * count for shape, count in _shapes(node).items())


def _told(one: _Set, place: _Place) -> float:
    """What the names say: 2 for one meaning, 1 for related ones, 0 for nothing, below 0 for another part."""
    averaged = bool(EMA_NAME.search(one.label))
    if averaged is not bool(EMA_NAME.search(place.label)) and averaged:
        return -1
    if one.words == place.words or one.words == _words(place.node.path):
        return 2
    # Of a letter alone nothing is known that its part's name does not begin with: D may be a decoder.
    if len(one.label) == 1 and place.label.lower().startswith(one.label.lower()):
        return 1
    points = relation(read(_as_path(one.words), 0), read(_as_path(place.words), 0))
    if points < 0 or (_halves(one.words) and _halves(place.words) and _halves(one.words) != _halves(place.words)):
        return -1
    return 1 if points >= 1.5 else 0


def _as_path(words: Sequence[str]) -> tuple[str, ...]:
    return ("_".join(words),)


def _halves(words: Sequence[str]) -> set[str]:
    return {"generator", "discriminator"} & set(words)


def _assign(sets: Sequence[_Set], places: Sequence[_Place], questions: Questions) -> dict[_Set, _Place]:
    """Which set is which module, by contents first and names where contents leave a choice."""
    graded = {
        (i, j): (_contents(one, place), _told(one, place))
        for i, one in enumerate(sets)
        for j, place in enumerate(places)
    }
    # Contents alone are enough if they are the same; of what is only mostly the same, the name must say it.
    fits = {key for key, (same, told) in graded.items() if told >= 0 and (same >= _SHAPES or (same and told >= 1))}
    fits = _of_one_line(fits, graded, places)
    found: dict[_Set, _Place] = {}
    for ours, theirs in _groups(fits):
        if len(ours) == len(theirs) == 1:
            one, place = sets[ours[0]], places[theirs[0]]
            if not _says_more(one, place, sets) or _is_meant(one, place, questions):
                found[one] = place
            continue
        told = {(i, j): graded[i, j][1] if (i, j) in fits else -1.0 for i in ours for j in theirs}
        named = _by_names(ours, theirs, told, sets)
        if named is None:
            named = _asked(ours, theirs, sets, places, questions)
        found |= {sets[i]: places[j] for i, j in named.items()}
    taken: list[tuple[str, ...]] = []
    for place in found.values():
        path = place.node.path
        if any(path[: len(other)] == other or other[: len(path)] == path for other in taken):
            return {}  # One inside the other: no two parts.
        taken.append(path)
    return found


def _of_one_line(
    fits: set[tuple[int, int]], graded: Mapping[tuple[int, int], tuple[int, float]], places: Sequence[_Place]
) -> set[tuple[int, int]]:
    """Of modules inside each other that a set fits, the one that it fits best, the outer one of equals."""
    kept = set()
    for i, j in fits:
        path = places[j].node.path
        line = [
            k
            for h, k in fits
            if h == i
            and k != j
            and (path[: len(places[k].node.path)] == places[k].node.path or places[k].node.path[: len(path)] == path)
        ]
        rank = (graded[i, j][1], graded[i, j][0], -len(path))
        if all(rank > (graded[i, k][1], graded[i, k][0], -len(places[k].node.path)) for k in line):
            kept.add((i, j))
    return kept


def _groups(fits: set[tuple[int, int]]) -> list[tuple[list[int], list[int]]]:
    """Sets and modules that any choice among the others touches."""
    found: list[tuple[set[int], set[int]]] = []
    for i, j in sorted(fits):
        touched = [group for group in found if i in group[0] or j in group[1]]
        for group in touched:
            found.remove(group)
        found.append(
            (
                {i}.union(*(group[0] for group in touched)),
                {j}.union(*(group[1] for group in touched)),
            )
        )
    return [(sorted(ours), sorted(theirs)) for ours, theirs in found]


def _by_names(
    ours: Sequence[int], theirs: Sequence[int], told: Mapping[tuple[int, int], float], sets: Sequence[_Set]
) -> dict[int, int] | None:
    """The choice that names make; None where they leave one open."""
    chosen: dict[int, int] = {}
    for j in theirs:
        ranked = sorted(ours, key=lambda i: -told[i, j])
        best = ranked[0]
        if told[best, j] < 1 or (len(ranked) > 1 and told[ranked[1], j] >= told[best, j]):
            continue
        others = [told[best, k] for k in theirs if k != j]
        if any(points >= told[best, j] for points in others):
            continue
        chosen[best] = j
    left = [i for i in ours if i not in chosen]
    free = [j for j in theirs if j not in chosen.values()]
    # A copy of averaged weights is left over rightly; so is a module that the file does not have.
    copies = all(EMA_NAME.search(sets[i].label) or sets[i].state.role is StateRole.EMA for i in left)
    return chosen if chosen and copies and (not left or not free) else None


def _says_more(one: _Set, place: _Place, sets: Sequence[_Set]) -> bool:
    """Whether a set has the part's word and one more, which no other set has: decoder_best, old_decoder, decoder2."""
    own, there = _pieces(one.name), _pieces(place.node.path)
    more = own - there
    more -= frozenset.intersection(*(_pieces(other.name) for other in sets))
    return bool(own & there) and any(piece in _OF_A_MOMENT or not _FILLER.fullmatch(piece) for piece in more)


def _pieces(name: Sequence[str]) -> frozenset[str]:
    return frozenset(_SHORT.get(piece, piece) for segment in name for piece in pieces_of(segment))


def _is_meant(one: _Set, place: _Place, questions: Questions) -> bool:
    """The user's word for whether a set of a longer name is the part; shown as it while there is none."""
    as_it, leave_out = f"{one.label}-as-{place.label}", "leave-out"
    answer = questions.ask(
        Ambiguity(
            id=PARTS_APART.id,
            question=(
                f'"{one.label}" of the file holds tensors of the shapes of {place.label}, and its name says more than '
                "that: another moment's, an average, or another one's. Is it what is wanted?"
            ),
            options=((as_it, f"yes, {one.label} is {place.label}"), (leave_out, "no, or not known: leave it out")),
        ),
        place=place.label,
    )
    return answer != leave_out


def _asked(
    ours: Sequence[int], theirs: Sequence[int], sets: Sequence[_Set], places: Sequence[_Place], questions: Questions
) -> dict[int, int]:
    """The user's word for which set is which module; the first way while there is none, {} where it is no question."""
    if len(theirs) > len(ours) or len(ours) > _MOST_ALIKE:
        return {}
    ways = [dict(zip(chosen, theirs, strict=True)) for chosen in permutations(ours, len(theirs))]
    options = [",".join(f"{sets[i].label}-as-{places[j].label}" for i, j in way.items()) for way in ways]
    says = [" and ".join(f"{sets[i].label} is {places[j].label}" for i, j in way.items()) for way in ways]
    names = " and ".join(f'"{sets[i].label}"' for i in ours)
    there = " and ".join(places[j].label for j in theirs)
    answer = questions.ask(
        Ambiguity(
            id=PARTS_APART.id,
            question=(
                f"{names} of the file hold tensors of the same shapes, as {there} of the target "
                f"{'do' if len(theirs) > 1 else 'does'}, and their names do not tell which is which. Which is it?"
            ),
            options=tuple(zip(options, says, strict=True)),
        ),
        place=there,
    )
    return ways[options.index(answer)] if answer is not None else ways[0]


def _loose(
    checkpoint: Checkpoint, parent: tuple[str, ...], goal: Node, found: Mapping[_Set, _Place]
) -> dict[_Set, _Place]:
    """Tensors beside the parts that the target has at its top under just these names: a learned scale, a token."""
    beside = next((s for s in checkpoint.state_dicts if s.path == parent), None)
    if beside is None or beside.role is StateRole.OPTIMIZER or not beside.tensors:
        return {}
    shapes = goal.shapes
    taken = tuple(f"{place.label}." for place in found.values())
    known = all(shapes.get(t.name) == t.shape and not t.name.startswith(taken) for t in beside.tensors)
    return {_Set(beside, ()): _Place(Node(path=()))} if known else {}
