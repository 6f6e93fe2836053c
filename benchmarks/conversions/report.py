"""Rows of the table of conversions as lines of a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.conversions.run import Result, Row


def line(row: Row, *, verbose: bool = False) -> str:
    differs = " ".join(f"{kind} {value:.1e}" for kind, value in (row.differs or {}).items())
    helped = f" asked {', '.join(row.asked)}" if row.asked else ""
    helped += f" accepted {', '.join(row.accepted)}" if row.accepted else ""
    text = (
        f"{row.result:<20} {row.pair}: {row.ours} -> {row.theirs}: {row.tensors} tensors, {row.by_name} as named, "
        f"{row.by_law} by law, {row.by_words} by words, {row.by_table} by table; {differs}{helped}"
    )
    good = row.result in (Result.EQUAL, Result.ANSWERED, Result.RIGHTLY_NOT)
    more = f"\n    {row.says}\n    rules: {', '.join(row.rules)}" if verbose or not good else ""
    return text + more


def markdown(rows: Sequence[Row]) -> str:
    head = (
        "| Network | From | To | Result | Tensors | As named | By law | By words | By table | Asked | Accepted "
        "| float32 | float64 | Other weights |\n| --- | --- | --- | --- "
        + "| ---: " * 5
        + "| --- | --- "
        + "| ---: " * 3
        + "|\n"
    )
    made = []
    for row in rows:
        differs = row.differs or {}
        cells = [
            row.pair,
            row.ours,
            row.theirs,
            str(row.result),
            *(str(n) for n in (row.tensors, row.by_name, row.by_law, row.by_words, row.by_table)),
            ", ".join(f"`{ident.partition(':')[0]}`" for ident in row.asked) or "-",
            ", ".join(f"`{ident}`" for ident in row.accepted) or "-",
            f"{differs['float32']:.0e}" if "float32" in differs else "-",
            f"{differs['float64']:.0e}" if "float64" in differs else "-",
            f"{row.other:.1f}",
        ]
        made.append("| " + " | ".join(cells) + " |\n")
    return head + "".join(made)
