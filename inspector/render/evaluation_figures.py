"""An evaluation as Plotly figures: the confusion matrix, curves of classes, confidence against accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from inspector.evaluate.metrics import Calibration
from inspector.evaluate.report import ClassCurves, Evaluation
from inspector.render.evaluation import confusion_matrix
from inspector.render.figure_table import in_matrix, in_table
from inspector.render.figures import ACCENT, GRID, dressed, plain_text
from inspector.units import shorten_middle

# Okabe and Ito's (2008), told apart by the colour-blind, on either ground.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b3a000")
_DASHES = ("solid", "dash", "dot", "dashdot")
_NUMBERS_UP_TO = 20
# Nothing is clear; little must be seen, and white numbers be read on all of it, on either ground.
_FILL = [[0.0, "rgba(128,128,128,0.06)"], [0.0005, "rgba(128,128,128,0.06)"], [0.001, "#5f7c86"], [1.0, "#175a6d"]]


def confusion_figure(report: Evaluation) -> go.Figure:
    """Right class by answer; colour is the share of the class's pictures, numbers are pictures."""
    classes, rows = confusion_matrix(report)
    names = [plain_text(one.name) for one in classes]
    places = list(range(len(names)))
    shares = [
        [count / one.support if one.support else 0.0 for count in row] for one, row in zip(classes, rows, strict=True)
    ]
    shown = [[f"{count:,}" if count else "" for count in row] for row in rows]
    figure = go.Figure(
        go.Heatmap(
            x=places,
            y=places,
            z=shares,
            zmin=0,
            zmax=1,
            colorscale=_FILL,
            showscale=False,
            text=shown if len(names) <= _NUMBERS_UP_TO else None,
            textfont={"color": "white"},
            texttemplate="%{text}" if len(names) <= _NUMBERS_UP_TO else None,
            customdata=[[(names[a], names[b], rows[a][b]) for b in places] for a in places],
            hovertemplate="%{customdata[0]} taken for %{customdata[1]}: %{customdata[2]:,} (%{z:.1%})<extra></extra>",
            meta=in_matrix(
                ("class", "customdata.0"),
                cells="customdata.2",
                heads="customdata.1",
                says="A row per class, a column per answer: pictures.",
            ),
            xgap=1,
            ygap=1,
        )
    )
    ticks = [plain_text(shorten_middle(one.name, 18)) for one in classes]
    axis = {"tickmode": "array", "tickvals": places, "ticktext": ticks, "showgrid": False, "zeroline": False}
    figure.update_xaxes(title_text="answer", side="bottom", tickangle=-40 if len(names) > 6 else 0, **axis)
    figure.update_yaxes(title_text="class", autorange="reversed", **axis)
    return dressed(figure, height=min(900, 130 + max(26, 60 - 2 * len(names)) * len(names)))


def curves_figure(report: Evaluation, chosen: Sequence[ClassCurves], *, roc: bool) -> go.Figure:
    """Precision over recall, or the ROC curve, of some classes against the rest."""
    figure = go.Figure()
    x, y = ("false positive rate", "true positive rate") if roc else ("recall", "precision")
    if roc:
        line = {"color": "rgba(128,128,128,0.6)", "dash": "dot", "width": 1}
        figure.add_scatter(
            x=[0, 1], y=[0, 1], mode="lines", line=line, hoverinfo="skip", showlegend=False, meta=in_table()
        )
    for number, one in enumerate(chosen):
        points = [point for point in (one.roc if roc else one.precision_recall) if all(map(math.isfinite, point))]
        name = plain_text(shorten_middle(report.mapping.names[one.index], 24))
        figure.add_scatter(
            x=[x for x, _ in points],
            y=[y for _, y in points],
            name=name,
            mode="lines",
            line={
                "color": _COLOURS[number % len(_COLOURS)],
                "dash": _DASHES[number // len(_COLOURS) % len(_DASHES)],
                "width": 2,
                # Between two thresholds there is no other one: a precision holds until the next.
                "shape": "linear" if roc else "vh",
            },
            hovertemplate=f"{name}<br>%{{x:.3f}}, %{{y:.3f}}<extra></extra>",
            meta=in_table(("class", "name"), (x, "x"), (y, "y")),
        )
    figure.update_xaxes(title_text=x, range=[-0.01, 1.01], gridcolor=GRID, zeroline=False)
    figure.update_yaxes(title_text=y, range=[-0.01, 1.03], gridcolor=GRID, zeroline=False)
    figure = dressed(figure, height=380)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.22, "x": 0, "yanchor": "top"})
    return figure


def reliability_figure(found: Calibration) -> go.Figure:
    """Accuracy by confidence: on the dotted line a model is as often right as it says."""
    bins = [one for one in found.bins if one.pictures]
    figure = go.Figure(
        go.Bar(
            x=[(one.low + one.high) / 2 for one in bins],
            y=[one.accuracy for one in bins],
            width=[one.high - one.low for one in bins],
            customdata=[(one.low, one.high, one.confidence, one.pictures) for one in bins],
            hovertemplate="%{customdata[2]:.1%} sure on average, %{y:.1%} right<br>%{customdata[3]:,} pictures"
            "<extra></extra>",
            meta=in_table(
                ("from", "customdata.0"),
                ("to", "customdata.1"),
                ("how sure on average", "customdata.2"),
                ("share that is right", "y"),
                ("pictures", "customdata.3"),
            ),
            marker={"color": ACCENT, "opacity": 0.75, "line": {"width": 1, "color": "rgba(128,128,128,0.5)"}},
        )
    )
    line = {"color": "rgba(128,128,128,0.9)", "dash": "dot", "width": 1.5}
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, hoverinfo="skip", meta=in_table())
    figure.add_scatter(
        x=[one.confidence for one in bins],
        y=[one.accuracy for one in bins],
        mode="markers",
        hoverinfo="skip",
        meta=in_table(),
        marker={"color": "#d98c21", "size": [6 + 12 * math.sqrt(one.pictures / found.pictures) for one in bins]},
    )
    figure.update_xaxes(title_text="how sure the answer is", range=[0, 1], gridcolor=GRID, zeroline=False)
    figure.update_yaxes(title_text="share that is right", range=[0, 1.03], gridcolor=GRID, zeroline=False)
    return dressed(figure, height=380)
