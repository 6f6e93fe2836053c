"""numpy's archive: a zip of .npy files, stored (savez) or deflated (savez_compressed). JAX and Flax save such files.

Names are those of the members without .npy; Flax's "params/Dense_0/kernel" stays as it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from inspector.checkpoint.source import BufferSource, ByteSource
from inspector.checkpoint.types import Checkpoint, GlobalUse, Storage, TensorInfo
from inspector.checkpoint.values import Value
from inspector.errors import LimitExceeded, ReadError
from inspector.findings import Finding
from inspector.limits import Limits
from inspector.readers.archives.zip_members import Member, payload_heads
from inspector.readers.assemble import checkpoint_from_pickle, unpickle, unpickle_bytes
from inspector.readers.checks.contents import AMBIGUOUS_ARCHIVE
from inspector.readers.checks.truncation import observe_missing
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent
from inspector.readers.flat import flat_checkpoint, observe_unusable
from inspector.readers.formats.numpy.array import describe, object_finding, observe_header, opaque_value
from inspector.readers.formats.numpy.header import PREAMBLE_NBYTES, BadHeader, NpyHeader, header_span, parse_header
from inspector.readers.not_checkpoints.naming import name_zip
from inspector.units import counted, human_bytes

_STORED, _DEFLATED = 0, 8
# Most headers are 128 bytes; deflated ones are smaller.
_FIRST_NBYTES = 256
_BATCH = 512
# What an array's records take until the file is open (bytes), as `Limits.memory_nbytes` counts.
_ARRAY_NBYTES = 1500
_OBJECT_NBYTES = 64 * 1024 * 1024
_MOST_OBJECTS = 64


@dataclass(slots=True, kw_only=True)
class _Found:
    tensors: list[TensorInfo] = field(default_factory=list)
    storages: dict[str, Storage] = field(default_factory=dict)
    values: list[tuple[str, Value]] = field(default_factory=list)
    nested: list[TensorInfo] = field(default_factory=list)
    uses: list[GlobalUse] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    objects: int = 0


def _claims(peek: Peek) -> str:
    directory = peek.directory
    if directory is None:
        return ""
    names = [m.name for m in directory.members if not m.name.endswith("/")]
    if not names or not all(name.lower().endswith(".npy") for name in names):
        return ""
    return f"a zip archive of {counted(len(names), '.npy file')}"


def _read(peek: Peek) -> Checkpoint:
    source, limits, directory = peek.source, peek.limits, peek.directory
    if directory is None:
        raise ReadError(f"{source.name} is no zip archive.")
    if any(m.encrypted for m in directory.members):
        raise name_zip(source, directory)
    members = [m for m in directory.members if not m.name.endswith("/")]
    if len(members) > limits.tensors:
        raise LimitExceeded(f"{source.name} holds {len(members):,} arrays; the limit is {limits.tensors:,}.")
    found = _Found()
    seen: set[str] = set()
    for at in range(0, len(members), _BATCH):
        batch = members[at : at + _BATCH]
        for member, (offset, start) in zip(batch, payload_heads(source, batch, _FIRST_NBYTES), strict=True):
            name = member.name[:-4]
            start = start[: min(member.packed_nbytes, max(0, source.size - (offset or 0)))]
            if name in seen:
                found.unusable.append(f"{name[:80]}: it occurs twice, and programs differ in which one they read")
                continue
            seen.add(name)
            limits.charge(_ARRAY_NBYTES + 2 * len(name), f"The list of arrays of {source.name}")
            try:
                _add(found, source, member, name, offset, start, limits)
            except (BadHeader, ReadError) as problem:
                says = problem.says.rstrip(".") if isinstance(problem, ReadError) else str(problem)
                found.unusable.append(f"{name[:80]}: {says}")
    deflated = any(m.method == _DEFLATED for m in members)
    findings = [
        *found.findings,
        *observe_unusable(found.unusable, what=source.name, remedy="Get the file again from its source."),
        *observe_missing(source, found.tensors, found.storages),
    ]
    if found.objects:
        what = "The array" if found.objects == 1 else "The first of them"
        says = f"{counted(found.objects, 'array')} cannot be read. {what}"
        exportable = any(t.storage_id is not None for t in (*found.tensors, *found.nested))
        findings.append(object_finding(found.objects, says, exportable=exportable))
    # Arrays lie in the archive's root, so each seems a folder of its own to who looks for torch's one folder.
    doubts = [doubt for doubt in directory.doubts if "top folders" not in doubt]
    if doubts:
        findings.append(_ambiguous(doubts))
    content = FileContent(
        format=READER.id,
        format_says=READER.says + (", compressed" if deflated else ""),
        tensors=found.tensors,
        storages=found.storages,
        findings=findings,
        globals=found.uses,
        skipped=found.skipped,
    )
    return flat_checkpoint(source, content, kind="npz", values=found.values, nested=found.nested)


def _add(
    found: _Found, source: ByteSource, member: Member, name: str, offset: int | None, start: bytes, limits: Limits
) -> None:
    """One member: a tensor, a value, or an entry that cannot be used (BadHeader, ReadError)."""
    if offset is None:
        raise BadHeader("its local header is not where the directory says")
    if member.method not in (_STORED, _DEFLATED):
        raise BadHeader(f"it is compressed by method {member.method}, which is not read here")
    room = max(0, min(member.packed_nbytes, source.size - offset))
    header = _header(source, member, offset, room, start, limits)
    if not any(f.id == "long-header" for f in found.findings):
        found.findings += observe_header(header, name)
    if header.element.is_object:
        found.objects += 1
        _add_objects(found, source, member, name, offset, header, limits)
        return
    if member.method == _DEFLATED:
        whole = member.packed_nbytes <= source.size - offset
        behind = member.nbytes - header.start if whole else 0
        info, storage = describe(header, name, behind, offset, deflated=(member.packed_nbytes, header.start))
    else:
        info, storage = describe(header, name, room - header.start, offset + header.start)
    if not info.dtype:
        found.values.append((name, opaque_value(header)))
        return
    behind = member.nbytes - header.start
    if info.nbytes != behind:
        raise BadHeader(f"its header declares {human_bytes(info.nbytes)}, the member has {human_bytes(behind)}")
    found.tensors.append(info)
    found.storages[name] = storage


def _header(source: ByteSource, member: Member, offset: int, room: int, start: bytes, limits: Limits) -> NpyHeader:
    if member.method == _STORED:
        span = header_span(start[:PREAMBLE_NBYTES])
        return parse_header(start if span <= len(start) else source.read(offset, min(span, room)), limits)
    head = _inflated(start, PREAMBLE_NBYTES)
    if len(head) < PREAMBLE_NBYTES and room > len(start):
        head = _inflated(source.read(offset, min(room, 4096)), PREAMBLE_NBYTES)
    span = header_span(head)
    text = _inflated(start, span)
    if len(text) < span and room > len(start):
        text = _inflated(source.read(offset, min(room, 2 * span + 4096)), span)
    return parse_header(text, limits)


def _inflated(packed: bytes, n: int) -> bytes:
    try:
        return zlib.decompressobj(-15).decompress(packed, n)
    except zlib.error as problem:
        raise BadHeader(f"it cannot be inflated ({problem})") from problem


def _add_objects(
    found: _Found, source: ByteSource, member: Member, name: str, offset: int, header: NpyHeader, limits: Limits
) -> None:
    """An array of objects: what a real unpickle would call, and the numbers inside that need no unpickling."""
    if found.objects > _MOST_OBJECTS:
        found.skipped.append(
            f"{name[:80]}: one of more than {_MOST_OBJECTS} arrays of objects; its pickle was not read."
        )
        return
    if member.method == _STORED:
        stop = min(offset + member.packed_nbytes, source.size)
        pickle, inner = unpickle(source, offset + header.start, stop, limits), source
    else:
        cap = min(_OBJECT_NBYTES, limits.inflated_nbytes, max(1 << 20, limits.inflation_ratio * member.packed_nbytes))
        room = max(0, min(member.packed_nbytes, source.size - offset, cap))
        data = _inflated(source.read(offset, room), cap + 1)
        if len(data) > cap:
            raise LimitExceeded(f"its pickle inflates to more than {human_bytes(cap)}")
        pickle, inner = unpickle_bytes(data[header.start :], limits), BufferSource(data, name)
    content = FileContent(format=READER.id, format_says=READER.says)
    made = checkpoint_from_pickle(pickle, content, source=inner, limits=limits)
    found.values.append((name, made.root))
    found.uses += [replace(use, place=f"{name}.{use.place}" if use.place else name) for use in made.globals]
    found.findings += [f for f in made.findings if f.id not in {known.id for known in found.findings}]
    for key, storage in made.storages.items():
        # A deflated pickle's long constants would be offsets into what was inflated, not into the file.
        lost = storage.offset is not None and inner is not source
        found.storages[f"{name}/{key}"] = replace(
            storage,
            id=f"{name}/{key}",
            offset=None if lost else storage.offset,
            present_nbytes=0 if lost else storage.present_nbytes,
        )
    found.nested += [
        replace(
            t,
            path=(name, *t.path),
            name=f"{name}.{t.name}",
            storage_id=f"{name}/{t.storage_id}" if t.storage_id is not None else None,
        )
        for t in made.tensors
    ]


def _ambiguous(doubts: Sequence[str]) -> Finding:
    return AMBIGUOUS_ARCHIVE.found(
        f"Two programs may read different content from this archive: {'; '.join(doubts[:4])}. "
        "Shown is the first of each name.",
        evidence=(("doubts", len(doubts)),),
        remedy="No ordinary program writes such an archive.",
    )


READER = Reader(
    id="npz",
    says="numpy archive",
    suffixes=(".npz",),
    claims=_claims,
    read=_read,
    no_index="",
)
