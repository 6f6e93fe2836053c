"""check: many files and folders held against everything that may be wrong with a checkpoint."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.check_output import Format, outputs_of, show_report, write_reports
from inspector.cli.options import Json, progress_bar, refuse_addresses
from inspector.errors import UsageError
from inspector.findings import Severity
from inspector.units import parse_size

if TYPE_CHECKING:
    from inspector.lint.request import Settings

Paths = Annotated[list[str], typer.Argument(help="Files and folders; everything below a folder is looked at.")]
Headers = Annotated[bool, typer.Option("--headers", help="Read no numbers: what the headers say, and no more.")]
WeightsUpTo = Annotated[
    str, typer.Option("--weights-up-to", metavar="SIZE", help="Read the numbers of files up to this size, e.g. 2GB.")
]
Spectra = Annotated[
    bool, typer.Option("--spectra", help="Also the singular values of every weight: norms, ranks; slow.")
]
LeastSevere = Annotated[
    Severity | None, typer.Option("--fail-on", help="Exit with 1 from this severity on; error if left out.")
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="IDS", help="Only these findings: ids with commas, beginnings of ids, or *."),
]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", metavar="IDS", help="Not these findings.")]
Baseline = Annotated[
    Path | None, typer.Option("--baseline", metavar="FILE", help="Known findings, which do not count.")
]
WriteBaseline = Annotated[
    Path | None,
    typer.Option("--write-baseline", metavar="FILE", help="Write what is found as known, for --baseline; exit with 0."),
]
FormatOption = Annotated[Format | None, typer.Option("--format", help="Of standard output; text if left out.")]
OutputOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The report as a file too: .sarif, .json, .xml (JUnit), .md, .txt, else as --format. May be repeated.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings; if left out, the nearest inspector.toml from the first path upwards.",
    ),
]
NoConfig = Annotated[bool, typer.Option("--no-config", help="Read no inspector.toml: for files of strangers.")]
Everything = Annotated[bool, typer.Option("--all", help="Also info, and a line for each file without findings.")]
Jobs = Annotated[int, typer.Option(help="Files read side by side; 0: one per processor.", min=0, max=256)]
Digest = Annotated[bool, typer.Option("--digest", help="Also compute the sha256 of each checkpoint.")]


def check(
    paths: Paths,
    headers: Headers = False,
    weights_up_to: WeightsUpTo = "",
    spectra: Spectra = False,
    fail_on: LeastSevere = None,
    select: Select = None,
    ignore: Ignore = None,
    baseline: Baseline = None,
    write_baseline: WriteBaseline = None,
    format_: FormatOption = None,
    output: OutputOption = None,
    config: Config = None,
    no_config: NoConfig = False,
    everything: Everything = False,
    jobs: Jobs = 0,
    digest: Digest = False,
    json: Json = False,
) -> int:
    """Check files and folders for commits and pipelines: what their headers and their numbers say is wrong."""
    from inspector.lint.baseline import baseline_text, entries_of
    from inspector.lint.check import check as check_files
    from inspector.lint.request import CheckRequest

    if json and format_ not in (None, Format.JSON):
        raise UsageError(f"--json and --format {format_.value} both say the format.", hint="Give one of them.")
    if headers and spectra:
        raise UsageError("--headers reads no numbers, and --spectra needs them.", hint="Give one of them.")
    refuse_addresses(paths, "check")
    plan = outputs_of(Format.JSON if json else format_, output or (), write_baseline, paths)
    settings = _settings(paths[0], config, no_config)
    settings = replace(
        settings,
        fail_on=fail_on or settings.fail_on,
        select=_ids(select) or settings.select,
        ignore=_ids(ignore) or settings.ignore,
        weights_up_to=parse_size(weights_up_to) if weights_up_to else settings.weights_up_to,
    )
    request = CheckRequest(
        paths=tuple(Path(path) for path in paths),
        base=Path.cwd(),
        settings=settings,
        headers=headers,
        spectra=spectra,
        baseline=baseline,
        learn=write_baseline is not None,
        digest=digest,
        jobs=jobs or os.cpu_count() or 1,
    )
    checked = check_files(request, progress=progress_bar("checking"))
    texts: tuple[tuple[Path, str], ...] = ()
    if write_baseline is not None:
        texts = ((write_baseline, baseline_text(entries_of(write_baseline, request.base, checked.heard))),)
    write_reports(checked.report, plan, texts, everything=everything)
    show_report(checked.report, plan.shown, everything=everything)
    return int(checked.report.failed)


def _settings(first: str, config: Path | None, no_config: bool) -> Settings:
    from inspector.lint.request import Settings
    from inspector.lint.settings_file import find_settings, read_settings

    if config is not None and no_config:
        raise UsageError("--config and --no-config contradict each other.", hint="Give one of them.")
    path = None if no_config else config or find_settings(Path(first))
    return read_settings(path) if path is not None else Settings()


def _ids(given: list[str] | None) -> tuple[str, ...]:
    """What stands between the commas; an empty one is a mistake that the check names."""
    return tuple(part.strip() for text in given or () for part in text.split(","))
