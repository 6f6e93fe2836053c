"""Results of several stores in one: what parts wrote apart is then there for whoever asks that one."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.sweep.store import RESULTS, ResultStore


def gather(stores: Iterable[ResultStore], into: ResultStore) -> int:
    """Copy what they keep, as it is; how many parts came. Names are digests of content: what is there already is the
    same. What is damaged stays behind (`ResultStore.damaged`). Raises ReadError and ExportError; what was copied
    by then is whole."""
    there = set(into.blobs.names(RESULTS))
    before = len(there)
    for store in stores:
        wanted = [name for name in store.blobs.names(RESULTS) if name not in there]
        for name, data in store.blobs.read_each(wanted):
            if store.is_whole(name, data):
                into.blobs.write(name, data)
                there.add(name)
    return len(there) - before
