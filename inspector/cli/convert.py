"""convert and merge: a file's tensors under their own names, as they are or with a LoRA adapter in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inspector.cli.options import File, Json, State, open_file, pick_state, progress_bar
from inspector.cli.output import (
    Dtype,
    Ema,
    Output,
    Overwrite,
    ShardSize,
    WriterName,
    check_output,
    shard_nbytes,
    write_and_show,
    writer_for,
)
from inspector.errors import UsageError


def convert(
    file: File,
    output: Output = None,
    state: State = "",
    ema: Ema = False,
    writer: WriterName = "",
    dtype: Dtype = "",
    shard_size: ShardSize = "",
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Of a file cut short, write what is whole; lists the rest.")
    ] = False,
    overwrite: Overwrite = False,
    json: Json = False,
) -> int:
    """Write the tensors under their own names: another format or type, in shards or joined, EMA only. No target."""
    from inspector.exports.averaged import find_averaged
    from inspector.exports.convert import export_as_is

    where = check_output(output, [file], overwrite=overwrite, shard_size=shard_size)
    checkpoint = open_file(file)
    if ema and state:
        raise UsageError("--ema and --state both choose the state dict.", hint="Give one of them.")
    chosen = find_averaged(checkpoint).alone if ema else pick_state(checkpoint, state)
    if chosen is None:
        raise UsageError(f"{checkpoint.origin.name} holds no named tensors.", hint="There is nothing to write.")
    return write_and_show(
        lambda: export_as_is(
            checkpoint,
            chosen,
            where,
            writer=writer_for(where, writer, shard_size),
            dtype=dtype or None,
            shard_nbytes=shard_nbytes(shard_size),
            salvage=salvage,
            overwrite=overwrite,
            progress=progress_bar("writing"),
        ),
        as_json=json,
    )


def merge(
    base: File,
    adapter: Annotated[str, typer.Argument(help="A LoRA adapter: its folder, or the file with its config beside it.")],
    output: Output = None,
    state: State = "",
    writer: WriterName = "",
    dtype: Dtype = "",
    shard_size: ShardSize = "",
    overwrite: Overwrite = False,
    json: Json = False,
) -> int:
    """Write a base model with a LoRA adapter merged into its weights. Exits with 1 when it refuses."""
    from inspector.exports.adapter import read_adapter_config
    from inspector.exports.merge import merge_adapter

    where = check_output(output, [base, adapter], overwrite=overwrite, shard_size=shard_size)
    checkpoint, small = open_file(base), open_file(adapter)
    return write_and_show(
        lambda: merge_adapter(
            checkpoint,
            small,
            read_adapter_config(Path(adapter)),
            where,
            state=pick_state(checkpoint, state),
            writer=writer_for(where, writer, shard_size),
            dtype=dtype or None,
            shard_nbytes=shard_nbytes(shard_size),
            overwrite=overwrite,
            progress=progress_bar("writing"),
        ),
        as_json=json,
    )
