"""Which file this is, by its sha256."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from inspector.checkpoint.joined_source import JoinedSource
from inspector.checkpoint.source import ByteSource, PathSource, is_distant
from inspector.checkpoint.types import Checkpoint
from inspector.progress import Progress, silent
from inspector.units import human_bytes

_CHUNK_NBYTES = 4 << 20


def sha256_of(source: ByteSource, progress: Progress = silent) -> str:
    """Hex digest of all bytes; progress in bytes, before each 4 MiB."""
    digest = hashlib.sha256()
    for at in range(0, source.size, _CHUNK_NBYTES):
        progress(at, source.size, "sha256")
        digest.update(source.read(at, min(_CHUNK_NBYTES, source.size - at)))
    return digest.hexdigest()


def digest_of(path: Path, progress: Progress = silent) -> str:
    """The same of a file on disk. Raises OSError, ReadError where it cannot be read."""
    source = PathSource(path)
    try:
        return sha256_of(source, progress)
    finally:
        source.close()


def digested(checkpoint: Checkpoint) -> str:
    """What the digest is one of, where it is not simply the file's: "" for a file as it lies on the disk."""
    source = checkpoint.source
    if isinstance(source, JoinedSource):
        return "of what it is made of, one behind the other in the order of its parts; of no single file"
    if getattr(source, "inner", None) is not None:
        return "of the checkpoint inside, unpacked; not of the archive"
    return f"of {source.name}" if source.name != checkpoint.origin.name else ""


def left_undigested(checkpoint: Checkpoint) -> str:
    """Why a command does not compute the digest unless it is asked to, "" where it does: it would fetch every byte."""
    if checkpoint.origin.sha256 is not None or not is_distant(checkpoint.source):
        return ""
    return (
        "its sha256, by which published files are known: that would fetch all of it "
        f"({human_bytes(checkpoint.source.size)}); --digest does"
    )


def with_digest(checkpoint: Checkpoint, progress: Progress = silent) -> Checkpoint:
    """The same checkpoint with `origin.sha256` filled in; itself when it is already."""
    if checkpoint.origin.sha256 is not None:
        return checkpoint
    digest = sha256_of(checkpoint.source, progress)
    return replace(checkpoint, origin=replace(checkpoint.origin, sha256=digest))
