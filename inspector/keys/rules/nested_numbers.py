"""Numbered layers in groups on one side only: blocks.0.1.norm1 and blocks.1.norm1, features.1.0 and features.3.

DINOv2 wraps blocks in chunks for FSDP, and Sequentials are nested or unrolled. The layers keep their order: counted
group by group, the first is the first. It holds only where every layer of one side fits its counterpart, shape for
shape. Where counting across the groups would fit as well, the user is asked, unless the numbers themselves say it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.keys.placing.tree import Node, Path, numbered
from inspector.keys.report import Ambiguity, Cost
from inspector.keys.rules.entry import Move, Pair, Renames, Route, Rule

BY_GROUP, ACROSS = "by-group", "across"
# (group, number in it, the layer)
Grouped = tuple[int, int, Node]


def _number(segment: str) -> int | None:
    """The number that a segment is, None for any other: "²" is a digit too, and no number."""
    found = numbered(segment)
    return found[1] if found is not None and not found[0] else None


def _flat(node: Node) -> list[tuple[int, Node]]:
    """Layers by number, () unless all children are numbers and none of them is a group."""
    found = [(n, child) for s, child in node.children.items() if (n := _number(s)) is not None]
    whole = len(found) == len(node.children) and all(not _is_group(child) for _, child in found)
    return sorted(found, key=lambda item: item[0]) if whole else []


def _is_group(node: Node) -> bool:
    return bool(node.children) and not node.leaves and all(_number(s) is not None for s in node.children)


def _grouped(node: Node) -> list[Grouped]:
    """Layers by group and number, () unless every child is a numbered group."""
    if node.leaves or not node.children or not all(_is_group(child) for child in node.children.values()):
        return []
    found: list[Grouped] = []
    for segment, group in node.children.items():
        at = _number(segment)
        if at is None:
            return []
        found += [(at, n, layer) for s, layer in group.children.items() if (n := _number(s)) is not None]
    return sorted(found, key=lambda item: item[:2])


def _routes(pair: Pair) -> Iterator[Route]:
    source, target = pair.source, pair.target
    nested = _grouped(source)
    flat, turned = (_flat(target), False) if nested else (_flat(source), True)
    nested = nested or _grouped(target)
    if len(flat) < 2 or len(flat) != len(nested):
        return
    by_group = [layer for _, _, layer in nested]
    singles = [layer for _, layer in flat]
    if not _fit(by_group, singles, turned):
        return
    # Numbers that go on from group to group, as DINOv2's, are the layers' own.
    own = [n for _, n, _ in nested] == [n for n, _ in flat]
    across = [layer for _, _, layer in sorted(nested, key=lambda item: (item[1], item[0]))]
    if not own and across != by_group and _fit(across, singles, turned):
        answer = _ask(pair)
        if answer is None:
            for segment, child in source.children.items():
                yield Route(child, None, (), takes=(segment,))
            return
        by_group = across if answer == ACROSS else by_group
    place = ".".join((target if turned else source).path)
    says = f"put the layers of {place} {'into' if turned else 'out of'} their groups"
    move = Move(RULE.id, says, change=(place, turned))
    for one, other in zip(by_group, singles, strict=True):
        ours, theirs = (other, one) if turned else (one, other)
        yield Route(ours, theirs, (move,), takes=_first(ours, source), fills=_first(theirs, target))


def _first(node: Node, above: Node) -> tuple[str, ...]:
    return (node.path[len(above.path)],)


def _fit(groups: Sequence[Node], singles: Sequence[Node], turned: bool) -> bool:
    return all(
        _same(single, group) if turned else _same(group, single) for group, single in zip(groups, singles, strict=True)
    )


def _same(ours: Node, theirs: Node) -> bool:
    """Whether every weight of both has its counterpart, by name below and by shape."""
    return bool(ours.bag) and ours.bag == theirs.bag and ours.forms == theirs.forms


def _ask(pair: Pair) -> str | None:
    place = ".".join(pair.source.path) or "the file"
    return pair.questions.ask(
        Ambiguity(
            id=RULE.id,
            question=(
                f"The layers of {place} are in groups on one side only, and all are alike: are they counted group by "
                "group, or the first of each group first?"
            ),
            options=((BY_GROUP, "group by group, as torch runs them"), (ACROSS, "the first of each group first")),
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
