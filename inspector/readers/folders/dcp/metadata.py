"""What the .metadata of a torch.distributed.checkpoint folder says, taken out of the pickle's inert records.

Source: torch/distributed/checkpoint/metadata.py and filesystem.py (2.15): Metadata, TensorStorageMetadata,
BytesStorageMetadata, MetadataIndex, _StorageInfo. Nothing here is believed about a file before it was looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from inspector.errors import LimitExceeded
from inspector.limits import Limits
from inspector.readers.folders.dcp.pickle import Item
from inspector.readers.unpickle.machine.arguments import dtype_of, sizes_of
from inspector.readers.unpickle.meanings.modules import class_of
from inspector.readers.unpickle.stand_ins import Call, Group, Mapping

_MOST_KEY = 4096
_MOST_LEVELS = 32
_MOST_NUMEL = 1 << 62
_CHUNK_NBYTES = 600  # Measured: one chunk with its place, its piece and its source.
Key = str | int


@dataclass(frozen=True, slots=True)
class Slice:
    """One item in a data file. file: as written, relative to the folder. transforms: how it was packed, () mostly."""

    file: str
    offset: int
    nbytes: int
    transforms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A box of a tensor, in elements. at: None when the metadata does not say where it is."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    at: Slice | None


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor: its flat name, its keys from the root, and its chunks."""

    name: str
    path: tuple[Key, ...]
    dtype: str
    shape: tuple[int, ...]
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """One value that is no tensor, pickled in a slice of its own."""

    name: str
    path: tuple[Key, ...]
    at: Slice | None


@dataclass(slots=True)
class Contents:
    """Everything a .metadata, or those of all ranks, lists.

    versions: as written. unusable: why entries are left out. strange: places that are no places.
    ordered: whether tensors are in the order of the state dict that was saved.
    """

    tensors: dict[str, TensorEntry] = field(default_factory=dict)
    objects: dict[str, ObjectEntry] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)
    unusable: list[str] = field(default_factory=list)
    chunks: int = 0
    strange: int = 0
    ordered: bool = True


def read_contents(record: object, contents: Contents, limits: Limits) -> bool:
    """Add what one .metadata lists. False when it is no torch.distributed.checkpoint metadata.

    Of several ranks' files, equal chunks are kept once. Raises LimitExceeded.
    """
    top = fields_of(record)
    entries = top.get("state_dict_metadata")
    if not isinstance(entries, Mapping):
        return False
    version = top.get("version")
    if isinstance(version, str):
        contents.versions.add(version[:40])
    places = _places(top.get("storage_data"), contents, limits)
    paths = _paths(top.get("planner_data"))
    listed = dict(_named(entries, contents))
    contents.ordered = contents.ordered and bool(paths)
    # The metadata lists what each rank wrote; the planner's paths are in the order of the state dict itself.
    for name in dict.fromkeys([*(n for n in paths if n in listed), *listed]):
        entry = listed[name]
        path = paths.get(name, (name,))
        kind = class_of(entry).rpartition(".")[2] if isinstance(entry, Call) else ""
        if kind == "BytesStorageMetadata":
            contents.objects.setdefault(name, ObjectEntry(name, path, places.get(_key(name, None))))
        elif kind == "TensorStorageMetadata":
            _add_tensor(contents, name, path, fields_of(entry), places, limits)
        else:
            contents.unusable.append(f"{name[:80]}: its entry is neither a tensor nor an object")
    return True


def fields_of(record: object) -> dict[str, object]:
    """The attributes that BUILD would have set on an object, or a mapping's text keys."""
    if isinstance(record, Item):
        return dict(zip(record.names, record.values or (), strict=False))
    found: dict[str, object] = {}
    states = record.states if isinstance(record, Call) else [record]
    for state in states:
        # An object with __slots__ has (None or dict, dict) as its state.
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, Mapping):
                found.update((k, v) for k, v in part.pairs if type(k) is str)
    return found


def _named(mapping: Mapping, contents: Contents) -> Iterator[tuple[str, object]]:
    for key, value in mapping.pairs:
        if type(key) is str and len(key) <= _MOST_KEY:
            yield key, value
        else:
            contents.unusable.append("an entry whose name is no text, or far too long")


def _key(name: str, offsets: tuple[int, ...] | None) -> str:
    # As text: the hash of numbers can be made to collide, the hash of texts cannot.
    return name if offsets is None else f"{name}\x00{','.join(map(str, offsets))}"


def _places(storage: object, contents: Contents, limits: Limits) -> dict[str, Slice]:
    """Every slice by _key(name, offsets)."""
    found: dict[str, Slice] = {}
    if not isinstance(storage, Mapping):
        return found
    if len(storage.pairs) > limits.members:
        raise LimitExceeded(f"The .metadata places {len(storage.pairs):,} items; the limit is {limits.members:,}.")
    limits.charge(len(storage.pairs) * _CHUNK_NBYTES, "The places in .metadata")
    for index, info in storage.pairs:
        at, where = fields_of(index), fields_of(info)
        name, offset = at.get("fqn"), at.get("offset")
        offsets = None if offset is None else sizes_of(offset)
        file, start, nbytes = where.get("relative_path"), where.get("offset"), where.get("length")
        good = isinstance(name, str) and len(name) <= _MOST_KEY and (offset is None or offsets is not None)
        if not good or type(file) is not str or not _count(start) or not _count(nbytes):
            contents.strange += 1
            continue
        packed = where.get("transform_descriptors")
        packed = packed.items if isinstance(packed, Group) else packed
        transforms = tuple(str(t)[:40] for t in packed[:8]) if isinstance(packed, list | tuple) else ()
        found[_key(str(name), offsets)] = Slice(file, int(str(start)), int(str(nbytes)), transforms)
    return found


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value < _MOST_NUMEL


def _paths(planner: object) -> dict[str, tuple[Key, ...]]:
    """Keys from the root by flat name; only those that join to it with dots, as torch makes them."""
    found: dict[str, tuple[Key, ...]] = {}
    if not isinstance(planner, Mapping):
        return found
    for name, path in planner.pairs:
        if type(name) is not str or not isinstance(path, tuple) or not 0 < len(path) <= _MOST_LEVELS:
            continue
        if not all(type(k) is str or (type(k) is int and abs(k) < _MOST_NUMEL) for k in path):
            continue
        length = sum(len(k) if isinstance(k, str) else 1 for k in path)
        if length <= len(name) and ".".join(map(str, path)) == name:
            found[name] = tuple(k if isinstance(k, int) else str(k) for k in path)
    return found


def _add_tensor(
    contents: Contents,
    name: str,
    path: tuple[Key, ...],
    entry: dict[str, object],
    places: dict[str, Slice],
    limits: Limits,
) -> None:
    shape, listed = sizes_of(entry.get("size")), entry.get("chunks")
    dtype = _dtype(entry.get("properties"))
    if shape is None or math.prod(shape) >= _MOST_NUMEL or not isinstance(listed, list):
        contents.unusable.append(f"{name[:80]}: its size or its chunks are no lists of numbers")
        return
    if dtype is None:
        contents.unusable.append(f"{name[:80]}: its dtype is unknown")
        return
    known = contents.tensors.get(name)
    if known is not None and (known.shape, known.dtype) != (shape, dtype):
        contents.unusable.append(f"{name[:80]}: the metadata of two ranks contradict each other about its size")
        return
    contents.chunks += len(listed)
    if contents.chunks > limits.members:
        raise LimitExceeded(f"The .metadata lists more than {limits.members:,} chunks.", hint="No real one does.")
    limits.charge(len(listed) * _CHUNK_NBYTES + 1000, "The chunks in .metadata")
    chunks = {_key("", chunk.offsets) + f"|{chunk.sizes}": chunk for chunk in known.chunks} if known else {}
    for item in listed:
        fields = fields_of(item)
        offsets, sizes = sizes_of(fields.get("offsets")), sizes_of(fields.get("sizes"))
        if offsets is None or sizes is None or not len(offsets) == len(sizes) == len(shape):
            contents.unusable.append(f"{name[:80]}: one of its chunks has no place or size")
        elif any(o + n > whole for o, n, whole in zip(offsets, sizes, shape, strict=True)):
            contents.unusable.append(f"{name[:80]}: one of its chunks reaches outside its shape")
        else:
            at = places.get(_key(name, offsets))
            if at is None and len(listed) == 1:
                at = places.get(_key(name, None))
            chunks.setdefault(_key("", offsets) + f"|{sizes}", Chunk(offsets, sizes, at))
    contents.tensors[name] = TensorEntry(name, path, dtype, shape, tuple(chunks.values()))


def _dtype(properties: object) -> str | None:
    """TensorProperties keeps a tuple as its state, dtype first; a mapping in some releases."""
    for state in properties.states if isinstance(properties, Call) else []:
        if isinstance(state, tuple) and state:
            return dtype_of(state[0])
    return dtype_of(fields_of(properties).get("dtype"))
