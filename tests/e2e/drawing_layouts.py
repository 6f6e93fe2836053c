"""Random boxes with arrows to lay out, and what must hold of every layout."""

from __future__ import annotations

import itertools
import random
from typing import Any


def _joined(drawn: random.Random) -> dict[tuple[int, int], None]:
    """Arrows of small parts in a row, joined in single boxes that some dead ends hang from."""
    arrows: dict[tuple[int, int], None] = {}
    joint = 0
    for _ in range(drawn.choice((3, 9))):
        inner, tail = drawn.choice((0, 1, 3)), drawn.choice((0, 0, 0, 3))
        following = joint + inner + tail + 1
        for box in range(joint + 1, joint + 1 + inner):
            arrows |= {(joint, box): None, (box, following): None}
        for box in range(joint + 1 + inner, following):
            arrows[joint if box == joint + 1 + inner else box - 1, box] = None
        if not inner or drawn.random() < 0.5:
            arrows[joint, following] = None
        joint = following
    return arrows


def _loose(drawn: random.Random, boxes: int) -> dict[tuple[int, int], None]:
    """Any, some of them back."""
    arrows: dict[tuple[int, int], None] = {}
    for _ in range(drawn.choice((0, boxes, 2 * boxes, 5 * boxes))):
        source, target = sorted(drawn.choices(range(boxes), k=2))
        arrows[(source, target) if drawn.random() < 0.97 else (target, source)] = None
    return arrows


def groups(count: int) -> list[dict[str, Any]]:
    """Of random boxes and arrows: long, dense, in parts, without arrows, with arrows back."""
    drawn, made = random.Random(7), list[dict[str, Any]]()
    for at in range(count):
        boxes = drawn.choice((1, 2, 5, 12, 30))
        arrows = _joined(drawn) if at % 3 == 1 else _loose(drawn, boxes)
        if at % 3 == 0:
            arrows |= dict.fromkeys((n, n + 1) for n in range(boxes - 1))
        boxes = max(boxes, *(1 + target for _, target in arrows), 1)
        heights = (28, 42, 300) if at % 2 else (42,)
        ports = sorted(drawn.sample(range(boxes), min(boxes, 2)))
        made.append(
            {
                "w": [drawn.choice((56, 120, 400)) for _ in range(boxes)],
                "h": [drawn.choice(heights) for _ in range(boxes)],
                "arrows": [number for source, target in arrows for number in (source, target, 40, 0)],
                "entries": ports[:1] if at % 4 else [],
                "exits": ports[1:] if at % 4 else [],
                "ports": [None] * boxes,
                "head": 30,
                "least": 100,
                "wide": at % 5 > 0,
            }
        )
    return made


def _check_ways(group: dict[str, Any], laid: dict[str, Any], arrows: dict[int, tuple[int, int]]) -> None:
    """No line over the middle of a box, none on another's way unless they come from one box."""
    boxes = list(zip(laid["x"], laid["y"], group["w"], group["h"], strict=True))
    used: dict[tuple[float, float], int] = {}
    for line in laid["lines"]:
        source = arrows[line["arrow"]][0] if line["arrow"] >= 0 else line["arrow"]
        points = list(zip(line["points"][::2], line["points"][1::2], strict=True))
        for x, y in points[1:-1]:
            assert used.setdefault((round(x, 1), round(y, 1)), source) == source
        for (x, y), (to_x, to_y) in itertools.pairwise(points):
            for step in range(11):
                at_x, at_y = x + (to_x - x) * step / 10, y + (to_y - y) * step / 10
                for left, top, w, h in boxes:
                    assert not (left + 0.3 * w < at_x < left + 0.7 * w and top + 0.3 * h < at_y < top + 0.7 * h)


def check(group: dict[str, Any], laid: dict[str, Any]) -> None:
    """No box over another or outside, every arrow drawn from its box to its box, or hidden."""
    boxes = list(zip(laid["x"], laid["y"], group["w"], group["h"], strict=True))
    for at, (x, y, w, h) in enumerate(boxes):
        assert x >= -0.01 and y >= 15 and x + w <= laid["w"] + 0.01 and y + h <= laid["h"] + 0.01
        for other_x, other_y, other_w, other_h in boxes[:at]:
            assert x >= other_x + other_w or other_x >= x + w or y >= other_y + other_h or other_y >= y + h
    flat = group["arrows"]
    arrows = {at: (flat[4 * at], flat[4 * at + 1]) for at in range(len(flat) // 4)}
    drawn = {line["arrow"] for line in laid["lines"] if line["arrow"] >= 0}
    assert drawn | set(laid["hidden"]) == {at for at, (source, target) in arrows.items() if source != target}
    assert not drawn & set(laid["hidden"])
    for line in laid["lines"]:
        if line["arrow"] < 0:
            continue
        points = line["points"]
        ends = (points[:2], points[-2:])
        for child, (x, y) in zip(arrows[line["arrow"]], ends, strict=True):
            left, top, w, h = boxes[child]
            assert left - 0.5 <= x <= left + w + 0.5
            assert min(abs(y - top), abs(y - top - h)) < 0.5
    # Where boxes of one row differ much in height, dagre leads lines over the tall ones' corners.
    if not laid["simple"] and len(set(group["h"])) == 1:
        _check_ways(group, laid, arrows)
