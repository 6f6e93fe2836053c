"""The weights of a torch.export archive: a JSON table of names and one raw member each, or a checkpoint inside.

Source: torch/export/pt2_archive/_package.py (`_save_raw_tensors`: the whole untyped storage, as bytes), schema.py
(PayloadMeta, TensorMeta).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inspector.checkpoint.dtypes import DTYPES as BY_NAME
from inspector.checkpoint.joined_source import SliceSource
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, GlobalUse, Storage, TensorInfo
from inspector.errors import ReadError
from inspector.readers.archives.json_member import read_json
from inspector.readers.archives.zip_directory import Directory
from inspector.readers.archives.zip_members import Member, payload_offsets
from inspector.readers.entry import Peek
from inspector.readers.formats.export.program import DTYPES

_MOST_NUMEL = 1 << 62
_STRIDED = 7
_MOST_INNER = 200


@dataclass(slots=True, kw_only=True)
class Weights:
    """Tensors by group ("state_dict", "constants"), their storages, what pickles inside name, what does not fit.

    followed: members that were opened as pickles.
    """

    groups: dict[tuple[str, ...], list[TensorInfo]] = field(default_factory=dict)
    storages: dict[str, Storage] = field(default_factory=dict)
    globals: list[GlobalUse] = field(default_factory=list)
    followed: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


class Archive:
    """The members of one archive by the name below its folder. big_endian: of its raw members."""

    def __init__(self, peek: Peek, directory: Directory, prefix: str, *, big_endian: bool = False) -> None:
        self.peek = peek
        self.prefix = prefix
        self.big_endian = big_endian
        self.members: dict[str, Member] = {}
        start = len(prefix)
        for member in directory.members:
            if member.name.startswith(prefix):
                self.members.setdefault(member.name[start:], member)
        wanted = list(self.members.values())
        self.offsets = dict(zip(self.members, payload_offsets(peek.source, wanted), strict=True))
        self.opened = 0

    @property
    def source(self) -> ByteSource:
        """The archive's own bytes."""
        return self.peek.source

    def storage(self, name: str) -> Storage | None:
        """A raw member as a storage; None when it is not there or cannot be read by torch."""
        member, offset = self.members.get(name), self.offsets.get(name)
        if member is None or offset is None or member.method not in (0, 8) or member.encrypted:
            return None
        room = max(0, self.source.size - offset)
        whole = member.packed_nbytes <= room
        return Storage(
            id=name,
            nbytes=member.nbytes,
            present_nbytes=(member.nbytes if whole else 0) if member.method else min(member.nbytes, room),
            offset=offset,
            deflated_nbytes=member.packed_nbytes if member.method else None,
            big_endian=self.big_endian,
        )

    def open_inner(self, name: str) -> Checkpoint:
        """The checkpoint in a member that is stored as it is. Raises a ReadError when there is none."""
        member, offset = self.members[name], self.offsets[name]
        self.opened += 1
        if offset is None or member.method or member.encrypted or self.opened > _MOST_INNER:
            raise ReadError(f"{name[:120]} is compressed, encrypted, or one of too many.")
        return self.peek.open_inner(SliceSource(self.source, offset, member.packed_nbytes, name[:120]))


def add_config(found: Weights, archive: Archive, config: str, group: tuple[str, ...], folder: str) -> None:
    """Add what one `*_config.json` names. Wrong entries become problems."""
    table, twice = read_json(archive.source, archive.members[config], archive.peek.limits)
    found.problems += [f'{config[:80]} names "{key[:80]}" twice' for key in twice]
    entries = table.get("config") if isinstance(table, dict) else None
    if not isinstance(entries, dict):
        found.problems.append(f"{config[:120]} holds no table of names")
        return
    for name, entry in entries.items():
        if len(found.groups.get(group, ())) >= archive.peek.limits.tensors:
            found.skipped.append(f"Tensors of {config[:120]} over the limit are not listed.")
            return
        problem = _add(found, archive, group, folder, name, entry)
        if problem:
            found.problems.append(f"{name[:120]}: {problem}")


def _add(found: Weights, archive: Archive, group: tuple[str, ...], folder: str, name: str, entry: Any) -> str:
    if not isinstance(entry, dict) or not isinstance(entry.get("path_name"), str):
        return "its entry names no member"
    member = folder + entry["path_name"]
    if member not in archive.members:
        return f"its member {member[:120]} is not there"
    if entry.get("use_pickle") is not False or entry["path_name"].startswith(("custom_obj_", "opaque_obj_")):
        return add_pickled(found, archive, member, group, name)
    made = _tensor(name, (*group, name), entry.get("tensor_meta"), member, archive.peek.limits.dimensions)
    if isinstance(made, str):
        return made
    storage = found.storages.get(member) or archive.storage(member)
    if storage is None:
        return f"its member {member[:120]} cannot be read"
    found.storages[member] = storage
    is_parameter = entry.get("is_param") if isinstance(entry.get("is_param"), bool) else None
    made = replace(made, is_parameter=is_parameter if group[-1] == "state_dict" else None)
    found.groups.setdefault(group, []).append(made)
    return ""


def _tensor(name: str, path: tuple[str, ...], meta: Any, storage: str, most: int) -> TensorInfo | str:
    if not isinstance(meta, dict):
        return "it has no tensor_meta"
    dtype = DTYPES.get(meta["dtype"]) if type(meta.get("dtype")) is int else None
    shape, stride = _sizes(meta.get("sizes"), most), _sizes(meta.get("strides"), most)
    offset = _size(meta.get("storage_offset"))
    if dtype is None:
        return f"its dtype {str(meta.get('dtype'))[:20]} is unknown"
    if shape is None or stride is None or offset is None or len(shape) != len(stride):
        return "its sizes, strides or offset are no numbers"
    if math.prod(shape) >= _MOST_NUMEL:
        return "its sizes are impossible"
    if meta.get("layout", _STRIDED) != _STRIDED:
        return f"its layout {str(meta['layout'])[:20]} has no raw bytes"
    device = meta.get("device")
    where = str(device.get("type", ""))[:40] if isinstance(device, dict) else ""
    index = device.get("index") if isinstance(device, dict) else None
    return TensorInfo(
        name=name,
        path=path,
        shape=shape,
        dtype=dtype,
        nbytes=math.prod(shape) * BY_NAME[dtype].itemsize,
        storage_id=storage,
        offset=offset,
        stride=stride,
        device=(f"{where}:{index}" if type(index) is int and 0 <= index < 1000 else where) or None,
        requires_grad=meta.get("requires_grad") is True,
    )


def _size(value: object) -> int | None:
    number = value.get("as_int") if isinstance(value, dict) else None
    return number if type(number) is int and 0 <= number < _MOST_NUMEL else None


def _sizes(value: object, most: int) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > most:
        return None
    found = [_size(v) for v in value]
    return None if None in found else tuple(n for n in found if n is not None)


def add_pickled(found: Weights, archive: Archive, member: str, group: tuple[str, ...], name: str = "") -> str:
    """Add what a pickle, or a torch.save file, inside the archive holds: its tensors below group, its globals.

    name: of the one tensor in it, "" where it holds a whole state dict.
    """
    found.followed.add(member)
    try:
        inner = archive.open_inner(member)
    except ReadError as error:
        return f"{member[:120]} cannot be followed ({error.says[:200]})"
    found.globals += [replace(use, place=f"{member}: {use.place}" if use.place else member) for use in inner.globals]
    start = archive.offsets[member] or 0
    keep = {t.path: t for t in inner.tensors}
    if not keep:
        return ""
    for key, storage in inner.storages.items():
        offset = None if storage.offset is None else storage.offset + start
        found.storages[f"{member}/{key}"] = replace(storage, id=f"{member}/{key}", offset=offset)
    named = {t.path: t.name for state in inner.state_dicts for t in state.tensors} if not name else {}
    for path, tensor in keep.items():
        own = (
            name if name and len(keep) == 1 else ".".join([name, *path] if name else [named.get(path, ".".join(path))])
        )
        tensor = _moved(tensor, member)
        found.groups.setdefault(group, []).append(replace(tensor, name=own, path=(*group, own)))
    return ""


def add_compiled(found: Weights, archive: Archive, config: str, group: tuple[str, ...]) -> None:
    """Add the weights of a compiled model: its weights_config.json says {name: [member, sizes, strides, offset]}, each
    member being a torch.save file of one whole tensor that the weights are views of."""
    table, twice = read_json(archive.source, archive.members[config], archive.peek.limits)
    found.problems += [f'{config[:80]} names "{key[:80]}" twice' for key in twice]
    whole: dict[str, TensorInfo | None] = {}
    for name, entry in table.items() if isinstance(table, dict) else ():
        member = f"data/weights/{entry[0]}" if isinstance(entry, list) and entry else ""
        if member not in archive.members or len(entry) != 4:
            found.problems.append(f"{name[:120]}: its entry names no member of the archive")
            continue
        if member not in whole:
            inner = Weights(followed=found.followed)
            problem = add_pickled(inner, archive, member, group, name)
            found.problems += [problem] if problem else []
            found.globals += inner.globals
            found.storages.update(inner.storages)
            held = inner.groups.get(group, [])
            whole[member] = held[0] if len(held) == 1 else None
        tensor = whole[member]
        shape, stride, offset = _plain_sizes(entry[1]), _plain_sizes(entry[2]), _plain_sizes([entry[3]])
        if tensor is None or shape is None or stride is None or offset is None or len(shape) != len(stride):
            found.problems.append(f"{name[:120]}: its sizes, strides or offset are no view of one tensor")
            continue
        nbytes = math.prod(shape) * BY_NAME[tensor.dtype].itemsize
        view = replace(tensor, shape=shape, stride=stride, offset=offset[0], nbytes=nbytes)
        found.groups.setdefault(group, []).append(replace(view, name=name, path=(*group, name)))


def _plain_sizes(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > 64:
        return None
    found = tuple(n for n in value if type(n) is int and 0 <= n < _MOST_NUMEL)
    return found if len(found) == len(value) and math.prod(found) < _MOST_NUMEL else None


def _moved(tensor: TensorInfo, member: str) -> TensorInfo:
    storage = None if tensor.storage_id is None else f"{member}/{tensor.storage_id}"
    encoding = tensor.encoding
    if encoding is not None:
        encoding = replace(encoding, parts=tuple(_moved(part, member) for part in encoding.parts))
    return replace(tensor, storage_id=storage, encoding=encoding)


def ordered(groups: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Weights before constants before sample inputs, otherwise as they came."""
    return sorted(
        groups, key=lambda g: ("state_dict", "constants").index(g[-1]) if g[-1] in ("state_dict", "constants") else 2
    )
