"""convert: a file's tensors under their own names, in another format, type or number of files."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.cli.options import File, Json, State, open_file, progress_bar
from inspector.cli.output import (
    Dtype,
    Ema,
    Output,
    Overwrite,
    Salvage,
    ShardSize,
    WriterName,
    check_output,
    shard_nbytes,
    state_to_write,
    write_and_show,
    writer_for,
)


def convert(
    file: File,
    output: Output = None,
    state: State = "",
    ema: Ema = False,
    writer: WriterName = "",
    dtype: Dtype = "",
    shard_size: ShardSize = "",
    salvage: Salvage = False,
    without_broken: Annotated[
        bool, typer.Option("--without-broken", help="Leave out tensors that hold NaN or infinity; lists them.")
    ] = False,
    overwrite: Overwrite = False,
    json: Json = False,
) -> int:
    """Write the tensors under their own names: another format or type, in shards or joined, EMA only. No target."""
    from inspector.exports.convert import export_as_is

    where = check_output(output, [file], overwrite=overwrite, shard_size=shard_size)
    checkpoint = open_file(file)
    return write_and_show(
        lambda: export_as_is(
            checkpoint,
            state_to_write(checkpoint, state, ema=ema),
            where,
            writer=writer_for(where, writer, shard_size),
            dtype=dtype or None,
            shard_nbytes=shard_nbytes(shard_size),
            salvage=salvage,
            without_broken=without_broken,
            overwrite=overwrite,
            progress=progress_bar("writing"),
        ),
        as_json=json,
    )
