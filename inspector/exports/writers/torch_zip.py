"""The zip of torch.save, record by record, byte for byte as torch's own writer lays it out.

torch's writer needs torch, names the archive after the file and stamps it with a hash of that name; this one is called
"archive", as torch calls what it writes to a buffer, so that the same tensors always give the same file. Sources:
caffe2/serialize/inline_container.cc (padding, version, serialization_id), miniz (mz_zip_writer_add_mem_ex_v2), and the
zip specification (APPNOTE 4.3, 4.5.3 for sizes over 4 GiB).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_NAME = "archive"
ALIGNMENT = 64
_LARGE = 0xFFFFFFFF
_UTF8, _SIZE_BEHIND = 0x800, 0x8
_PIECE = 1 << 20
# The version that torch's writer puts in since 1.6; newer ones are for code in the archive.
_VERSION = b"3\n"


class TorchZip:
    """Records of one archive, written in order. Use `new_torch_zip`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._at = 0
        self._directory: list[bytes] = []
        self._identity = zlib.crc32(b"")

    def add(self, name: str, data: bytes | memoryview) -> None:
        """A record, uncompressed, its bytes at a multiple of ALIGNMENT. The checksum comes behind them."""
        path = f"{_NAME}/{name}".encode()
        raw = memoryview(data)
        size, start = raw.nbytes, self._at
        large = _sizes(size, start)
        # A record of nothing has its sizes in front, where they are zero.
        flags = _UTF8 | (_SIZE_BEHIND if size else 0)
        padding = -(start + 30 + len(path) + len(large) + 4) % ALIGNMENT
        extra = large + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        self._put(struct.pack("<4s5H3I2H", b"PK\x03\x04", 0, flags, 0, 0, 0, 0, 0, 0, len(path), len(extra)))
        self._put(path + extra)
        checksum = 0
        for at in range(0, size, _PIECE):
            # Written while it is in the processor's cache.
            piece = raw[at : at + _PIECE]
            checksum = zlib.crc32(piece, checksum)
            self._put(piece)
        if size:
            self._put(struct.pack("<4sI2Q" if large else "<4s3I", b"PK\x07\x08", checksum, size, size))
        self._identity = zlib.crc32(path + checksum.to_bytes(4, "little"), self._identity)
        short = min(size, _LARGE)
        entry = (0, 0, flags, 0, 0, 0, checksum, short, short, len(path), len(large), 0, 0, 0, 0, min(start, _LARGE))
        self._directory.append(struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *entry) + path + large)

    def end(self) -> None:
        """The records that torch puts last, and the directory."""
        self.add("version", _VERSION)
        # torch's own is a hash of names and checksums, too, by the functions of the library it was compiled with.
        self.add(".data/serialization_id", f"{self._identity:040d}".encode())
        start, count = self._at, len(self._directory)
        for entry in self._directory:
            self._put(entry)
        size, end = self._at - start, self._at
        self._put(struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0x031E, 0x002D, 0, 0, count, count, size, start))
        self._put(struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1))
        few = min(count, 0xFFFF)
        short = (min(size, _LARGE), min(start, _LARGE))
        self._put(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, few, few, *short, 0))

    def _put(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._at += len(data)


def _sizes(size: int, start: int) -> bytes:
    """The extra field for what does not fit into 32 bits, b"" where all does."""
    fields = [size, size] if size >= _LARGE else []
    fields += [start] if start >= _LARGE else []
    return struct.pack(f"<2H{len(fields)}Q", 1, 8 * len(fields), *fields) if fields else b""


@contextmanager
def new_torch_zip(path: Path) -> Iterator[TorchZip]:
    """An archive to add records to; ended when the block ends well."""
    with path.open("wb") as file:
        archive = TorchZip(file)
        yield archive
        archive.end()
