"""audit: a check over a store, here, in processes or on a cluster, whole or a part; merge-parts: its report anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    Select,
    Spectra,
    Told,
    WeightsUpTo,
    form_of,
    request_of,
)
from inspector.cli.ending import complain
from inspector.cli.options import UNASKED_NBYTES, Json, StoreOption, Yes, progress_bar, show
from inspector.errors import InspectorError, MissingLibrary, ReadError, UsageError
from inspector.units import counted

if TYPE_CHECKING:
    from inspector.evaluate.parts import EvaluationRun
    from inspector.sweep.store import ResultStore

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        help="Files and folders, s3://, gs:// and az:// prefixes, hf://org/name, hf://org/, files at https://."
    ),
]
FromOption = Annotated[
    str, typer.Option("--from", metavar="FILE", help="A text with one more source in each line; # begins a remark.")
]
ExecutorOption = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="WHERE",
        help='"processes" (if left out), "threads", or a Dask scheduler: tcp://host:8786.',
    ),
]
PartOption = Annotated[
    str, typer.Option("--part", metavar="I/N", help="Only this share of the files, for arrays of jobs: 3/16.")
]
Stores = Annotated[list[str], typer.Argument(help="The stores that the parts of a run wrote: one or several.")]
CatalogueOption = Annotated[
    str,
    typer.Option("--catalogue", metavar="DIR", help="The folder of the catalogue, for `query`; else the store itself."),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Of an evaluation: write report, tables and scores.")
]
CsvOption = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Of an evaluation: write a table with a row for each picture."),
]
IntoOption = Annotated[
    str,
    typer.Option(
        "--into", metavar="STORE", help="Copy what the stores keep into one; of heat maps that is all there is."
    ),
]
RunOption = Annotated[str, typer.Option("--run", metavar="ID", help="Which run, where the stores hold several.")]


def audit(
    store: StoreOption,
    sources: Sources = None,
    from_: FromOption = "",
    executor: ExecutorOption = "",
    part: PartOption = "1/1",
    catalogue: CatalogueOption = "",
    yes: Yes = False,
    headers: Headers = False,
    weights_up_to: WeightsUpTo = "",
    spectra: Spectra = False,
    fail_on: LeastSevere = None,
    select: Select = None,
    ignore: Ignore = None,
    baseline: Baseline = None,
    format_: FormatOption = None,
    output: OutputOption = None,
    config: Config = None,
    no_config: NoConfig = False,
    everything: Everything = False,
    jobs: Jobs = 0,
    digest: Digest = False,
    json: Json = False,
) -> int:
    """Check a fleet of files, resumably: what the store holds is not read again, and any part may run anywhere."""
    from inspector.catalogue.parts import catalogue_of
    from inspector.lint.audit import audit as audit_files
    from inspector.survey.survey import How
    from inspector.sweep.piece import parse_part
    from inspector.sweep.store import open_store

    form = form_of(json, format_)
    told = Told(
        headers=headers,
        weights_up_to=weights_up_to,
        spectra=spectra,
        fail_on=fail_on,
        select=select,
        ignore=ignore,
        baseline=baseline,
        config=config,
        no_config=no_config,
        jobs=jobs,
        digest=digest,
    )
    named = [*(sources or ()), *(_listed(from_) if from_ else ())]
    if not named:
        raise UsageError("There is nothing to audit.", hint="Name files, folders or addresses, or a list: --from FILE.")
    addresses = [source for source in named if "://" in source]
    places = [source for source in named if "://" not in source]
    plan = outputs_of(form, output or (), None, places)
    request = request_of(places, told)
    how = How(jobs=request.jobs, executor=executor, store=open_store(store), part=parse_part(part))
    checked = audit_files(
        request,
        how,
        addresses=addresses,
        most_nbytes=None if yes else UNASKED_NBYTES,
        catalogue=catalogue_of(catalogue).root if catalogue else None,
        progress=progress_bar("auditing"),
    )
    write_reports(checked.report, plan, (), everything=everything)
    show_report(checked.report, plan.shown, everything=everything)
    for remark in how.store.remarks if how.store is not None else ():
        complain(remark)
    _bring_up_to_date((how.store,) if how.store is not None else (), catalogue or store)
    return int(checked.report.failed)


def merge_parts(
    stores: Stores,
    run: RunOption = "",
    into: IntoOption = "",
    catalogue: CatalogueOption = "",
    fail_on: LeastSevere = None,
    select: Select = None,
    ignore: Ignore = None,
    baseline: Baseline = None,
    format_: FormatOption = None,
    output: OutputOption = None,
    config: Config = None,
    no_config: NoConfig = False,
    everything: Everything = False,
    out: OutOption = None,
    csv: CsvOption = None,
    json: Json = False,
) -> int:
    """The report of an audit or an evaluation whose parts ran apart, from their stores alone; it says which are
    missing. With --into one store has the results of all, those of heat maps too."""
    from inspector.lint.audit import merge_parts as merged
    from inspector.sweep.store import existing_store

    opened = [existing_store(one) for one in stores]
    if into and _gathered(opened, into):
        return 0
    evaluation = _evaluation_of(opened, run)
    if evaluation is not None:
        return _merge_evaluation(opened, evaluation, out, csv, as_json=json)
    if out is not None or csv is not None:
        raise UsageError("--out and --csv are of evaluations.", hint="An audit is written with --output.")
    form = form_of(json, format_)
    told = Told(fail_on=fail_on, select=select, ignore=ignore, baseline=baseline, config=config, no_config=no_config)
    plan = outputs_of(form, output or (), None, stores)
    checked = merged(request_of([], told), opened, run)
    write_reports(checked.report, plan, (), everything=everything)
    show_report(checked.report, plan.shown, everything=everything)
    if catalogue or len(stores) == 1:
        _bring_up_to_date(opened, catalogue or stores[0])
    return int(checked.report.failed)


def _gathered(stores: Sequence[ResultStore], into: str) -> bool:
    """Copy what they keep, and say so. Whether that is all that can be done: no run in them has a report."""
    from inspector.evaluate.parts import evaluation_runs
    from inspector.lint.audit import runs_of
    from inspector.sweep.gather import gather
    from inspector.sweep.store import open_store

    target = open_store(into)
    came = gather(stores, target)
    complain(f"{counted(came, 'part')} of results came into {target.shown}.")
    for store in stores:
        if store.damaged:
            complain(f"What is damaged in {store.shown} stayed behind, first {store.damaged[0]}.")
    return not evaluation_runs(stores) and not runs_of(stores)


def _evaluation_of(stores: Sequence[ResultStore], run: str) -> EvaluationRun | None:
    """The evaluation that is meant; None where an audit is, or nothing that is there. Raises ReadError for several."""
    from inspector.evaluate.parts import evaluation_runs
    from inspector.lint.audit import runs_of

    found = [one for one in evaluation_runs(stores) if one.id.startswith(run)]
    if not found:
        return None
    audits = [one for one in runs_of(stores) if one.id.startswith(run)]
    if len(found) == 1 and not audits:
        return found[0]
    lines = [f"{one.id}: {one.checkpoint} on {one.data}, {len(one.ended)} of {one.of} parts" for one in found[:20]]
    lines += [f"{one.id}: {' '.join(one.sources)}, {len(one.ended)} of {one.of} parts" for one in audits[:20]]
    raise ReadError(
        f"The store holds {len(found) + len(audits)} runs.", hint=f"Name one with --run. {'; '.join(lines)}."
    )


def _merge_evaluation(
    stores: Sequence[ResultStore], run: EvaluationRun, out: Path | None, csv: Path | None, *, as_json: bool
) -> int:
    from inspector.cli.evaluating import Files
    from inspector.evaluate.parts import merge_scores
    from inspector.render.evaluation import evaluation_text, pictures_csv

    report, scores = merge_scores(stores, run.id)
    files = Files(out, inputs=())
    files.write_report(report, scores.values)
    if csv is not None:
        files.write(csv, pictures_csv(report).encode())
    show({"evaluation": report}, lambda: evaluation_text(report, None, files.written), as_json=as_json)
    return 1 if report.unread else 0


def _listed(place: str) -> list[str]:
    from inspector.side_files import read_text

    lines = read_text(place, "list of sources", hint="One in each line.").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _bring_up_to_date(stores: Sequence[ResultStore], where: str) -> None:
    """The catalogue, where it can be made; what it says of itself is no part of the report, and fails no audit."""
    from inspector.catalogue.parts import catalogue_of
    from inspector.catalogue.update import update
    from inspector.readers.bucket import is_bucket_address

    if is_bucket_address(where):
        # DuckDB writes files; what is asked of them should not cross a network each time either.
        complain(f"No catalogue was made: name a folder for it. Make it with: merge-parts {where} --catalogue DIR.")
        return
    try:
        updated = update(stores, catalogue_of(where))
    except MissingLibrary as error:
        complain(f"No catalogue was made. {error}")
    except InspectorError as error:
        complain(str(error))
    else:
        if updated.damaged:
            complain(f"Damaged files of the catalogue were made anew, first {updated.damaged[0]}.")
