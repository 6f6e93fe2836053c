"""evaluate: how good is a classifier on pictures that lie in class folders?"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import FILE_HELP, Json, State, StoreOption, TargetOption, progress_bar, show
from inspector.cli.pieces import PiecesExecutor, PiecesJobs, PiecesPart, PiecesThreads
from inspector.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.cam.runs import ReadyModel
    from inspector.cam.sweeping.run import Running
    from inspector.cli.evaluating import Files
    from inspector.evaluate.labels import ClassFolders
    from inspector.evaluate.parts import Share
    from inspector.evaluate.report import Comparison, Evaluation
    from inspector.sweep.piece import Part
    from inspector.sweep.store import ResultStore

Out = Path | None


def evaluate(
    file: Annotated[str, typer.Argument(help=FILE_HELP)],
    folder: Annotated[
        Path, typer.Argument(help="A folder for each class with its pictures in it, or a zip or tar of such folders.")
    ],
    against: Annotated[
        str, typer.Option("--against", metavar="FILE", help="Another checkpoint, compared by McNemar's test.")
    ] = "",
    csv: Annotated[
        Out, typer.Option("--csv", metavar="FILE", help="Write a table with a row for each picture.")
    ] = None,
    out: Annotated[
        Out,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write report, tables, scores and heat maps of the worst cases; what was stopped goes on from there.",
        ),
    ] = None,
    names: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Class names in output order: JSON, or one in each line; or cifar-10, imagenet-1k ..."
        ),
    ] = "",
    preprocessing: Annotated[
        str, typer.Option(metavar="JSON", help="size or resize and crop, mean, std, interpolation; else inferred.")
    ] = "",
    store: StoreOption = "",
    executor: PiecesExecutor = "",
    jobs: PiecesJobs = 0,
    part: PiecesPart = "1/1",
    threads: PiecesThreads = 0,
    target: TargetOption = "",
    state: State = "",
    json: Json = False,
) -> int:
    """Score a recognised classifier on pictures in class folders, as torchvision's ImageFolder lists them.

    With --store, --executor, --jobs or --part by pieces of 32 pictures, of which none is scored again after an
    interruption.
    """
    from inspector.cam.sweeping.run import Running
    from inspector.cli.evaluating import Files
    from inspector.cli.output import check_place
    from inspector.evaluate.compare import compare
    from inspector.evaluate.labels import open_class_folders
    from inspector.render.evaluation import evaluation_text, pictures_csv
    from inspector.sweep.engines import engine_of
    from inspector.sweep.piece import parse_part
    from inspector.sweep.store import open_store

    share = parse_part(part)
    if share.of > 1:
        _check_part(store, out, csv, against)
    if csv is not None:
        check_place(csv, (file, against, target, names))
    by_pieces = bool(store or executor or jobs or share.of > 1)
    if threads or by_pieces:
        import torch

        torch.set_num_threads(threads or 1)
    folders = open_class_folders(folder)
    files = Files(out, inputs=(file, against, target, names))
    loading = partial(_loading, state=state, target=target, preprocessing=preprocessing)
    results = open_store(store) if store else None
    second: Evaluation | None = None
    comparison: Comparison | None = None
    with engine_of(executor, jobs if by_pieces else 1) as engine:
        running = Running(engine=engine, part=share, reopen=loading(file))
        ready = _loaded(loading(file), names)
        if share.of > 1 and results is not None:
            return _scored_part(ready, folders, running, results, as_json=json)
        report = _evaluated(ready, folders, files, running, results)
        del ready  # one model is held at a time
        if against:
            running = replace(running, reopen=loading(against))
            second = _evaluated(_loaded(loading(against), names), folders, files.below("against"), running, results)
            comparison = compare(report, second)
    if comparison is not None:
        files.write_json("comparison.json", comparison)
    if csv is not None:
        files.write(csv, pictures_csv(report).encode())
    found: dict[str, object] = {"evaluation": report}
    if comparison is not None:
        found |= {"against": second, "comparison": comparison}
    show(found, lambda: evaluation_text(report, comparison, files.written), as_json=json)
    return 1 if report.unread else 0


def _check_part(store: str, out: Out, csv: Out, against: str) -> None:
    if not store:
        raise UsageError("A part is scored into a store.", hint="Name one: --store DIR.")
    if out is not None or csv is not None or against:
        raise UsageError(
            "--out, --csv and --against are of all pictures.",
            hint="Once all parts have ended, merge-parts writes both tables.",
        )


def _loading(file: str, *, state: str, target: str, preprocessing: str) -> partial[ReadyModel]:
    """What opens the model, here and wherever pieces run."""
    from inspector.cli.explaining import load

    # A worker may have been started elsewhere.
    place = file if "://" in file else os.path.abspath(file)
    return partial(load, place, state=state, target=target, preprocessing=preprocessing, names="")


def _loaded(loading: partial[ReadyModel], names: str) -> ReadyModel:
    """Raises UsageError where names that the person gives are not as many as the outputs."""
    from inspector.cli.explaining import names_of
    from inspector.evaluate.mapping import check_given
    from inspector.evaluate.run import outputs_of

    # Read before the work; what the file itself says is kept, to be named where the person's list does not fit.
    given = names_of(names) if names else ()
    own = loading()
    if own.weights_note:
        typer.echo(f"{own.weights_note} --state runs another.", err=True)
    if not given:
        return own
    check_given(given, outputs_of(own), own.class_names)
    return replace(own, class_names=given)


def _evaluated(
    ready: ReadyModel, folders: ClassFolders, files: Files, running: Running, store: ResultStore | None
) -> Evaluation:
    from inspector.evaluate.parts import score_share
    from inspector.evaluate.run import evaluated, score_model
    from inspector.evaluate.summarise import summarise

    bar = progress_bar("evaluating")
    if store is not None:
        share = score_share(ready, folders, running, store, progress=bar)
        scores, mapping = share.scores, share.mapping
    else:
        scores, mapping = score_model(ready, folders, replace(running, store=files.keep_scores()), progress=bar)
    report = summarise(scores.values, scores.unread, folders.listing, mapping, evaluated(ready))
    files.write_report(report, scores.values)
    files.write_worst(ready, folders, report)
    files.drop_scores()
    return report


def _scored_part(
    ready: ReadyModel, folders: ClassFolders, running: Running, store: ResultStore, *, as_json: bool
) -> int:
    from inspector.evaluate.parts import score_share

    share = score_share(ready, folders, running, store, progress=progress_bar("evaluating"))
    paths = folders.listing.paths
    report = {
        "run": share.run,
        "part": running.part.number,
        "of": running.part.of,
        "pictures": len(share.positions),
        "listed": len(paths),
        "unread": [(paths[position], why) for position, why in share.scores.unread],
    }
    show(report, lambda: _part_text(share, running.part, len(paths), store.shown), as_json=as_json)
    return 1 if share.scores.unread else 0


def _part_text(share: Share, part: Part, listed: int, store: str) -> RenderableType:
    from inspector.render.text import safe
    from inspector.units import counted

    scored = len(share.positions) - len(share.scores.unread)
    says = f"Part {part.number} of {part.of}: {scored:,} of {listed:,} pictures scored"
    if share.scores.unread:
        says += f", {counted(len(share.scores.unread), 'picture')} could not be read"
    return safe(f"{says}. Once all parts have ended: merge-parts {store} --run {share.run}")
