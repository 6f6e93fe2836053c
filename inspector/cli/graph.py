"""graph: what a network computes, as an outline or as a file for other programs."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.ending import complain, printing
from inspector.cli.options import Json, State, open_file, pick_state, refuse_another, refuse_unnamed_code, show
from inspector.cli.output import Overwrite, check_is_new, check_place, written_whole
from inspector.errors import UsageError
from inspector.flops.input_size import parse_size
from inspector.side_files import PathKind, kind_of_path, shown_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.graph.types import Graph

_TEXT_DEPTH = 2
_WHAT_TO_DO = (
    "Graphs are in ONNX models, .pt2 programs of torch.export and TorchScript archives; your own code gives one as "
    "code:model.py:build."
)


class Format(StrEnum):
    """How the graph is written."""

    TEXT = "text"
    DOT = "dot"
    MERMAID = "mermaid"
    MODEL_EXPLORER = "model-explorer"
    JSON = "json"
    SVG = "svg"


_ENDINGS = {
    ".dot": Format.DOT,
    ".gv": Format.DOT,
    ".mmd": Format.MERMAID,
    ".mermaid": Format.MERMAID,
    ".json": Format.JSON,
    ".svg": Format.SVG,
    ".txt": Format.TEXT,
}


def graph(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TARGET",
            help="A file, or a target: torchvision/resnet18, code:model.py:build (runs it).",
        ),
    ],
    format_: Annotated[
        Format | None, typer.Option("--format", help="How it is written; by the name of OUT, or text, if left out.")
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(help="How deep modules are opened. Left out: 2 as text, else all, or as much as fits.", min=1),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Write it there, not on standard output.")
    ] = None,
    overwrite: Overwrite = False,
    input_size: Annotated[
        str, typer.Option("--input-size", help="Of a forward pass: CxHxW without the batch, or tokens.")
    ] = "",
    state: State = "",
    json: Json = False,
) -> int:
    """Draw what a network computes: modules, operators and edges, equal neighbours folded.

    A graph in the file (ONNX, .pt2, TorchScript) is read and not run; otherwise a network that is recognised, or that
    your code builds, makes one forward pass without values.
    """
    if json and format_ not in (None, Format.JSON):
        raise UsageError(f"--json and --format {format_} both say how to write it.", hint="Give one of them.")
    ending = _ENDINGS.get(output.suffix.lower()) if output is not None else None
    chosen = Format.JSON if json else format_ or ending or Format.TEXT
    if output is not None:
        check_place(output, [file])
        check_is_new(output, overwrite=overwrite)
    carried = _graph_of(file, parse_size(input_size) if input_size else None, state)
    if chosen is Format.TEXT and output is None:
        show(carried, lambda: _outline(carried, depth), as_json=False)
        return 0
    if chosen is not Format.TEXT and carried.remarks:
        for remark in carried.remarks:
            complain(remark)
    text = _written(carried, chosen, depth, _name_of(file))
    if output is not None:
        with written_whole(output) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return 0
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    with printing():
        sys.stdout.write(text)
    return 0


def _graph_of(file: str, size: tuple[int, ...] | None, state: str) -> Graph:
    """Of the file, or of a forward pass. Raises UnknownArchitecture where there is neither, UsageError for options that
    mean nothing there, else as `graph_of`, `graph_of_spec` and `trace_code`."""
    from inspector.architectures.recognise import recognise
    from inspector.architectures.targets import is_architecture, parse_target
    from inspector.architectures.user_code import is_code

    refuse_unnamed_code(file)
    from inspector.errors import UnknownArchitecture
    from inspector.graph.sources import graph_of
    from inspector.keys.runnable import whose_costs
    from inspector.traced import graph_of_code, graph_of_spec

    if is_code(file) or is_architecture(file):
        if state:
            raise UsageError(f"--state chooses in a file, and {shown_name(file)} is none.", hint="Leave it out.")
        if is_code(file):
            return graph_of_code(file, size)
        spec = parse_target(file).spec
        assert spec is not None
        return graph_of_spec(spec, size)
    if file.startswith("keys:"):
        raise UsageError(f"{shown_name(file)} lists names without a model: it has no graph.", hint=_WHAT_TO_DO)
    checkpoint = open_file(file.removeprefix("file:"))
    carried = graph_of(checkpoint)
    if carried is not None:
        if size is not None or state:
            raise UsageError(
                f"{checkpoint.origin.name} carries its graph: nothing is run or chosen.", hint="Leave it out."
            )
        return carried
    chosen = pick_state(checkpoint, state)
    recognition = recognise(checkpoint, chosen) if chosen is not None else None
    if recognition is None or recognition.best is None:
        raise UnknownArchitecture(
            f"{checkpoint.origin.name} carries no graph (it is a {checkpoint.format_says}), and its weights are of no "
            "architecture that is known here.",
            hint=_WHAT_TO_DO,
        )
    refuse_another(checkpoint, recognition, chosen)
    drawn, whose = graph_of_spec(recognition.best.spec, size), whose_costs(checkpoint, recognition, chosen)
    return replace(drawn, remarks=(whose, *drawn.remarks)) if whose else drawn


def _name_of(file: str) -> str:
    """A file without its folders; a target as it is written."""
    return Path(file).name if kind_of_path(file) is PathKind.FILE else file


def _outline(carried: Graph, depth: int | None) -> RenderableType:
    from inspector.graph.boxes import boxes
    from inspector.render.graph_text import graph_text

    return graph_text(carried, boxes(carried), depth=depth or _TEXT_DEPTH)


def _written(carried: Graph, chosen: Format, depth: int | None, name: str) -> str:
    from inspector.graph.boxes import boxes, draw
    from inspector.render.json import as_json

    if chosen is Format.JSON:
        return as_json(carried) + "\n"
    if chosen is Format.MODEL_EXPLORER:
        from inspector.render.graph_files.model_explorer import as_model_explorer

        return as_json(as_model_explorer(carried, name)) + "\n"
    if chosen is Format.SVG:
        from inspector.render.graph_files.svg import as_svg

        return as_svg(boxes(carried), depth)
    if chosen is Format.TEXT:
        from rich.console import Console

        console = Console(width=160, highlight=False, file=None)
        with console.capture() as text:
            console.print(_outline(carried, depth))
        return text.get()
    from inspector.render.graph_files.dot import as_dot
    from inspector.render.graph_files.mermaid import as_mermaid

    return (as_dot if chosen is Format.DOT else as_mermaid)(draw(carried), depth)
