"""A run for a terminal, for programs and for spreadsheets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.text import Text

from inspector.render.events import events_json
from inspector.render.json import fields_of
from inspector.render.panels import Listing
from inspector.render.run_curves import is_telling
from inspector.render.run_measures import count_text, number_text, share_text
from inspector.render.spreadsheet import csv_text
from inspector.render.text import findings_text, safe, table
from inspector.render.visible import one_line
from inspector.run.findings import learned
from inspector.run.groups import By, distance_from_first, groups_of, series_of
from inspector.run.groups import Group as Tensors
from inspector.run.report import MEASURES, Measure, RunReport
from inspector.units import counted, human_bytes, human_count, human_distance, shorten_middle

_GROUPS, _MEMBERS, _STATED = 60, 200, 4
# What is told of each group, over the run.
_SERIES = (Measure.RMS, Measure.UPDATE, Measure.FLIPS, Measure.FROM_FIRST, Measure.FROM_LAST, Measure.ZERO_ROWS)


def run_text(report: RunReport, by: By) -> RenderableType:
    """The answer, a row per member, a row per group, what was noticed and what was left out."""
    parts: list[RenderableType] = [Text(one_line(report.says), style="bold"), "", _members(report)]
    if len(report.members) > 1:
        parts += ["", _groups(report, by)]
    if report.findings:
        parts += ["", findings_text(report.findings)]
    for log in report.logs:
        parts.append(safe(f"Beside it: {log.name}, {counted(len(log.scalars), 'scalar')} logged by the training."))
        parts += [f"  {safe(finding.says)}" for finding in log.findings]
    parts += [Text(one_line(note), style="dim") for note in report.notes]
    if report.passed:
        parts.append(Text(f"{counted(len(report.passed), 'file')} passed over that hold no weights.", style="dim"))
    parts.append(Text(f"{human_bytes(report.read_nbytes)} read in {report.seconds:.2f} s.", style="dim"))
    return Group(*parts)


def members_listing(report: RunReport, most: int = _MEMBERS) -> Listing:
    """A row per checkpoint: where it stands, the learned tensors as one vector, what it states."""
    stated = [one for one in report.stated if is_telling(one.name)][:_STATED]
    group = learned(report)
    whole = {measure: series_of(report, group, measure) for measure in _SERIES}
    distance = distance_from_first(report, group)
    rows = [
        (
            member.name, member.place.says, number_text(whole[Measure.RMS][at]),
            human_distance(whole[Measure.UPDATE][at]), share_text(whole[Measure.FLIPS][at]),
            human_distance(distance[at]), count_text(whole[Measure.ZERO_ROWS][at]),
            *(number_text(one.array[at]) for one in stated),
        )
        for at, member in enumerate(report.members[:most])
    ]  # fmt: skip
    heads = ("Checkpoint", "States", "RMS", "Update", "Signs", "From first", "Zero rows")
    left = len(report.members) - len(rows)
    return Listing(
        key="members",
        title="Checkpoints",
        heads=(*heads, *(shorten_middle(one.name, 24) for one in stated)),
        rows=tuple(rows),
        numeric=tuple(range(2, 7 + len(stated))),
        more=f"{left:,} further checkpoints are in the JSON." if left else "",
    )


def _members(report: RunReport) -> RenderableType:
    listing = members_listing(report)
    made = table(*map(safe, listing.heads), right=listing.numeric)
    for name, *cells in listing.rows:
        made.add_row(safe(shorten_middle(name, 60)), *map(safe, cells))
    return Group(made, Text(listing.more, style="dim")) if listing.more else made


def _groups(report: RunReport, by: By) -> RenderableType:
    groups = groups_of(report, by)
    made = table(
        by.value.capitalize(), "Tensors", "Numbers", "RMS first", "last", "Update median", "largest", "in",
        "From first", "Moved in", right=(1, 2, 3, 4, 5, 6, 8, 9),
    )  # fmt: skip
    for group in groups[:_GROUPS]:
        rms, update = (series_of(report, group, measure) for measure in (Measure.RMS, Measure.UPDATE))
        known = sorted(value for value in update.tolist() if not math.isnan(value))
        best = int(max(range(len(update)), key=lambda i: -math.inf if math.isnan(update[i]) else update[i]))
        moved = sum(value > 0 for value in known)
        made.add_row(
            safe(shorten_middle(group.name, 48)), f"{len(group.rows):,}",
            human_count(sum(report.tensors[row].numel for row in group.rows)),
            number_text(rms[0]), number_text(rms[-1]),
            human_distance(known[len(known) // 2]) if known else "", human_distance(update[best]),
            safe(shorten_middle(report.members[best].name, 24)) if moved else "",
            human_distance(distance_from_first(report, group)[-1]), f"{moved} of {len(report.members) - 1}",
        )  # fmt: skip
    if len(groups) <= _GROUPS:
        return made
    return Group(made, Text(f"{len(groups) - _GROUPS:,} further ones are in the JSON.", style="dim"))


def run_json(report: RunReport, by: By) -> dict[str, object]:
    """All of it as plain data: every series of every tensor, histograms, and the groups; unknown numbers are None."""
    content = {name: value for name, value in fields_of(report).items() if name not in ("tensors", "stated", "logs")}
    spans, counts = report.histograms()
    cube = {measure: report.series(measure) for measure in MEASURES}
    content["tensors"] = [
        {
            **fields_of(tensor),
            "series": {measure.value: _plain(cube[measure][row]) for measure in MEASURES},
            "histograms": [
                {"low": low, "high": high, "counts": counts[row, at].tolist()}
                for at, (low, high) in enumerate(spans[row].tolist())
                if not math.isnan(low)
            ],
        }
        for row, tensor in enumerate(report.tensors)
    ]
    content["by"] = by.value
    content["groups"] = [
        {
            "name": group.name,
            "tensors": [report.tensors[row].name for row in group.rows],
            "series": {measure.value: _plain(series_of(report, group, measure)) for measure in MEASURES},
            "from_first_relative": _plain(distance_from_first(report, group)),
        }
        for group in groups_of(report, by)
    ]
    content["stated"] = {one.name: _plain(one.array) for one in report.stated}
    content["logs"] = [events_json(log) for log in report.logs]
    return content


def _plain(values: NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def members_csv(report: RunReport) -> str:
    """A row per member, with what it states."""
    columns = ["checkpoint", "at", "epoch", "step", "bytes", *(f"stated {one.name}" for one in report.stated)]
    arrays = [one.array for one in report.stated]
    rows = [
        [
            member.name, member.at, _cell(member.place.epoch), _cell(member.place.step), member.nbytes,
            *(_cell(float(array[at])) for array in arrays),
        ]
        for at, member in enumerate(report.members)
    ]  # fmt: skip
    return csv_text(columns, rows)


def series_csv(report: RunReport, by: By) -> str:
    """A row per group and member."""
    return csv_text(
        [by.value, "checkpoint", "at", *(measure.value for measure in MEASURES)],
        _series_rows(report, groups_of(report, by)),
    )


def _series_rows(report: RunReport, groups: Sequence[Tensors]) -> Iterator[list[str | float | int]]:
    for group in groups:
        series = [series_of(report, group, measure) for measure in MEASURES]
        for at, member in enumerate(report.members):
            yield [group.name, member.name, member.at, *(_cell(float(one[at])) for one in series)]


def _cell(value: float | None) -> float | str:
    return "" if value is None or math.isnan(value) else value
