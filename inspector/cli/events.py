"""events: what TensorBoard's event files hold, without TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.ending import complain
from inspector.cli.options import FailOn, Json, exit_code, progress_bar, show
from inspector.cli.output import Overwrite, check_is_new, check_place, written_whole
from inspector.errors import ReadError, UsageError
from inspector.findings import Severity
from inspector.side_files import PathKind, kind_of_path, shown_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.events.report import EventLog


def events(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="An event file, a folder with runs, or with --beside a checkpoint.")
    ],
    beside: Annotated[
        bool, typer.Option("--beside", help="PATH is a checkpoint: read the runs that lie where its training logs.")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="OUT", help="Write every scalar as a line of CSV.")
    ] = None,
    overwrite: Overwrite = False,
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Read TensorBoard's event files: scalars, histograms, images, texts, curves, and what is damaged in them.

    A folder with event files is a run. Steps that were logged twice are read as TensorBoard shows them: the later value
    stands.
    """
    from inspector.events.find import event_runs_beside, find_event_runs
    from inspector.events.read import read_events
    from inspector.render.events import events_csv, events_json, events_text

    if csv is not None:
        check_place(csv, [path])
        check_is_new(csv, overwrite=overwrite)
    if kind_of_path(path) is PathKind.NOTHING:
        raise UsageError(f"There is nothing called {shown_name(path)}.", hint="Check the path.")
    found = event_runs_beside(path) if beside else find_event_runs(path)
    if not found.runs:
        raise UsageError(
            f"No event files {'beside' if beside else 'in'} {shown_name(path)}.",
            hint='Their names have "tfevents" in them.',
        )
    logs: list[EventLog] = []
    unread: list[ReadError] = []
    for run in found.runs:
        try:
            logs.append(read_events(run.paths, name=run.name, progress=progress_bar("reading")))
        except ReadError as error:
            unread.append(error)
    if not logs:
        raise unread[0]
    for problem in unread:
        complain(str(problem))
    if csv is not None:
        with written_whole(csv) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            for piece in events_csv(logs):
                file.write(piece)

    def text() -> RenderableType:
        return events_text(logs, complete=found.complete)

    show({"runs": [events_json(log) for log in logs] if json else [], "complete": found.complete}, text, as_json=json)
    return 1 if unread else exit_code([finding for log in logs for finding in log.findings], fail_on)
