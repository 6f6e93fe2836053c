"""One file of a torch.distributed.checkpoint folder: opened with its folder where it lies in one, else named.

A data file begins as a zip archive and is many of them, one behind the other: torch.load reads the first, zipfile the
last, and neither says so.
"""

from __future__ import annotations

import struct

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import UnknownFormat
from inspector.readers.entry import Peek, Reader
from inspector.units import human_bytes

_END, _END64 = b"PK\x05\x06", b"PK\x06\x06"
_MARK = b"torch.distributed.checkpoint"
_METADATA = ".metadata"


def _claims(peek: Peek) -> str:
    if peek.head[:1] in (b"\x80", b"c", b"(") and _MARK in peek.head[:400]:
        return "a pickle of torch.distributed.checkpoint's metadata"
    if not peek.is_zip:
        return ""
    # Two archives in one file are also a way to show other tools other content: alone and under another name, the
    # reader of torch.save opens it and says so.
    in_folder = peek.folder is not None and (
        peek.folder.size_of(_METADATA) is not None or peek.folder.size_of("__0.metadata") is not None
    )
    if not in_folder and not peek.source.name.endswith(".distcp"):
        return ""
    return "several zip archives of torch.save, one behind the other" if before_last_archive(peek.source) else ""


def before_last_archive(source: ByteSource) -> int:
    """How many bytes of whole archives lie before the last archive of a file; 0 when it is the only one."""
    start = max(0, source.size - 65536 - 22)
    tail = source.read(start, source.size - start)
    at = tail.rfind(_END, 0, max(0, len(tail) - 18))
    if at < 0:
        return 0
    nbytes, offset = struct.unpack("<II", tail[at + 12 : at + 20])
    wide = at - 20 - 56
    if wide >= 0 and tail[wide : wide + 4] == _END64:
        nbytes, offset = struct.unpack("<QQ", tail[wide + 40 : wide + 56])
        at = wide
    before: int = start + at - nbytes - offset
    if not 22 < before < source.size:
        return 0
    # Junk before an archive is another thing: here one archive ends where the next begins.
    seam = source.read(before - 22, 26)
    return before if seam[:4] == _END and seam[22:] == b"PK\x03\x04" else 0


def _read(peek: Peek) -> Checkpoint:
    # Asked by name: to list a folder that merely happens to hold this file may take long.
    if peek.folder is not None and (
        peek.folder.size_of(_METADATA) is not None or peek.folder.size_of("__0.metadata") is not None
    ):
        try:
            return peek.open_folder(peek.folder)
        except UnknownFormat:
            pass  # A .metadata of something else; then this file is alone.
    name = peek.source.name
    if not peek.is_zip:
        raise UnknownFormat(
            f"{name} says where the tensors of a distributed checkpoint lie, but holds none itself.",
            hint="Open the folder with its data files (.distcp), or its .metadata inside that folder.",
        )
    raise UnknownFormat(
        f"{name} is a data file of a torch.distributed.checkpoint ({human_bytes(peek.source.size)}): many archives, "
        "one behind the other, whose names and places are in the .metadata of its folder.",
        hint="Open the whole folder; torch.load would show only the first tensor.",
    )


READER = Reader(
    id="dcp-file",
    says="file of a torch.distributed.checkpoint folder",
    suffixes=(".distcp", ".metadata"),
    claims=_claims,
    read=_read,
)
