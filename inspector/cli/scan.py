"""scan: a whole tree of files, one line each: `check --headers` with lines of its own, and no settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.ending import printing
from inspector.cli.options import FailOn, Json, progress_bar, refuse_addresses, show_json
from inspector.findings import Severity
from inspector.progress import silent

if TYPE_CHECKING:
    from inspector.survey.report import SurveyRow


def scan(
    folder: Annotated[str, typer.Argument(help="A folder; everything below it is looked at, whatever its name.")],
    everything: Annotated[bool, typer.Option("--all", help="Also a line for each file that is no checkpoint.")] = False,
    digest: Annotated[bool, typer.Option("--digest", help="Also compute the sha256 of each checkpoint.")] = False,
    jobs: Annotated[int, typer.Option(help="Files read side by side; 0: one per processor.", min=0, max=256)] = 0,
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Walk a folder of mixed files: format, producer, tensors, parameters and worst finding, a line each."""
    from inspector.lint.check import check
    from inspector.lint.request import CheckRequest, Settings
    from inspector.render.survey import HEADING, row_line, summary_line
    from inspector.survey.report import RowKind
    from inspector.survey.survey import require_folder

    shown = 0

    def each(row: SurveyRow) -> None:
        nonlocal shown
        if json or (row.kind is RowKind.OTHER and not everything):
            return
        with printing():
            if not shown:
                print(HEADING)
            shown += 1
            print(row_line(row), flush=True)

    # The lines are the progress; with --json there are none until the end.
    progress = progress_bar("reading") if json else silent
    refuse_addresses([folder], "scan")
    require_folder(folder)
    request = CheckRequest(
        paths=(Path(folder),),
        base=Path(folder),
        settings=Settings(fail_on=fail_on),
        git=True,
        headers=True,
        pointers_pass=False,
        digest=digest,
        jobs=jobs or os.cpu_count() or 1,
    )
    checked = check(request, each=each, progress=progress)
    survey = checked.survey
    if json:
        show_json(survey)
    else:
        with printing():
            print(("\n" if shown else "") + summary_line(survey, everything=everything))
    return int(checked.report.failed)
