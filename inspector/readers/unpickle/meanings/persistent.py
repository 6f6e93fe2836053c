"""torch's persistent ids: how a pickle names a storage that lies beside it."""

from __future__ import annotations

from collections.abc import Callable

from inspector.readers.unpickle.machine.arguments import sizes_of, storage_dtype
from inspector.readers.unpickle.stand_ins import GlobalRef, PersistentRef, StorageRef

_MOST_NUMEL = 1 << 62


def torch_persistent(
    storages: dict[str, StorageRef], sources: list[tuple[str, str]], prefix: str = ""
) -> Callable[[object], object]:
    """The persistent ids of torch.save, zip and legacy: one StorageRef per key, collected in `storages`.

    sources: collects (class, source text) of pickled modules as files up to about 1.5 carry them.
    prefix: goes before the keys that the refs carry, for a file inside another one.
    """

    def resolve(pid: object) -> object:
        if not isinstance(pid, tuple) or not pid:
            return PersistentRef(pid)
        tag = pid[0].decode("latin-1") if isinstance(pid[0], bytes) else pid[0]
        if tag == "module" and len(pid) == 4 and isinstance(pid[1], GlobalRef):
            if type(pid[3]) is str:
                sources.append((pid[1].full, pid[3]))
            return pid[1]
        if tag != "storage" or len(pid) not in (5, 6):
            return PersistentRef(pid)
        found = storage_dtype(pid[1])
        key, location, numel = pid[2], pid[3], pid[4]
        key = str(key) if type(key) is int and key.bit_length() < 128 else key
        if found is None or type(key) is not str or type(numel) is not int or not 0 <= numel < _MOST_NUMEL:
            return PersistentRef(pid)
        where = location.decode("latin-1") if isinstance(location, bytes) else location
        where = where[:60] if isinstance(where, str) else ""
        view = None
        if len(pid) == 6 and pid[5] is not None:
            parts = pid[5]
            if not isinstance(parts, tuple) or len(parts) != 3 or sizes_of(parts[1:]) is None:
                return PersistentRef(pid)
            view = (int(str(parts[1])), int(str(parts[2])))
        known = storages.get(key)
        same = known is not None and known.dtype == found[0] and known.numel == numel and view is None
        if known is not None and same and known.view is None:
            return known
        made = StorageRef(prefix + key, found[0], found[1], where, numel, view)
        if known is None or (view is None and made.nbytes > known.nbytes):
            storages[key] = made
        return made

    return resolve
