"""project: the rows of a tensor as a map, and who is next to whom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import File, Json, State, open_file, pick_state, progress_bar, show
from inspector.cli.output import check_place, written_whole
from inspector.errors import UsageError
from inspector.side_files import PathKind, kind_of_path, read_bytes, shown_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
    from inspector.projector.report import Points, Projection

_NEAR = 10


def project(
    file: File,
    tensor: Annotated[str, typer.Argument(help="Its name, as open and stats list it; left out: the likeliest.")] = "",
    method: Annotated[str, typer.Option(help="pca, or with the extra [projector] tsne, umap.")] = "pca",
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Of methods with chance in them.")] = 0,
    axis: Annotated[int | None, typer.Option(min=0, help="Along which the rows lie; the outputs' if left out.")] = None,
    clusters: Annotated[int, typer.Option(min=0, help="Groups to find by k-means (extra [projector]).")] = 0,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names of the rows: one a line, vocab.json or tokenizer.json.")
    ] = None,
    near: Annotated[str, typer.Option("--near", metavar="ROW", help="Its nearest rows: a number, or a label.")] = "",
    metric: Annotated[str, typer.Option(help="Of --near: cosine or euclidean.")] = "cosine",
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write a line for each point.")] = None,
    tsv: Annotated[
        Path | None,
        typer.Option(
            "--tsv", metavar="DIR", help="Write vectors.tsv and metadata.tsv, as TensorBoard's projector takes them."
        ),
    ] = None,
    state: State = "",
    json: Json = False,
) -> int:
    """The rows of a tensor as a map: what lies together, what stands apart, what was never trained."""
    from inspector.projector.neighbours import Metric, nearest
    from inspector.projector.project import project as make
    from inspector.render.projection import points_csv, projection_plain

    if metric not in set(Metric):
        raise UsageError(f'There is no distance "{metric}".', hint=f"Distances: {', '.join(Metric)}.")
    _check_places(csv, tsv, file)
    checkpoint = open_file(file)
    chosen = pick_state(checkpoint, state)
    points, named_by = _labelled(_read(checkpoint, chosen, tensor, axis), checkpoint, chosen, labels, Path(file))
    found = make(points, method=method, seed=seed, clusters=clusters, progress=progress_bar("projecting"))
    if named_by:
        found = replace(found, says=(*found.says, named_by))
    neighbours = nearest(points, _number(points, near), metric=Metric(metric), count=_NEAR) if near else ()
    written = []
    if csv is not None:
        _write(csv, [points_csv(found)])
        written.append(shown_name(csv))
    if tsv is not None:
        written += _write_projector(tsv, points, found)

    def text() -> RenderableType:
        from inspector.render.projection_text import projection_text

        return projection_text(found, neighbours, metric, written)

    near_plain = [{"number": one.number, "distance": one.distance} for one in neighbours]
    show({"projection": projection_plain(found), "neighbours": near_plain, "written": written}, text, as_json=json)
    return 0


def _read(checkpoint: Checkpoint, state: StateDict | None, name: str, axis: int | None) -> Points:
    from inspector.health.roles import roles_of
    from inspector.projections import find_tensor, points_of
    from inspector.projector.rows import proposed_tensor

    if name:
        tensor: TensorInfo | None = find_tensor(checkpoint, name, state)
    else:
        tensors = state.tensors if state is not None else checkpoint.tensors
        tensor = proposed_tensor(tensors, dict(roles_of(tensors)))
    if tensor is None:
        raise UsageError(f"{checkpoint.origin.name} has no tensor of two or more dimensions.")
    return points_of(checkpoint, tensor, state, axis=axis, progress=progress_bar("reading"))


def _labelled(
    points: Points, checkpoint: Checkpoint, state: StateDict | None, labels: Path | None, file: Path
) -> tuple[Points, str]:
    """The points with names of their rows, and where these are from, in a sentence; as they are where nobody has any.

    Those of the file that was named first, then the classes that the checkpoint states for its head, then a vocabulary
    beside it that is as long as an embedding.
    """
    from inspector.projections import find_tensor, head_labels
    from inspector.projector.labels import BESIDE, MOST_NBYTES, fits, labels_at, labels_for, parse_labels

    def given(names: tuple[str, ...]) -> Points:
        return replace(points, labels=labels_at(names, points.numbers.tolist()))

    if labels is not None:
        names = parse_labels(read_bytes(labels, most_nbytes=MOST_NBYTES), shown_name(labels))
        return given(labels_for(names, points.total, shown_name(labels))), f"Labels from {shown_name(labels)}."
    tensor = find_tensor(checkpoint, points.name, state)
    if tensor.shape[0] == points.total and points.noun in ("row", "filter"):
        from inspector.architectures.recognise import recognise

        recognition = recognise(checkpoint, state) if state is not None else None
        names = head_labels(checkpoint, recognition, tensor, state)
        if names:
            return given(names), "Labels are the classes that the file states."
    if points.marked_as != "untrained":
        return points, ""
    folder = file if kind_of_path(file) is PathKind.FOLDER else file.parent
    for name in BESIDE:
        place = folder / name
        if kind_of_path(place) is not PathKind.FILE:
            continue
        names = parse_labels(read_bytes(place, most_nbytes=MOST_NBYTES), name)
        if fits(names, points.total):
            return given(names), f"Labels from {name} beside the file."
    return points, ""


def _number(points: Points, near: str) -> int:
    """The row that is meant. Raises UsageError for a label that there is not, or that several have."""
    if near.isdecimal() and len(near) < 12 and near not in points.labels:
        return int(near)
    places = [at for at, label in enumerate(points.labels) if label == near]
    if len(places) != 1:
        raise UsageError(
            f'{len(places):,} {points.noun}s of {points.name} are called "{near}".', hint="Give its number."
        )
    return int(points.numbers[places[0]])


def _check_places(csv: Path | None, tsv: Path | None, file: str) -> None:
    if csv is not None:
        check_place(csv, [file])
    if tsv is not None:
        if kind_of_path(tsv) not in (PathKind.NOTHING, PathKind.FOLDER):
            raise UsageError(f"{shown_name(tsv)} is a file.", hint="Name a folder for the two tables.")
        if kind_of_path(tsv) is PathKind.FOLDER:
            for name in ("vectors.tsv", "metadata.tsv"):
                check_place(tsv / name, [file])
        elif kind_of_path(tsv.parent) is not PathKind.FOLDER:
            raise UsageError(f"The folder of {shown_name(tsv)} does not exist.", hint="Make it first.")


def _write_projector(folder: Path, points: Points, found: Projection) -> list[str]:
    """Both tables, of the points that are on the map."""
    import numpy as np

    from inspector.render.projection import metadata_tsv, vectors_tsv

    kept = np.searchsorted(points.numbers, found.numbers)
    same = replace(points, values=points.values[kept], numbers=found.numbers, labels=found.labels)
    folder.mkdir(exist_ok=True)
    _write(folder / "vectors.tsv", vectors_tsv(same))
    _write(folder / "metadata.tsv", metadata_tsv(found))
    return [f"{shown_name(folder)}/vectors.tsv", f"{shown_name(folder)}/metadata.tsv"]


def _write(path: Path, pieces: Iterable[str]) -> None:
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as out:
        out.writelines(pieces)
