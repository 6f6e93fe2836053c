"""stats: parameters per module and statistics of every tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

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


def stats(
    file: File,
    spectra: Annotated[
        bool,
        typer.Option("--spectra", help="Also each weight's singular values: norm, ranks, how they fall off; slow."),
    ] = False,
    state: State = "",
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Parameters per module and statistics of every tensor's values, streamed."""
    from inspector.inspection import Question, inspect

    checkpoint = open_file(file)
    numbers = Question.SPECTRA if spectra else Question.HEALTH
    questions = (Question.RECOGNITION, Question.PARAMETERS, numbers)
    chosen = pick_state(checkpoint, state)
    inspection = inspect(checkpoint, questions, state=chosen, progress=progress_bar("reading"))
    health = inspection.health
    findings = health.findings if health else ()

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.health_text import passed_over_text, spectra_text
        from inspector.render.text import findings_text, parameters_text, weights_text

        parts: list[RenderableType] = []
        if inspection.parameters:
            parts += [parameters_text(inspection.parameters), ""]
        if health:
            parts += [weights_text(health.weights), ""]
            if health.spectra:
                parts += [spectra_text(health.spectra), ""]
            parts += [findings_text(findings), passed_over_text(health)]
        parts += [f"{what}: {why}" for what, why in inspection.skipped]
        return Group(*parts)

    report = {
        "parameters": inspection.parameters,
        "weights": health.weights if health else None,
        **({"spectra": health.spectra if health else None} if spectra else {}),
        "findings": findings,
        "not_examined": health.not_examined if health else (),
    }
    show(report, text, as_json=json)
    return exit_code((*checkpoint.findings, *findings), fail_on)
