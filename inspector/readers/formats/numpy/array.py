"""numpy's array file: a header that is a Python literal, then the elements, or a pickle when they are objects.

Source: numpy/lib/_format_impl.py. An array of objects is followed by the pickle machine; numpy would execute it.
"""

from __future__ import annotations

from dataclasses import replace

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, Storage, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import CorruptFile
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.assemble import checkpoint_from_pickle, unpickle
from inspector.readers.checks.contents import trailing_data, unnamed_tensors
from inspector.readers.checks.truncation import observe_missing
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent, with_findings
from inspector.readers.flat import flat_checkpoint
from inspector.readers.formats.numpy.header import (
    MAGIC,
    NUMPY_NBYTES,
    PREAMBLE_NBYTES,
    BadHeader,
    NpyHeader,
    header_span,
    parse_header,
)
from inspector.units import human_shape

OBJECT_ARRAY = FindingKind("object-array", Severity.WARNING, "An array of Python objects, saved as a pickle")
LONG_HEADER = FindingKind("long-header", Severity.NOTICE, "The header is longer than numpy.load reads")


def _claims(peek: Peek) -> str:
    return "numpy's magic" if peek.head.startswith(MAGIC) else ""


def _read(peek: Peek) -> Checkpoint:
    source, limits = peek.source, peek.limits
    try:
        span = header_span(peek.head[:PREAMBLE_NBYTES])
        header = parse_header(source.read(0, min(span, source.size)), limits)
    except BadHeader as problem:
        raise CorruptFile(
            f"{source.name} is a numpy array (.npy), but {problem}.", hint="Download or copy it again."
        ) from problem
    findings = observe_header(header, source.name)
    if header.element.is_object:
        pickle = unpickle(source, header.start, source.size, limits)
        made = checkpoint_from_pickle(pickle, replace(_content(), findings=findings), source=source, limits=limits)
        shape, exportable = human_shape(header.shape), any(t.storage_id is not None for t in made.tensors)
        noticed = with_findings(made, [object_finding(1, "The array", exportable=exportable)])
        return replace(noticed, metadata=(("shape", shape), ("dtype", "object"), *made.metadata))
    stem = source.name.removesuffix(".npy") or "array"
    info, storage = describe(header, stem, source.size - header.start, header.start)
    value = None if info.dtype else opaque_value(header)
    tensors = [info] if info.dtype else []
    storages = {stem: storage} if info.dtype else {}
    findings += observe_missing(source, tensors, storages)
    findings += _trailing(source, header, storage)
    if (end := header.start + storage.nbytes) < source.size and header.element.itemsize:
        from inspector.readers.unpickle.nested.hidden_pickles import observe_hidden, search_behind

        findings += observe_hidden(search_behind(source, end, source.size, limits, "behind the array"))
    if info.dtype:
        findings.append(
            unnamed_tensors(
                f"The file is one array, {human_shape(info.shape)} {info.dtype}; its name is that of the file.", 1
            )
        )
    content = replace(
        _content(),
        tensors=tensors,
        storages=storages,
        findings=findings,
        metadata=[("npy_version", ".".join(map(str, header.version)))],
    )
    return flat_checkpoint(source, content, kind="numpy array", values=[(stem, value)] if value else [])


def _content() -> FileContent:
    return FileContent(format=READER.id, format_says=READER.says)


def describe(
    header: NpyHeader, name: str, room: int, offset: int | None, *, deflated: tuple[int, int] | None = None
) -> tuple[TensorInfo, Storage]:
    """The tensor and storage of one array. dtype "" where it has elements of a type that no tensor can have.

    room: bytes behind the header. offset: where they begin in the file; deflated: (compressed bytes, bytes of header
    in the inflated stream) where they are inside a deflate stream at `offset`.
    """
    element = header.element
    nbytes = header.numel * element.itemsize
    storage = Storage(
        id=name,
        nbytes=nbytes,
        present_nbytes=max(0, min(nbytes, room)),
        offset=offset,
        deflated_nbytes=deflated[0] if deflated else None,
        skipped_nbytes=deflated[1] if deflated else 0,
        big_endian=element.big_endian,
    )
    info = TensorInfo(
        name=name, path=(name,), shape=header.shape, dtype=element.dtype, nbytes=nbytes, storage_id=name,
        stride=header.stride, note=element.note,
    )  # fmt: skip
    return info, storage


def opaque_value(header: NpyHeader) -> Value:
    """An array whose elements are no numbers that a tensor can have: text, records, long doubles."""
    return Value(
        kind=ValueKind.ARRAY, type_name="numpy.ndarray", says=f"{human_shape(header.shape)} {header.element.says}"[:300]
    )


def object_finding(n: int, what: str, *, exportable: bool) -> Finding:
    """An array of Python objects is a pickle. exportable: whether there are tensors to take out instead."""
    return OBJECT_ARRAY.found(
        f"{what} holds Python objects, which numpy saves as a pickle. It was followed here and not executed.",
        evidence=(("arrays", n),),
        remedy="numpy.load refuses it with “Object arrays cannot be loaded when allow_pickle=False”. Do not allow it "
        f"for a file you do not trust{': convert it here instead' if exportable else ''}.",
    )


def observe_header(header: NpyHeader, name: str) -> list[Finding]:
    """What numpy would say to the header."""
    if header.nbytes <= NUMPY_NBYTES:
        return []
    return [
        LONG_HEADER.found(
            f"The header of {name[:80]} has {header.nbytes:,} bytes; numpy.load refuses more than {NUMPY_NBYTES:,}.",
            evidence=(("nbytes", header.nbytes),),
            remedy="numpy.load(max_header_size=…) reads it; convert it here otherwise.",
        )
    ]


def _trailing(source: ByteSource, header: NpyHeader, storage: Storage) -> list[Finding]:
    more = source.size - header.start - storage.nbytes
    if more <= 0 or not header.element.itemsize:
        return []
    following = more >= 6 and source.read(source.size - more, 6) == MAGIC
    says = "another array, saved into the same file" if following else "numpy ignores it"
    return [trailing_data(more, f"the array: {says}", "Only the first array is shown." if following else "")]


READER = Reader(
    id="npy",
    says="numpy array",
    suffixes=(".npy",),
    claims=_claims,
    read=_read,
    no_index="",
)
