"""Numbered layers in groups on one side only: blocks.0.1.norm1 and blocks.1.norm1, features.1.0 and features.3.

DINOv2 wraps blocks in chunks for FSDP, and Sequentials are nested or unrolled. The layers keep their order: counted
group by group, the first is the first. It holds only where every layer of one side fits its counterpart, shape for
shape. Where counting across the groups would fit as well, the user is asked, unless the numbers themselves say it; and
where the file lists its layers in another order than it numbers them, whichever of the two fits is asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inspector.keys.placing.tree import Node, Path, numbered
from inspector.keys.report import Ambiguity, Cost
from inspector.keys.rules.entry import Move, Pair, Renames, Route, Rule

BY_GROUP, ACROSS, AS_LISTED = "by-group", "across", "as-listed"
# (group, number in it, the layer)
Grouped = tuple[int, int, Node]
# (in groups, flat): the first of one goes with the first of the other
Layers = tuple[list[Node], list[Node]]
_MEANINGS = {
    BY_GROUP: "group by group, as torch runs them",
    ACROSS: "the first of each group first",
    AS_LISTED: "as the file lists them, whatever their numbers",
}


def _number(segment: str) -> int | None:
    """The number that a segment is, None for any other: "²" is a digit too, and no number."""
    found = numbered(segment)
    return found[1] if found is not None and not found[0] else None


def _flat(node: Node) -> list[tuple[int, Node]]:
    """Layers with their numbers, as listed; () unless all children are numbers and none of them is a group."""
    found = [(n, child) for s, child in node.children.items() if (n := _number(s)) is not None]
    whole = len(found) == len(node.children) and all(not _is_group(child) for _, child in found)
    return found if whole else []


def _is_group(node: Node) -> bool:
    return bool(node.children) and not node.leaves and all(_number(s) is not None for s in node.children)


def _grouped(node: Node) -> list[Grouped]:
    """Layers with group and number, as listed; () unless every child is a numbered group."""
    if node.leaves or not node.children or not all(_is_group(child) for child in node.children.values()):
        return []
    found: list[Grouped] = []
    for segment, group in node.children.items():
        at = _number(segment)
        if at is None:
            return []
        found += [(at, n, layer) for s, layer in group.children.items() if (n := _number(s)) is not None]
    return found


def _routes(pair: Pair) -> Iterator[Route]:
    source, target = pair.source, pair.target
    nested = _grouped(source)
    flat, turned = (_flat(target), False) if nested else (_flat(source), True)
    nested = nested or _grouped(target)
    if len(flat) < 2 or len(flat) != len(nested):
        return
    groups = [layer for _, _, layer in sorted(nested, key=lambda item: item[:2])]
    singles = [layer for _, layer in sorted(flat, key=lambda item: item[0])]
    if not _fit(groups, singles, turned):
        return
    ways = {BY_GROUP: (groups, singles)}
    # Numbers that go on from group to group, as DINOv2's, are the layers' own.
    own = sorted(n for n, _ in flat) == [n for _, n, _ in sorted(nested, key=lambda item: item[:2])]
    across = [layer for _, _, layer in sorted(nested, key=lambda item: (item[1], item[0]))]
    if not own and across != groups and _fit(across, singles, turned):
        ways[ACROSS] = (across, singles)
    listed = ([layer for _, _, layer in nested], [layer for _, layer in flat])
    if source.in_order and target.in_order and not _is_one_of(listed, ways) and _fit(*listed, turned):
        ways[AS_LISTED] = listed
    answer = _ask(pair, tuple(ways)) if len(ways) > 1 else BY_GROUP
    if answer is None:
        for segment, child in source.children.items():
            yield Route(child, None, (), takes=(segment,))
        return
    groups, singles = ways[answer]
    place = ".".join((target if turned else source).path)
    says = f"put the layers of {place} {'into' if turned else 'out of'} their groups"
    move = Move(RULE.id, says, change=(place, turned))
    for one, other in zip(groups, singles, strict=True):
        ours, theirs = (other, one) if turned else (one, other)
        yield Route(ours, theirs, (move,), takes=_first(ours, source), fills=_first(theirs, target))


def _is_one_of(listed: Layers, ways: Mapping[str, Layers]) -> bool:
    """Whether these pairs are those of a way that the numbers give."""
    pairs = {(id(a), id(b)) for a, b in zip(*listed, strict=True)}
    return any(pairs == {(id(a), id(b)) for a, b in zip(*way, strict=True)} for way in ways.values())


def _first(node: Node, above: Node) -> tuple[str, ...]:
    return (node.path[len(above.path)],)


def _fit(groups: Sequence[Node], singles: Sequence[Node], turned: bool) -> bool:
    return all(
        _same(single, group) if turned else _same(group, single) for group, single in zip(groups, singles, strict=True)
    )


def _same(ours: Node, theirs: Node) -> bool:
    """Whether every weight of both has its counterpart, by name below and by shape."""
    return bool(ours.bag) and ours.bag == theirs.bag and ours.forms == theirs.forms


def _ask(pair: Pair, ways: Sequence[str]) -> str | None:
    place = ".".join(pair.source.path) or "the file"
    doubt = (
        "all are alike: are they counted group by group, or the first of each group first?"
        if AS_LISTED not in ways
        else "the file lists them in another order than it numbers them, and each order fits: which one holds?"
    )
    return pair.questions.ask(
        Ambiguity(
            id=RULE.id,
            question=f"The layers of {place} are in groups on one side only, and {doubt}",
            options=tuple((way, _MEANINGS[way]) for way in ways),
        ),
        place=place,
    )


def _without_numbers(path: Path) -> Path:
    return tuple(segment for segment in path if not segment.isdigit())


RULE = Rule(
    id="nested-numbers",
    title="Layers in groups",
    says="Takes numbered layers out of numbered groups or puts them in, where every layer fits its counterpart.",
    cost=Cost.LOSSLESS,
    done="{tensors} of numbered layers are counted across their groups",
    renames=Renames.NUMBERS,
    plain=_without_numbers,
    routes=_routes,
)
