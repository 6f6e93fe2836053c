"""Placing by order: where names say nothing, and file and target list the same tensors one after the other.

The order of a state dict is the order in which a model's author wrote its layers down. It is evidence only where both
sides still have it, and only as a whole: the sequences of (role, shape) must agree from the first tensor to the last,
or, where names have placed most, from one placed tensor to the next. It is never proof, so a plan that rests on it
waits for the user's acceptance; where even the order leaves a choice (`symmetry.py`) it asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inspector.checkpoint.types import Shape
from inspector.keys.placing.kinds import shown
from inspector.keys.placing.other_ways import Way, against_numbers, other_ways
from inspector.keys.placing.own_order import sorted_by_name
from inspector.keys.placing.roles import is_counter, roles_of, split_name, squeezed, ways
from inspector.keys.placing.symmetry import symmetric
from inspector.keys.placing.tree import Leaf
from inspector.keys.placing.words import read, relation
from inspector.keys.report import Ambiguity, Evidence
from inspector.keys.rules import other_words, same_order, same_shape
from inspector.keys.rules.entry import Link, Move, Questions
from inspector.units import counted, human_shape

IN_ORDER, LEAVE_OUT = "in-order", "leave-out"
BY_ORDER, BY_NAME = "order", "names"
# One shape alone says nothing.
_FEWEST_SHAPES = 2
Pairs = Sequence[tuple[Leaf, Leaf]]
_MOVE = Move(same_order.RULE.id, "place tensors by their order")
_BY_SHAPE = Move(same_shape.RULE.id, "place tensors by their shapes, of which there is one each")
_BY_KIND = Move(same_order.RULE.id, "place layers by their numbers, each kind in the target's order")


@dataclass(frozen=True, slots=True)
class Sides:
    """The file's tensors and the target's places, each in its own order. ordered: whether the container keeps it.

    ties: places that are one tensor in the target, in groups.
    """

    leaves: Sequence[Leaf]
    places: Sequence[Leaf]
    source_ordered: bool
    target_ordered: bool
    ties: Sequence[Sequence[str]] = ()

    @property
    def untied(self) -> list[Leaf]:
        """The places with one of each tie: the one that the file names, or else the first."""
        named = {leaf.name for leaf in self.leaves}
        there = {place.name for place in self.places}
        gone: set[str] = set()
        for tie in self.ties:
            names = [name for name in tie if name in there]
            kept = next((name for name in names if name in named), next(iter(names), ""))
            gone.update(name for name in names if name != kept)
        return [place for place in self.places if place.name not in gone]


def why_no_order(sides: Sides) -> str:
    """Why the order of these two says nothing, "" when it does."""
    if not sides.source_ordered:
        return "the file's format does not keep the order of the layers"
    if not sides.target_ordered:
        return "the target's format does not keep the order of the layers"
    if any(place.shape is None for place in sides.places):
        return "the target tells no shapes"
    ours = [leaf.name for leaf in sides.leaves if not is_counter(leaf)]
    theirs = [place.name for place in sides.places if not is_counter(place)]
    if sorted_by_name(ours) and not sorted_by_name(theirs):
        return "the file's tensors are sorted by name"
    if sorted_by_name(theirs) and not sorted_by_name(ours):
        return "the target's tensors are sorted by name"
    return ""


def whole_order(sides: Sides) -> list[tuple[Leaf, Leaf]] | None:
    """(tensor, place) by position when the whole sequences agree, counters set aside; else None."""
    ours = [leaf for leaf in sides.leaves if not is_counter(leaf)]
    theirs = [place for place in sides.places if not is_counter(place)]
    if _agree(ours, theirs):
        pairs = list(zip(ours, theirs, strict=True))
        return pairs + counters(sides, pairs)
    # Names that say nothing do not say either which tensors are counters.
    if len(theirs) < len(sides.places) and _agree(sides.leaves, sides.places):
        return list(zip(sides.leaves, sides.places, strict=True))
    return None


def _agree(ours: Sequence[Leaf], theirs: Sequence[Leaf], beside: Sequence[Leaf] = ()) -> bool:
    """beside: the other tensors of the file, whose names may tell more of ours."""
    if not ours or len(ours) != len(theirs):
        return False
    shapes = [(a.shape, b.shape) for a, b in zip(ours, theirs, strict=True)]
    if any(a != b and squeezed(a) != squeezed(b) for a, b in shapes):
        return False
    roles = zip(roles_of(ours, beside), roles_of(theirs), strict=True)
    return all(a is None or b is None or a == b for a, b in roles) and _modules_hold(ours, theirs)


def _modules_hold(ours: Sequence[Leaf], theirs: Sequence[Leaf]) -> bool:
    """Whether a weight and the bias or statistics beside it stay in one module."""
    modules: dict[str, set[str]] = {}
    for (leaf, role), place in zip(zip(ours, roles_of(ours), strict=True), theirs, strict=True):
        module = split_name(leaf.name)[0]
        if role is not None and module:
            modules.setdefault(module, set()).add(split_name(place.name)[0])
    return all(len(places) == 1 for places in modules.values())


def counters(sides: Sides, placed: Pairs) -> list[tuple[Leaf, Leaf]]:
    """Counters go where the other tensors of their module go."""
    there = {place.name: place for place in sides.places if is_counter(place)}
    ours = [leaf for leaf in sides.leaves if is_counter(leaf)] if there else []
    modules = {a.name.rpartition(".")[0]: b.name.rpartition(".")[0] for a, b in placed} if ours else {}
    found = []
    for leaf in ours:
        module, last = split_name(leaf.name)
        if module in modules:
            place = there.pop(f"{modules[module]}.{last}" if modules[module] else last, None)
            if place is not None:
                found.append((leaf, place))
    return found


def gaps_in_order(sides: Sides, links: Sequence[Link]) -> list[tuple[Leaf, Leaf]]:
    """(tensor, place) between tensors that names have placed, where what is left over there agrees as a sequence.

    Empty when the placed tensors are not in one order on both sides: then order means nothing.
    """
    ours = [leaf for leaf in sides.leaves if not is_counter(leaf)]
    theirs = [place for place in sides.places if not is_counter(place)]
    at = {place.name: i for i, place in enumerate(theirs)}
    goes = {link.source.name: at[link.target.name] for link in links if link.target.name in at}
    path = [goes[leaf.name] for leaf in ours if leaf.name in goes]
    if not path or any(a >= b for a, b in pairwise(path)):
        return []
    found: list[tuple[Leaf, Leaf]] = []
    start, run = 0, []
    for leaf in [*ours, None]:
        if leaf is not None and leaf.name not in goes:
            run.append(leaf)
            continue
        end = goes[leaf.name] if leaf is not None else len(theirs)
        if run and _agree(run, theirs[start:end], sides.leaves):
            found += zip(run, theirs[start:end], strict=True)
        start, run = end + 1, []
    return found + counters(sides, found)


def place_by_order(
    pairs: Pairs, named: Sequence[Link], sides: Sides, questions: Questions, kinds: Mapping[str, str] | None = None
) -> tuple[list[Link], list[Leaf]]:
    """(links, tensors held until the user has answered) for pairs that only the order has brought together.

    named: what names have placed; it is not placed again, and it pins its neighbours. kinds: of the target's layers,
    where each kind has an order of its own (`by_kind.py`).
    """
    there = {link.source.name for link in named}
    new = [(leaf, place) for leaf, place in pairs if leaf.name not in there]
    held: list[Leaf] = []
    chosen: list[Link] = []
    against, way = against_numbers(new) if not kinds else ((), None)
    if against:
        new = _settle(new, against, _against_question(against, way), [way] if way else [], questions, held, chosen)
    answered = [*named, *chosen]
    evidence = _evidence(new, answered, sides, kinds or {})
    move = _BY_KIND if kinds else _MOVE
    open_ = {place.name for _, place in new if evidence[place.name] is Evidence.SYMMETRIC}
    if open_:
        doubted = [(leaf, place) for leaf, place in new if place.name in open_]
        ways = other_ways(doubted) if not kinds else []
        question = _question(new, evidence, ways, counts=bool(kinds))
        new = _settle(new, doubted, question, ways, questions, held, chosen)
    moves = (move,)
    links = [Link(leaf, place, moves, evidence.get(place.name, Evidence.CHOSEN)) for leaf, place in new]
    return [*chosen, *links], held


def _settle(
    new: Sequence[tuple[Leaf, Leaf]],
    doubted: Pairs,
    question: Ambiguity,
    ways: Sequence[Way],
    questions: Questions,
    held: list[Leaf],
    chosen: list[Link],
) -> list[tuple[Leaf, Leaf]]:
    """What order still places after the answer. held, chosen: are added to."""
    answer = questions.ask(question)
    if answer == IN_ORDER:
        return list(new)
    away = {leaf.name for leaf, _ in doubted}
    if answer is None:
        held += [leaf for leaf, _ in doubted]
    for way in ways:
        if way.id == answer:
            parts = tuple((f"{one} is", other) for one, other in way.parts)
            moves = (Move(other_words.RULE.id, f"read the names as chosen: {way.says}", parts, change=("words",)),)
            chosen += [Link(leaf, place, moves, Evidence.CHOSEN) for leaf, place in way.pairs]
    return [(leaf, place) for leaf, place in new if leaf.name not in away]


def _evidence(new: Pairs, named: Sequence[Link], sides: Sides, kinds: Mapping[str, str]) -> dict[str, Evidence]:
    roles = dict(zip((leaf.name for leaf in sides.leaves), roles_of(sides.leaves), strict=True))
    leaf_of = {place.name: leaf for leaf, place in new}
    vague = {squeezed(leaf.shape) for leaf, _ in new if roles[leaf.name] is None}
    tokens: list[Hashable] = []
    for place in sides.places:
        leaf = leaf_of.get(place.name)
        if is_counter(place):
            # Whether the file has it or not, it tells no norm from another.
            tokens.append("counter")
        elif leaf is None:
            tokens.append(("named", place.name))
        else:
            # Where one of a shape has no role, none of that shape is told apart by its own.
            shape = squeezed(leaf.shape)
            tokens.append((shape, None if shape in vague else roles[leaf.name]))
    lanes = [kinds.get(split_name(place.name)[0], "") for place in sides.places] if kinds else ()
    found = symmetric([place.name for place in sides.places], tokens, lanes)
    count = Counter(tokens)
    elsewhere = _left_over(leaf_of, named, sides)
    evidence: dict[str, Evidence] = {}
    for i, place in enumerate(sides.places):
        if place.name in leaf_of:
            alone = count[tokens[i]] == 1 and squeezed(place.shape) not in elsewhere
            by_order = Evidence.SYMMETRIC if i in found else Evidence.ORDER_ONLY
            evidence[place.name] = Evidence.UNIQUE_TOKEN if alone else by_order
    return evidence


def _left_over(leaf_of: Mapping[str, Leaf], named: Sequence[Link], sides: Sides) -> set[Shape | None]:
    """Shapes of what neither names nor order have placed, on both sides."""
    ours = {link.source.name for link in named} | {leaf.name for leaf in leaf_of.values()}
    theirs = {link.target.name for link in named} | set(leaf_of)
    left = [x for x in sides.leaves if x.name not in ours] + [x for x in sides.places if x.name not in theirs]
    return {squeezed(x.shape) for x in left if not is_counter(x)}


def _question(new: Pairs, evidence: dict[str, Evidence], ways: Sequence[Way], *, counts: bool) -> Ambiguity:
    doubted = [(leaf, place) for leaf, place in new if evidence[place.name] is Evidence.SYMMETRIC]
    modules = list(dict.fromkeys(split_name(place.name)[0] or place.name for _, place in doubted))
    leaf, place = doubted[0]
    return Ambiguity(
        id="symmetric",
        question=(
            f"{counted(len(doubted), 'tensor')} could change places with equally shaped neighbours "
            f"({', '.join(modules[:3])}{' ...' if modules[3:] else ''}), and no shape would tell: does the file "
            f"{'count' if counts else 'list'} them in the target's order, {leaf.name} as {shown(place)} first?"
        ),
        options=(
            (IN_ORDER, "yes, file and target define these layers in one order"),
            *((way.id, f"no: {way.says}") for way in ways),
            (LEAVE_OUT, "no, or not known: leave them out"),
        ),
    )


def place_by_shape(sides: Sides) -> list[Link]:
    """Everything, where each shape is there once on both sides and what each tensor is called for agrees; else []."""
    ours = [leaf for leaf in sides.leaves if not is_counter(leaf)]
    theirs = [place for place in sides.places if not is_counter(place)]
    there = {place.shape: place for place in theirs}
    if len(ours) != len(there) or len(theirs) != len(there) or {leaf.shape for leaf in ours} != there.keys():
        return []
    listed = [there[leaf.shape] for leaf in ours]
    if len(ours) < _FEWEST_SHAPES or not _agree(ours, listed) or any(map(_contradict, ours, listed)):
        return []
    pairs = list(zip(ours, listed, strict=True))
    return [Link(leaf, place, (_BY_SHAPE,), Evidence.UNIQUE_TOKEN) for leaf, place in pairs + counters(sides, pairs)]


def _contradict(leaf: Leaf, place: Leaf) -> bool:
    """Whether the words of the two names are opposites: an encoder's and a decoder's."""
    one, other = (read(tuple(x.name.split(".")), 0) for x in (leaf, place))
    return relation(one, other) < 0


def _against_question(doubted: Pairs, way: Way | None) -> Ambiguity:
    leaf, place = doubted[0]
    return Ambiguity(
        id="against-numbers",
        question=(
            f"In order, {counted(len(doubted), 'tensor')} would go against the numbers in the names, {leaf.name} as "
            f"{shown(place)} first. Do file and target count from other ends?"
        ),
        options=(
            (IN_ORDER, "yes: the order holds, and the numbers run the other way"),
            *([(way.id, f"no, the numbers hold: {way.says}")] if way is not None else []),
            (LEAVE_OUT, "not known: leave them out"),
        ),
    )


def same_names(sides: Sides) -> list[Link]:
    """Tensors whose name and shape are the target's as they are, counters set aside."""
    there = {place.name: place for place in sides.places}
    found = [(leaf, there[leaf.name]) for leaf in sides.leaves if leaf.name in there and not is_counter(leaf)]
    return [Link(leaf, place) for leaf, place in found if leaf.shape == place.shape]


def against_names(links: Sequence[Link], pairs: Pairs) -> list[tuple[Link, Leaf]]:
    """The placings by name that the order contradicts, with the place it gives instead."""
    goes = {leaf.name: place for leaf, place in pairs}
    return [
        (link, goes[link.source.name])
        for link in links
        if link.source.name in goes and goes[link.source.name].name != link.target.name
    ]


def contest(against: Sequence[tuple[Link, Leaf]], total: int) -> Ambiguity:
    """Names or order, where they contradict each other."""
    link, place = against[0]
    return Ambiguity(
        id=same_order.RULE.id,
        question=(
            f"Names and order disagree about {counted(len(against), 'tensor')}: {link.source.name} would be "
            f"{link.target.name} by its name and {shown(place)} by its position. The whole sequence of "
            f"{counted(total, 'tensor')} agrees with the target's. Which holds?"
        ),
        options=((BY_ORDER, "the order: names were changed"), (BY_NAME, "the names, as far as they go")),
    )


def lost_order(sides: Sides) -> str:
    """What is said when neither names nor order place anything: why, and how many placements the shapes leave."""
    reason = why_no_order(sides)
    count = ways(
        [x for x in sides.leaves if not is_counter(x)], [place for place in sides.places if not is_counter(place)]
    )
    if count is None:
        return _apart(sides) or "The order does not help either: the shapes are not the target's."
    left = f"about 10^{count:.0f}" if count >= 6 else f"{round(10**count):,}"
    if not reason:
        reason = "the tensors come in another sequence than the target's"
    ways_left = "one way" if left == "1" else f"{left} ways"
    return f"Nor by order: {reason}. Shapes alone leave {ways_left} to place them."


def _apart(sides: Sides) -> str:
    """The one module by which both sequences differ, in numbers; "" where more or none does."""
    # Under any name scalars are mostly counters.
    ours = [leaf for leaf in sides.leaves if leaf.shape and not is_counter(leaf)]
    theirs = [place for place in sides.places if place.shape and not is_counter(place)]
    if len(ours) != len(theirs):
        return ""
    apart = [(leaf, place) for leaf, place in zip(ours, theirs, strict=True) if leaf.shape != place.shape]
    modules = {split_name(place.name)[0] for _, place in apart}
    if len(modules) != 1 or not all(leaf.shape and place.shape for leaf, place in apart):
        return ""
    leaf, place = apart[0]
    here, there = leaf.shape or (), place.shape or ()
    says = f"{human_shape(here)} in the file, {human_shape(there)} in the target"
    if here[1:] == there[1:] and theirs[-1] in (place for _, place in apart):
        says = f"{counted(here[0], 'class', 'classes')} in the file, {there[0]:,} in the target"
    return f"Order would place all but {leaf.name}, where the target has {place.name}: {says}."
