"""Exports say the same as the drawing: every box in sight and every edge, within what each viewer takes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from inspector.graph.boxes import draw
from inspector.graph.view import view
from inspector.render.graph_files.dot import as_dot
from inspector.render.graph_files.mermaid import MOST_CHARACTERS, MOST_EDGES, as_mermaid
from inspector.render.graph_files.model_explorer import as_model_explorer
from inspector.render.graph_files.svg import as_svg
from tests.graph.test_boxes import blocks, nested, row


def test_dot_has_a_cluster_for_each_open_module_and_each_edge_once() -> None:
    drawing = draw(blocks(3, skip=True))
    sight = view(drawing)
    text = as_dot(drawing)
    assert text.count("subgraph cluster_") == sum(seen.is_open for seen in sight.boxes)
    assert text.count(" -> ") == len(sight.edges) == 5
    assert text.count("{") == text.count("}")
    assert "0 ×3" in text
    closed = as_dot(drawing, 1)
    assert "subgraph" not in closed and closed.count(" -> ") == 2


def test_mermaid_folds_to_what_its_viewers_take_and_says_so() -> None:
    small = as_mermaid(draw(blocks(3)))
    assert "%%" not in small and small.count("subgraph") == small.count("\n end") + small.count("\n  end") == 2
    for graph in (row([f"op{k}" for k in range(3000)]), nested(2000)):
        text = as_mermaid(draw(graph))
        assert len(text) <= MOST_CHARACTERS and text.count("-->") <= MOST_EDGES
        assert re.search(r"^%% (Opened to depth \d+|Cut short)", text, re.MULTILINE)


def test_model_explorer_has_every_operator_and_edge_under_its_module() -> None:
    graph = blocks(3, skip=True)
    made = as_model_explorer(graph, "net")
    (inner,) = made["graphs"]  # type: ignore[misc]
    nodes = {node["id"]: node for node in inner["nodes"]}
    assert set(nodes) == {node.id for node in graph.nodes}
    assert nodes["a1"]["namespace"] == "body/1/conv"
    edges = {(edge["sourceNodeId"], node["id"]) for node in nodes.values() for edge in node["incomingEdges"]}
    assert edges == {(e.source, e.target) for e in graph.edges}
    for node in nodes.values():
        outputs = {
            edge["sourceNodeOutputId"]
            for n in nodes.values()
            for edge in n["incomingEdges"]
            if edge["sourceNodeId"] == node["id"]
        }
        assert outputs == {output["id"] for output in node["outputsMetadata"]}


def test_svg_is_well_formed_and_its_boxes_lie_inside_each_other_without_overlap() -> None:
    drawing = draw(blocks(3, skip=True))
    root = ElementTree.fromstring(as_svg(drawing.box))
    space = "{http://www.w3.org/2000/svg}"
    frames = {}
    for group in root.iter(f"{space}g"):
        title, rectangle = group.find(f"{space}title"), group.find(f"{space}rect")
        assert title is not None and rectangle is not None
        frames[title.text] = tuple(float(rectangle.attrib[key]) for key in ("x", "y", "width", "height"))
    assert len(frames) == len(view(drawing).boxes) == 7
    x, y, width, height = frames["body"]
    for name in ("body.0", "body.0.conv", "b0", "c0"):
        a, b, c, d = frames[name]
        assert x <= a and y <= b and a + c <= x + width and b + d <= y + height
    rows = sorted((frames[name][1], frames[name][1] + frames[name][3]) for name in ("body.0.conv", "b0", "c0"))
    assert rows[0][1] < rows[1][0] and rows[1][1] < rows[2][0]
    assert len(list(root.iter(f"{space}path"))) >= 5
    assert "body.0" not in as_svg(drawing.box, 1)
