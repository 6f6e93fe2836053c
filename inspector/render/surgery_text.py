"""The preview of a surgery for a terminal, and what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from inspector.render.text import pairs, safe, table
from inspector.units import counted, human_bytes

if TYPE_CHECKING:
    from inspector.surgery.freeze import FreezeCode
    from inspector.surgery.report import Size, SurgeryReport


def surgery_text(report: SurgeryReport) -> RenderableType:
    """What is done, what becomes of the tensors by modules, before and after, and who takes the result."""
    made = table("What", "Tensors", "Size", "Which", "Becomes", right=(1, 2))
    for row in report.rows:
        becomes = safe(row.becomes) + (" …" if row.becomes and row.tensors > 1 else "")
        made.add_row(row.fate.value, f"{row.tensors:,}", human_bytes(row.nbytes), safe(row.pattern), becomes)
    rows = [
        ("Steps", safe("; ".join(report.steps)) or "none"),
        ("Before", _size(report.before)),
        ("After", _size(report.after)),
        ("Goes into", safe(report.goes_into)),
    ]
    return Group(pairs(rows), "", made, *(f"[dim]{safe(note)}[/dim]" for note in report.notes))


def freeze_text(code: FreezeCode) -> RenderableType:
    """The lines as they are, to be copied."""
    what = f"[bold]Frozen[/bold]  {safe(', '.join(code.modules))}: {counted(code.tensors, 'tensor')}"
    return Group(what, *(f"[dim]{safe(note)}[/dim]" for note in code.notes), "", Text(code.text))


def _size(size: Size) -> str:
    return f"{counted(size.tensors, 'tensor')}, {human_bytes(size.nbytes)}"
