"""Bytes that lie compressed in another source, as a source: a deflated member of a zip, or a .gz, .bz2, .xz, .lzma or
zlib file.

Compressed bytes have no random access, so they are unpacked once, on the first read behind the first 64 KiB: into an
unlinked temporary file, which is gone when the source is, whatever happens. Nothing gets a name on the disk.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import BinaryIO, Protocol

from inspector.checkpoint.source import ByteSource, check_range
from inspector.errors import CorruptFile, LimitExceeded, ReadError
from inspector.limits import Limits
from inspector.units import human_bytes

HEAD_NBYTES = 1 << 16
MOST_NBYTES = 1 << 30  # Unpacked onto the disk, from one archive. Stored members and plain tars have no such limit.
_STEP = 1 << 18
_SMALL_NBYTES = 1 << 20
_XZ_MEMORY_NBYTES = 100 << 20  # xz -9 needs 65 MiB; a header may ask for 4 GiB.
_FREE_NBYTES = 256 << 20


class Packing(StrEnum):
    """How the bytes are compressed."""

    DEFLATE = "deflate"
    GZIP = "gzip"
    BZIP2 = "bzip2"
    XZ = "xz"
    LZMA = "lzma"
    ZLIB = "zlib"


class _Unpacker(Protocol):
    """What the decompressors of bz2 and lzma have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Zlib:
    """zlib's decompressor with the manners of the other two."""

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max(0, max_length))


def _unpacker(packing: Packing) -> _Unpacker:
    # Imported where they are needed: most files that are opened are not compressed.
    if packing is Packing.BZIP2:
        import bz2

        return bz2.BZ2Decompressor()
    if packing in (Packing.XZ, Packing.LZMA):
        import lzma

        form = lzma.FORMAT_XZ if packing is Packing.XZ else lzma.FORMAT_ALONE
        return lzma.LZMADecompressor(format=form, memlimit=_XZ_MEMORY_NBYTES)
    return _Zlib({Packing.DEFLATE: -15, Packing.ZLIB: 15}.get(packing, 31))


_STARTS = (
    (b"\x1f\x8b\x08", Packing.GZIP),
    (b"BZh", Packing.BZIP2),
    (b"\xfd7zXZ\x00", Packing.XZ),
    (b"]\x00\x00", Packing.LZMA),
    (b"x", Packing.ZLIB),
)


def packing_of(head: bytes) -> Packing | None:
    """How a file that begins so is compressed, None when it is not; what has no real magic number is tried out."""
    packing = next((packing for start, packing in _STARTS if head.startswith(start)), None)
    if packing is Packing.ZLIB and int.from_bytes(head[:2], "big") % 31:
        return None
    unsure = packing in (Packing.LZMA, Packing.ZLIB)
    return packing if packing is None or not unsure or first_unpacked(head, packing) else None


def first_unpacked(head: bytes, packing: Packing) -> bytes:
    """The first bytes, 64 at most, that come out of these; b"" where they cannot be unpacked."""
    from lzma import LZMAError

    try:
        return _unpacker(packing).decompress(head, 64)
    except (zlib.error, LZMAError, EOFError, OSError, ValueError, MemoryError):
        return b""


def most_unpacked(packed_nbytes: int, limits: Limits, left: int = MOST_NBYTES) -> int:
    """How many bytes packed_nbytes may become: by ratio, small ones exempt, and never more than what is left."""
    return min(left, max(_SMALL_NBYTES, limits.inflation_ratio * packed_nbytes))


class PackedSource:
    """The unpacked bytes of packed_nbytes at start of another source.

    size: as the archive declares it; None when nobody does, and then everything is unpacked here and now.
    most: how many bytes may come out (`most_unpacked`).
    trouble: why the stream ended early, when nobody declared a size; "" when it is whole.
    Raises LimitExceeded when more comes out than that, CorruptFile when the stream is damaged or does
    not give `size` bytes. It can be pickled: the other process unpacks again.
    """

    def __init__(
        self,
        inner: ByteSource,
        start: int,
        packed_nbytes: int,
        packing: Packing,
        *,
        size: int | None,
        most: int,
        name: str = "",
    ) -> None:
        check_range(inner.name, inner.size, start, packed_nbytes)
        self.inner = inner
        self.start = start
        self.packed_nbytes = packed_nbytes
        self.packing = Packing(packing)
        self.name = name or inner.name
        self.trouble = ""
        self._lock = threading.Lock()
        self._head: bytes | None = None
        self._file: BinaryIO | None = None
        self._most = most
        if size is not None and size > self._most:
            raise self._bomb(size)
        self._declared = size
        self.size = 0 if size is None else size
        if size is None:
            self.size = self._unpack()

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        if offset + n <= HEAD_NBYTES and self._file is None:
            return self._first()[offset : offset + n]
        with self._lock:
            if self._file is None:
                self._unpack()
            assert self._file is not None
            descriptor = self._file.fileno()
        parts: list[bytes] = []
        while n:
            part = os.pread(descriptor, n, offset)
            if not part:
                raise ReadError(f"The temporary copy of {self.name} became shorter while it was read.")
            parts.append(part)
            offset += len(part)
            n -= len(part)
        return b"".join(parts)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        return [self.read(offset, n) for offset, n in ranges]

    def close(self) -> None:
        # The temporary file stays until this object goes: another thread may be reading it.
        self.inner.close()

    def __reduce__(self) -> tuple[object, ...]:
        return (
            _again,
            (self.inner, self.start, self.packed_nbytes, self.packing, self._declared, self._most, self.name),
        )

    def _first(self) -> bytes:
        """The first 64 KiB, without unpacking the rest."""
        if self._head is None:
            wanted = min(HEAD_NBYTES, self.size)
            found = bytearray()
            for part in self._stream():
                found += part
                if len(found) >= wanted:
                    break
            if len(found) < wanted:
                raise self._unlike(len(found))
            self._head = bytes(found[:wanted])
        return self._head

    def _unpack(self) -> int:
        """Everything into a temporary file; how many bytes that were."""
        from tempfile import TemporaryFile

        declared, made = self._declared, 0
        file: BinaryIO | None = None
        try:
            self._check_room(declared or 0)
            file = TemporaryFile(prefix="inspector-")  # noqa: SIM115 - it lives as long as this source
            for part in self._stream():
                made += len(part)
                if made > self._most:
                    raise self._bomb(made)
                if declared is not None and made > declared:
                    raise self._unlike(made)
                file.write(part)
                if made % (64 * _STEP) < len(part):
                    self._check_room(0)
            if declared is not None and made < declared:
                raise self._unlike(made)
            file.flush()
            self._file = file
        except OSError as error:
            raise ReadError(
                f"{self.name} cannot be unpacked: {error.strerror or error}.",
                hint="Unpack it yourself and open what is inside.",
            ) from error
        finally:
            if file is not None and self._file is not file:
                file.close()
        return made

    def _stream(self) -> Iterator[bytes]:
        """Unpacked bytes, at most 256 KiB at a time; streams behind each other count as one, as gunzip has it."""
        from lzma import LZMAError

        at, end = self.start, self.start + self.packed_nbytes
        unpacker, data, streams, began = _unpacker(self.packing), b"", 0, False
        while True:
            if not data and unpacker.needs_input and at < end:
                data = self.inner.read(at, min(_STEP, end - at))
                at += len(data)
            try:
                part = unpacker.decompress(data, _STEP)
            except (zlib.error, LZMAError, EOFError, OSError, ValueError, MemoryError) as error:
                if streams and not began:
                    return  # Padding, or something else behind the end.
                self._broken(str(error), began or streams > 0)
                return
            data = b""
            began = began or bool(part)
            if part:
                yield part
            if unpacker.eof:
                # A zip member is one stream; gzip and xz files may be concatenated, and padded with zeros.
                data = unpacker.unused_data.lstrip(b"\x00")
                if self.packing is Packing.DEFLATE or (not data and at >= end):
                    return
                unpacker, streams, began = _unpacker(self.packing), streams + 1, False
            elif not part and unpacker.needs_input and at >= end:
                if not streams or began:
                    self._broken("its stream has no end", began or streams > 0)
                return

    def _broken(self, why: str, something_came: bool) -> None:
        if self._declared is None and something_came:
            self.trouble = why
            return
        raise CorruptFile(
            f"{self.name} cannot be unpacked ({self.packing}): {why[:120]}.", hint="Download or copy it again."
        )

    def _check_room(self, nbytes: int) -> None:
        import shutil
        import tempfile

        free = shutil.disk_usage(tempfile.gettempdir()).free
        if free < nbytes + _FREE_NBYTES:
            raise LimitExceeded(
                f"{self.name} has to be unpacked, and the disk for temporary files has only {human_bytes(free)} free.",
                hint="Unpack it yourself on another disk, and open what is inside.",
            )

    def _bomb(self, nbytes: int) -> LimitExceeded:
        return LimitExceeded(
            f"{self.name} unpacks from {human_bytes(self.packed_nbytes)} to {human_bytes(nbytes)} or more; "
            f"{human_bytes(self._most)} are allowed.",
            hint="If you trust it, unpack it yourself and open what is inside.",
        )

    def _unlike(self, nbytes: int) -> CorruptFile:
        more = "more" if nbytes > self.size else f"{nbytes:,}"
        return CorruptFile(f"{self.name} announces {self.size:,} bytes and unpacks to {more}.")


def _again(
    inner: ByteSource, start: int, packed_nbytes: int, packing: Packing, size: int | None, most: int, name: str
) -> PackedSource:
    return PackedSource(inner, start, packed_nbytes, packing, size=size, most=most, name=name)
