"""The scale of every weight by its depth."""

from __future__ import annotations

import io

import torch

from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from inspector.render.weight_figures import depth_figure


def test_a_layer_far_away_leaves_labels_that_can_be_read_and_is_ringed() -> None:
    torch.manual_seed(0)
    state = {f"layers.{i}.fc.weight": torch.randn(16, 16) for i in range(6)}
    state["layers.3.fc.weight"] *= 1e30
    buffer = io.BytesIO()
    torch.save(state, buffer)
    figure = depth_figure(examine(open_checkpoint(buffer.getvalue())), ("layers.3.fc.weight",))
    places = figure.layout.yaxis.tickvals
    assert 5 <= len(places) <= 11 and places[0] <= 1 and places[-1] >= 1e28
    assert {"1", "1e8", "1e28"} <= set(figure.layout.yaxis.ticktext)
    points, rings = figure.data
    assert points.name == "linear" and len(points.x) == 6
    assert (rings.name, list(rings.x), list(rings.y)) == ("an error or a warning", [3], [points.y[3]])


def test_without_a_finding_there_is_no_ring() -> None:
    buffer = io.BytesIO()
    torch.save({"a.weight": torch.randn(8, 8), "b.weight": torch.randn(8, 8)}, buffer)
    assert [trace.name for trace in depth_figure(examine(open_checkpoint(buffer.getvalue()))).data] == ["linear"]
