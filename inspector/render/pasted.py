"""The explanation of a pasted error for a terminal: the answer, then each error with steps and lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from inspector.render.text import safe, table
from inspector.render.visible import one_line

if TYPE_CHECKING:
    from inspector.error_messages.report import PastedError, PastedReport


def pasted_text(report: PastedReport) -> RenderableType:
    """Every error in the text, with what the file beside it adds."""
    parts: list[RenderableType] = [f"[bold]{safe(report.says)}[/bold]"]
    for error in report.errors:
        parts += ["", *_error(error, alone=len(report.errors) == 1)]
    if report.file:
        parts += ["", "[bold]The file[/bold]", *(safe(line) for line in report.file)]
    if report.code:
        parts += ["", "[bold]Python[/bold] that loads this file", _lines(report.code)]
    parts += [f"[dim]Not read: {safe(what)}[/dim]" for what in report.skipped]
    return Group(*parts)


def _error(error: PastedError, *, alone: bool) -> list[RenderableType]:
    kinds = " or ".join(cause.kind for cause in error.causes) or error.kind
    parts: list[RenderableType] = [f"[dim]{safe(error.quote)}[/dim]  [dim]({kinds})[/dim]"]
    if not alone:
        parts.append(safe(error.says))
    for word, cause in zip(("Either", "Or"), error.causes, strict=False):
        parts.append(f"[bold]{word}[/bold]  {safe(cause.says)} [dim]Sign: {safe(cause.sign)}.[/dim]")
    parts.append(f"Why  {safe(error.why)}")
    parts += [f"{i}. {safe(step)}" for i, step in enumerate(error.steps, 1)]
    if error.keys is not None and error.keys.renamings:
        made = table("Rule", "Keys", "For example", right=(1,))
        for use in error.keys.renamings:
            example = " · ".join(f"{safe(a)} -> {safe(b)}" for a, b in use.examples[:1])
            made.add_row(safe(use.says), f"{use.count:,}", example)
        parts += ["", made]
    if error.patch:
        parts += ["", "[bold]Python[/bold]", _lines(error.patch)]
    return parts


def _lines(code: str) -> Text:
    return Text("\n".join(one_line(line) for line in code.rstrip().splitlines()))
