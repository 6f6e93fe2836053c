"""Results of a sweep by their keys: what is here need not be done again, by whomever.

A part is a compressed text, a line per result, named by the digest of its own bytes: two drivers that write the same
write one file, a damaged one is known by its name, and nothing is ever changed. The format is ours:
`results/<question>-<sha256>.gz`, each line `key<TAB>data`, data without line ends (JSON).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Container, Iterable, Iterator
from typing import Protocol

from inspector.errors import ReadError, UsageError
from inspector.remote.buckets import is_bucket_address
from inspector.sweep.blobs import Blobs, FolderBlobs, NoBlob
from inspector.sweep.piece import KEY_DIGITS

#: The folder of what is kept by keys.
RESULTS = "results"
_MARK = "store.json"
_FORMAT = "inspector store"
_VERSION = 1
_MOST_NBYTES = 512 << 20
# A gzip member, without a name or a time.
_GZIP = 31


class Kept(Protocol):
    """What a sweep asks of a store. distant: each part costs a round trip, so several results become one."""

    @property
    def distant(self) -> bool: ...

    def load(self, question: str, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """(key, data) of what is kept of that, each key once."""
        ...

    def put(self, question: str, results: Iterable[tuple[str, bytes]]) -> None:
        """Keep them, whole or not at all."""
        ...


class ResultStore:
    """damaged: names of parts that are not what they were written as; what they held is done again. remarks: sentences
    for whoever writes into it, about the place and not about what is kept."""

    def __init__(self, blobs: Blobs) -> None:
        self.blobs = blobs
        self.damaged: list[str] = []
        self.remarks: list[str] = []
        self._written: set[str] = set()

    @property
    def shown(self) -> str:
        """What to call it in messages."""
        return self.blobs.shown

    @property
    def distant(self) -> bool:
        """Whether each part costs a round trip."""
        return self.blobs.distant

    def put(self, question: str, results: Iterable[tuple[str, bytes]]) -> None:
        """Keep results, (key, data) of each, as one part. Raises ExportError; what was there stays whole."""
        text = b"".join(key.encode("ascii") + b"\t" + data + b"\n" for key, data in results)
        if text:
            self.put_named(RESULTS, question, (text,))

    def put_named(self, folder: str, name: str, text: Iterable[bytes]) -> str:
        """Keep any text, given piece by piece, under its digest; its name."""
        packer = zlib.compressobj(level=6, wbits=_GZIP)
        packed = [part for one in text if (part := packer.compress(one))]
        data = b"".join((*packed, packer.flush()))
        place = f"{folder}/{name}-{hashlib.sha256(data).hexdigest()[:32]}.gz"
        if place not in self._written:
            self.blobs.write(place, data)
            self._written.add(place)
        return place

    def texts(self, folder: str, name: str, *, known: Container[str] = ()) -> Iterator[tuple[str, bytes]]:
        """(name, text) of everything that was kept so and is whole, but for known names. Raises ReadError."""
        every = self.blobs.names(folder)
        wanted = [place for place in every if place.startswith(f"{folder}/{name}-") and place not in known]
        for place, data in self.blobs.read_each(wanted):
            text = self._text(place, data)
            if text is not None:
                yield place, text

    def load(self, question: str, wanted: Container[str]) -> Iterator[tuple[str, bytes]]:
        """What is kept of that, each key once. Memory: one part. Raises ReadError where the store cannot be read."""
        given: set[str] = set()
        for _, text in self.texts(RESULTS, question):
            for line in text.split(b"\n"):
                key, tab, data = line[:KEY_DIGITS].decode("ascii", "replace"), line[KEY_DIGITS : KEY_DIGITS + 1], line
                if tab == b"\t" and key in wanted and key not in given:
                    given.add(key)
                    yield key, data[KEY_DIGITS + 1 :]

    def is_whole(self, place: str, data: bytes) -> bool:
        """Whether a part is what it was written as; else it is one of the damaged."""
        told = place.rpartition("-")[2].removesuffix(".gz")
        if hashlib.sha256(data).hexdigest()[:32] == told:
            return True
        self.damaged.append(place)
        return False

    def _text(self, place: str, data: bytes) -> bytes | None:
        if not self.is_whole(place, data):
            return None
        try:
            stream = zlib.decompressobj(wbits=_GZIP)
            text = stream.decompress(data, _MOST_NBYTES)
        except zlib.error:
            text = b""
        if not text or stream.unconsumed_tail:
            self.damaged.append(place)
            return None
        return text


def open_store(where: str, blobs: Blobs | None = None) -> ResultStore:
    """The store of that folder, or below that prefix of a bucket; made where there is none.

    blobs: another place. Raises UsageError for a place that holds something else, or the store of another version,
    ReadError where nothing can be said of it, ExportError where it cannot be written.
    """
    place = blobs or blobs_of(where)
    mark = json.dumps({"format": _FORMAT, "version": _VERSION}).encode("ascii")
    held = _mark_of(place)
    if held is None and place.holds_others():
        # Another driver that makes the same store marks it before it writes anything else.
        held = _mark_of(place)
        if held is None:
            what = "prefix" if "://" in where else "folder"
            raise UsageError(f"{place.shown} holds other files.", hint=f"Name an empty or a new {what} for the store.")
    if held is None:
        place.write(_MARK, mark)
    elif held != mark:
        raise _of_another_version(place)
    return ResultStore(place)


def check_version(where: str) -> None:
    """Raise UsageError for the store of another version in a folder; what is no store, or cannot be read, is no matter
    of versions."""
    place = FolderBlobs(where)
    try:
        told = json.loads(place.read(_MARK))
    except (ReadError, ValueError, RecursionError):
        return
    if isinstance(told, dict) and told.get("format") == _FORMAT and told.get("version") != _VERSION:
        raise _of_another_version(place)


def _of_another_version(place: Blobs) -> UsageError:
    return UsageError(
        f"{place.shown} is no store of this version.", hint="Name a new folder for the store, or use its own version."
    )


def existing_store(where: str) -> ResultStore:
    """The store of that folder, or below that prefix of a bucket. Raises ReadError where there is none."""
    place = blobs_of(where)
    if _mark_of(place) is None:
        raise ReadError(f"{place.shown} is no store.", hint="Name a place that `audit --store` wrote.")
    return open_store(where, place)


def blobs_of(where: str) -> Blobs:
    """A folder's files, or the objects of a bucket. Raises as `BucketBlobs`, UsageError for other addresses."""
    if not is_bucket_address(where):
        if "://" in where:
            raise UsageError(
                f"{where[:200]} is no place for a store.", hint="Name a folder, or a prefix: s3://, gs:// or az://."
            )
        return FolderBlobs(where)
    from inspector.sweep.bucket_blobs import BucketBlobs

    return BucketBlobs(where)


def _mark_of(blobs: Blobs) -> bytes | None:
    try:
        return blobs.read(_MARK)
    except NoBlob:
        return None
