"""merge: a base model with a LoRA adapter in its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inspector.cli.options import File, Json, State, open_file, progress_bar
from inspector.cli.output import (
    Dtype,
    Output,
    Overwrite,
    ShardSize,
    WriterName,
    check_output,
    shard_nbytes,
    state_to_write,
    write_and_show,
    writer_for,
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
            state=state_to_write(checkpoint, state, ema=False),
            writer=writer_for(where, writer, shard_size),
            dtype=dtype or None,
            shard_nbytes=shard_nbytes(shard_size),
            overwrite=overwrite,
            progress=progress_bar("writing"),
        ),
        as_json=json,
    )
