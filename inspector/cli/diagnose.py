"""diagnose: why a file does not load into a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.ending import printing
from inspector.cli.key_options import Accept, Choose, Partial, parse_choices
from inspector.cli.options import (
    FailOn,
    File,
    Json,
    State,
    TargetOption,
    exit_code,
    find_target,
    open_file,
    pick_state,
    show,
    show_json,
)
from inspector.errors import ExportError
from inspector.findings import Severity

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.architectures.types import Target
    from inspector.checkpoint.types import Checkpoint
    from inspector.keys.report import KeyReport


def diagnose(
    file: File,
    target: TargetOption = "",
    state: State = "",
    accept: Accept = None,
    choose: Choose = None,
    partial: Partial = False,
    code: Annotated[bool, typer.Option("--code", help="Print only the Python lines that load the file.")] = False,
    values: Annotated[
        bool,
        typer.Option(
            "--values", help="Print only what the numbers say: of questions, and of each tensor's place (batch norms)."
        ),
    ] = False,
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Say why a file does not load into a target, and what would make it load. Writes nothing."""
    from inspector.keys.diagnose import diagnose as ask

    checkpoint = open_file(file)
    chosen = pick_state(checkpoint, state)
    goal = find_target(target, checkpoint, chosen)
    report = ask(
        checkpoint,
        goal,
        # None lets the diagnosis say that it chose among several.
        state=chosen if state else None,
        accept=tuple(accept or ()),
        choose=parse_choices(choose),
        partial=partial,
    )
    if code:
        from inspector.keys.code import python_code

        if report.plan is None or not report.plan.complete:
            raise ExportError(report.refusal or report.says, hint="There are no lines that would load it as it stands.")
        lines = python_code(report.plan, file_name=checkpoint.origin.name, spec=goal.spec)
        if json:
            show_json({"code": lines})
        else:
            with printing():
                print(lines)
        return 0

    if values:
        return _numbers(checkpoint, report, goal, as_json=json)

    def text() -> RenderableType:
        from inspector.render.repair_text import keys_text

        return keys_text(report)

    show(report, text, as_json=json)
    return exit_code(report.findings, fail_on)


def _numbers(checkpoint: Checkpoint, report: KeyReport, target: Target, *, as_json: bool) -> int:
    """1 where a number speaks against a place or an answer. Raises ExportError where there is nothing to ask them: no
    plan, or neither a batch norm nor a question about an order of numbers."""
    from inspector.keys.certificate.of_plan import certificate_of_plan
    from inspector.keys.witnesses.hearing import hear, may_be_heard

    plan = report.plan
    if plan is None:
        raise ExportError(report.refusal or report.says, hint="Without a plan no tensor has a place to be asked about.")
    certificate = certificate_of_plan(checkpoint, plan, target)
    if certificate is None and not may_be_heard(plan):
        raise ExportError(
            f"{target.label} has no batch norms with running statistics, and no order of numbers is in question.",
            hint="Running means are what tells where a tensor belongs; nothing else in a file does.",
        )
    statements = hear(checkpoint, plan, target)
    heard = may_be_heard(plan)

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.certificate_text import certificate_text
        from inspector.render.statements_text import statements_text

        parts = [statements_text(statements, plan)] if heard else []
        if certificate is not None:
            parts.append(certificate_text(certificate))
        return Group(*parts)

    show({"statements": statements, "certificate": certificate}, text, as_json=as_json)
    against = any(one.contradicts for one in statements) or (certificate is not None and certificate.contradicts)
    return 1 if against else 0
