"""In a Jupyter notebook a checkpoint, a diagnosis, a heat map and a file's report show themselves.

The types know nothing of it: IPython is told, by the types' names, who draws them, and neither they nor what draws them
are imported before one is shown. `import inspector` does that where IPython runs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from inspector.render.html_text import escaped
from inspector.units import counted, human_bytes, human_share, shorten_middle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.cam.report import Explanation, Score
    from inspector.checkpoint.types import Checkpoint
    from inspector.file_report.report import FileReport
    from inspector.keys.report import KeyReport
    from inspector.overview import Answer

_HTML = "text/html"
# Colours that are read on a light and on a dark page.
_TONES = {"error": "#d1453b", "warning": "#b07a12", "notice": "#3d7cc9", "info": "#2a8f6d"}
_MOST_ROWS = 8


def show_reports() -> bool:
    """Tell the running IPython who draws our reports; whether there is one."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = ask() if ask is not None else None
    formatters = getattr(getattr(shell, "display_formatter", None), "formatters", {})
    if _HTML not in formatters:
        return False
    for module, name, draw in (
        ("inspector.checkpoint.types", "Checkpoint", checkpoint_html),
        ("inspector.keys.report", "KeyReport", keys_html),
        ("inspector.cam.report", "Explanation", explanation_html),
        ("inspector.file_report.report", "FileReport", file_report_html),
    ):
        formatters[_HTML].for_type_by_name(module, name, draw)
    return True


def checkpoint_html(checkpoint: Checkpoint) -> str:
    """The four sentences about a file, from its headers."""
    from inspector.overview import summarise

    origin = checkpoint.origin
    line = f"{checkpoint.format_says}, {human_bytes(origin.nbytes)}, {counted(len(checkpoint.tensors), 'tensor')}"
    return _boxed(origin.name, line, _answers(summarise(checkpoint).answers))


def file_report_html(report: FileReport) -> str:
    """The same sentences from a report; `report_html` makes the whole page."""
    file = report.file
    line = f"{file.format_says}, {human_bytes(file.nbytes)}, {counted(file.tensors, 'tensor')}"
    return _boxed(file.name, line, _answers(report.answers))


def keys_html(report: KeyReport) -> str:
    """The diagnosis: what it says, the rules of its repair, what they leave over."""
    from inspector.keys.placing.left_over import left_over

    plan, left = report.plan, left_over(report)
    refused = f"<p {_tone('error')}>{escaped(report.refusal)}</p>" if report.refusal not in ("", report.says) else ""
    rows = []
    for rule in plan.rules[:_MOST_ROWS] if plan is not None else ():
        example = " → ".join(shorten_middle(name, 40) for name in rule.examples[0] if name) if rule.examples else ""
        rows.append((rule.says, rule.cost.value, counted(rule.count, "key"), example))
    counts = [
        (len(left.missing), "missing"),
        (len(left.initial), "left at the initial value"),
        (len(left.unexpected), "unexpected"),
        (len(left.reshaped), "of another shape"),
    ]
    rest = ", ".join(f"{n:,} {what}" for n, what in counts if n)
    over = f"<p>Left over: {escaped(rest)}.</p>" if rest else ""
    return _boxed(f"Against {report.target}", report.says, f"{refused}{_table(rows)}{over}")


def explanation_html(explanation: Explanation) -> str:
    """The heat alone, since the picture is not in it, with what was asked and what the model answered."""
    from inspector.render.overlay import heat_picture, png_bytes
    from inspector.render.png import png_address

    target = explanation.target
    where = f" at {explanation.layer.path}" if explanation.layer.path else ""
    says = f"{explanation.method}{where}, {target.name or f'class {target.index}'}"
    alt = f"Heat map, {says}"
    heat = png_address(png_bytes(heat_picture(explanation)))
    drawn = f'<img src="{heat}" alt="{escaped(alt)}" style="max-width:320px;width:100%">'
    rows = [(score.name or f"class {score.index}", _share(score)) for score in explanation.scores[:5]]
    wrong = "".join(f"<p {_tone(f.severity.value)}>{escaped(f.says)}</p>" for f in explanation.findings)
    return _boxed(
        says, "inspector.overlay(picture, explanation) lays it over the picture", f"{drawn}{_table(rows)}{wrong}"
    )


def _share(score: Score) -> str:
    return f"{score.logit:.4g}" if score.probability is None else human_share(score.probability)


def _answers(answers: Iterable[Answer]) -> str:
    return _table((answer.topic.value.capitalize(), answer.says) for answer in answers)


def _boxed(title: str, line: str, inside: str) -> str:
    return f"<div><b>{escaped(title)}</b><br><small>{escaped(line)}</small>{inside}</div>"


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    """rows: cells as text."""
    cell = 'style="text-align:left;vertical-align:top"'
    body = "".join("<tr>" + "".join(f"<td {cell}>{escaped(one)}</td>" for one in row) + "</tr>" for row in rows)
    return f"<table>{body}</table>" if body else ""


def _tone(severity: str) -> str:
    return f'style="color:{_TONES[severity]}"'
