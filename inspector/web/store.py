"""The visitors' files on disk, by content: an upload is written once and kept by its sha256.

No name that a visitor sent is ever part of a path: data lie under `files/<sha256>`, what they are called lies in a
small JSON record beside them. Old files go after `ttl_seconds`, then the least recently used ones until the store is
under `quota_nbytes`; uploads on their way and exports count towards it. What others used within `busy_seconds` does not
go for a new upload: that is refused. One process writes a store at a time (`store_lock.py`), or several that share it
(`store_shared.py`): what one of them takes, all of them have.

A digest is a capability: whoever knows the sha256 of a file that is here may look at it, as with a secret link. It
cannot be guessed, nothing lists digests, and whoever computed it had the file in the first place. What it gives away
is that some visitor of this server opened a file that is public elsewhere; never what that visitor called it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shutil
import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from inspector.checkpoint.digest import digest_of
from inspector.errors import LimitExceeded, NoRoom, ReadError, RefusedContent
from inspector.units import human_bytes
from inspector.web.front.variables import FILE, STORE_EACH, STORE_HOURS, STORE_NBYTES, is_shared, number
from inspector.web.records import Records
from inspector.web.store_shared import OwnFolder, SharedLock
from inspector.web.stored import Quota, Stored, clean_name, is_digest, leaving, linked_name, sweep_fetches, with_owner

__all__ = ["ContentStore", "Stored", "clean_name", "default_root", "is_digest", "linked_name", "the_store"]

STORE_VARIABLE = "INSPECTOR_STORE"


@dataclass(slots=True)
class _Arriving:
    """An upload on its way. reserved: bytes that it will take, at least those that came. written: those on the disk."""

    reserved: int = 0
    written: int = 0


class ContentStore:
    """Files by sha256 under one root folder. Its methods may be called from several threads."""

    def __init__(
        self,
        root: Path,
        *,
        file_nbytes: int = 16 * 10**9,
        quota_nbytes: int = 64 * 10**9,
        owner_nbytes: int | None = None,
        ttl_seconds: float = 24 * 3600,
        busy_seconds: float = 1800,
        shared: bool = False,
    ) -> None:
        """owner_nbytes: of the files that one visitor alone has, None for no such limit. shared: whether other
        processes write it, too."""
        self.root = root
        self.file_nbytes = file_nbytes
        self.quota_nbytes = quota_nbytes
        self.owner_nbytes = owner_nbytes
        self.ttl_seconds = ttl_seconds
        self.busy_seconds = busy_seconds
        self._records = Records(root / "records")
        for folder in (self._files, self._records.folder, self.exports):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock: AbstractContextManager[bool] = SharedLock(root / "records.lock") if shared else threading.RLock()
        self._arriving = threading.Lock()
        self._on_its_way: dict[Path, _Arriving] = {}
        with self._lock:
            self._own = OwnFolder(root) if shared else None
            for folder in (self.incoming, self._unpublished):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._clear_rests()
        self.sweep()

    @property
    def _files(self) -> Path:
        return self.root / "files"

    @property
    def incoming(self) -> Path:
        """What this server writes first; on the same disk as the files."""
        return self._on_the_way / "incoming"

    @property
    def _unpublished(self) -> Path:
        return self._on_the_way / "unpublished"

    @property
    def _on_the_way(self) -> Path:
        return self.root if self._own is None else self._own.path

    @property
    def exports(self) -> Path:
        """Repaired files waiting to be downloaded, each in a folder of its own; they go with the old files."""
        return self.root / "exports"

    def new_export(self, token: str) -> Path:
        """A folder to write into, which nobody can download yet."""
        folder = self._unpublished / token
        folder.mkdir(mode=0o700)
        return folder

    def publish(self, folder: Path) -> Path:
        """Where it lies once it is whole, to be downloaded."""
        return folder.rename(self.exports / folder.name)

    def _clear_rests(self) -> None:
        """What an end in the middle left: cut uploads, half exports, bytes without a record, records without bytes."""
        for rest in (*self.incoming.iterdir(), *self._unpublished.iterdir()):
            shutil.rmtree(rest) if rest.is_dir() else rest.unlink(missing_ok=True)
        if self._own is not None:
            self._own.clear_dead()
        known = {stored.sha256: stored for stored in self._records.all()}
        for path in self._files.iterdir():
            if path.name not in known:
                path.unlink(missing_ok=True)
        for path in self._records.folder.iterdir():
            stored = known.get(path.stem)
            if stored is None or not (stored.path or stored.remote or (self._files / stored.sha256).is_file()):
                path.unlink(missing_ok=True)

    async def put_stream(
        self, chunks: AsyncIterable[bytes], *, name: str, owner: str, announced: int | None = None
    ) -> Stored:
        """Write a stream chunk by chunk; it becomes visible only when it is whole.

        announced: bytes that are said to come; there has to be room for them before the first is taken.
        Raises LimitExceeded above `file_nbytes` or when too much is being uploaded at once, NoRoom when the disk is
        full or the store full of what others use, RefusedContent when nothing came.
        """
        digest, nbytes = hashlib.sha256(), 0
        incoming = self.incoming / secrets.token_hex(16)
        try:
            self.check_size(announced or 0)
            self._reserve(incoming, announced or 0)
            with incoming.open("xb") as file:
                async for chunk in chunks:
                    nbytes += len(chunk)
                    self.check_size(nbytes)
                    self._reserve(incoming, nbytes)
                    digest.update(chunk)
                    file.write(chunk)
                    self._on_its_way[incoming].written = nbytes
            return self.adopt(incoming, digest.hexdigest(), nbytes, name=name, owner=owner)
        except TimeoutError:
            raise  # an OSError by name only: the sender went silent, the disk is well
        except OSError as error:
            raise self._disk_says(error) from error
        finally:
            with self._arriving:
                self._on_its_way.pop(incoming, None)
            incoming.unlink(missing_ok=True)

    def put_chunks(self, chunks: Iterable[bytes], *, name: str, owner: str, announced: int | None = None) -> Stored:
        """The same of bytes that somebody here reads."""

        async def stream() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        return asyncio.run(self.put_stream(stream(), name=name, owner=owner, announced=announced))

    def put_bytes(self, data: bytes | memoryview, *, name: str, owner: str) -> Stored:
        """Write bytes in hand: the fallback upload. Raises as `put_stream`."""
        self.check_size(len(data))
        incoming = self.incoming / secrets.token_hex(16)
        try:
            incoming.write_bytes(data)
            return self.adopt(incoming, hashlib.sha256(data).hexdigest(), len(data), name=name, owner=owner)
        except OSError as error:
            raise self._disk_says(error) from error
        finally:
            incoming.unlink(missing_ok=True)

    def refer(self, path: Path, *, name: str, owner: str, digest: Callable[[Path], str] = digest_of) -> Stored:
        """Take up a file that stays where it is; only its sha256 is computed. The caller has checked the path."""
        try:
            status = path.stat()
            sha256 = digest(path)
        except FileNotFoundError as error:
            raise ReadError(f"There is no file {name}.") from error
        except OSError as error:
            raise ReadError(f"{name} cannot be read: {error.strerror or error}.") from error
        with self._lock:
            if (self._files / sha256).is_file():
                return self.record(sha256, status.st_size, name=name, owner=owner)
            return self.record(
                sha256,
                status.st_size,
                name=name,
                owner=owner,
                path=str(path.resolve()),
                modified_ns=status.st_mtime_ns,
            )

    def is_here(self, sha256: str) -> bool:
        """Whether it can be looked at: its bytes are here, or where they are is known."""
        stored = self.find(sha256)
        return stored is not None and (bool(stored.remote) or self.get_path(sha256) is not None)

    def get_path(self, sha256: str) -> Path | None:
        """Where the bytes lie; None for a digest that is not here (any more)."""
        stored = self.find(sha256)
        if stored is None or stored.remote:
            return None
        path = Path(stored.path) if stored.path else self._files / sha256
        try:
            status = path.stat()
        except OSError:
            return None
        if status.st_size != stored.nbytes or (stored.path and status.st_mtime_ns != stored.modified_ns):
            return None
        return path

    def find(self, sha256: str) -> Stored | None:
        """The record of a digest; None for anything that is not one of ours."""
        return self._records.find(sha256)

    def name_of(self, sha256: str, owner: str) -> str:
        """What the owner calls it, else the start of its digest: how others call their files is theirs."""
        stored = self.find(sha256)
        return (stored.names.get(owner) if stored else None) or sha256[:12]

    def claim(self, sha256: str, *, name: str, owner: str) -> Stored | None:
        """Another owner of a file that is here, who looks at it: the first one's `forget` does not take it away. Else
        None."""
        with self._lock:
            stored = self.find(sha256)
            return self._write(stored, **with_owner(stored, owner, name, time.time())) if stored else None

    def owned(self, owner: str) -> list[Stored]:
        """What one visitor has here, what that one took up last in front."""
        with self._lock:
            own = [stored for stored in self._records.all() if owner in stored.names]
        return sorted(own, key=lambda stored: -stored.opened.get(owner, stored.added))

    def touch(self, sha256: str) -> None:
        """Note that it is in use, so that others go first."""
        with self._lock:
            stored = self.find(sha256)
            if stored is not None:
                self._write(stored, used=time.time())

    def forget(self, sha256: str, owner: str) -> None:
        """The owner is done with it; the bytes go when nobody else has the same file open."""
        with self._lock:
            stored = self.find(sha256)
            if stored is None:
                return
            names = {who: name for who, name in stored.names.items() if who != owner}
            if names or stored.crowded:
                self._write(stored, names=names, opened={w: at for w, at in stored.opened.items() if w in names})
            else:
                self._remove(sha256)

    def sweep(self, *, room_for: int = 0, owner: str = "", now: float | None = None) -> int:
        """Remove what is too old, then the least recently used over the quota. Returns the bytes freed.

        room_for: bytes that are about to come, of that owner. Raises NoRoom where all that is left is in use by others.
        """
        now = time.time() if now is None else now
        quota = Quota(
            nbytes=self.quota_nbytes,
            owner_nbytes=self.owner_nbytes,
            ttl_seconds=self.ttl_seconds,
            busy_seconds=self.busy_seconds,
        )
        with self._lock:
            sweep_fetches(self.incoming, now - self.busy_seconds)
            if self._own is not None:
                self._own.clear_dead()
            exported = self._sweep_exports(now)
            gone, fits = leaving(self._records.all(), quota, now=now, exported=exported, room_for=room_for, owner=owner)
            if room_for and not fits:
                # What would go for it stays, as it would not help; what is too old goes all the same.
                self.sweep(now=now)
                raise NoRoom(
                    "The server is full of files that others are looking at.", hint="Try again in half an hour."
                )
            return sum(self._remove(stored.sha256) for stored in gone)

    def nbytes(self) -> int:
        """Of the files and exports in it."""
        folders = (self._files, self.exports)
        return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())

    def clear_uploads(self) -> None:
        """What an upload left that was cut by the server's own end."""
        if self._own is not None:
            self._own.close()
            return
        for rest in self.incoming.iterdir():
            rest.unlink(missing_ok=True)

    def _sweep_exports(self, now: float) -> int:
        """Bytes of those that stay. They are made again with one click: they go first, from a quarter of the quota."""
        waiting = sorted(
            (folder.stat().st_mtime, sum(p.stat().st_size for p in folder.rglob("*")), folder)
            for folder in self.exports.iterdir()
        )
        exported = sum(nbytes for _, nbytes, _ in waiting)
        for written, nbytes, folder in waiting:
            if now - written > self.ttl_seconds or exported > self.quota_nbytes // 4:
                shutil.rmtree(folder, ignore_errors=True)
                exported -= nbytes
        return exported

    def _disk_says(self, error: OSError) -> NoRoom:
        free = shutil.disk_usage(self.incoming).free
        return NoRoom(
            f"The server could not keep the file: {error.strerror or error}.",
            hint=f"{human_bytes(free)} are free on its disk. Forget other files, or try a smaller one.",
        )

    @property
    def largest_nbytes(self) -> int:
        """Of one file, above which none is taken."""
        return min(self.file_nbytes, self.quota_nbytes)

    def check_size(self, nbytes: int) -> None:
        if nbytes > self.largest_nbytes:
            raise LimitExceeded(
                f"The file is larger than this server takes ({human_bytes(self.largest_nbytes)}).",
                hint="Put it in the folder that the server may read, or use the command line.",
            )

    def _reserve(self, incoming: Path, nbytes: int) -> None:
        """Room for that many bytes of an upload, beside what the others have reserved, before they are taken.

        Raises LimitExceeded where all that are on their way are more than the store takes, NoRoom where the disk has
        less than they have still to write.
        """
        with self._arriving:
            arriving = self._on_its_way.setdefault(incoming, _Arriving())
            if nbytes <= arriving.reserved:
                return
            arriving.reserved = nbytes
            if sum(one.reserved for one in self._on_its_way.values()) > self.quota_nbytes:
                raise LimitExceeded(
                    f"More than {human_bytes(self.quota_nbytes)} are being uploaded to this server at once.",
                    hint="Try again in a few minutes.",
                )
            free = shutil.disk_usage(self.incoming).free
            others = sum(one.reserved - one.written for one in self._on_its_way.values() if one is not arriving)
            left = max(0, free - others)
            if nbytes - arriving.written > left:
                raise NoRoom(
                    f"The server has no room for {human_bytes(nbytes)}: {human_bytes(left)} are free on its disk.",
                    hint="Forget other files, or try a smaller one.",
                )

    def adopt(self, incoming: Path, sha256: str, nbytes: int, *, name: str, owner: str) -> Stored:
        if not nbytes:
            raise RefusedContent("The file is empty: it has 0 bytes.", hint="Download or copy it again.")
        with self._lock:
            self.sweep(room_for=nbytes, owner=owner)
            incoming.replace(self._files / sha256)
            return self.record(sha256, nbytes, name=name, owner=owner)

    def record(self, sha256: str, nbytes: int, *, name: str, owner: str, **place: Any) -> Stored:
        """Note a file. place: path and modified_ns, or remote, of one whose bytes lie elsewhere."""
        with self._lock:
            known, now = self.find(sha256), time.time()
            stored = Stored(
                sha256=sha256,
                nbytes=nbytes,
                added=known.added if known else now,
                used=now,
                names=known.names if known else {},
                **place,
                crowded=known.crowded if known else False,
                opened=known.opened if known else {},
            )
            return self._write(stored, **with_owner(stored, owner, name))

    def _write(self, stored: Stored, **changes: object) -> Stored:
        fresh = Stored(**(asdict(stored) | changes))
        self._records.write(fresh, self.incoming / secrets.token_hex(16))
        return fresh

    def _remove(self, sha256: str) -> int:
        self._records.remove(sha256)
        path = self._files / sha256
        nbytes = path.stat().st_size if path.is_file() else 0
        path.unlink(missing_ok=True)
        return nbytes


def default_root() -> Path:
    """INSPECTOR_STORE, else a folder in the user's cache."""
    named = os.environ.get(STORE_VARIABLE)
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(cache) if cache else Path.home() / ".cache") / "model-inspector" / "store"


@lru_cache(maxsize=1)
def the_store() -> ContentStore:
    """The one store of this server process, as large as its operator said. Raises UsageError for what is no size."""
    return ContentStore(
        default_root(),
        file_nbytes=number(FILE, os.environ),
        quota_nbytes=number(STORE_NBYTES, os.environ),
        owner_nbytes=number(STORE_EACH, os.environ),
        ttl_seconds=3600 * number(STORE_HOURS, os.environ),
        shared=is_shared(os.environ),
    )
