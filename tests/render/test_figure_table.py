"""A chart's numbers as a table: what the figure draws, exactly, with names as they were."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from inspector.render.curves import curve_figure, matrix_figure
from inspector.render.figure_table import in_table, table_of
from inspector.render.figures import fingerprint_figure, histogram_figure
from inspector.weights.report import Fingerprint, Histogram


def test_a_histogram_has_a_row_per_bin_with_its_exact_edges() -> None:
    table = table_of(histogram_figure(Histogram(edges=(-1.0, 0.1234567, 2.0), counts=(3.0, 4.0))))
    assert table.columns == ("from", "to", "elements")
    assert table.rows == ((-1.0, 0.1234567, 3.0), (0.1234567, 2.0, 4.0))
    assert table.as_csv() == "from,to,elements\n-1.0,0.1234567,3.0\n0.1234567,2.0,4.0\n"


def test_lines_say_whose_number_it_is_and_one_line_does_not() -> None:
    lines = [("map", ((0.0, 1.0), (1.0, 0.5))), ("noise", ((0.0, 0.25),))]
    table = table_of(curve_figure(lines, title="", x="share", y="score"))
    assert table.columns == ("line", "share", "score")
    assert table.rows == (("map", 0.0, 1.0), ("map", 1.0, 0.5), ("noise", 0.0, 0.25))
    assert table_of(curve_figure(lines[:1], title="", x="share", y="score")).columns == ("share", "score")


def test_a_heat_strip_has_a_row_per_tensor_and_a_column_per_bin_in_percent() -> None:
    strip = Fingerprint(
        names=("a<b>.weight", "b.weight"), edges=(-2.0, 0.0, 2.0), shares=((0.25, 0.75), (0.0, 1.0)), scale="rms"
    )
    table = table_of(fingerprint_figure(strip))
    assert table.columns == ("tensor", "-1", "1")
    assert table.rows == (("a<b>.weight", 25.0, 75.0), ("b.weight", 0.0, 100.0))
    assert "in %" in table.says


def test_a_matrix_keeps_its_names_and_its_gaps() -> None:
    table = table_of(matrix_figure(["x", "y"], [[1.0, None], [None, 1.0]]))  # type: ignore[list-item]
    assert table.columns == ("method", "x", "y")
    assert table.rows == (("x", 1.0, None), ("y", None, 1.0))


def test_rows_of_several_traces_stand_in_the_order_of_their_places_and_decoration_has_none() -> None:
    columns = in_table(("tensor", "customdata"), ("rms", "y"), order="x")
    figure = go.Figure()
    figure.add_scatter(x=np.array([0, 2]), y=np.array([0.5, 0.25]), customdata=["a", "=c()"], meta=columns)
    figure.add_scatter(x=[1], y=[4.0], customdata=["b"], meta=columns)
    figure.add_scatter(x=[1], y=[4.0], meta=in_table())
    table = table_of(figure)
    assert table.rows == (("a", 0.5), ("b", 4.0), ("=c()", 0.25))
    # A spreadsheet runs no name of a file.
    assert "'=c()" in table.as_csv()


def test_two_columns_of_one_name_stay_two() -> None:
    figure = go.Figure(go.Heatmap(x=["epoch", "epoch"], y=["a"], z=[[1, 2]]))
    assert table_of(figure).columns == ("", "epoch", "epoch (2)")
