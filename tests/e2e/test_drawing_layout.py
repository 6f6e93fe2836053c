"""The drawing's layout in a real browser: what its scripts give for random boxes, without a drawing."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from inspector.web.static_files import address_of
from tests.e2e.drawing_layouts import check, groups

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("drawing")]


@pytest.fixture(autouse=True)
def let_in(resident: Any, server: Any) -> None:
    """The scripts are given to visitors only."""
    server.let_in(resident.context)


_RANDOM = """async ([layout, dagre, groups, milliseconds]) => {
    const [{ layOut }, engine] = await Promise.all([import(layout), import(dagre)])
    return groups.map((group) => {
        const { w, h, x, y, lines, hidden, simple, labels } = layOut(engine, group, milliseconds)
        return { w, h, x: [...x], y: [...y], lines, hidden, simple, labels }
    })
}"""


def _reaches(arrows: set[tuple[int, int]], count: int) -> set[tuple[int, int]]:
    found = set(arrows)
    for over in range(count):
        found |= {(a, c) for a, b in found if b == over for b2, c in found if b2 == over}
    return found


def test_layouts_of_random_boxes_overlap_nothing_and_lose_no_arrow(resident: Any) -> None:
    boxes = groups(60)
    scripts = [address_of("drawing/layout.js"), address_of("vendor/dagre.esm.js")]
    simple = 0
    # Without time first: what was laid out once is known.
    for milliseconds, is_simple in ((0, True), (1e9, False)):
        for given, laid in zip(boxes, resident.evaluate(_RANDOM, [*scripts, boxes, milliseconds]), strict=True):
            # Where each arrow leads to a piece of its own there is nothing to spend time on.
            assert laid["simple"] <= (is_simple and bool(laid["lines"] or laid["hidden"]))
            simple += laid["simple"]
            check(given, laid)
    assert simple > len(boxes) / 3


_PIECES = """async ([pieces, dagre, graphs]) => {
    const [{ byPieces, APART, BESIDE, RANKS }, engine] = await Promise.all([import(pieces), import(dagre)])
    return graphs.map(({ sizes, arrows }) => {
        const nodes = new Map(sizes.map(([width, height], at) => [at, { width, height }]))
        const ours = byPieces(engine, nodes, arrows.map(([from, to]) => ({ from, to })), sizes.length, 1e9)
        const graph = new engine.Graph()
        graph.setGraph({ nodesep: APART, ranksep: RANKS, edgesep: BESIDE })
        graph.setDefaultEdgeLabel(() => ({}))
        sizes.forEach(([width, height], at) => graph.setNode(String(at), { width, height }))
        for (const [from, to] of arrows) graph.setEdge(String(from), String(to), { weight: to === from + 1 ? 2 : 1 })
        engine.layout(graph)
        const theirs = sizes.map((_, at) => graph.node(String(at)))
        const apart = (all) => all.map(({ x, y }) => [x - all[0].x, y - all[0].y])
        return [apart([...ours.places.values()]), apart(theirs)]
    })
}"""


def test_boxes_lie_where_dagre_would_put_them(resident: Any) -> None:
    """dagre is asked for rows and their order alone, with boxes of one size; where they lie is worked out here."""
    drawn, graphs = random.Random(5), list[dict[str, Any]]()
    for _ in range(80):
        count = drawn.choice((4, 7, 12))
        # Past every box another arrow, so that all of it is one piece.
        pairs = {(at, at + 1) for at in range(count - 1)} | {(0, count - 1)}
        pairs |= {tuple(sorted(drawn.sample(range(count), 2))) for _ in range(drawn.randint(0, count))}  # type: ignore[arg-type]
        sizes = [(drawn.choice((56, 120, 216, 700)), drawn.choice((28, 42))) for _ in range(count)]
        graphs.append({"sizes": sizes, "arrows": sorted(pairs)})
    scripts = [address_of(f"{name}.js") for name in ("drawing/pieces", "vendor/dagre.esm")]
    for ours, theirs in resident.evaluate(_PIECES, [*scripts, graphs]):
        flat = [[number for place in places for number in place] for places in (ours, theirs)]
        assert flat[0] == pytest.approx(flat[1], abs=0.01)


def _segments(points: list[float]) -> list[tuple[float, float, float, float]]:
    """A line as it is drawn, with upright ends, in short straight steps."""
    found = []
    for at in range(0, len(points) - 2, 2):
        x, y, to_x, to_y = points[at : at + 4]
        steps = [
            (
                x + (to_x - x) * (3 * part**2 - 2 * part**3),
                (1 - part) ** 3 * y + 3 * part * (1 - part) * (y + to_y) / 2 + part**3 * to_y,
            )
            for part in (step / 40 for step in range(41))
        ]
        found += [(*one, *other) for one, other in itertools.pairwise(steps)]
    return found


def test_no_shape_is_written_over_a_line_a_box_or_another_shape(resident: Any) -> None:
    boxes, written = groups(40), 0
    scripts = [address_of("drawing/layout.js"), address_of("vendor/dagre.esm.js")]
    for given, laid in zip(boxes, resident.evaluate(_RANDOM, [*scripts, boxes, 1e9]), strict=True):
        texts = [(label["x"], label["y"] - 9, label["right"], label["y"] + 3) for label in laid["labels"]]
        written += len(texts)
        others = [(x, y, x + w, y + h) for x, y, w, h in zip(laid["x"], laid["y"], given["w"], given["h"], strict=True)]
        for line in laid["lines"]:
            # The way in was made longer, to the border.
            for x, y, to_x, to_y in _segments(line["points"]) if line["arrow"] >= 0 else ():
                others.append((min(x, to_x), min(y, to_y), max(x, to_x), max(y, to_y)))
        for at, (left, top, right, bottom) in enumerate(texts):
            assert left >= 0 and right <= laid["w"]
            for from_x, from_y, to_x, to_y in (*others, *texts[:at]):
                assert right <= from_x or left >= to_x or bottom <= from_y or top >= to_y
    assert written > 100


def test_the_reduction_keeps_every_way_and_no_arrow_that_another_way_says(resident: Any) -> None:
    drawn = random.Random(3)
    for _ in range(20):
        count = drawn.choice((3, 8, 20))
        pairs = {tuple(sorted(drawn.sample(range(count), 2))) for _ in range(4 * count)}
        flat = [number for pair in sorted(pairs) for number in pair]
        script = "async ([url, count, arrows]) => [...(await import(url)).reduce(count, arrows)]"
        kept = resident.evaluate(script, [address_of("drawing/reduction.js"), count, flat])
        left = {pair for pair, keep in zip(sorted(pairs), kept, strict=True) if keep}
        assert _reaches(left, count) == _reaches(pairs, count)  # type: ignore[arg-type]
        for pair in left:
            assert pair not in _reaches(left - {pair}, count)  # type: ignore[arg-type]
