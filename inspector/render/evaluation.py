"""An evaluation as tables, which every face draws, and as files for spreadsheets and other programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType

from inspector.evaluate.report import ClassFigures, Comparison, Evaluation
from inspector.evaluate.sentences import answer, comparison_text, details, figure_text
from inspector.render.panels import Listing
from inspector.render.spreadsheet import Cell, csv_text
from inspector.render.text import pairs, safe, table
from inspector.render.visible import one_line
from inspector.units import human_share

# Of classes and errors, what a terminal shows; files and JSON hold all.
MOST_SHOWN = 25
# Of the confusion matrix as it is drawn.
MOST_CELLS = 40
PICTURE_COLUMNS = ("picture", "folder", "class", "answer", "right", "rank", "share", "confidence", "error")
CLASS_COLUMNS = (
    "index", "class", "folder", "pictures", "answered", "right", "precision", "recall", "recall_low", "recall_high",
    "f1", "average_precision", "area_under_roc",
)  # fmt: skip


def evaluation_text(
    report: Evaluation, comparison: Comparison | None = None, written: Sequence[str] = ()
) -> RenderableType:
    """For a terminal: the answer, why it can be believed, classes and errors, worst first."""
    parts: list[RenderableType] = [f"[bold]{safe(answer(report))}[/bold]"]
    if comparison is not None:
        parts.append(f"[bold]{safe(comparison_text(comparison))}[/bold]")
    parts += ["", *(f"[dim]{safe(says)}[/dim]" for says in details(report))]
    for listing in (classes_listing(report, MOST_SHOWN), confused_listing(report, MOST_SHOWN), worst_listing(report)):
        if not listing.rows:
            continue
        drawn = table(*listing.heads, right=listing.numeric)
        for row in listing.rows:
            drawn.add_row(*map(safe, row))
        parts += ["", drawn, *([f"[dim]{safe(listing.more)}[/dim]"] if listing.more else [])]
    if written:
        parts += ["", pairs([("Written", ", ".join(map(safe, written)))])]
    return Group(*parts)


def classes_listing(report: Evaluation, most: int = 10_000) -> Listing:
    """A row for each class, the lowest recall first; those without pictures last."""
    rows = [
        (
            one.name,
            f"{one.support:,}",
            f"{one.right:,}",
            *map(figure_text, (one.recall, one.precision, one.f1, one.average_precision, one.area_under_roc)),
        )
        for one in sorted(report.classes, key=_worst_first)
    ]
    heads = ("Class", "Pictures", "Right", "Recall", "Precision", "F1", "Average precision", "Area under ROC")
    return _listing("classes", "By class", heads, rows, most, numeric=tuple(range(1, 8)))


def confused_listing(report: Evaluation, most: int = 10_000) -> Listing:
    """Which classes are taken for which, the most frequent first."""
    names = report.mapping.names
    support = {one.index: one.support for one in report.classes}
    rows = [
        (names[one.label], names[one.answer], f"{one.pictures:,}", human_share(one.pictures / support[one.label]))
        for one in report.confused
    ]
    heads = ("Class", "Taken for", "Pictures", "Of its pictures")
    return _listing("confused", "Confusions", heads, rows, most, numeric=(2, 3))


def worst_listing(report: Evaluation) -> Listing:
    """Wrong answers, the surest first."""
    names = report.mapping.names
    rows = [
        (one.path, names[one.label], names[one.answer], _share(one.confidence), f"{one.rank:,}") for one in report.worst
    ]
    heads = ("Picture", "Class", "Answer", "Sure", "Rank of the class")
    return _listing("worst", "Wrong and sure", heads, rows, len(rows), numeric=(3, 4))


def confusion_matrix(report: Evaluation) -> tuple[tuple[ClassFigures, ...], tuple[tuple[int, ...], ...]]:
    """(classes, [right class][answer] pictures) of all classes, or of the `MOST_CELLS` with the most errors."""
    errors: dict[int, int] = {}
    for cell in report.confused:
        for index in (cell.label, cell.answer):
            errors[index] = errors.get(index, 0) + cell.pictures
    chosen = sorted(report.classes, key=lambda one: (-errors.get(one.index, 0), one.index))[:MOST_CELLS]
    chosen.sort(key=lambda one: one.index)
    cells = {(one.label, one.answer): one.pictures for one in report.confused}
    cells |= {(one.index, one.index): one.right for one in report.classes}
    rows = tuple(tuple(cells.get((a.index, b.index), 0) for b in chosen) for a in chosen)
    return tuple(chosen), rows


def pictures_table(report: Evaluation) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """(columns, a row for each picture), those that could not be read last."""
    names = report.mapping.names
    rows: list[tuple[Cell, ...]] = [
        (
            one.path,
            one.path.partition("/")[0],
            names[one.label],
            names[one.answer],
            int(one.right),
            one.rank,
            one.share,
            one.confidence,
            "",
        )
        for one in report.rows
    ]
    rows += [(path, path.partition("/")[0], *([None] * 6), why) for path, why in report.unread]
    return PICTURE_COLUMNS, rows


def classes_table(report: Evaluation) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """(columns, a row for each class) in output order."""
    rows: list[tuple[Cell, ...]] = [
        (
            one.index,
            one.name,
            one.folder,
            one.support,
            one.answered,
            one.right,
            one.precision,
            one.recall,
            one.recall_interval.low,
            one.recall_interval.high,
            one.f1,
            one.average_precision,
            one.area_under_roc,
        )
        for one in report.classes
    ]
    return CLASS_COLUMNS, rows


def pictures_csv(report: Evaluation) -> str:
    """A row for each picture."""
    return csv_text(*pictures_table(report), ending="\r\n")


def tsv_text(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Tab-separated, as TensorBoard's projector and cut(1) read it: no quotes, tabs and line breaks written out."""
    return "".join("\t".join(map(_plain, row)) + "\n" for row in (columns, *rows))


def _plain(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return one_line(cell) if isinstance(cell, str) else repr(cell)


def _worst_first(one: ClassFigures) -> tuple[float, int]:
    return (one.recall if one.support else 2.0, one.index)


def _share(value: float) -> str:
    return human_share(value) if math.isfinite(value) else "-"


def _listing(
    key: str,
    title: str,
    heads: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    most: int,
    *,
    numeric: tuple[int, ...],
) -> Listing:
    left_out = len(rows) - most
    more = f"{left_out:,} more are in the files." if left_out > 0 else ""
    return Listing(key=key, title=title, heads=heads, rows=tuple(rows[:most]), numeric=numeric, more=more)
