"""What names and shapes tell of a network that nobody knows, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from inspector.architectures.structure.wording import notation
from inspector.render.text import safe, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.architectures.structure.types import Structure

_MOST_CLAIMS = 30


def structure_text(structure: Structure) -> RenderableType:
    """Each claim with its evidence, and what no shape tells."""
    made = table("From names and shapes", "Evidence")
    for claim in structure.claims[:_MOST_CLAIMS]:
        made.add_row(safe(claim.says), f"[dim]{safe(claim.evidence)}[/dim]")
    more = len(structure.claims) - _MOST_CLAIMS
    parts: list[RenderableType] = [safe(structure.counts), *([made] if structure.claims else [])]
    if more > 0:
        parts.append(f"[dim]and {more:,} more, all of them in --json[/dim]")
    legend = notation(structure.claims[:_MOST_CLAIMS])
    if legend:
        parts.append(f"[dim]{legend}[/dim]")
    return Group(*parts, f"[dim]No shape tells {safe('; '.join(structure.open))}.[/dim]")
