"""An optimizer's groups for a terminal: what each sets, and whose parameters it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from inspector.keys.folding import folded_line
from inspector.render.text import safe, table

if TYPE_CHECKING:
    from inspector.keys.optimizer.groups import OptimizerReport

_SHOWN = 8


def optimizers_text(found: Sequence[OptimizerReport]) -> RenderableType:
    """Settings that all groups of an optimizer share stand above its table."""
    if not found:
        return Text("The file holds no optimizer.", style="dim")
    parts: list[RenderableType] = []
    for one in found:
        shared = _shared(one)
        parts += ["", f"[bold]{safe(one.says)}[/bold]"]
        if one.asks:
            parts.append(f"[dim]If its groups were made by kind of parameter: {safe(one.asks)}.[/dim]")
        if shared:
            parts.append("In every group: " + ", ".join(f"{safe(k)} {safe(v)}" for k, v in shared))
        made = table("Group", "Parameters", "Sets", "Which", right=(0, 1))
        for number, group in enumerate(one.groups):
            own = ", ".join(f"{safe(k)} {safe(v)}" for k, v in group.settings if (k, v) not in shared)
            made.add_row(str(number), f"{group.entries:,}", own, safe(group.modules) or "[dim]not told[/dim]")
        if one.groups:
            parts.append(made)
        if one.outside:
            parts.append(f"In no group: {safe(folded_line(one.outside, _SHOWN))}")
    return Group(*parts[1:])


def _shared(one: OptimizerReport) -> tuple[tuple[str, str], ...]:
    if len(one.groups) < 2:
        return ()
    first, *others = one.groups
    return tuple(pair for pair in first.settings if all(pair in other.settings for other in others))
