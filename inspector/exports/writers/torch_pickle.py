"""The pickle of a torch.save file for tensors whose numbers are written later.

torch.save pickles tensors as calls of its rebuild functions on storages that it names by a key, and writes the storages
beside. Here the same pickle is made of names and shapes alone, without torch; a test compares it with torch's byte for
byte. Source: torch/serialization.py (_save, _legacy_save), torch/_tensor.py (_reduce_ex_internal).
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import IO

from inspector.checkpoint.dtypes import STORAGE_DTYPES
from inspector.exports.stream import Block, Entry, Stream

PROTOCOL = 2
_STORAGES = {dtype: name for name, dtype in STORAGE_DTYPES.items()}


class _Global:
    """Stands for a function or class of torch in the pickle, by its name alone."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __reduce_ex__(self, protocol: object) -> str:
        return self.name

    def __call__(self) -> None:
        """Never called: the pickler takes nothing for a function that cannot be."""


_REBUILD = _Global("torch._utils", "_rebuild_tensor_v2")
_REBUILD_NEW = _Global("torch._utils", "_rebuild_tensor_v3")
_UNTYPED = _Global("torch.storage", "UntypedStorage")


@cache
def _torch(name: str) -> _Global:
    # One object per name: the pickler writes an object once, and refers to it after that.
    return _Global("torch", name)


class _Storage:
    """Stands for a block's storage in the pickle."""

    def __init__(self, kind: _Global, key: str, numel: int) -> None:
        self.id = ("storage", kind, key, "cpu", numel)


class _Call:
    """Stands for what a function makes of these arguments."""

    def __init__(self, function: _Global, *arguments: object) -> None:
        self._reduced = (function, arguments)

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return self._reduced


# The pickler of pickle.py: the one in C writes the same bytes, and looks up every global in its module.
class _Pickler(pickle._Pickler):
    def __init__(self, file: IO[bytes], *further: object) -> None:
        super().__init__(file, PROTOCOL)
        self._further = further

    def persistent_id(self, obj: object) -> object:
        return (*obj.id, *self._further) if isinstance(obj, _Storage) else None

    def save_global(self, obj: object, name: str | None = None) -> None:
        if not isinstance(obj, _Global):
            super().save_global(obj, name)  # type: ignore[misc]
            return
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())  # type: ignore[attr-defined]
        self.memoize(obj)  # type: ignore[attr-defined]


def pickle_of(stream: Stream, keys: Sequence[str], *further: object) -> bytes:
    """An OrderedDict of the stream's tensors, with `_metadata` where there are versions.

    keys: of each block's storage. further: what the format puts behind a storage's id (legacy: None, for no view).
    """
    places = stream.places
    state: OrderedDict[str, _Call] = OrderedDict()
    for name in stream.names:
        number, entry = places[name]
        state[name] = _tensor(stream.blocks[number], entry, keys[number])
    if stream.versions:
        metadata = OrderedDict((path, {"version": version}) for path, version in stream.versions)
        state._metadata = metadata  # type: ignore[attr-defined]
    made = io.BytesIO()
    _Pickler(made, *further).dump(state)
    return made.getvalue()


def _tensor(block: Block, entry: Entry, key: str) -> _Call:
    hooks: OrderedDict[str, object] = OrderedDict()
    laid = (entry.offset, entry.shape, entry.stride, False, hooks)
    if block.dtype not in _STORAGES:
        # Types younger than the storage classes: bytes, and the type beside them.
        untyped = _Storage(_UNTYPED, key, block.nbytes)
        return _Call(_REBUILD_NEW, untyped, *laid, _torch(block.dtype))
    return _Call(_REBUILD, _Storage(_torch(_STORAGES[block.dtype]), key, block.numel), *laid)
