"""flops: what one forward pass costs, per module."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.ending import complain
from inspector.cli.options import (
    Json,
    State,
    open_file,
    pick_state,
    recognised,
    refuse_another,
    refuse_unnamed_code,
    show,
)
from inspector.errors import UsageError
from inspector.flops.input_size import parse_size
from inspector.flops.memory_report import OPTIMIZERS
from inspector.side_files import shown_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.architectures.types import ArchitectureSpec, Given
    from inspector.flops.report import CostReport


_COUNTED = "Name an architecture, a file, or your own code: code:model.py:build."
_FORMATS = ("text", "csv", "markdown")
_INFERENCE = "inference"
# "": as the model's weights.
_DTYPES = ("", "float32", "float64", "float16", "bfloat16", "int64", "int32", "bool")


def flops(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TARGET",
            help="A checkpoint, or a target: torchvision/resnet18, code:model.py:build (runs it).",
        ),
    ],
    input_size: Annotated[
        str, typer.Option("--input-size", help="Without the batch: CxHxW, e.g. 3x224x224, or tokens.")
    ] = "",
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="[NAME=]SHAPE[:DTYPE]",
            help="One of several inputs of your own code, without the batch: mask=128:int64, t=:int64. Repeat it.",
        ),
    ] = None,
    batch: Annotated[int, typer.Option(help="Pictures in one forward pass.", min=1, max=4096)] = 1,
    depth: Annotated[int, typer.Option(help="How deep the module table goes.", min=0)] = 2,
    columns: Annotated[str, typer.Option(help="Of the module table: all, or macs,read,written,field ...")] = "",
    sort: Annotated[str, typer.Option(help="Largest first by this column, at every depth.")] = "",
    memory: Annotated[
        str,
        typer.Option(
            metavar="WHAT", help=f"Foresee the peak of memory: {_INFERENCE}, or training with {', '.join(OPTIMIZERS)}."
        ),
    ] = "",
    precision: Annotated[str, typer.Option(help="Of weights and inputs, for --memory.")] = "float32",
    device: Annotated[
        str, typer.Option(help="What limits each module there: a100, rtx-4090 ... or FLOPS:BYTES a second.")
    ] = "",
    timed: Annotated[bool, typer.Option("--time", help="Measure each module's time on this machine.")] = False,
    values: Annotated[str, typer.Option(help="random: run with random numbers, for what depends on its input.")] = "",
    thop: Annotated[bool, typer.Option(help="Ask thop for a second opinion.")] = True,
    form: Annotated[str, typer.Option("--format", help="text, csv or markdown.")] = "text",
    state: State = "",
    json: Json = False,
) -> int:
    """Count parameters, multiply-accumulates, memory traffic and more per module, on the meta device."""
    from inspector.architectures.user_code import is_code

    refuse_unnamed_code(file)
    from inspector.flops.roofline import find_device
    from inspector.render.bill import columns_named

    if form not in _FORMATS:
        raise UsageError(f'"{form}" is no format.', hint=f"There are {', '.join(_FORMATS)}, and --json.")
    chosen = columns_named(columns) if columns else None
    if sort:
        columns_named(sort)
    where = find_device(device) if device else None
    size = parse_size(input_size) if input_size else None
    if is_code(file) and state:
        raise UsageError(f"--state chooses in a file, and {shown_name(file)} is none.", hint="Leave it out.")
    asked = None
    if memory:
        asked = {"optimizer": "" if memory == _INFERENCE else memory, "precision": precision}
    if is_code(file):
        from inspector.flops.own_code import count_code_costs

        given = tuple(_parse_input(text, batch) for text in inputs or ())
        report = count_code_costs(
            file, size, batch=batch, second_opinion=thop, inputs=given, values=values, memory=asked, timed=timed
        )
    else:
        if inputs:
            raise UsageError("--input is for your own code.", hint="Give --input-size: the other inputs are known.")
        spec, whose = _spec_of(file, state)
        report = _of_spec(spec, size, batch=batch, thop=thop, values=values, memory=asked, timed=timed)
        report = replace(report, whose=whose)

    if form != "text" and not json:
        from inspector.render.bill import COLUMNS, bill_csv, bill_markdown, rows_of

        if form == "csv" and report.whose:
            complain(report.whose)
        rows = rows_of(report, sort=sort)
        made = bill_csv(report, rows, where) if form == "csv" else bill_markdown(report, rows, chosen or COLUMNS)
        typer.echo(made, nl=False)
        return 0

    def text() -> RenderableType:
        from inspector.render.bill_text import costs_text

        return costs_text(report, depth=depth, columns=chosen, sort=sort, device=where)

    show(report, text, as_json=json)
    return 0


def _of_spec(
    spec: ArchitectureSpec,
    size: tuple[int, ...] | None,
    *,
    batch: int,
    thop: bool,
    values: str,
    memory: dict[str, str] | None,
    timed: bool,
) -> CostReport:
    from inspector.flops.count import count_costs
    from inspector.flops.forwards import memory_of, time_of

    report = count_costs(spec, size, batch=batch, second_opinion=thop, values=values)
    if memory is not None:
        report = replace(report, memory=memory_of(spec, size, batch=batch, **memory))
    if timed:
        report = replace(report, timing=time_of(spec, size, batch=batch))
    return report


def _spec_of(file: str, state: str) -> tuple[ArchitectureSpec, str]:
    """(what is counted, where it is more or less than a file holds whose costs these are)."""
    from inspector.architectures.targets import is_architecture, parse_target

    if not is_architecture(file):
        return _built_as(file, state)
    if state:
        raise UsageError(f"--state chooses in a file, and {shown_name(file)} is none.", hint="Leave it out.")
    spec = parse_target(file).spec
    assert spec is not None
    return spec, ""


def _parse_input(text: str, batch: int) -> Given:
    """ "mask=128:int64" -> an input named mask of (batch, 128) whole numbers."""
    from inspector.architectures.types import Given

    name, equals, rest = text.rpartition("=")
    shape, _, dtype = rest.partition(":")
    if (equals and not name.isidentifier()) or dtype not in _DTYPES:
        raise UsageError(f'"{text[:60]}" is no input.', hint="Write NAME=SHAPE:DTYPE, e.g. mask=128:int64.")
    size = parse_size(shape) if shape else ()
    return Given(name=name, shape=(batch, *size), dtype=dtype, below=2 if dtype in ("int64", "int32", "bool") else 0)


def _built_as(file: str, state: str) -> tuple[ArchitectureSpec, str]:
    """The same of a file, by what it is recognised as. Raises UnknownArchitecture, or UsageError for a target without a
    program."""
    from inspector.errors import UnknownArchitecture
    from inspector.keys.runnable import whose_costs

    if file.startswith("keys:"):
        raise UsageError(f"{shown_name(file)} lists names without a model: there is nothing to count.", hint=_COUNTED)
    checkpoint = open_file(file.removeprefix("file:"))
    chosen = pick_state(checkpoint, state)
    recognition = recognised(checkpoint, chosen)
    if recognition.best is None:
        raise UnknownArchitecture(
            recognition.answer, hint="MACs need a model that can be built: name a target instead."
        )
    refuse_another(checkpoint, recognition, chosen)
    return recognition.best.spec, whose_costs(checkpoint, recognition, chosen)
