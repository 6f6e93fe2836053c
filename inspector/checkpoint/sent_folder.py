"""A folder that came as the bytes of one tar: what a browser sends of a folder that is dropped, and what is fetched.

Its members are files as they lie on a disk, so nothing that is said of archives holds of it. The tar says so itself, in
the owner's name of its members, which means nothing else here.
"""

from __future__ import annotations

import tarfile

from inspector.checkpoint.source import ByteSource

OWNER = "inspector-folder"
BLOCK = 512
# Of a tar's header: the length in octal digits, the kind of member, the owner's name.
_SIZE, _KIND, _OWNER = slice(124, 135), 156, slice(265, 297)


def member_header(name: str, nbytes: int) -> bytes:
    """What stands in the tar before the bytes of a file of this path and length."""
    info = tarfile.TarInfo(name)
    info.size, info.uname = nbytes, OWNER
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def is_sent_folder(source: ByteSource) -> bool:
    """Whether this tar is a folder that was sent. Reads one header, or the one behind the first's long name."""
    at = 0
    for _ in range(2):
        if source.size < at + BLOCK:
            return False
        header = source.read(at, BLOCK)
        if header[_OWNER].rstrip(b"\0") == OWNER.encode():
            return True
        if header[_KIND : _KIND + 1] != b"x" or not header[_SIZE].strip(b"\0 ").isdigit():
            return False
        size = int(header[_SIZE].strip(b"\0 "), 8)
        at += BLOCK + size + -size % BLOCK
    return False
