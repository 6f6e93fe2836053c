"""Messages between the server and its broker: a length, then a pickle. Both ends are this program's own."""

from __future__ import annotations

import pickle
import struct
import threading
from typing import IO, Any

_HEAD = struct.Struct("!Q")


class Wire:
    """reads, writes: the two pipes. Sending may be done from several threads."""

    def __init__(self, reads: IO[bytes], writes: IO[bytes]) -> None:
        self._reads = reads
        self._writes = writes
        self._lock = threading.Lock()

    def send(self, message: tuple[Any, ...]) -> None:
        """Raises OSError, ValueError when the other end is gone."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        with self._lock:
            self._writes.write(_HEAD.pack(len(data)))
            self._writes.write(data)
            self._writes.flush()

    def receive(self) -> tuple[Any, ...] | None:
        """The next message; None when the other end is gone."""
        try:
            head = self._reads.read(_HEAD.size)
            if len(head) < _HEAD.size:
                return None
            (length,) = _HEAD.unpack(head)
            data = self._reads.read(length)
        except (OSError, ValueError):
            return None
        if len(data) < length:
            return None
        message: tuple[Any, ...] = pickle.loads(data)
        return message
