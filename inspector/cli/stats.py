"""stats: parameters per module and statistics of every tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.cli.options import (
    FailOn,
    File,
    Json,
    State,
    exit_code,
    open_file,
    pick_state,
    progress_bar,
    show,
)
from inspector.findings import Severity

if TYPE_CHECKING:
    from rich.console import RenderableType


def stats(file: File, state: State = "", fail_on: FailOn = Severity.ERROR, json: Json = False) -> int:
    """Parameters per module and statistics of every tensor's values, streamed."""
    from inspector.inspection import Question, inspect

    checkpoint = open_file(file)
    questions = (Question.RECOGNITION, Question.PARAMETERS, Question.HEALTH)
    chosen = pick_state(checkpoint, state)
    inspection = inspect(checkpoint, questions, state=chosen, progress=progress_bar("reading"))
    health = inspection.health
    findings = health.findings if health else ()

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.text import findings_text, parameters_text, weights_text

        parts: list[RenderableType] = []
        if inspection.parameters:
            parts += [parameters_text(inspection.parameters), ""]
        if health:
            parts += [weights_text(health.weights), "", findings_text(findings)]
        parts += [f"{what}: {why}" for what, why in inspection.skipped]
        return Group(*parts)

    report = {"parameters": inspection.parameters, "weights": health.weights if health else None, "findings": findings}
    show(report, text, as_json=json)
    return exit_code((*checkpoint.findings, *findings), fail_on)
