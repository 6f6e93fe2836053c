"""Options of the commands that write a file, and what they have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import show
from inspector.errors import ExportError, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.exports.report import ExportReport

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where to write: .pth or .safetensors decides the format.")
]
WriterName = Annotated[
    str, typer.Option("--format", help="Writer, if the name of OUT does not say: pth, safetensors ...")
]
Dtype = Annotated[str, typer.Option(help="Cast the weights: float16, bfloat16, float32; as stored if left out.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")]
ShardSize = Annotated[
    str,
    typer.Option(
        "--shard-size", metavar="SIZE", help="Write OUT as a folder of shards of this size, e.g. 2GB, with an index."
    ),
]
Ema = Annotated[bool, typer.Option("--ema", help="Take the averaged weights (EMA, SWA) of the file.")]

_TORCH_ENDINGS = {".pt", ".bin", ".ckpt", ".tar", ".th"}


def check_output(output: Path | None, *, overwrite: bool, shard_size: str) -> Path:
    """The place to write to. Raises UsageError when it is not given, or taken."""
    if output is None:
        raise UsageError("Where should the new file go?", hint="Give --output OUT.pth or OUT.safetensors.")
    if _exists(output) and not overwrite and not (shard_size and output.is_dir()):
        raise UsageError(f"{output.name} exists already.", hint="Choose another name, or pass --overwrite.")
    if shard_size and _ending(output):
        raise UsageError(
            f"Shards go into a folder, and {output.name} is the name of a file.",
            hint=f"Give --output {output.stem} and --format {_writer_of(output)}.",
        )
    return output


def writer_for(output: Path, named: str, shard_size: str = "") -> str:
    """The writer that --format names, else the first of that ending; for a folder of shards safetensors."""
    if named:
        return named
    if shard_size:
        return "safetensors"
    if not _ending(output):
        raise UsageError(
            f'The name "{output.name}" does not say which format to write.', hint="Pass --format pth or safetensors."
        )
    return _writer_of(output)


def shard_nbytes(shard_size: str) -> int | None:
    """Bytes of a shard, None for one file."""
    from inspector.exports.shards import parse_size

    return parse_size(shard_size) if shard_size else None


def write_and_show(write: Callable[[], ExportReport], *, as_json: bool) -> int:
    """Write, show what was written, and the exit code; 1 when it was refused."""
    try:
        written = write()
    except ExportError as error:
        print(f"Refused: {error}", file=sys.stderr)
        return 1

    def text() -> RenderableType:
        from inspector.render.text import export_text

        return export_text(written)

    show({"export": written}, text, as_json=as_json)
    return 0


def _writer_of(output: Path) -> str:
    from inspector.exports.writers import WRITERS

    suffix = output.suffix.lower()
    return next(entry.id for entry in WRITERS if entry.suffix == suffix or (entry.id == "pth" and _is_torch(suffix)))


def _ending(output: Path) -> bool:
    return output.suffix.lower() in {".pth", ".safetensors"} or _is_torch(output.suffix.lower())


def _is_torch(suffix: str) -> bool:
    return suffix in _TORCH_ENDINGS


def _exists(path: Path) -> bool:
    # A name that no file can have does not exist; the export refuses it in words.
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
