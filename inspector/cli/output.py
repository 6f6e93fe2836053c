"""Options of the commands that write a file, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.ending import complain
from inspector.cli.options import pick_state, show, show_json
from inspector.errors import ExportError, UsageError
from inspector.new_files import new_file
from inspector.shell_lines import quote_word
from inspector.side_files import PathKind, kind_of_path, reason_of, shown_name
from inspector.units import parse_size

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.checkpoint.types import Checkpoint, StateDict
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
Salvage = Annotated[bool, typer.Option("--salvage", help="Of a file cut short, write what is whole; lists the rest.")]
Ema = Annotated[bool, typer.Option("--ema", help="Take the averaged weights (EMA, SWA) of the file.")]

_TORCH_ENDINGS = {".pt", ".bin", ".ckpt", ".tar", ".th"}


def check_output(output: Path | None, inputs: Iterable[str], *, overwrite: bool, shard_size: str) -> Path:
    """The place to write to. Raises UsageError when it is not given, taken, or one of the inputs, as the command names
    them."""
    if output is None:
        raise UsageError("Where should the new file go?", hint="Give --output OUT.pth or OUT.safetensors.")
    check_is_no_input(output, inputs)
    check_is_new(output, overwrite=overwrite or (bool(shard_size) and output.is_dir()))
    if shard_size and _ending(output):
        raise UsageError(
            f"Shards go into a folder, and {output.name} is the name of a file.",
            hint=f"Give --output {quote_word(output.stem)} and --format {_writer_of(output)}.",
        )
    return output


def check_is_new(output: Path, *, overwrite: bool) -> None:
    """Raise UsageError where a file would be replaced that nobody said may be."""
    if _exists(output) and not overwrite:
        raise UsageError(f"{shown_name(output)} exists already.", hint="Choose another name, or pass --overwrite.")


def check_is_no_input(output: Path, inputs: Iterable[str]) -> None:
    """Raise UsageError where writing would destroy what is read. inputs: paths and targets; others are passed over."""
    for given in inputs:
        kind, _, rest = given.partition(":")
        path = Path(rest.rpartition(":")[0] if kind == "code" else rest if kind in ("file", "keys") else given)
        try:
            same = output.samefile(path)
        except (OSError, ValueError):
            continue
        if same and not output.is_dir():
            raise UsageError(f"{shown_name(output)} is a file that this reads.", hint="Give the new one another name.")


def check_place(path: Path, inputs: Iterable[str]) -> None:
    """Raise UsageError where no file can be written, or one that is read; ReadError for what is no name at all."""
    check_is_no_input(path, inputs)
    kind, name = kind_of_path(path), shown_name(path)
    if kind is PathKind.FOLDER:
        raise UsageError(f"{name} is a folder.", hint="Name a file in it.")
    if kind is PathKind.SPECIAL:
        raise UsageError(f"{name} is no ordinary file.", hint="Give the new file a name of its own.")
    if kind_of_path(path.parent) is not PathKind.FOLDER:
        raise UsageError(f"The folder of {name} does not exist.", hint="Make it first.")


def state_to_write(checkpoint: Checkpoint, state: str, *, ema: bool) -> StateDict:
    """The state dict of that name, or the averaged one alone. Raises UsageError where there is none, or for both;
    ExportError where nobody says which of several sets of weights is meant."""
    from inspector.checkpoint.several import sets_of_weights
    from inspector.exports.averaged import find_averaged
    from inspector.exports.one_of_several import several_sets

    if ema and state:
        raise UsageError("--ema and --state both choose the state dict.", hint="Give one of them.")
    sets = () if state or ema else sets_of_weights(checkpoint)
    if len(sets) > 1:
        raise several_sets(checkpoint, sets)
    chosen = find_averaged(checkpoint).alone if ema else pick_state(checkpoint, state)
    if chosen is None:
        raise UsageError(f"{checkpoint.origin.name} holds no named tensors.", hint="There is nothing to write.")
    return chosen


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """`new_file` with a sentence for what the disk says. Raises ExportError."""
    try:
        with new_file(path) as temporary:
            yield temporary
    except OSError as error:
        raise ExportError(f"{shown_name(path)} cannot be written: {reason_of(error)}.") from error


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
    return parse_size(shard_size) if shard_size else None


def write_and_show(write: Callable[[], ExportReport], *, as_json: bool) -> int:
    """Write, show what was written, and the exit code; 1 when it was refused."""
    try:
        written = write()
    except ExportError as error:
        return refused(error, as_json=as_json)

    def text() -> RenderableType:
        from inspector.render.exported import export_text

        return export_text(written)

    show({"export": written}, text, as_json=as_json)
    return 0


def refused(error: ExportError, *, as_json: bool) -> int:
    """Say why nothing was written; the exit code."""
    complain(f"Refused: {error}")
    if as_json:
        show_json({"export": None, "refused": str(error)})
    return 1


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
        return path.exists() or path.is_symlink()
    except (OSError, ValueError):
        return False
