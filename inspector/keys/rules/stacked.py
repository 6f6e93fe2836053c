"""Matrices that one side has as one and the other in parts: what the rules for attentions and gated layers share.

Names say what is one (`qkv`, `c_attn`, `gate_up_proj`) and what are parts (`q_proj`, `k_proj`, `v_proj`); that together
they have as many rows as the whole says that they correspond. In which order the parts lie in it no shape shows: a name
may claim it, the names of a whole library prove it, else it is asked, once for all layers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from inspector.checkpoint.types import Shape
from inspector.keys.operations.grouped import value_of
from inspector.keys.placing.provenance import shapes_of_names
from inspector.keys.placing.roles import split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.recast import Piece, Recast
from inspector.keys.report import FILE, TARGET, Ambiguity
from inspector.keys.rules.entry import Link, Questions
from inspector.units import counted

_LEAVES = ("weight", "bias", "kernel")
# Rows of one head that models have, the commonest first.
_USUAL = (64, 128, 32, 80, 96, 48, 16, 256, 24, 40)
# As many as 768 rows can have; where a network has another number, the question says so (`OTHERWISE`).
_MOST_HEADS = 16
# No order that is asked about is right, or the user does not know: the whole is not cut, and the plan stays open.
OTHERWISE = "otherwise"


def places_of(settled: Sequence[Link]) -> dict[str, str]:
    """Where the modules of the file went, by what was placed below them; None of two minds are left out."""
    found: dict[str, str] = {}
    torn: set[str] = set()
    known: set[tuple[str, str]] = set()
    for link in settled:
        ours, theirs = link.source.name, link.target.name
        inside = True
        while inside:
            ours, our_dot, our_last = ours.rpartition(".")
            theirs, their_dot, their_last = theirs.rpartition(".")
            # What stands above a pair of modules is seen once, with the first tensor below them.
            if our_last != their_last or (ours, theirs) in known:
                break
            known.add((ours, theirs))
            if found.setdefault(ours, theirs) != theirs:
                torn.add(ours)
            inside = bool(our_dot and their_dot)
    return {ours: theirs for ours, theirs in found.items() if ours not in torn}


@dataclass(frozen=True, slots=True)
class Order:
    """In which order the parts lie in the whole. id: of the option. of: the parts by their numbers. groups: how often
    they take turns; 0 for as often as the smallest part has rows."""

    id: str
    says: str
    of: tuple[int, ...]
    groups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a whole is seen with. shapes: its side's names as `shapes_of_names` gives them. names: the same, whole.
    parts: shapes of what it is cut like. turned: it lies (in, out). in_target: it is the target's: what a model is
    defined as is known from its library; that a file is a library's takes two names that only it has together."""

    shapes: Sequence[str]
    names: Container[str]
    parts: Sequence[Shape]
    turned: bool
    in_target: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One kind of whole.

    parts: what the modules are called when they are apart, the first part first. whole: a pattern for the end of the
    whole's name, up to its leaf. claims: the order that a whole's own name says, "" for none. proves: the order that
    the names around a whole prove, "" for none. orders: those that are asked about, for such parts.
    """

    question: str
    what: str
    parts: tuple[tuple[str, ...], ...]
    whole: re.Pattern[str]
    claims: Callable[[str], str]
    proves: Callable[[str, Around], str]
    orders: Callable[[tuple[Shape, ...]], Sequence[Order]]
    # Names of parts that only these wholes have.
    only: Mapping[tuple[str, ...], re.Pattern[str]]


@dataclass(frozen=True, slots=True)
class _Set:
    """The parts of one layer. shapes: in the order of the form."""

    form: tuple[str, ...]
    names: tuple[str, ...]
    leaf: str
    shapes: tuple[Shape, ...]

    @property
    def joined(self) -> Shape:
        return (sum(shape[0] for shape in self.shapes), *self.shapes[0][1:])


def recasts(
    leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions, family: Family, *, rule: str
) -> Iterator[Recast]:
    """What one side has as one and the other in parts, cut as the parts are."""
    ours, theirs = _sets(leaves, family), _sets(places, family)
    cut = False
    for recast in _of_side(leaves, places, ours, theirs, questions, family, rule=rule, in_target=False):
        cut = True
        yield recast
    if cut:
        # What was cut stands there in parts by now.
        ours, theirs = _sets(leaves, family), _sets(places, family)
    yield from _of_side(places, leaves, theirs, ours, questions, family, rule=rule, in_target=True)


def _of_side(
    side: Sequence[Leaf],
    other: Sequence[Leaf],
    own: Sequence[_Set],
    apart: Sequence[_Set],
    questions: Questions,
    family: Family,
    *,
    rule: str,
    in_target: bool,
) -> Iterator[Recast]:
    """own, apart: the parts that this side and the other has."""
    # Only where the other side has more of such parts there is something to cut.
    free = Counter(found.joined for found in apart) - Counter(found.joined for found in own)
    wholes = [leaf for leaf in side if leaf.shape and _is_whole(family, leaf.name)] if free else []
    if not wholes:
        return
    # A side that has both (self-attention in one, cross-attention in three) is cut only where the other has no whole.
    ends = {split_name(leaf.name)[1] for leaf in wholes}
    rivals = [x for x in other if x.shape and _is_whole(family, x.name) and split_name(x.name)[1] in ends]
    cut = _cut_weights(wholes, apart, rivals, free, family)
    if not cut:
        return
    names = {leaf.name for leaf in side}
    shapes = shapes_of_names(names)
    by_kind: dict[str, list[tuple[Leaf, _Set, bool]]] = {}
    for leaf, found, turned in cut:
        by_kind.setdefault(_kind(leaf.name), []).append((leaf, found, turned))
    for kind, members in by_kind.items():
        _, found, turned = members[0]
        around = Around(shapes=shapes, names=names, parts=found.shapes, turned=turned, in_target=in_target)
        order, proved = _order(kind, members, around, questions, family)
        if order is None:
            continue
        modules = {_module(leaf.name): found for leaf, found, _ in members}
        yield from (_recast(leaf, found, order, turned, rule, in_target, proved) for leaf, found, turned in members)
        for leaf in wholes:
            beside = modules.get(_module(leaf.name))
            if beside is not None and len(leaf.shape or ()) == 1 and _biases(beside, leaf, apart):
                yield _recast(leaf, _as_bias(beside), order, False, rule, in_target, proved)


def _module(name: str) -> str:
    """'attn.in_proj_weight' and 'attn.in_proj_bias' are of one module."""
    return re.sub(r"[._](weight|bias|kernel)$", "", name)


def _kind(name: str) -> str:
    return re.sub(r"(?<![A-Za-z_])[0-9]+(?=\.|$)", "N", _module(name))


def _sets(leaves: Sequence[Leaf], family: Family) -> list[_Set]:
    forms: dict[str, list[tuple[str, ...]]] = {}
    for form in family.parts:
        forms.setdefault(form[0], []).append(form)
    modules = {leaf.name.rpartition(".")[0] for leaf in leaves}
    if forms.keys().isdisjoint([module.rpartition(".")[2] for module in modules]):
        return []  # as of most networks
    there = {leaf.name: leaf.shape for leaf in leaves}
    found = []
    for name in there:
        module, _, leaf = name.rpartition(".")
        parent, dot, own = module.rpartition(".")
        if own not in forms or leaf not in _LEAVES:
            continue
        for form in forms[own]:
            names = tuple([f"{parent}{dot}{part}.{leaf}" for part in form])
            shapes = tuple(shape for shape in map(there.get, names) if shape)
            # Of no or other columns, or a lone bias: no parts of one matrix.
            if len(shapes) == len(names) and len({shape[1:] for shape in shapes}) == 1:
                found.append(_Set(form, names, leaf, shapes))
    return found


def _is_whole(family: Family, name: str) -> bool:
    """Whether the end of the name is that of a whole; of thousands of layers few ends differ."""
    return _ends(family.whole, ".".join(_end_of(name)))


def _end_of(name: str) -> list[str]:
    """Its last four segments, as many as a pattern looks at ("net.0.proj.weight"), behind what stands above them; no
    pattern begins with a number."""
    end = name.rsplit(".", 4)
    if len(end) == 5:
        end[0] = ""
        if end[1].isdecimal():
            del end[1]
    return end


@lru_cache(maxsize=8192)
def _ends(pattern: re.Pattern[str], end: str) -> bool:
    return pattern.search(end) is not None


def _cut_weights(
    wholes: Sequence[Leaf], apart: Sequence[_Set], rivals: Sequence[Leaf], free: Counter[Shape], family: Family
) -> list[tuple[Leaf, _Set, bool]]:
    """(whole, parts that it is cut like, whether it lies (in, out)) where sizes leave one way."""
    by_shape: dict[Shape, list[_Set]] = {}
    for found in apart:
        if len(found.shapes[0]) > 1:
            by_shape.setdefault(found.joined, []).append(found)
    taken = Counter(leaf.shape for leaf in rivals)
    made = []
    for leaf in wholes:
        shape = leaf.shape or ()
        if len(shape) < 2 or taken[shape] > 0:
            taken[shape] -= 1
            continue
        for turned in (False, True):
            key = (*shape[:-2], shape[-1], shape[-2]) if turned else shape
            sets = [
                s for s in by_shape.get(key, ()) if s.form not in family.only or family.only[s.form].search(leaf.name)
            ]
            if turned and (len(shape) != 2 or shape[0] == shape[1]):
                continue
            ways = {found.shapes for found in sets}
            if len(ways) == 1 and free[key] > 0:
                free[key] -= 1
                form = Counter(found.form for found in sets).most_common(1)[0][0]
                made.append((leaf, next(found for found in sets if found.form == form), turned))
                break
    return made


def _biases(found: _Set, leaf: Leaf, apart: Sequence[_Set]) -> bool:
    return (sum(shape[0] for shape in found.shapes),) == leaf.shape and any(
        one.form == found.form and one.leaf == "bias" for one in apart
    )


def _as_bias(found: _Set) -> _Set:
    names = tuple(f"{_module(name)}.bias" for name in found.names)
    return _Set(found.form, names, "bias", tuple(shape[:1] for shape in found.shapes))


def _order(
    kind: str,
    members: Sequence[tuple[Leaf, _Set, bool]],
    around: Around,
    questions: Questions,
    family: Family,
) -> tuple[Order | None, bool]:
    """(the order, whether it is shown); None where it is none of these. While it is asked, the likeliest."""
    first, found, _ = members[0]
    orders = {order.id: order for order in family.orders(found.shapes)}
    proved = family.proves(first.name, around)
    if proved in orders:
        # Whoever knows better says so, though nobody asks.
        told = [questions.told(ident, list(orders)) for ident in (f"{family.question}:{kind}", family.question)]
        known = next((answer for answer in told if answer is not None), proved)
        return orders[known], known == proved
    claimed = family.claims(first.name)
    ids = sorted(orders, key=lambda one: one != claimed)
    side = TARGET if around.in_target else FILE
    named = f", {orders[claimed].says} by its name" if claimed in orders else ""
    many = counted(len(members), "matrix", "matrices")
    answer = questions.ask(
        Ambiguity(
            id=family.question,
            question=(
                f"{many} of the {side} ({first.name} first) {'have' if members[1:] else 'has'} {family.what} in "
                f"one{named}; no shape shows in which order. Each answer loads. How do they lie in it?"
            ),
            options=(
                *((one, orders[one].says) for one in ids),
                (OTHERWISE, "otherwise, or not known: leave them out"),
            ),
            side=side,
        ),
        place=kind,
    )
    return orders.get(answer if answer is not None else ids[0]), False


def _recast(leaf: Leaf, found: _Set, order: Order, turned: bool, rule: str, in_target: bool, proved: bool) -> Recast:
    rows = [shape[0] for shape in found.shapes]
    groups = order.groups or min(rows)
    runs = [rows[part] // groups for part in order.of]
    starts = [sum(runs[:i]) for i in range(len(runs))]
    parent = _parent(leaf.name)
    pieces = []
    for at, part in enumerate(order.of):
        own = ".".join(found.names[part].split(".")[-2:])
        name = f"{parent}.{own}" if parent else own
        pieces.append(Piece(Leaf(name, found.shapes[part]), (starts[at], starts[at] + runs[at])))
    return Recast(
        rule=rule,
        reason=f"In one matrix {order.says}.",
        whole=leaf,
        pieces=tuple(pieces),
        in_target=in_target,
        value=value_of(groups, runs, turned=turned and len(leaf.shape or ()) > 1),
        turned=turned,
        proved=proved,
        plain=groups == 1 and not turned and len(set(runs)) == 1,
    )


def _parent(name: str) -> str:
    module, leaf = split_name(name)
    return module if leaf.startswith("in_proj_") else split_name(module)[0]


def heads(shapes: tuple[Shape, ...]) -> list[int]:
    """Into how many groups parts of these rows can be divided, the likeliest first."""
    rows = [shape[0] for shape in shapes]
    least = min(rows)
    numbers = [n for n in range(2, least // 2 + 1) if all(size % n == 0 for size in rows)]
    sizes = [least // size for size in _USUAL if least % size == 0 and least // size in numbers]
    return list(dict.fromkeys([*sizes, *numbers]))[:_MOST_HEADS]
