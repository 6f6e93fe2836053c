"""Tables as CSV for spreadsheets and other programs. Every CSV of this package is written here.

A spreadsheet takes a cell that begins with one of a few signs for a formula and runs it. Names come from files of
strangers, so a text that begins so gets an apostrophe in front; numbers of our own are numbers.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from itertools import chain

# https://owasp.org/www-community/attacks/CSV_Injection: also the signs at their full width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class Number(str):
    """A number of ours in the digits that the table shows: no name from a file."""

    __slots__ = ()


Cell = str | int | float | None


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, ending: str = "\n") -> str:
    """With a heading line. None and NaN are empty cells; ending: of each line."""
    made: list[str] = []
    for row in chain([columns], rows):
        line = io.StringIO()
        # With both in the terminator, a cell that holds either is quoted: a bare one would begin a row.
        csv.writer(line, lineterminator="\r\n").writerow([_written(cell) for cell in row])
        made.append(line.getvalue().removesuffix("\r\n") + ending)
    return "".join(made)


def _written(cell: Cell) -> str:
    if isinstance(cell, str):
        return f"'{cell}" if cell.startswith(_FORMULA) and not isinstance(cell, Number) else str(cell)
    if cell is None:
        return ""
    # Numbers of NumPy's are written as Python's are.
    exact = cell if isinstance(cell, int) else float(cell)
    return "" if isinstance(exact, float) and math.isnan(exact) else repr(exact)
