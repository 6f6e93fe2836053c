"""tensorboard: checkpoints as an event file that TensorBoard opens, one step each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.ending import complain
from inspector.cli.options import Json, State, open_file, pick_state, progress_bar, show
from inspector.errors import ExportError, InspectorError, UsageError
from inspector.side_files import PathKind, kind_of_path, reason_of, shown_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.architectures.types import Recognition
    from inspector.checkpoint.types import Checkpoint, StateDict
    from inspector.compare.updates import Update
    from inspector.events.write import EventWriter


def tensorboard(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Checkpoints of one training, or one file.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="A folder without event files; made if it is not there."),
    ],
    state: State = "",
    json: Json = False,
) -> int:
    """Write histograms and statistics of checkpoints, what they state, and the graph, for TensorBoard to show.

    A checkpoint's step is the one it states, else its epoch, else its place in the order given. Of several it is also
    written how far each tensor moved since the one before. The same files, with their dates, make the same bytes.
    """
    from inspector.checkpoint.training_place import place_of
    from inspector.events.checkpoints import choose_steps
    from inspector.events.write import event_file

    _check_folder(output)
    opened = [(name, open_file(name)) for name in files]
    places = [place_of(checkpoint) for _, checkpoint in opened]
    steps, axis = choose_steps([(place.epoch, place.step) for place in places])
    stages = sorted(zip(steps, opened, strict=True), key=lambda stage: stage[0])
    remarks: list[str] = []
    times = [_written_at(name) for name in files]
    try:
        output.mkdir(parents=True, exist_ok=True)
        with event_file(output, max(times)) as writer:
            before: tuple[Checkpoint, StateDict] | None = None
            for step, (name, checkpoint) in stages:
                before = _write_one(writer, step, (name, checkpoint), before, state)
            _write_graph(writer, stages[-1][1][1], state, remarks)
    except OSError as error:
        raise ExportError(f"{shown_name(output)} cannot be written: {reason_of(error)}.") from error
    for remark in remarks:
        complain(remark)
    report = {"output": output.name, "axis": axis, "steps": [(step, name) for step, (name, _) in stages]}
    shown = [(step, shown_name(name)) for step, (name, _) in stages]

    def text() -> RenderableType:
        from inspector.render.events import exported_text

        return exported_text(str(output), axis, shown)

    show({**report, "remarks": remarks}, text, as_json=json)
    return 0


def _check_folder(output: Path) -> None:
    """Another run's event files would be shown as part of this one."""
    from inspector.events.find import is_event_file

    kind = kind_of_path(output)
    if kind not in (PathKind.FOLDER, PathKind.NOTHING):
        raise UsageError(f"{shown_name(output)} is a file.", hint="Name a folder.")
    if kind is PathKind.FOLDER and any(is_event_file(path.name) for path in output.iterdir()):
        raise UsageError(
            f"{shown_name(output)} has event files already, which TensorBoard would show as one run with the new one.",
            hint="Name another folder.",
        )


def _written_at(name: str) -> float:
    """When the file was written last; 0 for an address."""
    try:
        return Path(name).stat().st_mtime
    except (OSError, ValueError):
        return 0.0


def _write_one(
    writer: EventWriter,
    step: int,
    named: tuple[str, Checkpoint],
    before: tuple[Checkpoint, StateDict] | None,
    state: str,
) -> tuple[Checkpoint, StateDict] | None:
    """Returns what the next one is held against."""
    from inspector.compare.updates import measure_updates
    from inspector.events.checkpoints import CheckpointStep, write_checkpoint
    from inspector.render.events import about_checkpoint
    from inspector.weights.measure import measure_weights

    name, checkpoint = named
    chosen = pick_state(checkpoint, state)
    weights = measure_weights(checkpoint, chosen, progress=progress_bar(f"reading {shown_name(name)}"))
    updates: tuple[Update, ...] = ()
    if before is not None and chosen is not None:
        updates = measure_updates(before, (checkpoint, chosen), progress=progress_bar("comparing"))
    write_checkpoint(
        writer,
        CheckpointStep(
            step=step,
            wall_time=_written_at(name),
            about=about_checkpoint(checkpoint, weights),
            weights=weights,
            stated=checkpoint.own_metadata,
            updates=updates,
        ),
    )
    return (checkpoint, chosen) if chosen is not None else before


def _write_graph(writer: EventWriter, checkpoint: Checkpoint, state: str, remarks: list[str]) -> None:
    """The graph that the file carries, or of a pass of what it is recognised as; a remark where there is none."""
    from inspector.graph.sources import graph_of

    try:
        graph = graph_of(checkpoint)
        if graph is None:
            best = _recognised(checkpoint, pick_state(checkpoint, state))
            if best is None or best.best is None:
                remarks.append("No graph: the file carries none and is of no architecture that is known here.")
                return
            from inspector.traced import graph_of_spec

            graph = graph_of_spec(best.best.spec, None)
        writer.graph(graph)
    except InspectorError as error:
        remarks.append(f"No graph: {error}")
    except ImportError:
        remarks.append("No graph: a forward pass needs torch, which is not installed.")


def _recognised(checkpoint: Checkpoint, chosen: StateDict | None) -> Recognition | None:
    from inspector.architectures.recognise import recognise

    return recognise(checkpoint, chosen) if chosen is not None else None
