"""unwrap: the weights without the dicts and name segments that tools put around them, for a model nobody names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import File, Json, State, open_file, progress_bar, show
from inspector.cli.output import (
    Ema,
    Output,
    Overwrite,
    Salvage,
    ShardSize,
    WriterName,
    check_output,
    refused,
    shard_nbytes,
    state_to_write,
    writer_for,
)
from inspector.errors import ExportError
from inspector.shell_lines import join_words, option_words

if TYPE_CHECKING:
    from rich.console import RenderableType


def unwrap(
    file: File,
    output: Output = None,
    state: State = "",
    ema: Ema = False,
    writer: WriterName = "",
    shard_size: ShardSize = "",
    drop_prefix: Annotated[
        str,
        typer.Option("--drop-prefix", metavar="NAME", help="Take this off, too: every name must begin with NAME."),
    ] = "",
    salvage: Salvage = False,
    overwrite: Overwrite = False,
    json: Json = False,
) -> int:
    """Write the weights under plain names: dicts opened, "module." and its like dropped. Needs no target."""
    from inspector.exports.convert import export_as_is
    from inspector.exports.unwrap import only_weights
    from inspector.exports.unwrap import unwrap as unwrapped

    where = check_output(output, [file], overwrite=overwrite, shard_size=shard_size)
    checkpoint = open_file(file)
    try:
        chosen, joined = (None, 0) if state or ema else only_weights(checkpoint)
        given = chosen or state_to_write(checkpoint, state, ema=ema)
        found = unwrapped(given, joined=joined, prefix=drop_prefix.rstrip("."))
        written = export_as_is(
            checkpoint,
            found.state,
            where,
            writer=writer_for(where, writer, shard_size),
            shard_nbytes=shard_nbytes(shard_size),
            salvage=salvage,
            overwrite=overwrite,
            progress=progress_bar("writing"),
        )
    except ExportError as error:
        return refused(error, as_json=json)

    offer = ""
    if found.shared and not drop_prefix:
        option = join_words(option_words("--drop-prefix", found.shared[-1]))
        offer = f'Every name begins with "{found.shared[-1]}.". If that is no part of it: {option}'

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.exported import export_text
        from inspector.render.text import pairs, safe

        done = found.says or "Nothing was wrapped around them: the names are as they were."
        rows = [("Unwrapped", safe(done)), ("Proof", found.proof)]
        if offer:
            rows.append(("Offer", safe(offer)))
        return Group(pairs(rows), export_text(written))

    report = {
        "opened": found.opened,
        "joined": found.joined,
        "dropped": found.dropped,
        "left_out": found.left_out,
        "shared": found.shared,
        "proof": found.proof,
    }
    show({"export": written, "unwrapped": report}, text, as_json=json)
    return 0
