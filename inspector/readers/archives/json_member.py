"""JSON from inside an archive, read with bounds: its bytes, its number of values, its nesting."""

from __future__ import annotations

import json

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import Member
from inspector.readers.formats.torch_archive import member_bytes

_NBYTES = 32_000_000
_MOST_VALUES = 800_000
# Measured: an entry of a large object costs up to 250 bytes while it is made.
_VALUE_NBYTES = 250


def read_json(source: ByteSource, member: Member, limits: Limits) -> tuple[object, tuple[str, ...]]:
    """(what it says, keys that occur twice in one object). Raises CorruptFile, LimitExceeded."""
    name = member.name[:120]
    if max(member.packed_nbytes, member.nbytes) > _NBYTES:
        raise LimitExceeded(f"{source.name}: {name} says {member.nbytes:,} bytes of JSON; the limit is {_NBYTES:,}.")
    raw = member_bytes(source, member, limits)
    values = raw.count(b",") + raw.count(b"[") + raw.count(b"{")
    if values > _MOST_VALUES:
        raise LimitExceeded(f"{source.name}: {name} holds more than {_MOST_VALUES:,} JSON values.")
    limits.charge(values * _VALUE_NBYTES + 2 * len(raw), f"{source.name}: {name}")
    twice: list[str] = []

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = {_whole(k): _whole(v) if isinstance(v, str) else v for k, v in pairs}
        if len(made) != len(pairs) and len(twice) < 20:
            seen: set[str] = set()
            twice.extend([k[:200] for k, _ in pairs if k in seen or seen.add(k)][:20])  # type: ignore[func-returns-value]
        return made

    try:
        return json.loads(raw, object_pairs_hook=unique), tuple(_whole(k) for k in twice)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(
            f"{source.name}: {name} is no valid JSON ({str(error)[:120]}).", hint="Download or copy it again."
        ) from error


def _whole(text: str) -> str:
    """JSON can spell half a surrogate pair, which no terminal, table or browser could be given."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
