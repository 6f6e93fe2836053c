"""Trust over several pictures as tables, which every face draws, and as one file for a spreadsheet."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group as Lines
from rich.console import RenderableType

from inspector.cam.trust.assess import CENTRE, EDGES, RANDOM
from inspector.cam.trust.intervals import Interval
from inspector.cam.trust.measures import MEASURES
from inspector.cam.trust.pictures import Group, PictureTrust, TrustOfPictures
from inspector.cam.trust.pictures_words import (
    failures_text,
    interval_text,
    intervals_text,
    pictures_summary,
    share_text,
)
from inspector.cam.trust.verdicts import Verdict
from inspector.render.panels import Listing
from inspector.render.spreadsheet import Cell, csv_text
from inspector.render.text import safe, table

COLUMNS = (
    "kind", "picture", "class", "name", "verdict",
    "measure", "of", "value", "low", "high", "pictures", "interval", "why",
)  # fmt: skip
# Of each kind of row, what a face shows; files hold all of them.
MOST_SHOWN = 40
_KNOW_NOTHING = ((RANDOM, "noise"), (CENTRE, "blob"), (EDGES, "edges"))


def sentences(report: TrustOfPictures) -> tuple[str, ...]:
    """The answer first, then what failed, then how sure the numbers are."""
    refused = (why for _, why in report.refused)
    return tuple(filter(None, (pictures_summary(report), failures_text(report), *refused, intervals_text(report))))


def listings(report: TrustOfPictures) -> tuple[Listing, ...]:
    """By answer, by measure, by picture."""
    found = [_pictures(report)]
    if report.whole.pictures:
        found = [_answers(report), _measures(report), *found]
    return tuple(found)


def trust_of_pictures_text(report: TrustOfPictures) -> RenderableType:
    """For a terminal."""
    first, *rest = sentences(report)
    parts: list[RenderableType] = [safe(first)]
    for one in listings(report):
        drawn = table(*one.heads, right=one.numeric)
        for row in one.rows:
            drawn.add_row(*map(safe, row))
        parts += ["", drawn, *([safe(one.more)] if one.more else [])]
    return Lines(*parts, "", *map(safe, rest))


def trust_of_pictures_csv(report: TrustOfPictures) -> str:
    """kind: "picture" (value: of its map or of one that knows nothing), "mean" (of all pictures where class is empty,
    else of those answered so), "lead" (by how much the method's map is above it), "better" (share of maps that are
    better than noise). Numbers that are none are empty."""
    rows: list[tuple[Cell, ...]] = []
    for row in report.rows:
        rows += _rows_of_picture(row, report.method)
    for group in report.groups:
        rows.append(_row_of_group("better", group, "", report.method, group.better))
        for one in group.averages:
            rows.append(_row_of_group("mean", group, one.measure, one.of, one.mean))
            if one.lead is not None:
                rows.append(_row_of_group("lead", group, one.measure, one.of, one.lead))
    return csv_text(COLUMNS, rows)


def _rows_of_picture(row: PictureTrust, method: str) -> list[tuple[Cell, ...]]:
    index = None if row.answered is None else row.answered.index
    name = None if row.answered is None else row.answered.name
    start = ("picture", row.picture, index, name, row.verdict.value)
    end = (None, None, 1, None, row.why)
    if row.verdict is Verdict.FAILED:
        return [(*start, None, method, None, *end)]
    numbers = [("random-share", method, row.share), ("forgotten", method, row.forgotten)]
    numbers += [(measure, method, value) for measure, value in row.values]
    numbers += [(measure, of, value) for of, values in row.others for measure, value in values]
    return [(*start, *number, *end) for number in numbers]


def _row_of_group(kind: str, group: Group, measure: str, of: str, interval: Interval) -> tuple[Cell, ...]:
    numbers = (interval.mean, interval.low, interval.high, interval.pictures, interval.by.value)
    return (kind, None, group.answered, group.name, None, measure, of, *numbers, None)


def _answers(report: TrustOfPictures) -> Listing:
    rows = [
        (
            group.name or "all",
            str(group.pictures),
            str(dict(group.verdicts).get(Verdict.BETTER, 0)),
            share_text(group.better),
            ", ".join(f"{count} {verdict.value}" for verdict, count in group.verdicts if verdict is not Verdict.BETTER),
        )
        for group in report.groups
    ]
    return _listing(
        "answers", "By answer", ("Answer", "Maps", "Better than noise", "Share", "The others"), rows, numeric=(1, 2)
    )


def _measures(report: TrustOfPictures) -> Listing:
    titles = {measure.id: (measure.title, measure.higher) for measure in MEASURES}
    better = {True: "more", False: "less", None: ""}
    rows = []
    for group in report.groups:
        by_measure = {one.measure: one for one in group.averages if one.lead is None}
        leads = {(one.measure, one.of): one.lead for one in group.averages if one.lead is not None}
        for number, (measure, own) in enumerate(by_measure.items()):
            title, higher = titles.get(measure, (measure, True))
            above = [leads.get((measure, of)) for of, _ in _KNOW_NOTHING]
            rows.append(
                (
                    "" if number else group.name or "all",
                    title,
                    better[higher],
                    interval_text(own.mean),
                    *("" if lead is None else interval_text(lead) for lead in above),
                )
            )
    heads = ("Answer", "Measure", "Better", "Mean", *(f"Above {word}" for _, word in _KNOW_NOTHING))
    return _listing("means", "Means over pictures", heads, rows, numeric=(3, 4, 5, 6))


def _pictures(report: TrustOfPictures) -> Listing:
    rows = [
        (
            row.picture,
            "" if row.answered is None else row.answered.name or f"class {row.answered.index}",
            row.verdict.value,
            "" if row.share is None else f"{100 * row.share:.1f} %",
            "" if row.forgotten is None or row.forgotten != row.forgotten else f"{row.forgotten:.2f}",
            row.why,
        )
        for row in report.rows
    ]
    heads = ("Picture", "Answer", "Verdict", "Random maps as good", "Left when forgotten", "Why")
    return _listing("pictures", "Picture by picture", heads, rows, numeric=(3, 4))


def _listing(
    key: str, title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, numeric: tuple[int, ...]
) -> Listing:
    left_out = len(rows) - MOST_SHOWN
    more = f"{left_out:,} more rows are in the files." if left_out > 0 else ""
    return Listing(key=key, title=title, heads=heads, rows=tuple(rows[:MOST_SHOWN]), numeric=numeric, more=more)
