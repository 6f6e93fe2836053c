"""A projection in words, as tables, and as the files that other programs read.

TensorBoard's projector takes two files of tabulators: a vector a line, and a line of columns for each, with a heading
where there are several columns (tensorboard/plugins/projector). Columns and rows stand here as plain values, so that
another writer of such files can take them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.projector.methods import method_named
from inspector.projector.report import Neighbour, Points, Projection
from inspector.render.spreadsheet import Cell, csv_text
from inspector.render.visible import visible
from inspector.units import counted, human_share

_NUMBERS_SAID = 8


def answer(found: Projection) -> str:
    """The first sentence of a page: what is drawn, how much of it the map holds, what stands apart, what is dead."""
    many = counted(found.count, found.noun)
    parts = [f"{many} of {found.name}" if found.noun != "picture" else f"{many} at {found.name}"]
    if found.shares:
        held = human_share(sum(found.shares))
        first = {1: "the one direction holds", 2: "the first two directions hold", 3: "the first three directions hold"}
        parts.append(f"{first[len(found.shares)]} {held} of the variance")
    apart = int(found.apart.sum())
    if np.isfinite(found.apart_from):
        parts.append(f"{counted(apart, found.noun)} {'stands' if apart == 1 else 'stand'} apart")
    if found.marked_as:
        parts.append(f"{counted(int(found.marked.sum()), found.noun)} {found.marked_as}")
    return f"{'; '.join(parts)}."


def sentences(found: Projection) -> list[str]:
    """What else is to be said: how the map is read, what was left out, by which signs points are told apart."""
    method = method_named(found.method)
    says = [method.says, *found.says]
    if found.not_finite:
        says.append(
            f"{counted(len(found.not_finite), found.noun)} with NaN or infinity cannot be drawn: "
            f"{_listed(found.not_finite)}."
        )
    if found.apart.any():
        says.append(
            f"Apart: further than {found.apart_from:.4g} from the mean {found.noun}, three times the middle half's "
            "width beyond it (Tukey's outer fence, in the full space)."
        )
    if found.marked_how:
        says.append(f"Those {found.marked_as} {found.marked_how}.")
    return says


def _listed(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _NUMBERS_SAID:,} more" if len(numbers) > _NUMBERS_SAID else ""
    return ", ".join(f"{number:,}" for number in numbers[:_NUMBERS_SAID]) + more


def title_of(found: Projection, place: int) -> str:
    """What one point is called: its label, else "row 7"."""
    label = found.labels[place] if found.labels else ""
    return label or f"{found.noun} {int(found.numbers[place]):,}"


def columns(found: Projection) -> list[str]:
    """Headings of what is known of each point beside its vector."""
    names = [found.noun, *(["label"] if found.labels else []), "norm", "apart"]
    names += [found.marked_as] if found.marked_as else []
    names += ["cluster"] if found.clusters is not None else []
    return names


def rows(found: Projection, places: Sequence[int] | None = None) -> Iterator[list[Cell]]:
    """The same of each point, or of those at these places."""
    for at in range(found.count) if places is None else places:
        row: list[Cell] = [int(found.numbers[at])]
        if found.labels:
            row.append(found.labels[at])
        row += [float(found.norms[at]), int(found.apart[at])]
        if found.marked_as:
            row.append(int(found.marked[at]))
        if found.clusters is not None:
            row.append(int(found.clusters[at]))
        yield row


def points_csv(found: Projection, places: Sequence[int] | None = None) -> str:
    """A line for each point with its coordinates, for a spreadsheet."""
    chosen = range(found.count) if places is None else places
    axes = axis_names(found)
    lines: list[list[Cell]] = []
    for at, row in zip(chosen, rows(found, chosen), strict=True):
        lines.append([*row, *(float(one) for one in found.coordinates[at])])
    return csv_text([*columns(found), *axes], lines)


def neighbours_csv(found: Projection, near: Sequence[Neighbour], metric: str) -> str:
    """The neighbours of one point."""
    lines: list[list[Cell]] = [[one.number, title_of(found, one.place), one.distance] for one in near]
    return csv_text([found.noun, "label", f"{metric} distance"], lines)


def axis_names(found: Projection) -> list[str]:
    """Of the coordinates."""
    name = "pc" if found.shares else found.method
    return [f"{name}{n}" for n in range(1, found.components + 1)]


def projection_plain(found: Projection) -> dict[str, Any]:
    """Everything as plain data; points as one list of columns each."""
    names = columns(found)
    table: list[list[Cell]] = [list(column) for column in zip(*rows(found), strict=True)]
    return {
        "tensor": found.name,
        "noun": found.noun,
        "total": found.total,
        "points": found.count,
        "dims": found.dims,
        "method": found.method,
        "seed": found.seed,
        "explained_variance_shares": list(found.shares),
        "apart_from": found.apart_from,
        "not_finite": list(found.not_finite),
        "says": [answer(found), *sentences(found)],
        "columns": dict(zip(names, table, strict=True)),
        "coordinates": {name: found.coordinates[:, n].tolist() for n, name in enumerate(axis_names(found))},
    }


def metadata_tsv(found: Projection) -> Iterator[str]:
    """Lines of a projector's metadata: the columns' names, then a line for each point."""
    yield "\t".join(columns(found)) + "\n"
    for row in rows(found):
        yield "\t".join(_plain_cell(cell) for cell in row) + "\n"


def vectors_tsv(points: Points) -> Iterator[str]:
    """Lines of a projector's vectors, with as many digits as bring the same number back."""
    for vector in points.values:
        yield "\t".join(_digits(vector)) + "\n"


def _digits(vector: NDArray[np.floating]) -> list[str]:
    # A float32 by its own shortest digits, not those of the float64 that Python would make of it.
    return vector.astype(str).tolist() if vector.dtype == np.float32 else [repr(one) for one in vector.tolist()]


def _plain_cell(cell: Cell) -> str:
    """Nothing that would end the cell or the line; the projector shows an empty label as nothing at all."""
    text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return " ".join(visible(text).split()) or "(none)"
