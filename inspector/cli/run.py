"""run: the checkpoints of one training, in its order: what moved when, what they state, where NaN began.

Exit codes: 0 no finding at or above --fail-on, 1 one of them, 2 fewer than two checkpoints that belong together.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import FailOn, Json, State, exit_code, progress_bar, show
from inspector.errors import ExportError, UsageError
from inspector.findings import Severity
from inspector.side_files import PathKind, kind_of_path, reason_of, shown_name
from inspector.units import parse_size

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.run.groups import By
    from inspector.run.report import RunReport


def run_(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Checkpoints of one training, a folder or an archive of them."),
    ],
    by: Annotated[str, typer.Option("--by", metavar="WHAT", help="Rows by module, role or tensor.")] = "module",
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="DIR", help="Write members.csv and series.csv into a folder, made if not there."),
    ] = None,
    most_read: Annotated[
        str,
        typer.Option("--most-read", metavar="SIZE", help="Tensor bytes to read at most; of more, evenly spaced files."),
    ] = "1TB",
    state: State = "",
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Read the checkpoints of a training as one: RMS, updates, histograms over time, what they state, first NaN.

    They stand in the order of the epoch and step that they state, else of their names. TensorBoard's event files beside
    them are read, too. What is broken or belongs to something else is left out and named.
    """
    from inspector.render.run import run_json, run_text
    from inspector.run.measure import measure_run
    from inspector.run_files import files_of

    chosen = _by(by)
    if csv is not None and kind_of_path(csv) not in (PathKind.FOLDER, PathKind.NOTHING):
        raise UsageError(f"{shown_name(csv)} is no folder.", hint="Name a folder.")
    files, events = files_of(paths)
    report = measure_run(
        files, events, state=state, budget_nbytes=parse_size(most_read), progress=progress_bar("reading the run")
    )
    if csv is not None:
        _write_csv(csv, report, chosen)

    def text() -> RenderableType:
        return run_text(report, chosen)

    show(run_json(report, chosen) if json else None, text, as_json=json)
    return 2 if len(report.members) < 2 else exit_code(report.findings, fail_on)


def _by(text: str) -> By:
    from inspector.run.groups import By

    if text not in list(By):
        raise UsageError(f'There are no rows by "{text}".', hint=f"Choose one of: {', '.join(By)}.")
    return By(text)


def _write_csv(folder: Path, report: RunReport, by: By) -> None:
    from inspector.new_files import new_file
    from inspector.render.run import members_csv, series_csv

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("members.csv", members_csv(report)), ("series.csv", series_csv(report, by))):
            with new_file(folder / name, overwrite=True) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise ExportError(f"{shown_name(folder)} cannot be written: {reason_of(error)}.") from error
