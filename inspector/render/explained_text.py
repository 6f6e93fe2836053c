"""Heat maps of several pictures, methods or checkpoints, and measures of trust, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group

from inspector.cam.layers.layouts import layer_name, layout_text
from inspector.cam.methods import METHODS
from inspector.cam.report import Estimate, Explanation, LayerProposal
from inspector.cam.trust.assess import Trust
from inspector.cam.trust.measures import MEASURES
from inspector.cam.trust.verdicts import forgetting, summary
from inspector.render.scores import share_text
from inspector.render.text import pairs, safe, table
from inspector.units import human_share

if TYPE_CHECKING:
    from rich.console import RenderableType


def explanations_text(
    named: Sequence[tuple[str, Explanation]], problems: Sequence[str], written: Sequence[str]
) -> RenderableType:
    """A row for each map. named: (of what, the map). problems: sentences about what gave none."""
    made = table("Of", "Method", "Layer", "Class", "Score", "Raw range", "Findings", right=(4,))
    for name, one in named:
        made.add_row(
            safe(name),
            one.method,
            safe(layer_name(one.layer)),
            safe(one.target.name or f"class {one.target.index}"),
            share_text(one.target),
            f"{one.raw_minimum:.4g} .. {one.raw_maximum:.4g}, {human_share(one.negative_share)} negative",
            ", ".join(finding.id for finding in one.findings),
        )
    parts: list[RenderableType] = [made, *(safe(text) for text in problems)]
    if written:
        parts += ["", pairs([("Written", ", ".join(safe(name) for name in written))])]
    return Group(*parts)


def trust_text(trust: Trust) -> RenderableType:
    """A column for each map: its own, and those that know nothing."""
    of = {measure.id: measure for measure in MEASURES}
    heads = (row.of if row.draws == 1 else f"{row.of}, {row.draws} draws" for row in trust.rows)
    made = table("Measure", "Better", *heads, right=tuple(range(2, 2 + len(trust.rows))))
    for name in dict.fromkeys(name for row in trust.rows for name, _ in row.values):
        measure = of.get(name)
        higher = True if measure is None else measure.higher
        better = "" if higher is None else "more" if higher else "less"
        values = [_measured(dict(row.values).get(name)) + _spread(dict(row.spreads).get(name)) for row in trust.rows]
        title = name if measure is None else measure.title
        made.add_row(title, better, *values)
    parts: list[RenderableType] = [made, *(safe(says) for _, says in trust.refused), "", safe(summary(trust))]
    if trust.void:
        parts += ["", safe(forgetting(trust))]
    if trust.stages:
        stages = table("Forgotten down to", "Modules", "Rank correlation", right=(1, 2))
        for stage in trust.stages:
            stages.add_row(safe(stage.down_to), str(stage.modules), f"{stage.correlation:.3f}")
        parts += ["", stages, "", safe(forgetting(trust))]
    if trust.agreement is not None:
        # Of all pairs the page and `--json` have the numbers; here those of the map that is measured.
        alike = table("Other method", "Rank correlation", right=(1,))
        first = trust.agreement.correlations[0]
        for name, value in list(zip(trust.agreement.methods, first, strict=True))[1:]:
            alike.add_row(name, f"{value:.3f}")
        parts += ["", alike]
    return Group(*parts)


def _measured(value: float | None) -> str:
    return "" if value is None else "none" if value != value else f"{value:.4f}"


def _spread(value: float | None) -> str:
    return "" if value is None or value != value else f" ± {value:.4f}"


def layers_text(layers: Sequence[LayerProposal]) -> RenderableType:
    """The proposed layers, the suggested one first."""
    made = table("Layer", "Kind", "Shape", "Layout", "Why")
    for one in layers:
        shape = "x".join(map(str, one.shape))
        made.add_row(safe(layer_name(one)), safe(one.kind), shape, layout_text(one), safe(one.reason))
    return made


def methods_text() -> RenderableType:
    """Every method in the order in which they are offered."""
    made = table("Method", "Needs", "What it shows", "Paper")
    for one in METHODS:
        needs = "one pass" if one.passes is None else "passes of its own"
        made.add_row(one.id, needs, one.says, one.paper)
    return made


def estimate_text(estimate: Estimate) -> RenderableType:
    """Passes and seconds before the work."""
    rows = [("Passes", f"about {estimate.passes:,}"), ("Time", f"about {estimate.seconds:.1f} s on this machine")]
    return pairs(rows + [(name, f"{passes:,} passes of its own") for name, passes in estimate.by_method if passes])
