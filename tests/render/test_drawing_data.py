"""What the scripts of the drawing are handed."""

from __future__ import annotations

import json

from inspector.graph.types import Box, BoxEdge
from inspector.render.drawing_data import drawing_data

INNER = Box(
    path="layer.0",
    label="0",
    kind="Block",
    module="layer.0",
    shape=("batch", 8, None),
    repeat=3,
    repeated=("layer.0", "layer.1", "layer.2"),
    children=(
        Box(path="layer.0.conv", label="conv", kind="Conv2d", module="layer.0.conv"),
        Box(path="layer.0/add", label="add", kind="add"),
    ),
    edges=(BoxEdge(source=0, target=1, shape=(), count=2),),
    entries=(0, 1),
    exits=(1,),
)
WHOLE = Box(
    path="",
    label="net",
    kind="Net",
    children=(INNER, Box(path="head", label="head", kind="Linear", module="head", shape=("batch", 8, None))),
    edges=(BoxEdge(source=0, target=1, shape=("batch", 8, None)),),
)


def test_the_tree_goes_as_lists_parents_first() -> None:
    columns = {"MACs": {"layer.0": 1.5, "head": float("nan"), "gone": 3.0}}
    drawn = json.loads(drawing_data(WHOLE, columns))
    assert drawn == {
        "label": ["net", "0", "conv", "add", "head"],
        "kind": ["Net", "Block", "Conv2d", "add", "Linear"],
        "path": ["", "layer.0", "layer.0.conv", "layer.0/add", "head"],
        "isModule": [0, 1, 1, 0, 1],
        "shape": [-1, 0, -1, -1, 0],
        "repeat": [1, 3, 1, 1, 1],
        "parent": [-1, 0, 1, 1, 0],
        "repeated": {"1": ["layer.0", "layer.1", "layer.2"]},
        "arrows": {"0": [0, 1, 0, 1], "1": [0, 1, 1, 2]},
        "entries": {"1": [0, 1]},
        "exits": {"1": [1]},
        # Not known, and no number: neither has a colour.
        "columns": {"MACs": [None, 1.5, None, None, None]},
        "shapes": ["batchx8x?", "scalar"],
        "weight": {},
    }


def test_a_tree_deeper_than_pythons_stack_is_handed_over() -> None:
    box = Box(path="x", label="x", kind="")
    for _ in range(3000):
        box = Box(path="x", label="x", kind="", children=(box,))
    assert json.loads(drawing_data(box, {}))["parent"][-1] == 2999
