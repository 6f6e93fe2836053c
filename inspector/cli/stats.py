"""stats: parameters per module and statistics of every tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import (
    UNASKED_NBYTES,
    FailOn,
    File,
    Json,
    State,
    StoreOption,
    Yes,
    exit_code,
    open_file,
    pick_state,
    progress_bar,
    show,
)
from inspector.findings import Finding, Severity

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.inspection import Inspection


def stats(
    file: File,
    spectra: Annotated[
        bool,
        typer.Option("--spectra", help="Also each weight's singular values: norm, ranks, how they fall off; slow."),
    ] = False,
    store: StoreOption = "",
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="WHERE",
            help='By pieces: in "threads", in "processes", or on a Dask cluster: tcp://host:8786.',
        ),
    ] = "",
    jobs: Annotated[
        int, typer.Option(help="By pieces: read side by side here; 0: one per processor.", min=0, max=256)
    ] = 0,
    yes: Yes = False,
    state: State = "",
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Parameters per module and statistics of every tensor's values, streamed.

    With --store or --executor by pieces of 268 MB, of which none is read again after an interruption.
    """
    from inspector.giants.measure import check_cost, in_pieces
    from inspector.inspection import Question, inspect

    checkpoint = open_file(file)
    if not yes:
        check_cost(checkpoint, UNASKED_NBYTES)
    numbers = (Question.HEALTH, Question.SPECTRA) if spectra else (Question.HEALTH,)
    questions = (Question.RECOGNITION, Question.PARAMETERS, *numbers)
    chosen = pick_state(checkpoint, state)
    progress = progress_bar("reading")
    if store or executor or jobs:
        with in_pieces(executor or "threads", jobs, store) as read:
            inspection = inspect(checkpoint, questions, state=chosen, read=read, progress=progress)
    else:
        inspection = inspect(checkpoint, questions, state=chosen, progress=progress)
    health = inspection.health
    findings = (*(health.findings if health else ()), *_unmeasured(inspection))

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
        parts.append(findings_text(findings))
        if health:
            parts.append(passed_over_text(health))
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


def _unmeasured(inspection: Inspection) -> tuple[Finding, ...]:
    """What should have had numbers and gave none, as `check` says it: no gate is passed by what nobody read."""
    from inspector.inspection import Question
    from inspector.lint.numbers import NUMBERS_UNREAD, find_unread

    health, checkpoint = inspection.health, inspection.checkpoint
    if health is not None:
        found = find_unread(checkpoint, ((inspection.state, health),))
        return tuple(finding for finding in found if finding.severity is Severity.ERROR)
    if (inspection.state or checkpoint.weights) is None:
        return ()
    return tuple(NUMBERS_UNREAD.found(why) for what, why in inspection.skipped if what == Question.HEALTH.value)
