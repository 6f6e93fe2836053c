"""A folder that came as the bytes of one tar: what a browser sends of a folder that is dropped, and what is fetched.

Its members are files as they lie on a disk, so nothing that is said of archives holds of it. The tar says so itself, in
the owner's name of its members, which means nothing else here.
"""

from __future__ import annotations

from inspector.checkpoint.source import ByteSource

OWNER = "inspector-folder"
_BLOCK = 512
# Of a tar's header: the length in octal digits, the kind of member, the owner's name.
_SIZE, _KIND, _OWNER = slice(124, 135), 156, slice(265, 297)


def is_sent_folder(source: ByteSource) -> bool:
    """Whether this tar is a folder that was sent. Reads one header, or the one behind the first's long name."""
    at = 0
    for _ in range(2):
        if source.size < at + _BLOCK:
            return False
        header = source.read(at, _BLOCK)
        if header[_OWNER].rstrip(b"\0") == OWNER.encode():
            return True
        if header[_KIND : _KIND + 1] != b"x" or not header[_SIZE].strip(b"\0 ").isdigit():
            return False
        size = int(header[_SIZE].strip(b"\0 "), 8)
        at += _BLOCK + size + -size % _BLOCK
    return False
