"""report: everything that is known of one file, as a page to send on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inspector.cli.ending import printing
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
    show_json,
)
from inspector.cli.output import check_place, written_whole
from inspector.errors import UsageError
from inspector.findings import Severity
from inspector.side_files import shown_name
from inspector.units import human_bytes

_PAGES, _DATA = (".html", ".htm"), ".json"


def report(
    file: File,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write: .html for the page, .json for its data alone."),
    ] = None,
    target: TargetOption = "",
    state: State = "",
    numbers: Annotated[
        bool,
        typer.Option(
            "--numbers/--no-numbers",
            help="Read every tensor, compute the sha256 and prove a repair; without, the headers alone answer.",
        ),
    ] = True,
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Write one page about a file that needs no network and no script: what it is, whether it loads, what is wrong.

    The page holds the same as JSON, under a published schema.
    """
    from inspector.file_report.make import make_report
    from inspector.render.page_report.page import report_html, report_json

    if output is None and not json:
        raise UsageError("Where should the report go?", hint="Give --output report.html, or --json.")
    if output is not None:
        _check_ending(output)
        check_place(output, (file, target))
    checkpoint = open_file(file)
    chosen = pick_state(checkpoint, state)
    goal = find_target(target, checkpoint, chosen) if target else None
    made = make_report(
        checkpoint,
        target=goal,
        state=chosen if state else None,
        numbers=numbers,
        progress=progress_bar("reading"),
    )
    if output is not None:
        text = report_json(made) + "\n" if output.suffix.lower() == _DATA else report_html(made)
        data = text.encode("utf-8")
        with written_whole(output) as temporary:
            temporary.write_bytes(data)
        if not json:
            with printing():
                print(f"Wrote {shown_name(output)}, {human_bytes(len(data))}.")
    if json:
        show_json(made)
    return exit_code(made.findings, fail_on)


def _check_ending(output: Path) -> None:
    if output.suffix.lower() not in (*_PAGES, _DATA):
        raise UsageError(
            f'The name "{output.name}" does not say what to write.',
            hint="End it in .html for the page, .json for data.",
        )
