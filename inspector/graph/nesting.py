"""A graph's nodes sorted into its modules: a tree of items, each with the arrows among its children.

Every edge becomes an arrow between two children of the innermost module that holds both its ends. A module that is
left and entered again (a ReLU that is called twice under one name) would make the arrows run in a circle: such a module
is drawn once for each time that it is entered. Edges of a `Graph` lead from earlier nodes to later ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from inspector.graph.types import Edge, Graph, Node, NodeKind, Size

# Behind the name of what is called again.
CALL = re.compile(r" \(\d+\)(?=\.|$)")
Shape = tuple[Size, ...] | None


@dataclass(slots=True, eq=False)
class Arrow:
    """shape: of the first tensor. tensors: which go this way, by the node that makes them and their name."""

    shape: Shape
    tensors: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True, eq=False, repr=False)
class Item:
    """A group, or one node. order: its children as they run. arrows: among them, by their places. group: its path in
    the graph; path: the same with a number where it is drawn more than once.

    sources, targets: of what crosses the border of an item from outside its parent, or to there: places of nodes.
    """

    path: str
    label: str
    group: str = ""
    module: str = ""
    kind: str = ""
    node: Node | None = None
    shape: Shape = None
    parent: Item | None = None
    place: int = 0
    order: list[Item] = field(default_factory=list)
    arrows: dict[tuple[int, int], Arrow] = field(default_factory=dict)
    sources: set[tuple[int, Shape]] = field(default_factory=set)
    targets: set[int] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Nest:
    """items: parents before their children, the whole first. leaves: by place of the node. edges: of the drawing."""

    items: list[Item]
    leaves: dict[int, Item]
    edges: list[tuple[int, int, Edge, Item]]


@dataclass(slots=True)
class _Work:
    item: Item
    nodes: list[int]
    edges: list[int]
    depth: int


def nest(graph: Graph) -> Nest:
    """The tree, without what is made of constants and parameters alone."""
    numbers = {node.id: number for number, node in enumerate(graph.nodes)}
    ends = [(numbers[e.source], numbers[e.target]) for e in graph.edges]
    hidden = _constant_nodes(graph, ends)
    groups = {group.path: group for group in graph.groups}
    pieces = {path: path.split(".") if path else [] for path in {node.group for node in graph.nodes}}
    parts = [pieces[node.group] for node in graph.nodes]
    shapes = _shapes(graph, ends)
    root = Item(path="", label="", kind=groups[""].kind if "" in groups else "")
    items, leaves = [root], {}
    meeting: dict[int, Item] = {}
    shown = [number for number in range(len(graph.nodes)) if number not in hidden]
    kept = [number for number, (s, t) in enumerate(ends) if s not in hidden and t not in hidden]
    todo = [_Work(root, shown, kept, 0)]
    while todo:
        work = todo.pop()
        names, member = _members(work, parts, ends)
        made: list[Item] = []
        inside: list[list[int]] = [[] for _ in names]
        for number in work.nodes:
            inside[member[number]].append(number)
        crossing: list[int] = []
        within: list[list[int]] = [[] for _ in names]
        for number in work.edges:
            s, t = ends[number]
            if member[s] == member[t]:
                within[member[s]].append(number)
            else:
                crossing.append(number)
        for child, (name, suffix) in enumerate(names):
            if name is None:
                number = inside[child][0]
                node = graph.nodes[number]
                kind = node.label if node.kind is NodeKind.OPERATOR else node.kind.value
                item = Item(node.id, node.label, node=node, kind=kind, shape=shapes.get(number))
                leaves[number] = item
            else:
                path = f"{work.item.group}.{name}" if work.item.group else name
                group = groups.get(path)
                module = CALL.sub("", path) if group is None or group.is_module else ""
                item = Item(name + suffix, name + suffix, path, module, group.kind if group is not None else "")
                item.path = f"{work.item.path}.{item.label}" if work.item.path else item.label
                todo.append(_Work(item, inside[child], within[child], work.depth + 1))
            item.parent = work.item
            made.append(item)
        _order(work.item, made, [(member[ends[n][0]], member[ends[n][1]]) for n in crossing])
        items += made
        for number in crossing:
            meeting[number] = work.item
    edges = [(*ends[number], graph.edges[number], meeting[number]) for number in kept if number in meeting]
    _cross(edges, leaves)
    return Nest(items, leaves, edges)


def _constant_nodes(graph: Graph, ends: Sequence[tuple[int, int]]) -> set[int]:
    """Constants, and what is computed from constants and parameters alone: no more of the drawing than parameters."""
    fed: dict[int, list[int]] = defaultdict(list)
    for s, t in ends:
        fed[t].append(s)
    found: set[int] = set()
    for number, node in enumerate(graph.nodes):
        given = fed.get(number, ())
        only = bool(given or node.parameters) and all(s in found for s in given)
        if node.kind is NodeKind.CONSTANT or (node.kind is NodeKind.OPERATOR and only):
            found.add(number)
    return found


def _shapes(graph: Graph, ends: Sequence[tuple[int, int]]) -> dict[int, Shape]:
    """What each node hands out first; of an output, what it takes."""
    found: dict[int, Shape] = {}
    for (s, t), edge in zip(ends, graph.edges, strict=True):
        found.setdefault(s, edge.shape)
        if graph.nodes[t].kind is NodeKind.OUTPUT:
            found.setdefault(t, edge.shape)
    return found


def _members(
    work: _Work, parts: Sequence[Sequence[str]], ends: Sequence[tuple[int, int]]
) -> tuple[list[tuple[str | None, str]], dict[int, int]]:
    """The children of an item: (name, "" or " (2)"), None for a node alone; and which child each node belongs to."""
    names: list[tuple[str | None, str]] = []
    member: dict[int, int] = {}
    known: dict[str, int] = {}
    for number in work.nodes:
        name = parts[number][work.depth] if len(parts[number]) > work.depth else None
        if name is None or name not in known:
            if name is not None:
                known[name] = len(names)
            member[number] = len(names)
            names.append((name, ""))
        else:
            member[number] = known[name]
    pairs = {(member[s], member[t]) for s, t in (ends[n] for n in work.edges) if member[s] != member[t]}
    round_ = _in_circles(len(names), pairs)
    if not round_:
        return names, member
    taken = {name for name, _ in names if name is not None}
    again: dict[int, int] = defaultdict(int)
    last, current = -1, -1
    for number in work.nodes:
        child = member[number]
        if child not in round_ or names[child][0] is None:
            last = child
            continue
        if child != last:
            again[child] += 1
            current = child
            if again[child] > 1:
                name = names[child][0]
                assert name is not None
                while f"{name} ({again[child]})" in taken:
                    again[child] += 1
                current = len(names)
                names.append((name, f" ({again[child]})"))
        last = child
        member[number] = current
    return names, member


def _in_circles(n: int, pairs: Iterable[tuple[int, int]]) -> set[int]:
    """Children that lie on a circle of arrows, or between two of them."""
    pairs = list(pairs)
    if all(s < t for s, t in pairs):
        return set()  # As they come they are in order.
    left = set(range(n))
    for turned in (False, True):
        waits = [0] * n
        after: dict[int, list[int]] = defaultdict(list)
        for s, t in ((t, s) if turned else (s, t) for s, t in pairs):
            if s in left and t in left:
                waits[t] += 1
                after[s].append(t)
        ready = [child for child in left if not waits[child]]
        while ready:
            child = ready.pop()
            left.discard(child)
            for t in after[child]:
                waits[t] -= 1
                if not waits[t]:
                    ready.append(t)
    return left


def _order(parent: Item, children: list[Item], pairs: Sequence[tuple[int, int]]) -> None:
    """Put the children into an order in which all arrows lead forward, the earliest first."""
    unique = set(pairs)
    if all(s < t for s, t in unique):
        parent.order = children
        for place, item in enumerate(children):
            item.place = place
        return
    waits = [0] * len(children)
    after: dict[int, list[int]] = defaultdict(list)
    for s, t in unique:
        waits[t] += 1
        after[s].append(t)
    ready = [n for n in range(len(children)) if not waits[n]]
    heapify(ready)
    while ready:
        number = heappop(ready)
        parent.order.append(children[number])
        for t in after[number]:
            waits[t] -= 1
            if not waits[t]:
                heappush(ready, t)
    for place, item in enumerate(parent.order):
        item.place = place


def _cross(edges: Sequence[tuple[int, int, Edge, Item]], leaves: dict[int, Item]) -> None:
    """Arrows between children, and what crosses the borders of the modules around the ends of each edge."""
    for s, t, edge, meeting in edges:
        source, target = leaves[s], leaves[t]
        while source.parent is not meeting:
            source.targets.add(t)
            assert source.parent is not None
            source = source.parent
        while target.parent is not meeting:
            target.sources.add((s, edge.shape))
            assert target.parent is not None
            target = target.parent
        key = (source.place, target.place)
        arrow = meeting.arrows.get(key)
        if arrow is None:
            arrow = meeting.arrows[key] = Arrow(edge.shape)
        arrow.tensors.add((edge.source, edge.tensor))
