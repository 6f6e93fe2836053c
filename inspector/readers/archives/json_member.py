"""JSON from inside an archive, read with bounds: its bytes, its number of values, its nesting."""

from __future__ import annotations

from inspector.checkpoint.source import ByteSource
from inspector.errors import LimitExceeded
from inspector.limits import Limits
from inspector.readers.archives.zip_members import Member
from inspector.readers.formats.torch_archive import member_bytes
from inspector.readers.plain_json import parse_json

_NBYTES = 32_000_000
_MOST_VALUES = 800_000


def read_json(source: ByteSource, member: Member, limits: Limits) -> tuple[object, tuple[str, ...]]:
    """(what it says, keys that occur twice in one object). Raises CorruptFile, LimitExceeded."""
    name = member.name[:120]
    if max(member.packed_nbytes, member.nbytes) > _NBYTES:
        raise LimitExceeded(f"{source.name}: {name} says {member.nbytes:,} bytes of JSON; the limit is {_NBYTES:,}.")
    raw = member_bytes(source, member, limits)
    return parse_json(raw, f"{source.name}: {name}", most_values=_MOST_VALUES, limits=limits)
