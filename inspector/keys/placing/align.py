"""Which tensor of the file goes to which place of the target, by names and shapes alone.

Both sides are walked down together from their roots, pair of places by pair of places. Equal subtrees are taken whole.
Elsewhere each name rule may propose routes, in the order of the tuple; what no rule claims is matched by equal names.
Rules come before equal names on purpose: after a shift of indices, equal names are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from inspector.keys.placing.tree import Leaf, Node
from inspector.keys.rules.entry import OWN_LEAVES, Link, Move, Pair, Questions, Rule


@dataclass(slots=True)
class Alignment:
    """links: placed tensors. dropped: left out by the user's choice. held: waiting for a choice."""

    links: list[Link] = field(default_factory=list)
    dropped: list[tuple[Leaf, Move]] = field(default_factory=list)
    held: list[Leaf] = field(default_factory=list)


def align(source: Node, target: Node, *, rules: Sequence[Rule], questions: Questions) -> Alignment:
    """Place the leaves of source on leaves of target. Several may land on one place: the caller must look."""
    found = Alignment()
    _descend(source, target, (), rules, questions, found)
    return found


def _descend(
    source: Node, target: Node, moves: tuple[Move, ...], rules: Sequence[Rule], questions: Questions, found: Alignment
) -> None:
    if source.signature == target.signature:
        there = dict(target.walk())
        found.links.extend(Link(leaf, there[name], moves) for name, leaf in source.walk())
        return
    left, open_places, whole = source, target, source
    for rule in rules:
        if rule.routes is None:
            continue
        takes: set[str] = set()
        fills: set[str] = set()
        gone: set[str] = set()
        for route in rule.routes(Pair(left, open_places, whole, target, questions)):
            takes.update(route.takes)
            fills.update(route.fills)
            if route.target is not None:
                _descend(route.source, route.target, moves + route.moves, rules, questions, found)
            elif route.moves:
                gone.update(route.takes)
                found.dropped.extend((leaf, route.moves[-1]) for _, leaf in route.source.walk())
            else:
                found.held.extend(leaf for _, leaf in route.source.walk())
        left, open_places = _without(left, takes), _without(open_places, fills)
        # What the user has left out is no part of what is placed: nothing is judged against it.
        whole = _without(whole, gone)
    for segment, child in left.children.items():
        if segment in open_places.children:
            _descend(child, open_places.children[segment], moves, rules, questions, found)
    _match_leaves(Pair(left, open_places, whole, target, questions), moves, rules, found)


def _without(node: Node, segments: set[str]) -> Node:
    if not segments:
        return node
    return node.only(lambda s: s not in segments, leaves={} if OWN_LEAVES in segments else None)


def _match_leaves(pair: Pair, moves: tuple[Move, ...], rules: Sequence[Rule], found: Alignment) -> None:
    same = [s for s in pair.source.leaves if s in pair.target.leaves]
    found.links.extend(Link(pair.source.leaves[s], pair.target.leaves[s], moves) for s in same)
    left = pair.source.only(
        lambda s: s not in pair.target.children,
        leaves={s: leaf for s, leaf in pair.source.leaves.items() if s not in same},
    )
    free = pair.target.only(
        lambda s: s not in pair.source.children,
        leaves={s: leaf for s, leaf in pair.target.leaves.items() if s not in same},
    )
    if not (left.leaves or left.children) or not (free.leaves or free.children):
        return
    for rule in rules:
        if rule.leaf_links is None:
            continue
        for link in rule.leaf_links(Pair(left, free, pair.whole_source, pair.whole_target, pair.questions)):
            found.links.append(Link(link.source, link.target, moves + link.moves))
