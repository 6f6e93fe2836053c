"""Write a stream under a name of our own, read it back twice, and only then give it its name.

A file under the destination's name is therefore always whole and right, and so is a folder of shards; on any failure,
or when the caller stops the work, there is none.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from inspector.checkpoint.digest import digest_of
from inspector.checkpoint.joined_source import paths_of
from inspector.checkpoint.raw_tensor import RawTensor
from inspector.checkpoint.types import Checkpoint
from inspector.errors import ExportError, UsageError
from inspector.exports.reading_back import prove_written
from inspector.exports.report import ExportReport, WrittenFile
from inspector.exports.shards import index_of, shard_names, split
from inspector.exports.stream import Stream, Tick
from inspector.exports.writers import WRITERS
from inspector.exports.writers.entry import Writer
from inspector.keys.report import Proof, Verification
from inspector.new_files import new_file
from inspector.progress import Progress, silent
from inspector.side_files import reason_of
from inspector.units import human_bytes

_ANOTHER_NAME = "Choose another name, or pass --overwrite."


class Checks(Protocol):
    """What else is proven about the written file. look: takes each tensor of it. done: the proofs."""

    def look(self, name: str, tensor: RawTensor) -> None: ...

    def done(self) -> tuple[Proof, ...]: ...


class NoChecks:
    """Nothing beyond what was written being what was to be written."""

    def look(self, name: str, tensor: RawTensor) -> None:
        return None

    def done(self) -> tuple[Proof, ...]:
        return ()


def write_proved(
    stream: Stream,
    destination: Path,
    entry: Writer,
    text: Mapping[str, str],
    *,
    checks: Checks | None = None,
    shard_nbytes: int | None = None,
    overwrite: bool = True,
    progress: Progress = silent,
) -> ExportReport:
    """Write the stream, one tensor in memory at a time, and prove it.

    text: provenance for writers that keep it. shard_nbytes: write a folder of files of about that size, with an index.
    overwrite: replace a file of that name. progress: in blocks, each once for writing and once for reading back;
    raising from it stops the work.
    Raises ExportError, and leaves no file behind, when it reads back otherwise or the disk refuses; UsageError when
    the name is taken by then and may not be.
    """
    checks = checks or NoChecks()
    tick = _ticking(progress, 2 * len(stream.blocks))
    _check_room(destination, stream)
    with new_export(destination, entry.suffix, folder=shard_nbytes is not None, overwrite=overwrite) as temporary:
        parts = _parts(stream, temporary, entry, shard_nbytes)
        lost: list[str] = []
        for path, part in parts:
            lost += entry.write(part, path, text, tick)
        if len(parts) > 1:
            index = temporary / f"{entry.shard_name}.index.json"
            index.write_text(index_of([(path.name, part) for path, part in parts]), encoding="utf-8")
        reread = prove_written(temporary, parts, entry, checks.look, tick)
        proofs = reread if any(proof.passed is False for proof in reread) else (*checks.done(), *reread)
        verification = Verification(proofs=proofs)
        check(verification)
        files = _files(temporary)
    progress(2 * len(stream.blocks), 2 * len(stream.blocks), "done")
    whole = len(files) == 1 and shard_nbytes is None
    return ExportReport(
        name=destination.name,
        writer=entry.id,
        nbytes=sum(file.nbytes for file in files),
        sha256=files[0].sha256 if whole else "",
        tensors=len(stream.names),
        lost=tuple(dict.fromkeys(lost)),
        verification=verification,
        files=(WrittenFile(name=destination.name, nbytes=files[0].nbytes, sha256=files[0].sha256),) if whole else files,
    )


def check(verification: Verification) -> None:
    """Raise ExportError unless every proof that could be made holds."""
    failed = next((p for p in verification.proofs if p.passed is False), None)
    if failed is not None:
        raise ExportError(f"Nothing was written: {failed.says}", hint=f"The proof that failed is {failed.id}.")
    if not verification.holds:
        raise ExportError("Nothing was written: nothing about this repair could be proven.")


def find_writer(writer: str, writers: Sequence[Writer] = WRITERS) -> Writer:
    """The writer of that id. Raises UsageError for one that does not exist."""
    for entry in writers:
        if entry.id == writer:
            return entry
    raise UsageError(f'There is no writer "{writer}".', hint=f"Choose one of {', '.join(w.id for w in writers)}.")


def check_destination(
    checkpoint: Checkpoint, destination: Path, *, folder: bool = False, overwrite: bool = True
) -> None:
    """Raise ExportError when destination is the file itself or no name for what is to be written there.

    folder: shards go into a folder, which must be new or empty. overwrite: as `write_proved`; raises UsageError where
    it is False and the name is taken.
    """
    try:
        destination.lstat()
        taken = True
    except FileNotFoundError:
        taken = False
    except (OSError, ValueError) as error:
        # Too long, through a file as if it were a folder, or with a null byte in it.
        raise ExportError(f"{destination.name[:80]!r} is no name for a file here: {reason_of(error)}.") from error
    for origin in map(Path, paths_of(checkpoint.source)):
        if destination.exists() and origin.exists() and destination.samefile(origin):
            raise ExportError(
                f"{destination.name} is the file that is being repaired.", hint="Give the repaired file another name."
            )
    if taken and not overwrite and not (folder and destination.is_dir()):
        raise UsageError(f"{destination.name} exists already.", hint=_ANOTHER_NAME)
    if folder:
        if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
            raise ExportError(
                f"{destination.name} is there already and no empty folder.",
                hint="Shards go into a folder of their own.",
            )
    elif destination.is_dir():
        raise ExportError(f"{destination.name} is a folder.", hint="Name a file in it.")
    elif destination.exists() and not destination.is_file():
        # Naming the new file would put it in the place of /dev/null or of a pipe that others read.
        raise ExportError(f"{destination.name} is no ordinary file.", hint="Give the new file a name of its own.")


def _ticking(progress: Progress, total: int) -> Tick:
    done = 0

    def tick(name: str) -> None:
        nonlocal done
        progress(done, total, name)
        done += 1

    return tick


def _check_room(destination: Path, stream: Stream) -> None:
    """Refuse at once what cannot fit; what else fills the disk is met while writing."""
    if not destination.parent.is_dir():
        raise ExportError(f"The folder of {destination.name} does not exist.", hint="Make it first.")
    free = shutil.disk_usage(destination.parent).free
    if 0 < free < stream.nbytes:
        raise ExportError(
            f"{destination.name} takes {human_bytes(stream.nbytes)}, and {human_bytes(free)} are free there.",
            hint="Make room, or write it elsewhere.",
        )


@contextmanager
def new_export(destination: Path, suffix: str, *, folder: bool = False, overwrite: bool) -> Iterator[Path]:
    """`new_file` for an export: whatever ends the block early leaves nothing, and is said.

    Raises ExportError when the disk or torch refuses, UsageError where the name is taken by now and may not be.
    """
    begun = False
    try:
        with new_file(destination, suffix, folder=folder, overwrite=overwrite) as temporary:
            begun = True
            yield temporary
    except FileExistsError as error:
        raise UsageError(
            f"{destination.name} exists by now: it was written by somebody else meanwhile, and stays as it is.",
            hint=_ANOTHER_NAME,
        ) from error
    except OSError as error:
        what = f"{destination.name} cannot be written" if begun else f"Nothing can be written in {destination.parent}"
        raise ExportError(f"{what}: {reason_of(error)}.") from error
    except RuntimeError as error:
        # So torch's writers end when the disk is full; their words are about their own insides.
        raise ExportError(
            f"{destination.name} could not be written to its end by torch; nothing of it was left.",
            hint="Look whether the disk is full.",
        ) from error


def _parts(stream: Stream, temporary: Path, entry: Writer, shard_nbytes: int | None) -> list[tuple[Path, Stream]]:
    if shard_nbytes is None:
        return [(temporary, stream)]
    shards = split(stream, shard_nbytes)
    names = shard_names(entry.shard_name, len(shards))
    return [(temporary / name, shard) for name, shard in zip(names, shards, strict=True)]


def _files(temporary: Path) -> tuple[WrittenFile, ...]:
    paths = sorted(temporary.iterdir(), key=lambda p: (p.suffix == ".json", p.name)) if temporary.is_dir() else []
    return tuple(
        WrittenFile(name=path.name, nbytes=path.stat().st_size, sha256=digest_of(path)) for path in paths or [temporary]
    )
