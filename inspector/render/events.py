"""Event logs for a terminal, for programs and for spreadsheets; a checkpoint for TensorBoard's text page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice

from rich.console import Group, RenderableType

from inspector.checkpoint.types import Checkpoint
from inspector.events.report import CurvePoint, EventLog, HistogramPoint
from inspector.render.json import fields_of
from inspector.render.spreadsheet import csv_text
from inspector.render.text import findings_text, safe, table
from inspector.units import counted, human_bytes, human_count, shorten_middle
from inspector.weights.report import WeightsReport

COLUMNS = ("run", "tag", "step", "wall_time", "value")
_SHOWN = 40
_LINES = 2_000


def events_text(logs: Sequence[EventLog], *, complete: bool = True) -> RenderableType:
    """A table of scalars per run, what else there is, and the findings."""
    parts: list[RenderableType] = []
    for log in logs:
        parts += [_heading(log), _scalars(log)] if log.scalars else [_heading(log)]
        parts += [f"[dim]{line}[/dim]" for line in _others(log)]
        parts += [findings_text(log.findings), ""] if log.findings else [""]
    if not complete:
        parts.append("[dim]The search ended at a limit, or at a folder that cannot be listed.[/dim]")
    return Group(*parts)


def _heading(log: EventLog) -> str:
    nbytes = sum(file.nbytes for file in log.files)
    span = "" if log.first_step is None else f", steps {log.first_step:,} to {log.last_step:,}"
    begun = _day(log.first_wall_time)
    files = f"{counted(len(log.files), 'file')}, {human_bytes(nbytes)}"
    return f"[bold]{safe(log.name)}[/bold]  {files}{span}{f', begun {begun}' if begun else ''}"


def _day(wall_time: float | None) -> str:
    """In UTC, "" for what is no day."""
    if wall_time is None or not 0 < wall_time < 4e9:
        return ""
    return f"{datetime.fromtimestamp(wall_time, UTC):%Y-%m-%d %H:%M} UTC"


def _scalars(log: EventLog) -> RenderableType:
    made = table("Scalar", "Points", "Steps", "First", "Last", "Least", "at step", "Largest", "at step",
                 right=range(1, 9))  # fmt: skip
    for series in log.scalars[:_SHOWN]:
        points = list(series)
        # NaN compares with nothing.
        known = [point for point in points if not math.isnan(point[1])]
        ends = [min(known, key=lambda p: p[1]), max(known, key=lambda p: p[1])] if known else []
        made.add_row(
            safe(shorten_middle(series.tag)),
            human_count(len(points)),
            f"{points[0][0]:,} to {points[-1][0]:,}",
            f"{points[0][1]:.5g}",
            f"{points[-1][1]:.5g}",
            *(text for step, value, _ in ends for text in (f"{value:.5g}", f"{step:,}")),
        )
    return made


def _others(log: EventLog) -> Iterator[str]:
    """What is not in the table, a line each."""
    if len(log.scalars) > _SHOWN:
        yield f"{counted(len(log.scalars) - _SHOWN, 'scalar')} more."
    for what, series in (
        ("histogram", log.histograms),
        ("image", log.images),
        ("text", log.texts),
        ("precision-recall curve", log.curves),
    ):
        if series:
            tags = ", ".join(safe(shorten_middle(each.tag)) for each in series[:5])
            yield f"{counted(len(series), what)}: {tags}{', ...' if len(series) > 5 else ''}"
    if log.hyperparameters:
        pairs = ", ".join(f"{safe(name)}={safe(str(value))}" for name, value in log.hyperparameters[:10])
        yield f"Hyperparameters: {pairs}{', ...' if len(log.hyperparameters) > 10 else ''}"
    graph = max((file.graph_nbytes for file in log.files), default=0)
    if graph:
        yield f"A graph of {human_bytes(graph)}."
    for other in log.others:
        plugin = f"of the plugin {safe(other.plugin)}" if other.plugin else "of no plugin"
        yield f"{counted(other.values, 'value')} {plugin}, not read."


def events_json(log: EventLog) -> dict[str, object]:
    """The log with the points of all series: scalars as [step, value, wall time], buckets as [left, right, count]."""
    made = fields_of(log)
    made["scalars"] = [{**fields_of(series), "points": list(series)} for series in log.scalars]
    made["histograms"] = [
        {**fields_of(series), "points": [_point(p) for p in series.points]} for series in log.histograms
    ]
    made["curves"] = [{**fields_of(series), "points": [_point(p) for p in series.points]} for series in log.curves]
    return made


def _point(point: HistogramPoint | CurvePoint) -> dict[str, object]:
    if isinstance(point, HistogramPoint):
        return {**fields_of(point), "buckets": list(point)}
    flat = memoryview(point.rows).cast("d").tolist()
    n = point.thresholds
    names = ("true_positives", "false_positives", "true_negatives", "false_negatives", "precision", "recall")
    return {**fields_of(point), **{name: flat[row * n : (row + 1) * n] for row, name in enumerate(names)}}


def events_csv(logs: Sequence[EventLog]) -> Iterator[str]:
    """Every scalar of every run, a line each, in pieces."""
    yield csv_text(COLUMNS, [])
    for log in logs:
        for series in log.scalars:
            lines = iter(series)
            while part := list(islice(lines, _LINES)):
                rows = [(log.name, series.tag, step, wall_time, value) for step, value, wall_time in part]
                yield csv_text(COLUMNS, rows).split("\n", 1)[1]


def exported_text(folder: str, axis: str, stages: Sequence[tuple[int, str]]) -> RenderableType:
    """What was written, and where on the axis each file stands."""
    says = {
        "step": "Steps are those that the files state.",
        "epoch": "Steps are the epochs that the files state.",
        "order": "The files do not all state a step or an epoch: steps are their order.",
    }[axis]
    made = table("Step", "File", right=(0,))
    for step, name in stages:
        made.add_row(f"{step:,}", safe(name))
    return Group(made, says if len(stages) > 1 else "", f"tensorboard --logdir {safe(folder)}")


def about_checkpoint(checkpoint: Checkpoint, weights: WeightsReport) -> str:
    """Markdown: what the file is, and what of it is not in the charts."""
    rows = [
        ("File", checkpoint.origin.name),
        ("Size", f"{checkpoint.origin.nbytes:,} bytes"),
        ("Format", checkpoint.format_says),
        ("Tensors measured", f"{len(weights.tensors):,}"),
        ("Tensors that could not be read as numbers", f"{len(weights.skipped):,}"),
        *checkpoint.own_metadata[:_SHOWN],
    ]
    lines = [f"| {_cell(name)} | {_cell(text)} |" for name, text in rows]
    return "\n".join(["| | |", "| --- | --- |", *lines])


def _cell(text: str) -> str:
    """In backticks, since it comes from the file: no link, picture or markup of it is shown as such."""
    plain = "".join(char if char.isprintable() and char not in "`|" else " " for char in text[:200]).strip()
    return f"`{plain}`" if plain else ""
