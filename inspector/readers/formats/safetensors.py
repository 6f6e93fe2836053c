"""safetensors: a length, a JSON header, the data. https://github.com/huggingface/safetensors (README, "Format")."""

from __future__ import annotations

import json
import math

from inspector.checkpoint.dtypes import DTYPES, SAFETENSORS_DTYPES
from inspector.checkpoint.layout import row_major
from inspector.checkpoint.nested import NamedTensors
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, Storage, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import CorruptFile, LimitExceeded
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.checks.contents import DATA_OVERLAPS, TRAILING_DATA, UNUSABLE_ENTRY
from inspector.readers.checks.torch_words import BAD_HEADER, NOT_COVERED, invalid_offset
from inspector.readers.checks.truncation import Cut, observe_cut
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent, finished
from inspector.readers.formats.safetensors_header import read_entries
from inspector.units import counted, human_bytes, human_shape

DATA_HOLES = FindingKind("data-holes", Severity.WARNING, "Data that belong to no tensor")

# What a tensor takes in memory, with its place in the tree and its storage (bytes, by estimate).
_TENSOR_NBYTES = 1100
_SHORT = 10  # A text of the metadata that says nothing but a format or a version.
_SIX_BITS = {"F6_E2M3", "F6_E3M2"}  # Types torch does not have; shown as packed bytes.


def _claims(peek: Peek) -> str:
    head = peek.head
    if len(head) < 10 or head[8:9] != b"{":
        return ""
    n = int.from_bytes(head[:8], "little")
    # A cut header still claims: 100 MB is what the format itself allows, and text would give a far larger number.
    return f"a header of {n:,} bytes of JSON" if 2 <= n <= 100_000_000 else ""


def _read(peek: Peek) -> Checkpoint:
    source, limits = peek.source, peek.limits
    n = int.from_bytes(source.read(0, 8), "little")
    if n > limits.header_nbytes:
        raise LimitExceeded(f"The header of {source.name} says {n:,} bytes; the limit is {limits.header_nbytes:,}.")
    if 8 + n > source.size:
        raise CorruptFile(
            f"{source.name} is a safetensors file cut short inside its header: {n:,} bytes are announced, "
            f"{source.size - 8:,} are there.",
            hint="Download or copy it again.",
        )
    limits.need(3 * n, f"The header of {source.name}")
    return _assemble(source, n, limits)


def _assemble(source: ByteSource, n: int, limits: Limits) -> Checkpoint:
    start = 8 + n
    metadata: object = None
    room = source.size - start
    tensors: list[TensorInfo] = []
    storages: dict[str, Storage] = {}
    findings: list[Finding] = []
    unusable: list[str] = []
    count = 0
    for name, entry in read_entries(source.read(8, n), source.name, limits):
        if name == "__metadata__":
            metadata = entry
            continue
        count += 1
        if count > limits.tensors:
            raise LimitExceeded(f"{source.name} announces more than {limits.tensors:,} tensors.")
        limits.charge(_TENSOR_NBYTES + 4 * len(name), f"The {count:,} tensors of {source.name} so far")
        made = _tensor(name, entry, limits)
        if isinstance(made, str):
            unusable.append(f"{name[:80]}: {made}"[:400])
            continue
        info, begin, end = made
        present = max(0, min(end, room) - begin)
        key = info.storage_id or ""
        storages[key] = Storage(id=key, nbytes=end - begin, present_nbytes=present, offset=start + begin)
        tensors.append(info)
    if count and not tensors:
        raise CorruptFile(f"No entry in the header of {source.name} is a tensor: {unusable[0]}.")
    findings += _layout_findings(source, tensors, storages, start, room, unusable)
    findings += _behind(source, start, storages, limits)
    group = NamedTensors(path=(), kind="safetensors", tensors=tuple(tensors), ordered=False)
    text = _metadata(metadata)
    if any(len(key) > _SHORT or len(value) > _SHORT for key, value in text):
        # Imported where there is something to look at: it needs the pickle machine, and most files say but "pt".
        from inspector.readers.checks.named_code import observe_metadata

        # A key is text as well, and shown cut.
        whole = [(key[:200], key) for key in metadata if isinstance(key, str)] if isinstance(metadata, dict) else []
        findings += observe_metadata([*text, *whole], limits, "safetensors")
    content = FileContent(
        format=READER.id,
        format_says=READER.says,
        root=_root(tensors, text),
        tensors=tensors,
        storages=storages,
        groups=[group],
        metadata=text,
        findings=findings,
        skipped=unusable[:20],
    )
    return finished(source, content)


def _tensor(name: str, entry: object, limits: Limits) -> tuple[TensorInfo, int, int] | str:
    if not isinstance(entry, dict):
        return "its entry is no object"
    code, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(code, str):
        return "its dtype is no text"
    if not isinstance(shape, list) or not _counts(shape) or len(shape) > limits.dimensions:
        return "its shape is no list of sizes"
    if not isinstance(offsets, list) or not _counts(offsets) or len(offsets) != 2 or offsets[1] < offsets[0]:
        return "its data_offsets are no pair of positions"
    begin, end = offsets
    note = ""
    if code in _SIX_BITS:
        dtype, bits, note = "uint8", 6, f"{code}, {human_shape(tuple(shape))}, shown as its packed bytes"
    elif code in SAFETENSORS_DTYPES:
        dtype = SAFETENSORS_DTYPES[code]
        bits = 4 if code == "F4" else DTYPES[dtype].bits
    else:
        return f"its dtype {str(code)[:40]!r} is unknown"
    numel = math.prod(shape)
    if numel * bits % 8 or numel * bits // 8 != end - begin:
        return (
            f"{human_shape(tuple(shape))} {code} needs {numel * bits / 8:,.0f} bytes, its offsets span {end - begin:,}"
        )
    sizes = (end - begin,) if note else tuple(shape)
    if code == "F4" and sizes:  # Two elements to a byte; torch counts bytes along the last axis.
        sizes = (*sizes[:-1], sizes[-1] // 2) if sizes[-1] % 2 == 0 else (end - begin,)
    made = TensorInfo(
        name=name,
        path=(name,),
        shape=sizes,
        dtype=dtype,
        nbytes=end - begin,
        # Two names of one range share it; empty tensors share nothing.
        storage_id=f"{begin}:{end}" if end > begin else f"{begin}:{end}:{name}",
        stride=row_major(sizes),
        note=note,
    )
    return made, begin, end


def _counts(value: list[object]) -> bool:
    return all(type(n) is int and 0 <= n < 1 << 62 for n in value)


def _layout_findings(
    source: ByteSource,
    tensors: list[TensorInfo],
    storages: dict[str, Storage],
    start: int,
    room: int,
    unusable: list[str],
) -> list[Finding]:
    findings: list[Finding] = []
    if unusable:
        findings.append(
            UNUSABLE_ENTRY.found(
                f"{counted(len(unusable), 'header entry', 'header entries')} cannot be used: {unusable[0]}.",
                subjects=tuple(u.partition(":")[0] for u in unusable[:20]),
                remedy="The safetensors library refuses this file. Write it again from its source.",
            )
        )
    # Two names of one range lie on top of each other, too.
    held = [(storages[t.storage_id or ""].offset or 0, t) for t in tensors]
    spans = sorted((offset - start, offset - start + t.nbytes) for offset, t in held)
    error = BAD_HEADER if unusable else _misplaced(spans, held, start) or NOT_COVERED
    end = max((b for _, b in spans), default=0)
    if end > room:
        cut = next((t for t in tensors if storages[t.storage_id or ""].present_nbytes < t.nbytes), None)
        inside = f"the numbers of {cut.name}" if cut else "its numbers"
        ends = Cut(
            ends_at=source.size, missing_nbytes=end - room, inside=inside, torch_says=error, missing_of="the file"
        )
        findings.append(observe_cut(ends, tensors, storages, source.name))
    holes = overlaps = at = 0
    for a, b in spans:
        holes += max(0, a - at)
        overlaps += max(0, min(b, at) - a)
        at = max(at, b)
    trailing = max(0, room - end)
    for nbytes, kind, what in (
        (holes, DATA_HOLES, "belong to no tensor"),
        (overlaps, DATA_OVERLAPS, "belong to more than one tensor"),
        (0 if unusable else trailing, TRAILING_DATA, "lie behind the last tensor"),
    ):
        if nbytes:
            findings.append(
                kind.found(
                    f"{human_bytes(nbytes)} of the data {what}; the format forbids it.",
                    severity=Severity.WARNING,
                    evidence=(("nbytes", nbytes), ("error", error)),
                    remedy="The safetensors library refuses this file. Write it again from its source.",
                )
            )
    return findings


def _misplaced(spans: list[tuple[int, int]], held: list[tuple[int, TensorInfo]], start: int) -> str:
    """What the library says of the first range, in their order, that does not begin where the one before it ends; ""
    where each does. spans: begin and end of each tensor, in order. held: (where it lies in the file, tensor)."""
    at = 0
    for a, b in spans:
        if a != at:
            names = [t.name for offset, t in held if (offset - start, offset - start + t.nbytes) == (a, b)]
            return invalid_offset(names[0] if len(names) == 1 else "")
        at = b
    return ""


def _behind(source: ByteSource, start: int, storages: dict[str, Storage], limits: Limits) -> list[Finding]:
    """A pickle behind the last tensor."""
    at = max((s.offset + s.nbytes for s in storages.values() if s.offset is not None), default=start)
    if at >= source.size:
        return []
    from inspector.readers.unpickle.nested.hidden_pickles import observe_hidden, search_behind

    return observe_hidden(search_behind(source, at, source.size, limits, "behind the last tensor"))


def _metadata(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        return ()
    return tuple((str(k)[:200], v if isinstance(v, str) else json.dumps(v)[:1000]) for k, v in value.items())


def _root(tensors: list[TensorInfo], metadata: tuple[tuple[str, str], ...]) -> Value:
    children = [
        (
            t.name,
            Value(
                kind=ValueKind.TENSOR,
                type_name="torch.Tensor",
                says=f"{human_shape(t.shape)} {t.dtype}" + (f", {t.note}" if t.note else ""),
                name=t.name,
            ),
        )
        for t in tensors
    ]
    if metadata:
        texts = tuple((k, Value(kind=ValueKind.TEXT, type_name="str", says=v[:200], size=len(v))) for k, v in metadata)
        says = counted(len(texts), "entry", "entries")
        inner = Value(kind=ValueKind.MAPPING, type_name="dict", says=says, children=texts, size=len(texts))
        children.insert(0, ("__metadata__", inner))
    return Value(
        kind=ValueKind.MAPPING,
        type_name="safetensors",
        says=counted(len(tensors), "tensor"),
        children=tuple(children),
        size=len(children),
    )


READER = Reader(
    id="safetensors",
    says="safetensors file",
    suffixes=(".safetensors",),
    claims=_claims,
    read=_read,
    no_index="",
)
