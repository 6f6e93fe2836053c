"""What the numbers say of the questions, for a terminal: the figure, then each option with what they say of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from inspector.keys.witnesses.types import Bearing, Statement
from inspector.render.text import safe, table

if TYPE_CHECKING:
    from inspector.keys.report import RepairPlan

_STYLES = {Bearing.FOR: "green", Bearing.AGAINST: "red", Bearing.NOTHING: "dim"}
_WORDS = {Bearing.FOR: "speaks for", Bearing.AGAINST: "speaks against", Bearing.NOTHING: "says nothing"}


def statements_text(statements: Sequence[Statement], plan: RepairPlan) -> RenderableType:
    """Nothing of it is an answer: `--choose` gives one. A contradicted answer comes first."""
    parts: list[RenderableType] = []
    for one in sorted(statements, key=lambda one: not one.contradicts):
        means = {o: says for q in plan.ambiguities if q.id == one.question for o, says in q.options}
        if one.contradicts:
            parts.append(f"[bold red]The numbers speak against {safe(one.question)}={safe(one.chosen)}.[/]")
        parts.append(f"[bold]{safe(one.question)}[/]  {safe(one.says)}")
        made = table("Option", "The numbers", "Means")
        for option, bearing in one.options:
            mark = " (chosen)" if option == one.chosen else ""
            said = f"[{_STYLES[bearing]}]{_WORDS[bearing]}[/]"
            made.add_row(safe(option) + mark, said, safe(means.get(option, "")))
        parts += [made, ""]
    return Group(*(parts or ["The numbers say nothing of what is asked."]))
