"""A graph as it is drawn: boxes in boxes, equal neighbours folded, long rows in sections, dense arrows thinned.

All of it in time that grows with the nodes, the edges and the depth; nothing here calls itself.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from inspector.gc_pause import without_collecting
from inspector.graph.folding import Row, Run, find_runs
from inspector.graph.nesting import CALL, Item, Nest, Shape, nest
from inspector.graph.types import Box, BoxEdge, Drawn, Graph

# A layout of more boxes than this takes a browser too long.
MOST_CHILDREN = 150
# A section is cut up to so many boxes from where it would end.
_SLACK = 15
_MOST_SAID = 3
# From here on arrows hide what they show; a DenseNet's block has 24 to a child.
_DENSE = 4
_NUMBER = re.compile(r"\d+$")
# Which place of its input an operator takes makes it no other one: steps over time differ in nothing else.
_TAKES_A_PLACE = frozenset({"select", "slice", "narrow", "getitem", "index_select", "Slice", "Gather"})
# By name, or as TorchScript and a pass have them: by their turn, behind the tensor and its axis.
_PLACES = frozenset({"index", "start", "end", "starts", "ends", "indices", "2", "3"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnEdge:
    """An edge between innermost boxes, by their paths; equal ones of folded neighbours are one."""

    source: str
    target: str
    shape: Shape
    dtype: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """box: the whole network. edges: between the innermost boxes, for whoever draws all of them at once."""

    box: Box
    edges: tuple[DrawnEdge, ...]


@dataclass(slots=True, eq=False)
class _Folded:
    """An item's box. places: for each child in the item's order, (which folded child, which unit of its run, the place
    that stands for it)."""

    box: Box
    key: bytes
    places: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Row:
    """Children that have boxes, with the arrows among them: while they are folded, cut and thinned."""

    boxes: list[Box]
    keys: list[bytes]
    arrows: dict[tuple[int, int], tuple[Shape, int]]
    entries: set[int]
    exits: set[int]
    names: list[str]


def boxes(graph: Graph) -> Box:
    """The network as nested boxes."""
    return draw(graph).box


def drawn(graph: Graph) -> Drawn:
    """The same as a page shows it."""
    return Drawn(box=boxes(graph), says=" ".join((f"From {graph.origin.value}.", *graph.remarks)))


def draw(graph: Graph) -> Drawing:
    """The nested boxes with the edges between the innermost of them."""
    # Half of the time would go into searching for garbage among records that all stay.
    with without_collecting():
        return _draw(graph)


def _draw(graph: Graph) -> Drawing:
    nested = nest(graph)
    folded: dict[Item, _Folded] = {}
    for item in reversed(nested.items):
        folded[item] = _leaf(item) if item.node is not None else _module(item, folded)
    return Drawing(box=folded[nested.items[0]].box, edges=tuple(_edges(nested, folded)))


def _leaf(item: Item) -> _Folded:
    node = item.node
    assert node is not None
    settings = node.attributes
    if node.label in _TAKES_A_PLACE:
        settings = tuple((name, says) for name, says in settings if name not in _PLACES)
    key = _key(item.kind, node.kind, item.shape, settings, [p.shape for p in node.parameters])
    weight = next((p.shape for p in node.parameters if p.shape is not None and len(p.shape) > 1), ())
    box = Box(path=item.path, label=item.label, kind=item.kind, shape=item.shape, node=node.id, weight=weight)
    return _Folded(box, key)


def _module(item: Item, folded: dict[Item, _Folded]) -> _Folded:
    # Neighbours of other names are other parts, however alike they are built.
    kind = (item.kind, _NUMBER.sub("#", CALL.sub("", item.label)))
    if len(item.order) == 1 and item.order[0].node is not None and item.group:
        # A layer that is one operator is one box.
        inner = folded[item.order[0]]
        box = replace(inner.box, path=item.path, label=item.label, kind=item.kind or inner.box.kind, module=item.module)
        return _Folded(box, _key(kind, inner.key), [(0, 0, 0)])
    entries = {child.place for child in item.order if child.sources}
    exits = {child.place for child in item.order if child.targets}
    arrows = {pair: (arrow.shape, len(arrow.tensors)) for pair, arrow in item.arrows.items()}
    row = _Row(
        [folded[c].box for c in item.order],
        [folded[c].key for c in item.order],
        arrows,
        entries,
        exits,
        [_name(c) for c in item.order],
    )
    shape = row.boxes[max(exits)].shape if exits else None
    runs = find_runs(_as_row(row, item))
    row, places = _fold(row, runs)
    row = _cut(row, item.path)
    edges, implied = _thin(row)
    box = Box(
        path=item.path,
        label=item.label,
        kind=item.kind,
        module=item.module,
        shape=shape,
        children=tuple(row.boxes),
        edges=edges,
        implied=implied,
        entries=tuple(sorted(row.entries)),
        exits=tuple(sorted(row.exits)),
    )
    key = _key(kind, shape, row.keys, sorted(row.arrows.items(), key=lambda pair: pair[0]), box.entries, box.exits)
    return _Folded(box, key, places)


def _name(item: Item) -> str:
    """What a section may be called by: a module's own name, or that of an operator's parameters."""
    if item.node is None:
        return item.label
    return next((p.name.rpartition(".")[0] for p in item.node.parameters if "." in p.name), "")


def _key(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).digest()


def _as_row(row: _Row, item: Item) -> Row:
    before: dict[int, dict[int, tuple[Shape, int]]] = defaultdict(dict)
    after: dict[int, dict[int, tuple[Shape, int]]] = defaultdict(dict)
    for (s, t), arrow in row.arrows.items():
        after[s][t] = arrow
        before[t][s] = arrow
    return Row(row.keys, before, after, [c.sources for c in item.order], [c.targets for c in item.order])


def _fold(row: _Row, runs: Sequence[Run]) -> tuple[_Row, list[tuple[int, int, int]]]:
    """The row with each run as one box, and where each child went."""
    places: list[tuple[int, int, int]] = []
    boxes: list[Box] = []
    keys: list[bytes] = []
    starts = {run.start: run for run in runs}
    at = 0
    while at < len(row.boxes):
        run = starts.get(at, Run(at, 1, 1))
        for place in range(run.start, run.end):
            unit, offset = divmod(place - run.start, run.unit)
            places.append((len(boxes), unit, run.start + offset))
        boxes.append(_repeated(row, run) if run.count > 1 else row.boxes[at])
        keys.append(_key(row.keys[at : at + run.unit], run.count) if run.count > 1 else row.keys[at])
        at = run.end
    arrows: dict[tuple[int, int], tuple[Shape, int]] = {}
    for (s, t), arrow in sorted(row.arrows.items(), key=lambda pair: pair[0]):
        pair = (places[s][0], places[t][0])
        if pair[0] != pair[1]:
            known = arrows.get(pair)
            arrows[pair] = arrow if known is None else (known[0], max(known[1], arrow[1]))
    entries = {places[place][0] for place in row.entries}
    names = [""] * len(boxes)
    for name, (place, _, _) in zip(row.names, places, strict=True):
        names[place] = names[place] or name
    return _Row(boxes, keys, arrows, entries, {places[place][0] for place in row.exits}, names), places


def _repeated(row: _Row, run: Run) -> Box:
    paths = tuple(box.path for box in row.boxes[run.start : run.end])
    first = row.boxes[run.start]
    if run.unit == 1:
        return replace(first, repeat=run.count, repeated=paths)
    members = row.boxes[run.start : run.start + run.unit]
    inside = range(run.start, run.start + run.unit)
    within = [(pair, arrow) for pair, arrow in row.arrows.items() if pair[0] in inside and pair[1] in inside]
    entries = {t for s, t in row.arrows if t in inside and s not in inside} | (row.entries & set(inside))
    exits = {s for s, t in row.arrows if s in inside and t not in inside} | (row.exits & set(inside))
    return Box(
        path=f"{first.path} … {members[-1].path.rpartition('.')[2]}",
        label=f"{first.label} … {members[-1].label}",
        kind="",
        shape=row.boxes[max(exits)].shape if exits else None,
        repeat=run.count,
        repeated=paths,
        children=tuple(members),
        edges=tuple(
            BoxEdge(source=s - run.start, target=t - run.start, shape=shape, count=count)
            for (s, t), (shape, count) in sorted(within, key=lambda pair: pair[0])
        ),
        entries=tuple(sorted(place - run.start for place in entries)),
        exits=tuple(sorted(place - run.start for place in exits)),
    )


def _cut(row: _Row, path: str) -> _Row:
    """Rows longer than a layout bears as sections, and these in sections again."""
    level = 0
    while len(row.boxes) > MOST_CHILDREN:
        level += 1
        starts = _starts(row)
        section = [n for n, (start, end) in enumerate(pairwise([*starts, len(row.boxes)])) for _ in range(start, end)]
        number = len(starts)
        inner: list[list[BoxEdge]] = [[] for _ in range(number)]
        entries: list[set[int]] = [set() for _ in range(number)]
        exits: list[set[int]] = [set() for _ in range(number)]
        arrows: dict[tuple[int, int], tuple[Shape, int]] = {}
        for (s, t), (shape, count) in row.arrows.items():
            a, b = section[s], section[t]
            if a == b:
                inner[a].append(BoxEdge(source=s - starts[a], target=t - starts[a], shape=shape, count=count))
                continue
            exits[a].add(s - starts[a])
            entries[b].add(t - starts[b])
            known = arrows.get((a, b), (shape, 0))
            arrows[a, b] = (known[0], known[1] + count)
        for place in row.entries:
            entries[section[place]].add(place - starts[section[place]])
        for place in row.exits:
            exits[section[place]].add(place - starts[section[place]])
        boxes, keys, names = list[Box](), list[bytes](), list[str]()
        for n, (start, end) in enumerate(pairwise([*starts, len(row.boxes)])):
            members = row.boxes[start:end]
            own = [name for name in row.names[start:end] if name]
            names.append(own[0] if own else "")
            keys.append(_key(row.keys[start:end]))
            boxes.append(
                Box(
                    path=f"{path} section {level}.{n + 1}".strip(),
                    label=_span(own[0], own[-1]) if own else f"section {n + 1} of {number}",
                    kind=_most_kinds(members),
                    shape=members[max(exits[n])].shape if exits[n] else None,
                    children=tuple(members),
                    edges=tuple(inner[n]),
                    entries=tuple(sorted(entries[n])),
                    exits=tuple(sorted(exits[n])),
                )
            )
        row = _Row(boxes, keys, arrows, {section[p] for p in row.entries}, {section[p] for p in row.exits}, names)
    return row


def _span(first: str, last: str) -> str:
    """ "stage.0 … 24": from one dotted name to another, as far as they differ."""
    ours, theirs = first.split("."), last.split(".")
    shared = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
    return first if shared is None else f"{'.'.join(ours[: shared + 1])} … {theirs[shared]}"


def _starts(row: _Row) -> list[int]:
    """Where sections begin: about equally long, and cut where few tensors pass."""
    n = len(row.boxes)
    passing = [0] * (n + 1)
    furthest: dict[int, int] = {}
    for s, t in row.arrows:
        furthest[s] = max(t, furthest.get(s, 0))
    # What several read is one tensor.
    for s, t in furthest.items():
        passing[s + 1] += 1
        passing[t + 1] -= 1
    passing = list(accumulate(passing))
    number = -(-n // (MOST_CHILDREN - 2 * _SLACK))
    starts = [0]
    for at in range(1, number):
        ideal = at * n // number
        near = range(max(starts[-1] + 1, ideal - _SLACK), min(n, ideal + _SLACK + 1))
        starts.append(min(near, key=lambda place: (passing[place], abs(place - ideal))))
    return starts


def _most_kinds(boxes: Sequence[Box]) -> str:
    """ "60 Conv, 30 Relu, 30 Add", the most frequent first."""
    kinds: Counter[str] = Counter()
    for box in boxes:
        kinds[box.kind or box.label] += box.repeat
    said = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common(_MOST_SAID))
    return said + (" …" if len(kinds) > _MOST_SAID else "")


def _thin(row: _Row) -> tuple[tuple[BoxEdge, ...], tuple[BoxEdge, ...]]:
    """(the arrows, those that a chain of others says as well): the second only where there are very many."""
    edges = [
        BoxEdge(source=s, target=t, shape=shape, count=count)
        for (s, t), (shape, count) in sorted(row.arrows.items(), key=lambda pair: pair[0])
    ]
    if len(edges) <= _DENSE * len(row.boxes):
        return tuple(edges), ()
    by_source: dict[int, list[BoxEdge]] = defaultdict(list)
    for edge in edges:
        by_source[edge.source].append(edge)
    reached = [0] * len(row.boxes)
    implied: list[BoxEdge] = []
    for place in range(len(row.boxes) - 1, -1, -1):
        # Arrows lead forward, so that the nearest first have told what the further ones add.
        for edge in sorted(by_source[place], key=lambda edge: edge.target):
            if reached[place] >> edge.target & 1:
                implied.append(edge)
            reached[place] |= 1 << edge.target | reached[edge.target]
    left_out = {(edge.source, edge.target) for edge in implied}
    kept = tuple(edge for edge in edges if (edge.source, edge.target) not in left_out)
    return kept, tuple(sorted(implied, key=lambda edge: (edge.source, edge.target)))


def _edges(nested: Nest, folded: dict[Item, _Folded]) -> Iterator[DrawnEdge]:
    """Each edge once, between the boxes that stand for its ends; none from one of a folded run to the next."""
    stands_for: dict[Item, str] = {}
    todo = [(nested.items[0], nested.items[0])]
    while todo:
        item, shown = todo.pop()
        if folded[item].box.node:
            # One operator in a module of its own.
            stands_for[item.order[0] if item.order else item] = folded[shown].box.path
            continue
        for place, child in enumerate(item.order):
            todo.append((child, shown.order[folded[shown].places[place][2]]))
    seen: set[tuple[str, str, Shape]] = set()
    for s, t, edge, meeting in nested.edges:
        source, target = nested.leaves[s], nested.leaves[t]
        if _in_one_run(source, target, meeting, folded[meeting].places):
            continue
        drawn = (stands_for[source], stands_for[target], edge.shape)
        if drawn[0] != drawn[1] and drawn not in seen:
            seen.add(drawn)
            yield DrawnEdge(source=drawn[0], target=drawn[1], shape=edge.shape, dtype=edge.dtype)


def _in_one_run(source: Item, target: Item, meeting: Item, places: Sequence[tuple[int, int, int]]) -> bool:
    while source.parent is not meeting:
        assert source.parent is not None
        source = source.parent
    while target.parent is not meeting:
        assert target.parent is not None
        target = target.parent
    one, other = places[source.place], places[target.place]
    return one[0] == other[0] and one[1] != other[1]
