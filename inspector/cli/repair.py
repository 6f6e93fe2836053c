"""repair: the file that does load, proved."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.key_options import Accept, Choose, Partial, parse_choices
from inspector.cli.options import (
    File,
    Json,
    State,
    TargetOption,
    find_target,
    open_file,
    pick_state,
    progress_bar,
    show,
)
from inspector.cli.output import (
    Dtype,
    Ema,
    Output,
    Overwrite,
    ShardSize,
    WriterName,
    check_output,
    refused,
    shard_nbytes,
    writer_for,
)
from inspector.errors import ExportError, UsageError
from inspector.units import whole_number

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.keys.report import KeyReport


WithOptimizer = Annotated[
    bool,
    typer.Option(
        "--with-optimizer",
        help="Write a training checkpoint: optimizer state follows its parameters, plain values stay.",
    ),
]


Reference = Annotated[
    str,
    typer.Option(
        "--reference",
        metavar="FILE",
        help="A file that loads into the target: both must answer alike, or none is written.",
    ),
]


Pair = Annotated[
    str,
    typer.Option(
        "--pair", metavar="FILE", help="An .npz, .pt or .safetensors with an input and the output that belongs to it."
    ),
]


InputShape = Annotated[
    str,
    typer.Option(
        "--input-shape", metavar="SHAPE", help="Shape of the noise for a forward pass, with its batch: 1x3x64x64."
    ),
]


def repair(
    file: File,
    target: TargetOption = "",
    output: Output = None,
    state: State = "",
    ema: Ema = False,
    accept: Accept = None,
    choose: Choose = None,
    partial: Partial = False,
    writer: WriterName = "",
    dtype: Dtype = "",
    shard_size: ShardSize = "",
    with_optimizer: WithOptimizer = False,
    reference: Reference = "",
    pair: Pair = "",
    input_shape: InputShape = "",
    overwrite: Overwrite = False,
    json: Json = False,
) -> int:
    """Repair a file for a target, verify it and write it. Exits with 1 and writes nothing when it refuses."""
    from inspector.exports.averaged import find_averaged
    from inspector.exports.export import export_repaired
    from inspector.exports.optimizer import GROUPS_BY_KIND
    from inspector.keys.diagnose import diagnose as ask
    from inspector.keys.rules import twins
    from inspector.keys.verify import Compared

    inputs = [file, target, reference, pair]
    where = check_output(output, inputs, overwrite=overwrite, shard_size=shard_size)
    checkpoint = open_file(file)
    answers = parse_choices(choose)
    by_kind = with_optimizer and GROUPS_BY_KIND in (accept or ())
    averaged = find_averaged(checkpoint) if ema else None
    if averaged is not None:
        answers = {**({twins.RULE.id: averaged.prefix} if averaged.prefix else {}), **answers}
    chosen = averaged.state if averaged is not None else pick_state(checkpoint, state)
    goal = find_target(target, checkpoint, chosen)
    report = ask(
        checkpoint,
        goal,
        state=chosen if state or ema else None,
        accept=tuple(rule for rule in accept or () if not (by_kind and rule == GROUPS_BY_KIND)),
        choose=answers,
        partial=partial,
    )
    plan = report.plan
    if plan is None or not plan.complete:
        _show_refusal(report, as_json=json)
        return 1
    try:
        written = export_repaired(
            checkpoint,
            plan,
            goal,
            where,
            writer=writer_for(where, writer, shard_size),
            dtype=dtype or None,
            shard_nbytes=shard_nbytes(shard_size),
            optimizer=with_optimizer,
            groups_by_kind=by_kind,
            compared=Compared(
                reference=open_file(reference) if reference else None,
                pair=open_file(pair) if pair else None,
                shape=_shape(input_shape),
            ),
            overwrite=overwrite,
            progress=progress_bar("writing"),
        )
    except ExportError as error:
        return refused(error, as_json=json)

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.exported import export_text
        from inspector.render.repair_text import keys_text

        return Group(keys_text(report), "", export_text(written))

    show({"diagnosis": report, "export": written}, text, as_json=json)
    return 0 if written.verification.holds else 1


def _show_refusal(report: KeyReport, *, as_json: bool) -> None:
    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.repair_text import keys_text

        return Group(keys_text(report), "", "[bold]Nothing was written.[/bold]")

    show({"diagnosis": report, "export": None}, text, as_json=as_json)


def _shape(text: str) -> tuple[int, ...] | None:
    """ "1x3x64x64" -> (1, 3, 64, 64); None for ""."""
    sizes = [whole_number(piece, 1 << 20) for piece in text.lower().split("x")] if text else []
    known = [size for size in sizes if size]
    if len(known) < len(sizes):
        raise UsageError(f'"{text[:40]}" is no shape of an input.', hint="Write it with its batch, e.g. 1x3x64x64.")
    if math.prod(known) > 1 << 28:
        raise UsageError(f'"{text[:40]}" is too large an input.', hint="Two hundred million numbers are enough.")
    return tuple(known) or None
