"""Objects in a bucket (s3://, gs://, az://), through fsspec, with the credentials of whoever runs the command.

For the operator's own addresses alone: fsspec resolves names, follows redirects and looks for credentials by itself, so
nothing that a visitor typed comes here. Never by `open()`, whose blocks are 5 MB: one ranged request for each range.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from inspector.errors import AddressError, FileChanged, MissingLibrary, UsageError
from inspector.installed import install_line
from inspector.remote.bucket_refusals import refused
from inspector.remote.pinned import pinned_range
from inspector.remote.ranged import RangedSource
from inspector.units import shorten_middle

#: What comes before a bucket's name, and the package that speaks with it.
SCHEMES = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
}
# What stores call that which changes with an object's content. A listing may say less of it than an answer about one.
_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "generation", "VersionId", "LastModified", "mtime", "created")
# Neither a name nor a value has it.
_BETWEEN = "\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFile:
    """One object as a listing says it is; of a million as many are held. said: see `tags`, one after the other in one
    text, which takes a third of the memory of pairs."""

    address: str
    size: int
    said: str = ""

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]

    def open(self) -> BucketSource:
        """Nothing is fetched before it is read."""
        return BucketSource(self)

    @property
    def tags(self) -> tuple[tuple[str, str], ...]:
        """What changes with its content, as (what the store calls it, value)."""
        words = self.said.split(_BETWEEN)
        return tuple(zip(words[::2], words[1::2], strict=False))

    @property
    def etag(self) -> str:
        """What its store holds a request to, so that each answer is of the listed content; "" where it cannot."""
        is_s3 = self.address.partition("://")[0].lower() == "s3"
        return next((value for key, value in self.tags if key == "ETag"), "") if is_s3 else ""

    @property
    def tag(self) -> str:
        """What it is known again by, "" where the store says nothing."""
        return " ".join(f"{key}={value}" for key, value in self.tags[:1])

    def changed(self) -> bool:
        """Whether the store says something else of it now, in one request. Raises AddressError."""
        system, path = system_of(self.address)
        try:
            system.invalidate_cache()
            now = _file(self.address, system.info(path))
        except FileNotFoundError:
            return True
        except Exception as error:
            raise refused(self.address, error) from error
        then = dict(self.tags)
        return now.size != self.size or any(then.get(key, value) != value for key, value in now.tags)


class BucketSource(RangedSource):
    """Its bytes by ranges. Raises AddressError for what the store refuses, FileChanged for another object than the one
    that was listed, or fewer bytes than it has."""

    def __init__(self, file: BucketFile) -> None:
        super().__init__(file.name)
        self.file = file
        self._system, self._path = system_of(file.address)
        self._pinned = bool(file.etag) and hasattr(self._system, "call_s3")

    @property
    def size(self) -> int:
        return self.file.size

    def changed(self) -> bool:
        return super().changed() or (not self._pinned and self.file.changed())

    def _fetch(self, offset: int, n: int) -> bytes:
        try:
            if self._pinned:
                data = pinned_range(self._system, self._path, self.file.etag, offset, n)
            else:
                data = bytes(self._system.cat_file(self._path, start=offset, end=offset + n))
        except Exception as error:
            told = refused(self.file.address, error)
            self._met_change |= isinstance(told, FileChanged)
            raise told from error
        if len(data) != n:
            self._met_change = True
            raise FileChanged(
                f"{self.name} changed while it was read: {len(data):,} of {n:,} bytes came from {offset:,}.",
                hint="Open it again.",
            )
        return data

    def __reduce__(self) -> tuple[object, ...]:
        return (BucketSource, (self.file,))


def is_bucket_address(text: str) -> bool:
    """Whether it begins as an address in a bucket does."""
    scheme, colon, _ = text.partition("://")
    return bool(colon) and scheme.lower() in SCHEMES


def list_bucket(address: str) -> tuple[BucketFile, ...]:
    """Every object below a prefix, or the one of that name, in the order of their names.

    Raises UsageError for no address of a bucket, MissingLibrary without fsspec or the store's package, AddressError
    where it cannot be listed whole, or holds nothing.
    """
    if not is_bucket_address(address):
        raise UsageError(f"{address[:200]} is no address in a bucket.", hint=f"Write one of {', '.join(SCHEMES)}://.")
    scheme = address.partition("://")[0]
    system, path = system_of(address)
    try:
        found = system.find(path, detail=True)
        if not found:
            found = {path: system.info(path)}
    except Exception as error:
        raise refused(address, error) from error
    files = [_file(f"{scheme}://{name.lstrip('/')}", told) for name, told in found.items() if _is_file(told)]
    if not files:
        raise AddressError(f"There is nothing at {shorten_middle(address, 200)}.", hint="Check the prefix.")
    return tuple(sorted(files, key=lambda file: file.address))


def _is_file(told: dict[str, Any]) -> bool:
    # Some stores mark a folder by an empty object whose name ends in "/".
    return told.get("type") == "file" and not str(told.get("name", "")).endswith("/")


def _file(address: str, told: dict[str, Any]) -> BucketFile:
    words = (word for key in _TAGS if told.get(key) for word in (key, _text(told[key]).replace(_BETWEEN, "")))
    return BucketFile(address=address, size=int(told.get("size") or 0), said=_BETWEEN.join(words))


def _text(value: object) -> str:
    # Times come as either, from one store.
    seconds = value.timestamp() if isinstance(value, datetime) else value
    return f"{seconds:.3f}" if isinstance(seconds, float) else str(value)[:300]


def system_of(address: str) -> tuple[Any, str]:
    """The file system of an address, kept by fsspec itself, and the path in it.

    Raises UsageError without a bucket, MissingLibrary without fsspec or the store's package, AddressError for what they
    refuse.
    """
    scheme, _, place = address.partition("://")
    scheme = scheme.lower().rstrip(":")
    if not place.strip("/"):
        raise UsageError(f"{scheme}:// names no bucket.", hint=f"Write {scheme}://bucket or {scheme}://bucket/prefix.")
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingLibrary("Buckets need the package fsspec.", hint=install_line("fsspec")) from error
    try:
        system, path = url_to_fs(address)
    except ImportError as error:
        package = SCHEMES.get(scheme, "fsspec")
        raise MissingLibrary(f"{scheme}:// needs the package {package}.", hint=f"Run: pip install {package}") from error
    except Exception as error:
        raise refused(address, error) from error
    return system, str(path)
