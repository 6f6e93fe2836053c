"""diagnose and repair: commands that compare a file with a target."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    progress_bar,
    show,
)
from inspector.errors import ExportError, UsageError
from inspector.findings import Severity

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.checkpoint.types import Checkpoint, StateDict
    from inspector.keys.report import KeyReport

Accept = Annotated[
    list[str] | None, typer.Option("--accept", metavar="RULE", help="Allow a lossy rule; may be given several times.")
]
Choose = Annotated[
    list[str] | None, typer.Option("--choose", metavar="ID=OPTION", help="Answer an open question; may be repeated.")
]

Partial = Annotated[
    bool,
    typer.Option("--partial", help="A part is enough: what the file lacks stays at the model's initial value, listed."),
]


def diagnose(
    file: File,
    target: TargetOption = "",
    state: State = "",
    accept: Accept = None,
    choose: Choose = None,
    partial: Partial = False,
    code: Annotated[bool, typer.Option("--code", help="Print only the Python lines that load the file.")] = False,
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Say why a file does not load into a target, and what would make it load. Writes nothing."""
    from inspector.keys.diagnose import diagnose as ask

    checkpoint = open_file(file)
    chosen = pick_state(checkpoint, state)
    report = ask(
        checkpoint,
        find_target(target, checkpoint, chosen),
        # None lets the diagnosis say that it chose among several.
        state=chosen if state else None,
        accept=tuple(accept or ()),
        choose=_choices(choose),
        partial=partial,
    )
    if code:
        from inspector.keys.code import python_code

        if report.plan is None or not report.plan.complete:
            raise ExportError(report.refusal or report.says, hint="There are no lines that would load it as it stands.")
        print(python_code(report.plan, file_name=checkpoint.origin.name))
        return 0

    def text() -> RenderableType:
        from inspector.render.text import keys_text

        return keys_text(report)

    show(report, text, as_json=json)
    return exit_code(report.findings, fail_on)


def repair(
    file: File,
    target: TargetOption = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write: .pth or .safetensors decides the format.")
    ] = None,
    state: State = "",
    accept: Accept = None,
    choose: Choose = None,
    partial: Partial = False,
    writer: Annotated[
        str, typer.Option("--format", help="Writer, if the name of OUT does not say: pth, safetensors ...")
    ] = "",
    dtype: Annotated[
        str, typer.Option(help="Cast the weights: float16, bfloat16, float32; as stored if left out.")
    ] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    salvage: Annotated[
        bool,
        typer.Option(
            "--salvage", help="Write the tensors that are whole, names as they are; no target. Lists the rest."
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Repair a file for a target, verify it and write it. Exits with 1 and writes nothing when it refuses."""
    from inspector.exports.export import export_repaired
    from inspector.keys.diagnose import diagnose as ask

    if output is None:
        raise UsageError("Where should the repaired file go?", hint="Give --output OUT.pth or OUT.safetensors.")
    if _exists(output) and not overwrite:
        raise UsageError(f"{output.name} exists already.", hint="Choose another name, or pass --overwrite.")
    checkpoint = open_file(file)
    chosen = pick_state(checkpoint, state)
    if salvage:
        if target or accept or choose or dtype or partial:
            raise UsageError("--salvage takes no target, rule, choice or dtype.", hint="It writes tensors as they are.")
        return _salvage(checkpoint, chosen, output, writer or _writer_for(output), as_json=json)
    goal = find_target(target, checkpoint, chosen)
    report = ask(
        checkpoint,
        goal,
        state=chosen if state else None,
        accept=tuple(accept or ()),
        choose=_choices(choose),
        partial=partial,
    )
    plan = report.plan
    if plan is None or not plan.complete:
        _show_refusal(report, as_json=json)
        return 1
    try:
        written = export_repaired(
            checkpoint,
            plan,
            goal,
            output,
            writer=writer or _writer_for(output),
            dtype=dtype or None,
            progress=progress_bar("writing"),
        )
    except ExportError as error:
        print(f"Refused: {error}", file=sys.stderr)
        return 1

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.text import export_text, keys_text

        return Group(keys_text(report), "", export_text(written))

    show({"diagnosis": report, "export": written}, text, as_json=json)
    return 0 if written.verification.holds else 1


def _salvage(checkpoint: Checkpoint, chosen: StateDict | None, output: Path, writer: str, *, as_json: bool) -> int:
    from inspector.exports.salvage import export_readable

    if chosen is None:
        raise UsageError(f"{checkpoint.origin.name} holds no named tensors.", hint="There is nothing to salvage.")
    try:
        written = export_readable(checkpoint, chosen, output, writer=writer, progress=progress_bar("writing"))
    except ExportError as error:
        print(f"Refused: {error}", file=sys.stderr)
        return 1

    def text() -> RenderableType:
        from inspector.render.text import export_text

        return export_text(written)

    show({"export": written}, text, as_json=as_json)
    return 0


def _exists(path: Path) -> bool:
    # A name that no file can have does not exist; the export refuses it in words.
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _show_refusal(report: KeyReport, *, as_json: bool) -> None:
    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.text import keys_text

        return Group(keys_text(report), "", "[bold]Nothing was written.[/bold]")

    show({"diagnosis": report, "export": None}, text, as_json=as_json)


def _choices(choose: list[str] | None) -> dict[str, str]:
    """["twin=ema"] -> {"twin": "ema"}."""
    made: dict[str, str] = {}
    for text in choose or ():
        question, equals, option = text.partition("=")
        if not equals:
            raise UsageError(f'"{text}" is no choice.', hint="Write --choose ID=OPTION as the diagnosis shows it.")
        made[question] = option
    return made


def _writer_for(output: Path) -> str:
    """The first writer of that suffix: out.safetensors -> "safetensors", out.pth, out.pt ... -> "pth"."""
    from inspector.exports.writers import WRITERS

    suffix = output.suffix.lower()
    for entry in WRITERS:
        if entry.suffix == suffix or (entry.id == "pth" and suffix in {".pt", ".bin", ".ckpt", ".tar", ".th"}):
            return entry.id
    raise UsageError(
        f'The name "{output.name}" does not say which format to write.', hint="Pass --format pth or safetensors."
    )
