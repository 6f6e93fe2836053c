"""Figures hold the reports' numbers, and no colour that only one theme can show."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

from inspector.flops.report import CostReport, ModuleCost
from inspector.params.report import ModuleCount, ParameterReport, RoleSource
from inspector.render.figures import (
    fingerprint_figure,
    histogram_figure,
    macs_bars,
    macs_treemap,
    module_treemap,
)
from inspector.weights.report import Fingerprint, Histogram


def cost(path: str, own: int, *, total: int | None = None, calls: int = 1) -> ModuleCost:
    return ModuleCost(
        path=path,
        depth=path.count(".") + 1 if path else 0,
        kind="Conv2d",
        input_shape=None,
        output_shape=None,
        macs=own if total is None else total,
        own_macs=own,
        parameters=0,
        calls=calls,
    )


COSTS = CostReport(
    target="a model",
    input_shape=(1, 3, 8, 8),
    # layers is a ModuleList: it is never called and has no row of its own.
    modules=(cost("", 10, total=110), cost("layers.0", 60), cost("layers.1", 30), cost("layers.2", 0), cost("fc", 10)),
    macs=110,
    parameters=0,
    uncounted=(),
    other_operations=(),
    activation_nbytes=0,
)


def size(path: str, nbytes: int, buffers: int = 0) -> ModuleCount:
    return ModuleCount(
        path=path,
        depth=path.count(".") + 1 if path else 0,
        kind=None,
        parameters=nbytes // 4,
        own_parameters=0,
        buffers=buffers // 4,
        parameter_nbytes=nbytes,
        buffer_nbytes=buffers,
        tensors=1,
    )


COUNTS = ParameterReport(
    state_dict=(),
    modules=(size("", 400, 40), size("body", 300, 40), size("body.a", 200), size("body.b", 100, 40), size("head", 80)),
    trainable=None,
    shared=(),
    dtypes=(),
    role_source=RoleSource.NAME,
    optimizer_nbytes=0,
)


def values_of(figure: Any) -> dict[str, int]:
    tree = figure.data[0]
    return {entry[0]: value for entry, value in zip(tree.customdata, tree.values, strict=True)}


def test_macs_by_module_add_up_through_containers_that_are_never_called() -> None:
    figure = macs_treemap(COSTS)
    assert values_of(figure) == {"whole model": 110, "layers": 90, "fc": 10, "layers.0": 60, "layers.1": 30}
    check_tree(figure)


def test_modules_may_come_in_any_order() -> None:
    backwards = dataclasses.replace(COSTS, modules=COSTS.modules[::-1])
    assert values_of(macs_treemap(backwards)) == values_of(macs_treemap(COSTS))


def test_bytes_by_module_are_the_reports_totals() -> None:
    figure = module_treemap(COUNTS)
    assert values_of(figure) == {"whole model": 440, "body": 340, "head": 80, "body.a": 200, "body.b": 140}
    assert "110 elements, 440 B" in [entry[2] for entry in figure.data[0].customdata]
    check_tree(figure)


def check_tree(figure: Any) -> None:
    """Every parent is there, ids are unique, and children do not exceed their parent, or Plotly draws nothing."""
    tree = figure.data[0]
    value = dict(zip(tree.ids, tree.values, strict=True))
    assert len(value) == len(tree.ids)
    assert [p for p in tree.parents if p not in value] == [""]
    for name, total in value.items():
        assert sum(v for i, p, v in zip(tree.ids, tree.parents, tree.values, strict=True) if p == name) <= total


def test_bars_show_the_busiest_first() -> None:
    bars = macs_bars(COSTS, top=2).data[0]
    assert list(bars.y) == ["layers.0", "layers.1"]
    assert list(bars.x) == [60, 30]
    assert list(bars.text) == ["54.5 %", "27.3 %"]


def test_histogram_bars_stand_over_their_bins() -> None:
    figure = histogram_figure(Histogram(edges=(0.0, 1.0, 3.0), counts=(5.0, 2.5)), logarithmic=True, title="w")
    bars = figure.data[0]
    assert (list(bars.x), list(bars.width), list(bars.y)) == ([0.5, 2.0], [1.0, 2.0], [5.0, 2.5])
    assert figure.layout.yaxis.type == "log"
    assert histogram_figure(Histogram(edges=(0.0, 1.0), counts=(5.0,))).layout.yaxis.type == "linear"


def test_heat_strip_is_logarithmic_with_gaps_and_the_first_layer_on_top() -> None:
    strip = Fingerprint(names=("a", "b"), edges=(-1.0, 0.0, 1.0), shares=((0.1, 0.9), (0.0, 1.0)), scale="rms")
    figure = fingerprint_figure(strip)
    heat = figure.data[0]
    assert heat.z[0] == pytest.approx([-1.0, math.log10(0.9)], abs=0.001)
    assert list(heat.z[1]) == [None, 0.0]
    assert list(heat.x) == [-0.5, 0.5]
    assert figure.layout.yaxis.autorange == "reversed"
    assert (heat.zmin, heat.zmax) == (-5, 0)


def test_a_long_strip_has_a_readable_number_of_labels() -> None:
    names = tuple(f"model.layers.{n}.attention.self.query_projection.weight" for n in range(500))
    figure = fingerprint_figure(Fingerprint(names=names, edges=(-1.0, 1.0), shares=((1.0,),) * 500, scale="rms"))
    assert len(figure.layout.yaxis.tickvals) <= 40
    # 500 rows are drawn as 250: each stands for two neighbours.
    assert len(figure.data[0].y) == 250
    assert max(len(text) for text in figure.layout.yaxis.ticktext) <= 32
    assert figure.layout.height <= 900
    small = fingerprint_figure(
        Fingerprint(names=names, edges=(-1.0, 1.0), shares=((1.0,),) * 500, scale="rms"), labels=12, width=22
    )
    assert 6 <= len(small.layout.yaxis.tickvals) <= 12
    assert max(len(text) for text in small.layout.yaxis.ticktext) <= 22


def test_neighbours_that_share_a_row_show_their_mean() -> None:
    shares = tuple((0.2, 0.8) if n % 2 else (0.6, 0.4) for n in range(402))
    strip = Fingerprint(names=tuple(f"w{n}" for n in range(402)), edges=(-1.0, 0.0, 1.0), shares=shares, scale="rms")
    heat = fingerprint_figure(strip).data[0]
    assert list(heat.customdata[0]) == [40.0, 60.0]
    assert heat.z[0][0] == pytest.approx(math.log10(0.4), abs=0.001)
    assert heat.y[0] == "w0 and 1 more"


def test_a_wrapper_around_the_whole_model_is_no_frame_of_its_own() -> None:
    wrapped = dataclasses.replace(
        COUNTS,
        modules=(
            size("", 300),
            size("module", 300),
            size("module.a", 200),
            size("module.a.b", 200),
            size("module.c", 100),
        ),
    )
    tree = module_treemap(wrapped).data[0]
    assert dict(zip(tree.labels, tree.values, strict=True)) == {"whole model": 300, "a.b": 200, "c": 100}
    assert [entry[0] for entry in tree.customdata] == ["whole model", "module.a.b", "module.c"]


def test_a_name_cannot_be_a_link_in_a_chart() -> None:
    name = '<a href="http://a.test">x</a>\u202e'
    shown = '&lt;a href="http://a.test"&gt;x&lt;/a&gt;\\u202e'
    strip = Fingerprint(names=(name,), edges=(-1.0, 1.0), shares=((1.0,),), scale="rms")
    heat = fingerprint_figure(strip)
    assert heat.data[0].y[0] == shown
    assert "<" not in heat.layout.yaxis.ticktext[0]
    link = "<a href='//a'>x</a>"
    tree = module_treemap(dataclasses.replace(COUNTS, modules=(size("", 12), size(link, 8), size("b", 4)))).data[0]
    assert tree.labels[1] == "&lt;a href='//a'&gt;x&lt;/a&gt;"
    assert tree.customdata[1][0] == tree.labels[1]


def test_a_single_module_keeps_its_name() -> None:
    tree = module_treemap(dataclasses.replace(COUNTS, modules=(size("", 8), size("fc", 8)))).data[0]
    assert list(tree.labels) == ["whole model", "fc"]


def test_thousands_of_equal_blocks_are_ranges_of_neighbours_that_add_up() -> None:
    modules = [size("", 4000 * 10)]
    for n in range(1000):
        modules.append(size(f"block{n}", 40))
        modules += [size(f"block{n}.layer{m}", 10) for m in range(4)]
    figure = module_treemap(dataclasses.replace(COUNTS, modules=tuple(modules)))
    tree = figure.data[0]
    assert len(tree.ids) == 31
    assert (tree.labels[1], tree.values[1]) == ("block0 to 33", 34 * 40)
    assert (tree.labels[30], tree.values[30]) == ("block986 to 999", 14 * 40)
    assert sum(tree.values[1:]) == tree.values[0]
    check_tree(figure)


def test_of_many_other_siblings_the_smallest_are_one_tile() -> None:
    modules = [size("", sum(range(1, 101))), *(size("x" * n, n) for n in range(1, 101))]
    figure = module_treemap(dataclasses.replace(COUNTS, modules=tuple(modules)))
    tree = figure.data[0]
    assert (tree.labels[-1], tree.values[-1]) == ("and 40 more", sum(range(1, 41)))
    check_tree(figure)


def test_tiles_stand_in_the_networks_order_whatever_their_size() -> None:
    own = (("stem", 4), ("layer1", 8), ("layer1.0", 2), ("layer1.1", 6), ("layer2", 40), ("fc", 12))
    modules = (size("", 64), *(size(path, nbytes) for path, nbytes in own))
    tree = module_treemap(dataclasses.replace(COUNTS, modules=modules)).data[0]
    assert [label for label, parent in zip(tree.labels, tree.parents, strict=True) if parent == "model"] == [
        "stem", "layer1", "layer2", "fc",
    ]  # fmt: skip
    assert tree.sort is False and tree.tiling.packing == "binary"


def test_blocks_of_a_transformer_are_unfolded_to_the_layers_in_them() -> None:
    parts = {"self_attn.q_proj": 30, "self_attn.o_proj": 30, "mlp.up_proj": 60, "norm": 1}
    modules = [size("", 20 + 24 * 121), size("lm_head", 20), size("model", 24 * 121), size("model.layers", 24 * 121)]
    for n in range(24):
        at = f"model.layers.{n}"
        modules += [size(at, 121), size(f"{at}.self_attn", 60), size(f"{at}.mlp", 60)]
        modules += [size(f"{at}.{name}", nbytes) for name, nbytes in parts.items()]
    figure = module_treemap(dataclasses.replace(COUNTS, modules=tuple(modules)))
    tree = figure.data[0]
    tiles = dict(zip(tree.ids, tree.labels, strict=True))
    assert tiles["model.model.layers.23.self_attn.q_proj"] == "q_proj"
    assert tiles["model.model.layers.0.mlp"] == "mlp.up_proj"
    assert len(tree.ids) <= 300
    check_tree(figure)


def test_labels_on_the_frames_are_white_on_dark() -> None:
    tree = module_treemap(COUNTS).data[0]
    assert tree.textfont.color == "white"
    assert tree.marker.colors[0] == "#5b6470"


def test_an_empty_report_is_an_empty_figure_and_no_error() -> None:
    empty = Fingerprint(names=(), edges=(-1.0, 1.0), shares=(), scale="rms")
    assert len(fingerprint_figure(empty).data[0].y) == 0
    nothing = CostReport(
        target="identity",
        input_shape=(1,),
        modules=(cost("", 0),),
        macs=0,
        parameters=0,
        uncounted=(),
        other_operations=(),
        activation_nbytes=0,
    )
    assert len(macs_treemap(nothing).data[0].ids) == 0
    assert len(macs_bars(nothing).data[0].y) == 0


@pytest.mark.parametrize(
    "figure",
    [
        macs_treemap(COSTS),
        module_treemap(COUNTS),
        macs_bars(COSTS),
        histogram_figure(Histogram(edges=(0.0, 1.0), counts=(5.0,))),
        fingerprint_figure(Fingerprint(names=("a",), edges=(-1.0, 1.0), shares=((1.0,),), scale="rms")),
    ],
)
def test_backgrounds_are_clear_and_the_text_takes_the_pages_colour(figure: Any) -> None:
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.font.color is None
    json.loads(figure.to_json())
