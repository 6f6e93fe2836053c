"""What a reader is: one frozen entry per format, tried in the order of `READERS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint
from inspector.limits import Limits

HEAD_NBYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One format.

    id: in `Checkpoint.format`. says: for people. suffixes: usual file name endings, for display; content decides.
    claims: evidence that (source, first 4096 bytes) is of this format, "" when it is not.
    read: makes the checkpoint; raises a ReadError when nothing can be shown.
    """

    id: str
    says: str
    suffixes: tuple[str, ...]
    claims: Callable[[ByteSource, bytes, Limits], str]
    read: Callable[[ByteSource, Limits], Checkpoint]
