"""Opening a file: from a path, an address, bytes or any source to a `Checkpoint`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inspector.checkpoint.source import BufferSource, ByteSource, PathSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import LimitExceeded, ReadError, UnknownFormat
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers import plain_pickle, safetensors, torch_legacy, torch_zip
from inspector.readers.entry import HEAD_NBYTES, Reader
from inspector.readers.foreign import name_foreign

# Order carries meaning: the signatures of the first three exclude each other; a plain pickle is what is left of 0x80.
READERS: tuple[Reader, ...] = (
    torch_zip.READER,
    safetensors.READER,
    torch_legacy.READER,
    plain_pickle.READER,
)


def open_source(
    where: str | Path | bytes | ByteSource, *, name: str = "", limits: Limits = DEFAULT_LIMITS
) -> ByteSource:
    """A source over a path, an http(s) address, or bytes; a source is passed through.

    Raises ReadError when there is nothing to read there.
    """
    if isinstance(where, bytes):
        return BufferSource(where, name or "these bytes")
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        # Imported here: urllib and ssl cost more than reading a header does.
        from inspector.checkpoint.http_source import HttpSource

        return HttpSource(where, name=name)
    if isinstance(where, str | Path):
        path = Path(where)
        if path.is_dir():
            raise ReadError(f"{path.name or path} is a folder, not a file.", hint="Open one of the files in it.")
        if not path.exists():
            raise ReadError(f"There is no file {path.name}.", hint="Check the path.")
        if not path.is_file():
            raise ReadError(f"{path.name} is no regular file (a device, socket or pipe).")
        return PathSource(path, name)
    return where


def detect_format(
    source: ByteSource, *, limits: Limits = DEFAULT_LIMITS, readers: Sequence[Reader] = READERS
) -> tuple[Reader, str] | None:
    """The first reader that claims the source, with its evidence; None when none does."""
    head = source.read(0, min(HEAD_NBYTES, source.size))
    for reader in readers:
        evidence = reader.claims(source, head, limits)
        if evidence:
            return reader, evidence
    return None


def open_checkpoint(
    where: str | Path | bytes | ByteSource,
    *,
    name: str = "",
    limits: Limits = DEFAULT_LIMITS,
    readers: Sequence[Reader] = READERS,
) -> Checkpoint:
    """Read the headers of a checkpoint file. Nothing in it is executed and no tensor data is read.

    name: what to call it in messages, else its base name. Raises a ReadError (UnknownFormat, CorruptFile,
    RefusedContent, LimitExceeded) when there is nothing to show; everything else that is wrong is a finding.
    """
    source = open_source(where, name=name, limits=limits)
    shown = name or source.name
    try:
        found = detect_format(source, limits=limits, readers=readers)
        if found is None:
            raise name_foreign(source, shown)
        checkpoint = found[0].read(source, limits)
    except (RecursionError, MemoryError) as error:
        raise LimitExceeded(
            f"{shown} needs more memory or nesting than this program allows.", hint="No real checkpoint does."
        ) from error
    return replace(checkpoint, origin=replace(checkpoint.origin, name=shown))


__all__ = ["READERS", "Reader", "UnknownFormat", "detect_format", "open_checkpoint", "open_source"]
