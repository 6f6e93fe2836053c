"""The pickle of a torch.save file for tensors whose numbers are written later.

torch.save pickles tensors as calls of its rebuild functions on storages that it names by a key, and writes the storages
beside. Here the same pickle is made of names and shapes alone; a test compares it with torch's byte for byte.
Source: torch/serialization.py (_save, _legacy_save), torch/_tensor.py (_reduce_ex_internal).
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Sequence
from typing import IO

import torch
from torch import _utils, storage

from inspector.exports.stream import Block, Entry, Stream

PROTOCOL = 2


class _Storage:
    """Stands for a block's storage in the pickle."""

    def __init__(self, kind: type, key: str, numel: int) -> None:
        self.id = ("storage", kind, key, "cpu", numel)


class _Tensor:
    """Stands for a tensor in the pickle."""

    def __init__(self, block: Block, entry: Entry, key: str) -> None:
        self._block, self._entry, self._key = block, entry, key

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        block, entry = self._block, self._entry
        hooks: OrderedDict[str, object] = OrderedDict()
        made = (entry.offset, entry.shape, entry.stride, False, hooks)
        if block.dtype in storage._new_dtypes():
            # Types younger than the storage classes: bytes, and the type beside them.
            untyped = _Storage(torch.UntypedStorage, self._key, block.nbytes)
            return (_utils._rebuild_tensor_v3, (untyped, *made, block.dtype))
        kind = getattr(torch, storage._dtype_to_storage_type_map()[block.dtype])
        return (_utils._rebuild_tensor_v2, (_Storage(kind, self._key, block.numel), *made))


class _Pickler(pickle.Pickler):
    def __init__(self, file: IO[bytes], *further: object) -> None:
        super().__init__(file, PROTOCOL)
        self._further = further

    def persistent_id(self, obj: object) -> object:
        return (*obj.id, *self._further) if isinstance(obj, _Storage) else None


def pickle_of(stream: Stream, keys: Sequence[str], *further: object) -> bytes:
    """An OrderedDict of the stream's tensors, with `_metadata` where there are versions.

    keys: of each block's storage. further: what the format puts behind a storage's id (legacy: None, for no view).
    """
    places = stream.places
    state: OrderedDict[str, _Tensor] = OrderedDict()
    for name in stream.names:
        number, entry = places[name]
        state[name] = _Tensor(stream.blocks[number], entry, keys[number])
    if stream.versions:
        metadata = OrderedDict((path, {"version": version}) for path, version in stream.versions)
        state._metadata = metadata  # type: ignore[attr-defined]
    made = io.BytesIO()
    _Pickler(made, *further).dump(state)
    return made.getvalue()
