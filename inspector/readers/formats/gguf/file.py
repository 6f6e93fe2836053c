"""GGUF, the format of llama.cpp and ggml: a header with metadata and a list of tensors, then the aligned data.

Source: ggml/docs/gguf.md. Quantised tensors keep their logical shape; their blocks can be read as packed bytes, which
is what `encoding.parts` holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from inspector.checkpoint.layout import row_major
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, Encoding, Part, Storage, TensorInfo
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.checks.contents import DATA_OVERLAPS, trailing_data
from inspector.readers.checks.truncation import observe_missing
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent
from inspector.readers.flat import flat_checkpoint, mapping_value, observe_unusable
from inspector.readers.folder import Folder
from inspector.readers.formats.gguf.ggml_types import GGML_TYPES
from inspector.readers.formats.gguf.header import MAGIC, GgufHeader, TensorEntry, byte_order, read_header
from inspector.units import counted, human_bytes, human_shape

BAD_ALIGNMENT = FindingKind("bad-alignment", Severity.ERROR, "The alignment is no power of two")
DUPLICATE_KEYS = FindingKind("duplicate-keys", Severity.WARNING, "Metadata keys occur twice")
SPLIT_FILE = FindingKind("split-file", Severity.NOTICE, "One file of a split model", also=(Severity.ERROR,))
MISALIGNED_DATA = FindingKind("misaligned-data", Severity.ERROR, "Tensors do not begin at the alignment")

_ALIGNMENT = 32
_SPLIT = re.compile(r"(.{0,200})-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)
_MOST_SPLITS = 1000


def _claims(peek: Peek) -> str:
    if not peek.head.startswith(MAGIC):
        return ""
    found = byte_order(peek.head)
    if found is None:
        return "GGUF's magic"
    return f"GGUF version {found[0]}" + (", big-endian" if found[1] else "")


def _read(peek: Peek) -> Checkpoint:
    source, limits = peek.source, peek.limits
    header = read_header(source, limits)
    alignment = header.numbers.get("general.alignment", _ALIGNMENT)
    findings: list[Finding] = []
    if alignment < 1 or alignment & (alignment - 1) or alignment > 1 << 30:
        findings.append(_bad_alignment(alignment))
        alignment = _ALIGNMENT
    start = -(-header.end // alignment) * alignment
    tensors, storages, unusable = _tensors(header, source, start)
    findings += observe_unusable(unusable, what=source.name, remedy="llama.cpp refuses this file. Convert it again.")
    findings += observe_missing(source, tensors, storages)
    findings += _layout(tensors, storages, source, start, alignment, bool(unusable))
    findings += _behind(source, header.end, storages, limits)
    if header.twice:
        findings.append(_twice(header.twice))
    split, parts = _split(header, source, peek.folder)
    findings += split
    findings += _observe_texts([*header.texts, *header.long_texts], limits)
    texts = [("gguf_version", f"{header.version}" + (", big-endian" if header.big_endian else "")), *header.texts]
    more = header.more_texts
    content = FileContent(
        format=READER.id,
        format_says=f"{READER.says}, version {header.version}",
        tensors=tensors,
        storages=storages,
        findings=findings,
        metadata=texts,
        skipped=[f"{counted(more, 'metadata entry', 'metadata entries')} are not listed."] if more else [],
        parts=parts,
    )
    return flat_checkpoint(source, content, kind="GGUF", facts=[("(metadata)", mapping_value(texts, more=more))])


def _tensors(
    header: GgufHeader, source: ByteSource, start: int
) -> tuple[list[TensorInfo], dict[str, Storage], list[str]]:
    """start: where the data begin in the file."""
    room = max(0, source.size - start)
    ends = _gaps(header.tensors, room)
    tensors: list[TensorInfo] = []
    storages: dict[str, Storage] = {}
    unusable: list[str] = []
    for entry in header.tensors:
        if entry.name in storages:
            unusable.append(f"{entry.name[:80]}: the name occurs twice")
            continue
        made = _tensor(entry, ends.get(entry.offset, 0))
        if isinstance(made, str):
            unusable.append(f"{entry.name[:80]}: {made}")
            continue
        storages[entry.name] = Storage(
            id=entry.name,
            nbytes=made.nbytes,
            present_nbytes=max(0, min(made.nbytes, room - entry.offset)),
            offset=start + entry.offset,
            big_endian=header.big_endian,
        )
        tensors.append(made)
    return tensors, storages, unusable


def _gaps(entries: Sequence[TensorEntry], room: int) -> dict[int, int]:
    """Offset -> bytes up to the next tensor, or the end: all that can be said about a type that is not known."""
    offsets = sorted({entry.offset for entry in entries} | {room})
    return {a: b - a for a, b in pairwise(offsets)}


def _tensor(entry: TensorEntry, gap: int) -> TensorInfo | str:
    shape = tuple(reversed(entry.dims))
    numel = 1
    for n in shape:
        numel *= n
    if numel >= 1 << 62 or entry.offset >= 1 << 62:
        return f"{human_shape(shape)[:80]} at {entry.offset:,} is beyond any file"
    kind = GGML_TYPES.get(entry.type_code)
    if kind is None:
        nbytes, note = gap, f"ggml type {entry.type_code:,}, unknown here; {human_bytes(gap)} up to the next tensor"
    else:
        if entry.dims and entry.dims[0] % kind.block:
            return f"rows of {entry.dims[0]:,} are no multiple of the {kind.block} weights in a block of {kind.name}"
        if not entry.dims and kind.block > 1:
            return f"a scalar cannot be {kind.name}"
        nbytes, note = numel // kind.block * kind.nbytes, kind.note
    if kind is not None and kind.dtype:
        return TensorInfo(
            name=entry.name, path=(entry.name,), shape=shape, dtype=kind.dtype, nbytes=nbytes,
            storage_id=entry.name, stride=row_major(shape),
        )  # fmt: skip
    packed = TensorInfo(
        name=f"{entry.name} (packed bytes)", path=(entry.name, "(packed bytes)"), shape=(nbytes,), dtype="uint8",
        nbytes=nbytes, storage_id=entry.name, stride=(1,),
    )  # fmt: skip
    scheme = kind.name if kind is not None else f"ggml type {entry.type_code}"
    return TensorInfo(
        name=entry.name, path=(entry.name,), shape=shape, dtype="bits8", nbytes=nbytes, storage_id=entry.name,
        layout="quantised_blocks", note=note, encoding=Encoding(scheme=scheme, parts=(packed,)),
    )  # fmt: skip


def _layout(
    tensors: Sequence[TensorInfo],
    storages: dict[str, Storage],
    source: ByteSource,
    start: int,
    alignment: int,
    incomplete: bool,
) -> list[Finding]:
    """Where the data lie: offsets off the alignment, tensors on top of each other, bytes behind the last."""
    off = [t.name for t in tensors if ((storages[t.name].offset or 0) - start) % alignment]
    spans = sorted((storages[t.name].offset or 0, storages[t.name].nbytes, t.name) for t in tensors)
    lapped: list[str] = []
    at = start
    for offset, nbytes, name in spans:
        if offset < at and nbytes:
            lapped.append(name)
        at = max(at, offset + nbytes)
    found: list[Finding] = []
    for names, kind, what in (
        (off, MISALIGNED_DATA, f"begin at no multiple of the alignment {alignment}"),
        (lapped, DATA_OVERLAPS, "lie on top of another tensor"),
    ):
        if names:
            found.append(
                kind.found(
                    f"{counted(len(names), 'tensor')} {what}, first {names[0][:80]}.",
                    subjects=tuple(names[:20]),
                    evidence=(("tensors", len(names)),),
                    remedy="The format forbids it, and llama.cpp refuses the file. Convert it again.",
                )
            )
    trailing = source.size - at
    if trailing >= alignment and not incomplete:
        found.append(
            trailing_data(trailing, "the last tensor", "llama.cpp ignores them; another file may have been appended.")
        )
    return found


def _behind(source: ByteSource, end: int, storages: dict[str, Storage], limits: Limits) -> list[Finding]:
    """A pickle behind the last tensor. end: of the header."""
    at = max((s.offset + s.nbytes for s in storages.values() if s.offset is not None), default=end)
    if at >= source.size:
        return []
    from inspector.readers.unpickle.nested.hidden_pickles import observe_hidden, search_behind

    return observe_hidden(search_behind(source, at, source.size, limits, "behind the last tensor"))


def _observe_texts(texts: Sequence[tuple[str, str]], limits: Limits) -> list[Finding]:
    """What programs that render or decode the metadata would run."""
    from inspector.readers.checks.named_code import observe_metadata
    from inspector.readers.checks.templates import observe_template

    found: dict[str, Finding] = {}
    for key, text in texts:
        template = observe_template(text, key) if "template" in key.lower() else None
        if template is not None:
            found.setdefault(template.id, template)
    # Addresses are what GGUF's own keys ask for.
    rest = [(key, text) for key, text in texts if "template" not in key.lower() and not key.startswith("general.")]
    return [*found.values(), *observe_metadata(rest, limits, "GGUF")]


def _bad_alignment(alignment: int) -> Finding:
    return BAD_ALIGNMENT.found(
        f"general.alignment is {alignment:,}, which is no power of two; {_ALIGNMENT} is assumed.",
        evidence=(("alignment", alignment),),
        remedy="Convert the model again.",
    )


def _twice(keys: Sequence[str]) -> Finding:
    return DUPLICATE_KEYS.found(
        f"{counted(len(keys), 'metadata key occurs', 'metadata keys occur')} twice, first {keys[0]}.",
        subjects=tuple(keys[:20]),
        evidence=(("keys", len(keys)),),
        remedy="Programs differ in which one they read. Convert the model again.",
    )


def _split(header: GgufHeader, source: ByteSource, folder: Folder | None) -> tuple[list[Finding], list[Part]]:
    """What is known of the other files of a model that was split."""
    count, number = header.numbers.get("split.count", 1), header.numbers.get("split.no", 0) + 1
    if count < 2:
        return [], []
    says = f"{source.name} is part {number:,} of {count:,} of a split model"
    total = header.numbers.get("split.tensors.count")
    if total is not None:
        says += f": {len(header.tensors):,} of its {counted(total, 'tensor')} are in this file"
    parts: list[Part] = []
    missing: list[str] = []
    match = _SPLIT.fullmatch(source.name)
    if folder is not None and match and int(match[3]) == count <= _MOST_SPLITS:
        for other in range(1, count + 1):
            name = f"{match[1]}-{other:05d}-of-{count:05d}.gguf"
            size = folder.size_of(name)
            if size is None:
                missing.append(name)
            parts.append(Part(name=name, nbytes=size or 0, says="missing" if size is None else "part of the model"))
        there = len(parts) - len(missing)
        says += f". {there:,} of {count:,} parts lie in this folder" + (f"; {missing[0]} is missing" if missing else "")
    else:
        says += ". Whether the other parts are complete was not looked at"
    return [
        SPLIT_FILE.found(
            f"{says}.",
            severity=Severity.ERROR if missing else Severity.NOTICE,
            subjects=tuple(missing[:20]),
            evidence=(("part", number), ("parts", count), ("missing", len(missing))),
            remedy="Counts here are those of this file alone. llama-gguf-split --merge makes one file of all parts.",
        )
    ], parts


READER = Reader(
    id="gguf",
    says="GGUF model (llama.cpp)",
    suffixes=(".gguf",),
    claims=_claims,
    read=_read,
    no_index="",
)
