"""surgery: parts of a network left out, taken out alone, given a new head or frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import File, Json, State, open_file, pick_state, progress_bar, show
from inspector.cli.output import (
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

    from inspector.surgery.report import NewHead, Operation

_MOST = 1 << 63

DropOption = Annotated[
    list[str] | None, typer.Option("--drop", metavar="MODULE", help="Leave out a module. May be given several times.")
]
ExtractOption = Annotated[str, typer.Option("--extract", metavar="MODULE", help="Keep one module alone, last of all.")]
KeepPrefix = Annotated[
    bool, typer.Option("--keep-prefix", help="What is extracted keeps the names that it has in the whole network.")
]
HeadOption = Annotated[
    list[str] | None,
    typer.Option("--head", metavar="MODULE=N", help="Put a new head of N classes there. May be given several times."),
]
InitOption = Annotated[str, typer.Option("--init", help="How a new head begins: default (as torch's layer) or zeros.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Of the numbers that a new head begins with.")]
FreezeOption = Annotated[
    str,
    typer.Option(
        "--freeze", metavar="MODULES", help="Print code that freezes these of the result, e.g. conv1,bn1,layer1."
    ),
]
Factor = Annotated[
    float, typer.Option("--lr-factor", help="In that code: learning rate of what is neither frozen nor new.")
]
WithOptimizer = Annotated[
    bool,
    typer.Option(
        "--with-optimizer", help="Write a training checkpoint: state of what stays follows it, the rest is left out."
    ),
]
Accept = Annotated[
    str, typer.Option("--accept", metavar="optimizer-groups", help="Its groups were made by kind of parameter.")
]


def surgery(
    file: File,
    drop: DropOption = None,
    head: HeadOption = None,
    extract: ExtractOption = "",
    keep_prefix: KeepPrefix = False,
    init: InitOption = "default",
    seed: SeedOption = 0,
    freeze: FreezeOption = "",
    lr_factor: Factor = 0.1,
    output: Output = None,
    state: State = "",
    writer: WriterName = "",
    shard_size: ShardSize = "",
    with_optimizer: WithOptimizer = False,
    accept: Accept = "",
    overwrite: Overwrite = False,
    json: Json = False,
) -> int:
    """Leave out, take out or replace modules, all named as in the file: a preview, or with --output the proved file."""
    from inspector.checkpoint.several import sets_of_weights
    from inspector.exports.export import export_repaired
    from inspector.exports.one_of_several import several_sets
    from inspector.exports.optimizer import GROUPS_BY_KIND
    from inspector.surgery.freeze import freeze_code
    from inspector.surgery.plan import plan_surgery

    steps = _steps(drop or (), [_head(text, init, seed) for text in head or ()], extract, keep_prefix=keep_prefix)
    if not steps and (output is not None or not freeze):
        raise UsageError(
            "What is to be done?", hint="Give --drop, --extract, --head or --freeze; convert writes as is."
        )
    if accept and (accept != GROUPS_BY_KIND or not with_optimizer):
        raise UsageError(
            f'"{accept[:40]}" is nothing to accept here.', hint=f"With --with-optimizer: --accept {GROUPS_BY_KIND}."
        )
    if with_optimizer and output is None:
        raise UsageError("--with-optimizer is about the written file.", hint="Give --output OUT.pth with it.")
    where = check_output(output, [file], overwrite=overwrite, shard_size=shard_size) if output is not None else None
    kind = writer_for(where, writer, shard_size) if where is not None else ""
    checkpoint = open_file(file)
    try:
        sets = () if state else sets_of_weights(checkpoint)
        if len(sets) > 1:
            raise several_sets(checkpoint, sets)
        report = plan_surgery(checkpoint, steps, state=pick_state(checkpoint, state), whole=with_optimizer)
        name = where.name if where is not None and not (with_optimizer or shard_size) else ""
        code = freeze_code(checkpoint, report, _listed(freeze), factor=lr_factor, written=name) if freeze else None
        written = None
        if where is not None:
            written = export_repaired(
                checkpoint,
                report.plan,
                report.target,
                where,
                writer=kind,
                shard_nbytes=shard_nbytes(shard_size),
                optimizer=with_optimizer,
                groups_by_kind=bool(accept),
                overwrite=overwrite,
                progress=progress_bar("writing"),
            )
    except ExportError as error:
        return refused(error, as_json=json)

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.exported import export_text
        from inspector.render.surgery_text import freeze_text, surgery_text

        parts: list[RenderableType] = [surgery_text(report), ""] if steps else []
        if written is not None:
            parts += [export_text(written)]
        elif steps:
            parts += ["Nothing was written: this is a preview. --output OUT writes it, verified."]
        if code is not None:
            parts += ["", freeze_text(code)] if parts else [freeze_text(code)]
        return Group(*parts)

    show({"surgery": report, "export": written, "freeze": code}, text, as_json=json)
    return 0


def _steps(
    drop: list[str] | tuple[str, ...], heads: list[NewHead], extract: str, *, keep_prefix: bool
) -> list[Operation]:
    """In the one order in which every path is what the file calls it."""
    from inspector.surgery.report import Drop, Extract

    if keep_prefix and not extract:
        raise UsageError("--keep-prefix is about what --extract takes out.", hint="Give --extract MODULE with it.")
    steps: list[Operation] = [Drop(module=module) for given in drop for module in _listed(given)]
    steps += heads
    return [*steps, Extract(module=extract, keep_prefix=keep_prefix)] if extract else steps


def _head(text: str, init: str, seed: int) -> NewHead:
    """ "fc=10"."""
    from inspector.surgery.report import Initial, NewHead

    module, sign, number = text.rpartition("=")
    classes = whole_number(number.strip(), _MOST)
    if not sign or not module.strip() or classes is None:
        raise UsageError(f'"{text[:80]}" names no head.', hint="Write its module and the classes, e.g. --head fc=10.")
    if init not in tuple(Initial):
        raise UsageError(f'A head does not begin with "{init[:40]}".', hint="Choose default or zeros.")
    if not 0 <= seed < _MOST:
        raise UsageError(f"{seed} is no seed.", hint="Give a whole number from 0.")
    return NewHead(module=module, classes=classes, how=Initial(init), seed=seed)


def _listed(text: str) -> list[str]:
    return [piece.strip() for piece in text.split(",") if piece.strip()]
