"""Files that stay behind an address, as the store knows them, and what is fetched of them."""

from __future__ import annotations

import shutil
from pathlib import Path

from inspector.errors import NoRoom, ReadError
from inspector.units import human_bytes
from inspector.web.store import ContentStore
from inspector.web.stored import FETCHED, Stored


def refer_remote(store: ContentStore, ident: str, nbytes: int, *, remote: str, name: str, owner: str) -> Stored:
    """Take up a file that stays behind an address; ident: `stored.remote_id`. Nothing of it is kept."""
    return store.record(ident, nbytes, name=name, owner=owner, remote=remote)


def place_for(store: ContentStore, ident: str, nbytes: int, owner: str) -> Path:
    """Where a file that is fetched is written, once there is room. Raises as `ContentStore.put_stream`."""
    store.check_size(nbytes)
    store.sweep(room_for=nbytes, owner=owner)
    free = shutil.disk_usage(store.incoming).free
    if nbytes > free:
        raise NoRoom(f"The server has no room for {human_bytes(nbytes)}: {human_bytes(free)} are free on its disk.")
    return store.incoming / f"{FETCHED}{ident}"


def take_over(store: ContentStore, place: Path, sha256: str, nbytes: int, *, name: str, owner: str) -> Stored:
    """What was fetched there, for whoever comes first of several who waited for it. Raises as `put_stream`."""
    if place.is_file():
        return store.adopt(place, sha256, nbytes, name=name, owner=owner)
    if store.get_path(sha256) is not None:
        return store.record(sha256, nbytes, name=name, owner=owner)
    raise ReadError(f"{name} was fetched and is gone again.", hint="Fetch it once more.")
