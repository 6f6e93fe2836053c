"""What a check and an audit are told on the command line: the same options, the same request."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.check_output import Format
from inspector.errors import UsageError
from inspector.findings import Severity
from inspector.units import parse_size

if TYPE_CHECKING:
    from inspector.lint.request import CheckRequest, Settings

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
Digest = Annotated[
    bool, typer.Option("--digest", help="Also compute the sha256 of each checkpoint; of an audit's tensors, too.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The options of a check, as they were given."""

    headers: bool = False
    weights_up_to: str = ""
    spectra: bool = False
    fail_on: Severity | None = None
    select: list[str] | None = None
    ignore: list[str] | None = None
    baseline: Path | None = None
    learn: bool = False
    config: Path | None = None
    no_config: bool = False
    jobs: int = 0
    digest: bool = False


def request_of(paths: list[str], told: Told) -> CheckRequest:
    """Raises UsageError for options that contradict each other, and for settings that are none."""
    from inspector.lint.request import CheckRequest

    if told.headers and told.spectra:
        raise UsageError("--headers reads no numbers, and --spectra needs them.", hint="Give one of them.")
    settings = _settings(paths[0] if paths else ".", told.config, told.no_config)
    settings = replace(
        settings,
        fail_on=told.fail_on or settings.fail_on,
        select=_ids(told.select) or settings.select,
        ignore=_ids(told.ignore) or settings.ignore,
        weights_up_to=parse_size(told.weights_up_to) if told.weights_up_to else settings.weights_up_to,
    )
    return CheckRequest(
        paths=tuple(Path(path) for path in paths),
        base=Path.cwd(),
        settings=settings,
        headers=told.headers,
        spectra=told.spectra,
        baseline=told.baseline,
        learn=told.learn,
        digest=told.digest,
        jobs=told.jobs or os.cpu_count() or 1,
    )


def form_of(json: bool, chosen: Format | None) -> Format | None:
    """The format of standard output. Raises UsageError where two are named."""
    if json and chosen not in (None, Format.JSON):
        raise UsageError(f"--json and --format {chosen.value} both say the format.", hint="Give one of them.")
    return Format.JSON if json else chosen


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
