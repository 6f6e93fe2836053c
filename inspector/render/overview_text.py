"""The four sentences about a file, for a terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from inspector.overview import Overview, Topic
from inspector.render.answer_words import answer_word
from inspector.render.text import STYLE, safe
from inspector.units import counted


def answers_text(overview: Overview) -> RenderableType:
    """A row per answer: its topic, how it stands, its sentence. What was not examined has a question mark."""
    rows = Table(box=None, pad_edge=False, show_header=False, show_edge=False)
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    for answer in overview.answers:
        style = STYLE[answer.severity] if answer.severity else "dim"
        mark = f"[{style}]{answer_word(answer).lower()}[/]"
        rows.add_row(answer.topic.value.capitalize(), mark, safe(answer.says))
        if answer.topic is Topic.MODEL and overview.claims:
            more = f"{counted(len(overview.claims), 'sentence')} about it, with the evidence: inspector identify FILE"
            rows.add_row("", "", f"[dim]{more}[/dim]")
    return rows
