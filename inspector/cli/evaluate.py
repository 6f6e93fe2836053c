"""evaluate: how good is a classifier on pictures that lie in class folders?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import FILE_HELP, Json, State, TargetOption, progress_bar, show

if TYPE_CHECKING:
    from inspector.cam.runs import ReadyModel
    from inspector.cli.evaluating import Files
    from inspector.evaluate.labels import ClassFolders
    from inspector.evaluate.report import Comparison, Evaluation

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
    threads: Annotated[
        int, typer.Option(help="That torch computes with; its own choice if left out.", min=0, max=1024)
    ] = 0,
    target: TargetOption = "",
    state: State = "",
    json: Json = False,
) -> int:
    """Score a recognised classifier on pictures in class folders, as torchvision's ImageFolder lists them."""
    from inspector.cli.evaluating import Files
    from inspector.cli.output import check_place
    from inspector.evaluate.compare import compare
    from inspector.evaluate.labels import open_class_folders
    from inspector.render.evaluation import evaluation_text, pictures_csv

    if csv is not None:
        check_place(csv, (file, against, target, names))
    if threads:
        import torch

        torch.set_num_threads(threads)
    folders = open_class_folders(folder)
    loading = partial(_loaded, state=state, target=target, preprocessing=preprocessing, names=names)
    files = Files(out, inputs=(file, against, target, names))
    report = _evaluated(loading(file), folders, files)
    second: Evaluation | None = None
    comparison: Comparison | None = None
    if against:
        # The first model is let go: one is held at a time.
        second = _evaluated(loading(against), folders, files.below("against"))
        comparison = compare(report, second)
        files.write_json("comparison.json", comparison)
    if csv is not None:
        files.write(csv, pictures_csv(report).encode())
    found: dict[str, object] = {"evaluation": report}
    if comparison is not None:
        found |= {"against": second, "comparison": comparison}
    show(found, lambda: evaluation_text(report, comparison, files.written), as_json=json)
    return 1 if report.unread else 0


def _loaded(file: str, *, state: str, target: str, preprocessing: str, names: str) -> ReadyModel:
    """Raises UsageError where names that the person gives are not as many as the outputs."""
    from inspector.cli.explaining import load, names_of
    from inspector.evaluate.mapping import check_given
    from inspector.evaluate.run import outputs_of

    # Read before the work; what the file itself says is kept, to be named where the person's list does not fit.
    given = names_of(names) if names else ()
    own = load(file, state=state, target=target, preprocessing=preprocessing, names="")
    if not given:
        return own
    check_given(given, outputs_of(own), own.class_names)
    return replace(own, class_names=given)


def _evaluated(ready: ReadyModel, folders: ClassFolders, files: Files) -> Evaluation:
    from inspector.evaluate.run import evaluated, score_model
    from inspector.evaluate.summarise import summarise

    if ready.weights_note:
        typer.echo(f"{ready.weights_note} --state runs another.", err=True)
    scores, mapping = score_model(ready, folders, keeper=files.keeper, progress=progress_bar("evaluating"))
    report = summarise(scores.values, scores.unread, folders.listing, mapping, evaluated(ready))
    files.write_report(report, scores.values)
    files.write_worst(ready, folders, report)
    files.drop_scores()
    return report
