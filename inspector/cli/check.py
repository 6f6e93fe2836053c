"""check: many files and folders held against everything that may be wrong with a checkpoint."""

from __future__ import annotations

from pathlib import Path

from inspector.cli.check_output import outputs_of, show_report, write_reports
from inspector.cli.check_request import (
    Baseline,
    Config,
    Digest,
    Everything,
    FormatOption,
    Headers,
    Ignore,
    Jobs,
    LeastSevere,
    NoConfig,
    OutputOption,
    Paths,
    Select,
    Spectra,
    Told,
    WeightsUpTo,
    WriteBaseline,
    form_of,
    request_of,
)
from inspector.cli.options import Json, progress_bar, refuse_addresses


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

    form = form_of(json, format_)
    told = Told(
        headers=headers,
        weights_up_to=weights_up_to,
        spectra=spectra,
        fail_on=fail_on,
        select=select,
        ignore=ignore,
        baseline=baseline,
        learn=write_baseline is not None,
        config=config,
        no_config=no_config,
        jobs=jobs,
        digest=digest,
    )
    refuse_addresses(paths, "check")
    plan = outputs_of(form, output or (), write_baseline, paths)
    request = request_of(paths, told)
    checked = check_files(request, progress=progress_bar("checking"))
    texts: tuple[tuple[Path, str], ...] = ()
    if write_baseline is not None:
        texts = ((write_baseline, baseline_text(entries_of(write_baseline, request.base, checked.heard))),)
    write_reports(checked.report, plan, texts, everything=everything)
    show_report(checked.report, plan.shown, everything=everything)
    return int(checked.report.failed)
