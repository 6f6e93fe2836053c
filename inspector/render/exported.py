"""What was written, as rich renderables for a terminal: what it lost, and what it carries along."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from inspector.exports.report import ExportReport, broken_line
from inspector.keys.folding import folded_line
from inspector.render.text import pairs, safe, verification_text
from inspector.units import counted, human_bytes

_SHOWN = 12


def _folded_lost(lost: Sequence[str]) -> list[str]:
    """Many tensors that are left for one reason as patterns: a whole layer's would be a page."""
    reasons: dict[str, list[str]] = {}
    for what in lost:
        name, _, why = what.partition(": ")
        reasons.setdefault(why, []).append(name)
    shown = []
    for why, names in reasons.items():
        if why and len(names) > _SHOWN:
            shown.append(f"{folded_line(names, _SHOWN)}: {why}")
        else:
            shown += [f"{name}: {why}" if why else name for name in names]
    return shown


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= _SHOWN else folded_line(names, _SHOWN)


def _are(things: Sequence[object]) -> str:
    return "is" if len(things) == 1 else "are"


def export_text(report: ExportReport) -> RenderableType:
    """What was written and what it lost."""
    name = f"{'a part: ' if report.is_part else ''}{safe(report.name)}"
    rows = [
        ("Written", f"{name}, {human_bytes(report.nbytes)}, {counted(report.tensors, 'tensor')}"),
        *([("Taken", safe(report.state))] if report.state else []),
        *([("sha256", report.sha256)] if report.sha256 else [(safe(f.name), f.sha256) for f in report.files]),
    ]
    if report.broken:
        rows.append(("Broken", safe(broken_line(report.broken))))
    rows += [("Note", safe(says)) for says in report.notes]
    if report.left_out:
        count = counted(len(report.left_out), "tensor")
        rows.append(("Loading", f"strict=False: {count} of the state dict {_are(report.left_out)} not in this file"))
    if report.lost:
        rows.append(("Left behind", ", ".join(safe(what) for what in _folded_lost(report.lost))))
    if report.cast is not None:
        rows.append(("Cast", report.cast.says))
    if report.optimizers:
        rows.append(("Optimizer", " ".join(safe(says) for says in report.optimizers)))
    if report.stays_initial:
        rows.append(("Stays initial", safe(_listed(report.stays_initial))))
    return Group(pairs(rows), "", verification_text(report.verification, of_part=report.is_part))
