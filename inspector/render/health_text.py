"""What the health checks say beside their findings, for a terminal: spectra as a table, and what was passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from inspector.render.alpha_words import ALPHA_IS_CONTESTED, alpha_words
from inspector.render.text import safe, table
from inspector.units import human_shape, shorten_middle

if TYPE_CHECKING:
    from inspector.health.report import HealthReport
    from inspector.health.spectrum_report import SpectrumReport


def spectra_text(report: SpectrumReport) -> RenderableType:
    """A line per weight: its matrix, norm, ranks, and how its spectrum falls off."""
    made = table(
        "Weight", "Matrix", "Norm", "Stable rank", "Effective rank", "Alpha", "D", "Tail", right=(2, 3, 4, 5, 6, 7)
    )
    for column in made.columns:
        column.no_wrap = True
    for one in report.spectra:
        law = one.power_law
        effective = "" if one.effective_rank is None else f"{one.effective_rank:.1f} of {one.side:,}"
        made.add_row(
            safe(shorten_middle(one.name, 36)),
            human_shape((one.rows, one.columns)),
            f"{one.spectral_norm:.4g}",
            f"{one.stable_rank:.1f}",
            effective,
            *(("", "", "") if law is None else (alpha_words(law), f"{law.distance:.2f}", f"{law.tail:,}")),
        )
    note = f"[dim]{ALPHA_IS_CONTESTED}[/dim]" if any(one.power_law for one in report.spectra) else ""
    return Group(made, note) if note else made


def passed_over_text(report: HealthReport) -> RenderableType:
    """What has numbers and was not looked at all the same, a line each; nothing where there is none."""
    return Group(*(f"[dim]{safe(what)}: {safe(why)}[/dim]" for what, why in report.passed_over))
