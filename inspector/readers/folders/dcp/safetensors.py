"""torch.distributed.checkpoint in safetensors files: every rank's file says in its `__metadata__` where its tensors
begin in the whole ones. Source: torch/distributed/checkpoint/hf_storage.py (2.15), DCP_SHARDING_INFO.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from inspector.checkpoint.assembled_source import AssembledSource, Piece
from inspector.checkpoint.coverage import survey
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import row_major
from inspector.checkpoint.nested import NamedTensors
from inspector.checkpoint.reopening_source import MOST_HELD_OPEN, BriefSource
from inspector.checkpoint.types import Checkpoint, Storage, TensorInfo
from inspector.errors import ReadError
from inspector.findings import Finding
from inspector.readers.entry import FolderPeek, FolderReader
from inspector.readers.finish import FileContent, finished
from inspector.readers.folders.dcp.findings import MISSING_DATA_FILE, Losses, observe
from inspector.readers.folders.dcp.metadata import Contents, TensorEntry
from inspector.readers.folders.value_tree import ValueTree, tensor_value
from inspector.readers.join import join
from inspector.units import counted

_KEY = "DCP_SHARDING_INFO"
_SHARD = re.compile(r"shard-(\d+)-model-(\d+)-of-(\d+)\.safetensors")
_MOST_CELLS = 1_000_000


def _shards(peek: FolderPeek) -> list[str]:
    return [path for path in peek.folder.files() if _SHARD.fullmatch(path)]


def _claims(peek: FolderPeek) -> str:
    try:
        names = _shards(peek)
        if not names:
            return ""
        source = peek.folder.open(names[0])
        head = source.read(0, min(4096, source.size))
        source.close()
    except ReadError:
        return ""
    found = f'"{_KEY}"'.encode() in head
    return f"{counted(len(names), 'shard')} with {_KEY}" if found else ""


def _read(peek: FolderPeek) -> Checkpoint:
    names = _shards(peek)
    files = [(name, peek.open_inner(name)) for name in names]
    if len(files) > MOST_HELD_OPEN:
        files = [(name, replace(made, source=BriefSource(made.source))) for name, made in files]
    contents, losses = Contents(ordered=False), Losses()
    pieces, dtypes = _pieces(files, contents)
    assembled: list[AssembledSource] = []
    infos: list[tuple[TensorInfo, int]] = []
    tree = ValueTree()
    for name, parts in pieces.items():
        made = _tensor(name, dtypes[name], _once(parts), losses)
        if made is None:
            contents.unusable.append(f"{name[:80]}: its shards differ in their number of axes")
            continue
        source, info, present = made
        tree.put((name,), name, tensor_value(info.shape, info.dtype, name))
        assembled.append(source)
        infos.append((info, present))
    joined = join(files, name=peek.folder.name, extra=assembled)
    storages = {
        info.storage_id or "": Storage(
            id=info.storage_id or "", nbytes=info.nbytes, present_nbytes=present, offset=start
        )
        for (info, present), start in zip(infos, joined.extra_starts, strict=True)
    }
    tensors = tuple(info for info, _ in infos)
    group = NamedTensors(path=(), kind="safetensors", tensors=tensors, ordered=False)
    kept = [f for f in joined.findings if f.id in ("cut-short", "unusable-entry", "data-holes", "data-overlaps")]
    content = FileContent(
        format=READER.id,
        format_says=READER.says,
        root=tree.value(),
        tensors=tensors,
        storages=storages,
        groups=[group],
        metadata=[(k, v) for k, v in files[0][1].metadata if k != _KEY],
        globals=joined.globals,
        findings=[*kept, *observe(contents, losses, []), *_absent(names)],
        skipped=["Whole sizes are not written in these files; they are as far as the shards reach."],
        parts=joined.parts,
    )
    nbytes = sum(part.nbytes for part in joined.parts)
    return finished(joined.source, content, name=peek.folder.name, nbytes=nbytes)


def _pieces(
    files: Sequence[tuple[str, Checkpoint]], contents: Contents
) -> tuple[dict[str, list[Piece]], dict[str, str]]:
    """The pieces of each tensor, and its dtype, by name. contents: collects what cannot be used."""
    pieces: dict[str, list[Piece]] = {}
    dtypes: dict[str, str] = {}
    for name, checkpoint in files:
        begins = _offsets(checkpoint)
        if begins is None:
            contents.unusable.append(f"{name[:80]}: its {_KEY} is missing or no list of offsets")
            continue
        for tensor in checkpoint.tensors:
            offsets = begins.get(tensor.name)
            storage = checkpoint.storages.get(tensor.storage_id or "")
            if offsets is None or len(offsets) != len(tensor.shape) or storage is None or storage.offset is None:
                contents.unusable.append(f"{tensor.name[:80]}: {name[:80]} does not say where it begins")
                continue
            if dtypes.setdefault(tensor.name, tensor.dtype) != tensor.dtype:
                contents.unusable.append(f"{tensor.name[:80]}: it has another dtype in {name[:80]}")
                continue
            whole = storage.present_nbytes >= storage.nbytes
            source = checkpoint.source if whole else None
            why = "" if whole else f"{name[:80]} is cut short"
            pieces.setdefault(tensor.name, []).append(Piece(offsets, tensor.shape, source, storage.offset, says=why))
    return pieces, dtypes


def _offsets(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]] | None:
    """Where each tensor of a shard begins in the whole one, by name."""
    text = dict(checkpoint.metadata).get(_KEY, "")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, Mapping):
        return None
    found: dict[str, tuple[int, ...]] = {}
    for name, entry in parsed.items():
        listed = entry.get("saved_offsets") if isinstance(entry, Mapping) else None
        if isinstance(listed, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in listed):
            found[name] = tuple(listed)
    return found


def _once(parts: list[Piece]) -> list[Piece]:
    """Equal boxes of ranks that hold the same, once; one that can be read where there is one."""
    kept: dict[str, Piece] = {}
    for piece in parts:
        key = f"{piece.offsets}{piece.sizes}"
        if key not in kept or kept[key].source is None:
            kept[key] = piece
    return list(kept.values())


def _tensor(
    name: str, dtype: str, parts: list[Piece], losses: Losses
) -> tuple[AssembledSource, TensorInfo, int] | None:
    if len({len(p.sizes) for p in parts}) > 1:
        return None
    shape = tuple(max(p.offsets[axis] + p.sizes[axis] for p in parts) for axis in range(len(parts[0].sizes)))
    k = DTYPES[dtype].itemsize
    source = AssembledSource(parts, shape=shape, itemsize=k, name=name[:120])
    if source.size >= 1 << 62:
        return None
    listed = survey(shape, [(p.offsets, p.sizes) for p in parts], most_cells=_MOST_CELLS // 10)
    there = survey(shape, [(p.offsets, p.sizes) for p in parts if p.source is not None], most_cells=_MOST_CELLS // 10)
    present = source.size
    if listed is not None and there is not None:
        losses.add(TensorEntry(name, (name,), dtype, shape, ()), listed, there)
        present = source.size if there.first_missing is None else there.first_missing * k
    info = TensorInfo(
        name=name,
        path=(name,),
        shape=shape,
        dtype=dtype,
        nbytes=source.size,
        storage_id=f"assembled/{name}",
        stride=row_major(shape),
        note=f"in {len(parts):,} chunks" if len(parts) > 1 else "",
    )
    return source, info, present


def _absent(names: list[str]) -> list[Finding]:
    """Shards whose number is left out between those that are there, and files of one shard that are not there."""
    found = {tuple(int(n) for n in match.groups()) for name in names if (match := _SHARD.fullmatch(name))}
    shards = sorted({shard for shard, _, _ in found})
    gaps = [n for n in range(1, min(shards[-1], 100_000) + 1) if n not in set(shards)]
    if not gaps:
        return []
    return [
        MISSING_DATA_FILE.found(
            f"{counted(len(gaps), 'shard is', 'shards are')} missing: of {shards[-1]} numbers, {len(shards)} are "
            f"there; the first missing one is shard-{gaps[0]:05d}.",
            subjects=tuple(f"shard-{n:05d}" for n in gaps[:20]),
            evidence=(("missing", len(gaps)), ("last", shards[-1])),
            remedy="Copy the whole folder again; the tensors that are whole can be read.",
        )
    ]


READER = FolderReader(
    id="dcp-safetensors",
    says="torch.distributed.checkpoint in safetensors shards",
    layout="shard-00001-model-00001-of-00001.safetensors, one or more per rank, with DCP_SHARDING_INFO",
    claims=_claims,
    read=_read,
)
