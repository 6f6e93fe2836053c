"""A survey as lines for a terminal or a log: fixed columns first, names and sentences last, nothing folded.

A log may be that of a GitHub Actions runner, which obeys what names of files must not say.
"""

from __future__ import annotations

from inspector.findings import Severity
from inspector.render.visible import one_line
from inspector.render.workflow import unobeyed
from inspector.survey.report import RowKind, Survey, SurveyRow
from inspector.units import counted, human_bytes, human_count, shorten_middle

_WIDTHS = (8, 14, 24, 9, 10, 10)
HEADING = "  ".join(
    word.ljust(n) if i in (0, 1, 2) else word.rjust(n)
    for i, (word, n) in enumerate(
        zip(("worst", "format", "producer", "tensors", "parameters", "size"), _WIDTHS, strict=True)
    )
) + "  path: worst finding"  # fmt: skip


def row_line(row: SurveyRow) -> str:
    """One row as one line, whatever its path holds."""
    counts = (f"{row.tensors:,}", human_count(row.parameters)) if row.kind is RowKind.CHECKPOINT else ("", "")
    worst = row.worst.value if row.worst else "-"
    form = row.format if row.kind is RowKind.CHECKPOINT else row.kind.value
    cells = (
        worst.ljust(_WIDTHS[0]),
        form.ljust(_WIDTHS[1]),
        shorten_middle(one_line(row.producer), _WIDTHS[2]).ljust(_WIDTHS[2]),
        counts[0].rjust(_WIDTHS[3]),
        counts[1].rjust(_WIDTHS[4]),
        human_bytes(row.nbytes).rjust(_WIDTHS[5]),
    )
    digest = f"  sha256 {row.sha256}" if row.sha256 else ""
    says = f": {row.finding}: {one_line(row.says)}" if row.finding and row.worst is not Severity.INFO else ""
    return unobeyed("  ".join(cells) + f"  {one_line(row.path)}{says}{digest}")


def summary_line(survey: Survey, *, everything: bool = True) -> str:
    """How many of what. everything: whether files that are no checkpoints had a line, too."""
    kinds = {kind: [r for r in survey.rows if r.kind is kind] for kind in RowKind}
    read = kinds[RowKind.CHECKPOINT]
    hidden = 0 if everything else len(kinds[RowKind.OTHER])
    rows = (
        f"{len(survey.rows) - hidden:,} of {counted(len(survey.rows), 'row')}"
        if hidden
        else counted(len(survey.rows), "row")
    )
    parts = [
        f"{rows} in {survey.seconds:.1f} s",
        f"{counted(len(read), 'checkpoint')} with {human_bytes(sum(r.nbytes for r in read))}",
    ]
    if kinds[RowKind.UNREADABLE]:
        parts.append(f"{len(kinds[RowKind.UNREADABLE]):,} unreadable")
    if kinds[RowKind.OTHER]:
        parts.append(counted(len(kinds[RowKind.OTHER]), "other file") + (" without a line (--all)" if hidden else ""))
    for severity in (Severity.ERROR, Severity.WARNING):
        n = sum(r.worst is severity for r in survey.rows)
        if n:
            parts.append(f"{n:,} with a finding of severity {severity.value}")
    text = "; ".join(parts) + ". Nothing in them was executed."
    return "\n".join([text, *(unobeyed(f"Not examined: {one_line(what)}") for what in survey.skipped)])
