"""Boxes hold every node and edge of the graph, fold what is equal and nothing else, and take no longer than needed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

from inspector.graph.boxes import MOST_CHILDREN, boxes, draw
from inspector.graph.types import Box, Edge, Graph, GraphSource, Group, Node, NodeKind, Parameter
from inspector.graph.view import view
from tests.steps import steps

Shape = tuple[int, ...]


def graph(
    nodes: list[tuple[str, str, str]], edges: list[tuple[str, str]], shapes: dict[str, Shape] | None = None
) -> Graph:
    """nodes: (id, label, group)."""
    sizes = shapes or {}
    return Graph(
        origin=GraphSource.FORWARD,
        nodes=tuple(
            Node(id=i, label=label, group=g, kind=NodeKind.INPUT if label == "in" else NodeKind.OPERATOR)
            for i, label, g in nodes
        ),
        groups=tuple(Group(path=p, kind=p.partition("#")[2]) for p in dict.fromkeys(g for _, _, g in nodes if g)),
        edges=tuple(Edge(source=s, target=t, tensor=s, shape=sizes.get(s, (4,))) for s, t in edges),
    )


def everything(box: Box) -> Iterator[Box]:
    todo = [box]
    while todo:
        one = todo.pop()
        yield one
        todo += one.children


def row(labels: list[str], group: str = "") -> Graph:
    """Operators in a row behind an input, and one at the end."""
    nodes = [("x", "in", ""), *((f"n{k}", label, group) for k, label in enumerate(labels)), ("end", "sum", "")]
    return graph(nodes, list(pairwise(i for i, _, _ in nodes)))


def blocks(n: int, *, width: int = 1, skip: bool = False) -> Graph:
    """n equal blocks of a row, each with a way around it where skip."""
    nodes, edges, last = [("x", "in", "")], [], "x"
    for k in range(n):
        inner = [(f"a{k}", "conv", f"body.{k}.conv"), (f"b{k}", "relu", f"body.{k}"), (f"c{k}", "add", f"body.{k}")]
        nodes += inner * width
        edges += [(last, f"a{k}"), (f"a{k}", f"b{k}"), (f"b{k}", f"c{k}")]
        edges += [(last, f"c{k}")] if skip else []
        last = f"c{k}"
    return graph([*nodes, ("end", "sum", "")], [*edges, (last, "end")])


def test_equal_blocks_in_a_row_are_one_box_with_their_number() -> None:
    for skip in (False, True):
        root = boxes(blocks(12, skip=skip))
        (body,) = root.children[1].children
        assert (body.path, body.repeat, len(body.repeated)) == ("body.0", 12, 12)
        assert body.repeated[-1] == "body.11"
        assert [child.label for child in body.children] == ["conv", "relu", "add"]
        assert [(e.source, e.target) for e in root.edges] == [(0, 1), (1, 2)]


def test_a_block_of_another_shape_stays_apart() -> None:
    plain = blocks(4, skip=True)
    last = {"a3": (8,), "b3": (8,), "c3": (8,)}
    edges = tuple(Edge(source=e.source, target=e.target, shape=last.get(e.source, (4,))) for e in plain.edges)
    body = boxes(Graph(origin=plain.origin, nodes=plain.nodes, groups=plain.groups, edges=edges)).children[1]
    assert [child.repeat for child in body.children] == [3, 1]


def test_a_setting_or_a_parameters_shape_that_differs_keeps_blocks_apart() -> None:
    plain = row(["conv"] * 3)
    for change in (
        {"attributes": (("dilation", "2"),)},
        {"parameters": (Parameter(name="w", shape=(9,)),)},
    ):
        nodes = [*plain.nodes]
        nodes[3] = Node(id="n2", label="conv", **change)  # type: ignore[arg-type]
        root = boxes(Graph(origin=plain.origin, nodes=tuple(nodes), groups=(), edges=plain.edges))
        assert [child.repeat for child in root.children] == [1, 2, 1, 1]


def test_two_that_take_turns_are_one_box_of_two() -> None:
    root = boxes(row(["attention", "mlp"] * 6))
    assert [(child.repeat, len(child.children)) for child in root.children] == [(1, 0), (6, 2), (1, 0)]
    assert [e for e in root.children[1].edges if (e.source, e.target) == (0, 1)]


def test_a_long_block_of_a_graph_without_modules_is_one_box() -> None:
    """An ONNX file without names had "section 3 of 17" in place of 80 equal blocks."""
    block = [f"op{k}" for k in range(30)]
    root = boxes(row(block * 80))
    assert [(child.repeat, len(child.children)) for child in root.children] == [(1, 0), (80, 30), (1, 0)]
    other = [f"op{k}" for k in range(2400)]
    assert all(box.repeat == 1 for box in everything(boxes(row(other))))


def test_steps_over_time_are_one_box() -> None:
    """A cell of somebody's own code, called in a loop: each call takes another place of one tensor."""

    def unrolled(attribute: str) -> Graph:
        nodes = [Node(id=i, label=i, kind=NodeKind.INPUT) for i in ("x", "h")]
        edges = []
        for k in range(6):
            nodes.append(Node(id=f"s{k}", label="select", attributes=(("dim", "1"), (attribute, str(k)))))
            call = f"cell ({k + 1})" if k else "cell"  # as the readers call it
            nodes += [Node(id=f"{i}{k}", label=i, group=call) for i in ("linear", "tanh")]
            edges += [("x", f"s{k}"), (f"s{k}", f"linear{k}"), (f"linear{k}", f"tanh{k}")]
            edges.append((f"tanh{k - 1}" if k else "h", f"linear{k}"))
        nodes.append(Node(id="y", label="y", kind=NodeKind.OUTPUT))
        edges.append(("tanh5", "y"))
        return Graph(
            origin=GraphSource.FORWARD,
            nodes=tuple(nodes),
            groups=tuple(Group(path=p, kind="Cell") for p in dict.fromkeys(n.group for n in nodes if n.group)),
            edges=tuple(Edge(source=s, target=t, tensor=s, shape=(4,)) for s, t in edges),
        )

    steps_of = boxes(unrolled("index")).children[2]
    assert (steps_of.repeat, [child.label for child in steps_of.children]) == (6, ["select", "cell"])
    assert steps_of.repeated[-1] == "cell (6)"
    # Of two axes they would be two different things.
    assert all(child.repeat == 1 for child in boxes(unrolled("axis")).children)


def test_blocks_that_hand_out_more_than_to_the_next_stay_apart() -> None:
    """A feature pyramid takes the end of one block only: folded, the arrow would come from all of them."""
    plain = blocks(4)
    extra = Edge(source="c1", target="end", tensor="c1", shape=(4,))
    body = boxes(Graph(origin=plain.origin, nodes=plain.nodes, groups=plain.groups, edges=(*plain.edges, extra)))
    assert [child.repeat for child in body.children[1].children] == [2, 2]
    same = tuple(Edge(source=f"c{k}", target="end", tensor=f"c{k}", shape=(4,)) for k in range(3))
    body = boxes(Graph(origin=plain.origin, nodes=plain.nodes, groups=plain.groups, edges=(*plain.edges, *same)))
    assert [child.repeat for child in body.children[1].children] == [4]


def test_equal_boxes_side_by_side_are_no_row() -> None:
    nodes = [("x", "in", ""), *((f"e{k}", "expert", "") for k in range(3)), ("sum", "sum", "")]
    edges = [("x", f"e{k}") for k in range(3)] + [(f"e{k}", "sum") for k in range(3)]
    assert [child.repeat for child in boxes(graph(nodes, edges)).children] == [1] * 5


def test_a_module_that_is_entered_again_is_drawn_once_for_each_time() -> None:
    nodes = [("x", "in", ""), ("r1", "relu", "relu"), ("c", "conv", "conv"), ("r2", "relu", "relu")]
    root = boxes(graph(nodes, [("x", "r1"), ("r1", "c"), ("c", "r2")]))
    assert [(c.path, c.module) for c in root.children[1:]] == [("relu", "relu"), ("conv", "conv"), ("relu (2)", "relu")]
    # What is only listed among others and never entered again stays one box.
    nodes = [("x", "in", ""), ("a", "one", "m"), ("c", "conv", "k"), ("b", "two", "m")]
    root = boxes(graph(nodes, [("x", "a"), ("x", "c"), ("a", "b")]))
    assert [c.path for c in root.children] == ["x", "m", "k"]


def test_arrows_that_a_chain_says_as_well_are_told_apart_in_dense_boxes() -> None:
    n = 40
    nodes = [("x", "in", ""), *((f"n{k}", f"op{k}", "dense") for k in range(n))]
    edges = [("x", "n0"), *((f"n{s}", f"n{t}") for t in range(n) for s in range(t))]
    dense = boxes(graph(nodes, edges)).children[1]
    assert [(e.source, e.target) for e in dense.edges] == [(k, k + 1) for k in range(n - 1)]
    assert len(dense.edges) + len(dense.implied) == n * (n - 1) // 2
    few = boxes(graph(nodes[:5], edges[:7])).children[1]
    assert not few.implied and len(few.edges) == 6


def test_a_long_row_is_cut_into_sections() -> None:
    names = [f"op{k}" for k in range(1000)]
    root = boxes(row(names))
    assert all(len(box.children) <= MOST_CHILDREN for box in everything(root))
    assert len([box for box in everything(root) if box.node]) == 1002
    assert [(e.source, e.target) for e in root.edges] == [(k, k + 1) for k in range(len(root.children) - 1)]
    assert all(section.entries == (0,) for section in root.children[1:])
    assert [section.label for section in root.children][:2] == ["section 1 of 9", "section 2 of 9"]


def test_a_section_is_called_by_its_parameters_and_ends_where_one_tensor_passes() -> None:
    """Blocks of four operators with a way around them, no two alike: cut between two blocks only."""
    nodes, edges, last = [Node(id="x", label="x", kind=NodeKind.INPUT)], list[tuple[str, str]](), "x"
    for k in range(75):
        weight = Parameter(name=f"stage.{k}.conv.weight", shape=(k + 1,))
        nodes.append(Node(id=f"c{k}", label="Conv", parameters=(weight,)))
        nodes += [Node(id=f"{i}{k}", label=label) for i, label in (("n", "Norm"), ("r", "Relu"), ("a", "Add"))]
        edges += [(last, f"c{k}"), (f"c{k}", f"n{k}"), (f"n{k}", f"r{k}"), (f"r{k}", f"a{k}"), (last, f"a{k}")]
        last = f"a{k}"
    arrows = tuple(Edge(source=s, target=t, tensor=s, shape=(4,)) for s, t in edges)
    root = boxes(Graph(origin=GraphSource.FORWARD, nodes=tuple(nodes), groups=(), edges=arrows))
    # 301 boxes: a cut near each third, between a block's sum and the next block.
    assert [len(section.children) for section in root.children] == [101, 100, 100]
    assert [section.label for section in root.children] == [
        "stage.0 … 24",
        "stage.25 … 49",
        "stage.50 … 74",
    ]
    assert [box.weight for box in root.children[0].children[1:3]] == [(), ()]
    assert root.children[1].kind == "25 Conv, 25 Norm, 25 Relu …"
    assert [(e.source, e.target, e.count) for e in root.edges] == [(0, 1, 2), (1, 2, 2)]


def random_graph(rng: random.Random, n: int) -> Graph:
    groups = ["", "a", "a.0", "a.1", "a.1.x", "b", "b.c", "b.c.d"]
    nodes = [(f"n{k}", rng.choice("pqr"), rng.choice(groups)) for k in range(n)]
    edges = {(f"n{s}", f"n{t}") for t in range(1, n) for s in rng.sample(range(t), min(t, rng.randint(0, 3)))}
    return graph(nodes, sorted(edges, key=lambda e: (int(e[1][1:]), int(e[0][1:]))))


def test_no_edge_is_lost_or_made_up(seeds: Callable[..., range]) -> None:
    for seed in seeds(60, full=2000):
        rng = random.Random(seed)
        made = random_graph(rng, rng.randint(1, 60))
        drawing = draw(made)
        all_boxes = list(everything(drawing.box))
        paths = Counter(box.path for box in all_boxes)
        assert max(paths.values()) == 1
        inside = {c.path: b.path for b in all_boxes for c in b.children}
        leaves = {box.node: box.path for box in all_boxes if box.node}
        for box in all_boxes:
            # Arrows lead forward, between different children.
            assert all(e.source < e.target < len(box.children) for e in (*box.edges, *box.implied))
        if any(box.repeat > 1 for box in all_boxes):
            continue
        expected = {(leaves[e.source], leaves[e.target]) for e in made.edges}
        assert {(e.source, e.target) for e in drawing.edges} == expected
        # Each arrow stands for an edge, and each edge has its arrow where its two ends part.
        arrows = {
            (b.children[e.source].path, b.children[e.target].path) for b in all_boxes for e in (*b.edges, *b.implied)
        }
        assert arrows == {_part(s, t, inside) for s, t in expected}


def _part(source: str, target: str, inside: dict[str, str]) -> tuple[str, str]:
    above = [source]
    while above[-1] in inside:
        above.append(inside[above[-1]])
    while inside[target] not in above:
        target = inside[target]
    return above[above.index(inside[target]) - 1], target


def test_a_view_folds_to_a_depth_and_keeps_every_edge_between_what_is_in_sight() -> None:
    drawing = draw(blocks(3, skip=True))
    top = view(drawing, 1)
    assert [(s.box.path, s.is_open) for s in top.boxes] == [("x", False), ("body", False), ("end", False)]
    assert [(s, t) for s, t, _ in top.edges] == [("x", "body"), ("body", "end")]
    whole = view(drawing)
    assert {(s, t) for s, t, _ in whole.edges} == {
        ("x", "body.0.conv"),
        ("body.0.conv", "b0"),
        ("b0", "c0"),
        ("x", "c0"),
        ("c0", "end"),
    }


def test_work_grows_with_the_graph_and_not_with_its_square() -> None:
    for make in (lambda n: blocks(n, skip=True), lambda n: row([f"op{k}" for k in range(n)]), nested, fan, unlinked):
        small, large = make(150), make(600)
        counted = steps(lambda made=small: draw(made)), steps(lambda made=large: draw(made))  # type: ignore[misc]
        assert counted[1] < 6 * counted[0], make


def nested(n: int) -> Graph:
    """Modules in modules, 40 deep, with an edge out of each."""
    nodes = [("x", "in", ""), *((f"n{k}", f"op{k}", ".".join("m" * (1 + k % 40))) for k in range(n))]
    return graph(nodes, list(pairwise(i for i, _, _ in nodes)))


def fan(n: int) -> Graph:
    """One node that all others read."""
    nodes = [("x", "in", ""), *((f"n{k}", "same", "g") for k in range(n))]
    return graph(nodes, [("x", f"n{k}") for k in range(n)] + [(f"n{k}", f"n{k + 1}") for k in range(n - 1)])


def unlinked(n: int) -> Graph:
    """The same again and again, and no arrow from one to the next: every length of a block is tried in vain."""
    many = 4 * n
    nodes = [("x", "in", ""), *((f"n{k}", "ab"[k % 2], "") for k in range(many))]
    return graph(nodes, [("x", f"n{k}") for k in range(many)])


def test_equal_neighbours_of_other_names_are_not_folded() -> None:
    def net(names: list[str]) -> Graph:
        nodes = [Node(id="x", label="x", kind=NodeKind.INPUT)]
        nodes += [Node(id=f"n{k}", label="linear", group=name) for k, name in enumerate(names)]
        nodes.append(Node(id="y", label="y", kind=NodeKind.OUTPUT))
        edges = [Edge(source=a.id, target=b.id, shape=(1, 4)) for a, b in pairwise(nodes)]
        groups = [Group(path=name, kind="Linear") for name in names]
        return Graph(origin=GraphSource.FORWARD, nodes=tuple(nodes), groups=tuple(groups), edges=tuple(edges))

    assert [box.repeat for box in boxes(net(["a", "b", "c"])).children] == [1, 1, 1, 1, 1]
    assert [box.repeat for box in boxes(net(["block0", "block1", "block2"])).children] == [1, 3, 1]
