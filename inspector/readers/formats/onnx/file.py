"""ONNX models: initializers and constants as tensors, without the onnx library and without reading the file whole.

Source: onnx/onnx.proto and docs/ExternalData.md. Data in other files are looked up among the names beside the model: a
location that leads elsewhere (CVE-2022-25882, CVE-2024-27318, CVE-2024-5187) is a finding and is not followed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from inspector.checkpoint.joined_source import JoinedSource
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, Part, Storage
from inspector.errors import CorruptFile, LimitExceeded
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.checks.truncation import observe_missing
from inspector.readers.cursor import Cursor, Ended
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent
from inspector.readers.flat import flat_checkpoint, mapping_value, observe_unusable
from inspector.readers.folder import Folder, leads_outside
from inspector.readers.formats.onnx.graph import ModelWalk, OnnxModel
from inspector.readers.formats.onnx.protobuf import BYTES, VARINT, BadWire, Walk
from inspector.readers.unpickle.nested.encoded import LEAST
from inspector.units import counted, human_bytes

EXTERNAL_DATA_OUTSIDE = FindingKind("external-data-outside", Severity.ERROR, "Data are named outside the folder")
EXTERNAL_DATA_MISSING = FindingKind(
    "external-data-missing", Severity.ERROR, "Numbers lie in files that are missing", also=(Severity.WARNING,)
)
NO_OPSET = FindingKind("no-opset", Severity.WARNING, "The operator set is not stated")
CONSTANT_TENSORS = FindingKind("constant-tensors", Severity.INFO, "Tensors are constants inside operators")
GENERATED_NAMES = FindingKind("generated-names", Severity.INFO, "Names that the exporter made up")
PYTHON_OPERATORS = FindingKind("python-operators", Severity.ERROR, "Operators call Python code")
CUSTOM_OPERATORS = FindingKind("custom-operators", Severity.INFO, "Operators that are not ONNX's own")

# ModelProto's fields with their wire types.
_TOP = {1: VARINT, 2: BYTES, 3: BYTES, 4: BYTES, 5: VARINT, 6: BYTES, 7: BYTES, 8: BYTES, 14: BYTES, 20: BYTES,
        25: BYTES, 26: BYTES}  # fmt: skip
_GRAPH = (1, 2, 5, 10, 11, 12, 13, 14, 15, 16)
_MOST_IR_VERSION = 99
_MOST_FILES = 256
_GENERATED = re.compile(r"(onnx::[A-Za-z]+_)?\d+|_?val_\d+|const_fold_opt__\d+|Constant(_\d+)?_output_\d+", re.ASCII)
_STANDARD = ("ai.onnx.ml::", "ai.onnx.training::", "ai.onnx.preview.training::")


def _claims(peek: Peek) -> str:
    """By the first fields: a small version, texts that can be printed, and a graph whose first field is a graph's."""
    if len(peek.head) < 4 or peek.head[0] != 0x08:
        return ""
    walk = Walk(Cursor(peek.source), 64)
    version, producer = 0, ""
    try:
        for f in walk.fields(0, None):
            if _TOP.get(f.number) != f.wire or (f.number == 1 and not 1 <= f.value <= _MOST_IR_VERSION):
                return ""
            if f.number == 1:
                version = f.value
            elif f.number in (2, 3):
                text = walk.read(f, 200).decode("utf-8")
                if f.nbytes > 200 or (text and not text.isprintable()):
                    return ""
                producer = producer or text
            elif f.number == 7:
                walk.cursor.at = f.start
                tag = walk.varint() if f.nbytes and f.start < peek.source.size else 0x0A
                if tag >> 3 not in _GRAPH or tag & 7 != BYTES:
                    return ""
                by = f", written by {producer}" if producer else ""
                return f"an ONNX model of IR version {version}{by}"
    except (BadWire, UnicodeDecodeError, LimitExceeded, Ended):
        return ""
    return ""


def _read(peek: Peek) -> Checkpoint:
    source, limits = peek.source, peek.limits
    walk = Walk(Cursor(source), limits.memo)
    reading = ModelWalk(walk, limits)
    model = reading.model
    try:
        reading.run()
    except (BadWire, Ended) as problem:
        model.problem = str(problem).rstrip(".")
        if not model.tensors and not model.operators:
            raise CorruptFile(
                f"{source.name} begins as an ONNX model, but {model.problem}.", hint="Download or copy it again."
            ) from problem
    if not model.tensors and not model.operators and not model.constants and walk.cut:
        raise CorruptFile(
            f"{source.name} is an ONNX model cut short before its first operator or tensor: it has "
            f"{source.size:,} bytes.",
            hint="Download or copy it again.",
        )
    joined, storages, parts, findings = _place(model, peek)
    tensors = [
        replace(t, storage_id=None, note=_no_data(t.note)) if t.name not in storages else t for t in model.tensors
    ]
    findings += observe_unusable(model.unusable, what=source.name, remedy="onnxruntime refuses it. Export it again.")
    findings += observe_missing(source, model.tensors, storages, inside=_inside(model, walk))
    findings += _observe_model(model, cut=walk.cut or bool(model.problem))
    metadata = _metadata(model)
    texts = [*model.facts, *model.properties]
    if any(len(text) >= LEAST for _, text in texts):
        from inspector.readers.checks.named_code import observe_metadata

        findings += observe_metadata(texts, limits, "ONNX")
    content = FileContent(
        format=READER.id,
        format_says=READER.says,
        tensors=tensors,
        storages=storages,
        findings=findings,
        metadata=metadata,
        skipped=["What the operators compute was not followed."],
        parts=parts,
    )
    return flat_checkpoint(
        joined,
        content,
        kind="ONNX graph",
        facts=[("(model)", mapping_value(metadata[:400]))],
        values=model.values,
        name=source.name,
        nbytes=source.size,
    )


def _no_data(note: str) -> str:
    return note or "its data lie in a file that is not here"


def _metadata(model: OnnxModel) -> list[tuple[str, str]]:
    found = [*model.facts]
    found += [(f"input {name}", says) for name, says in model.inputs if name not in model.names]
    found += [(f"output {name}", says) for name, says in model.outputs]
    if model.operators:
        most = ", ".join(f"{name} {n:,}" for name, n in model.operators.most_common(40))
        found.append(("operators", f"{sum(model.operators.values()):,}: {most}"))
    if model.function_count:
        found.append(("functions", f"{model.function_count:,}: {', '.join(model.functions[:20])}"))
    return [*found, *model.properties]


def _place(model: OnnxModel, peek: Peek) -> tuple[ByteSource, dict[str, Storage], list[Part], list[Finding]]:
    """The model with the files its tensors lie in as one source, and every storage in it."""
    storages = dict(model.storages)
    outside = [place for place in model.places if place and _leads_out(place, peek.folder)]
    if not model.outside:
        return peek.source, storages, [], _observe_outside(model, outside, [], [], alone=peek.folder is None)
    names = list(dict.fromkeys(place.location for place in model.outside.values()))
    sources: list[ByteSource] = [peek.source]
    starts: dict[str, tuple[int, int]] = {}
    parts = [Part(name=peek.source.name, nbytes=peek.source.size, says="ONNX model")]
    missing: list[str] = []
    at = peek.source.size
    for name in names:
        if name in outside:
            continue
        size = peek.folder.size_of(name) if peek.folder is not None else None
        if size is None or peek.folder is None or len(sources) > _MOST_FILES:
            missing.append(name)
            parts.append(Part(name=name[:200], nbytes=size or 0, says="missing" if size is None else "not opened"))
            continue
        opened = peek.folder.open(name)
        sources.append(opened)
        starts[name] = (at, opened.size)
        at += opened.size
        parts.append(Part(name=name, nbytes=opened.size, says="data of its tensors"))
    by_name = {t.name: t for t in model.tensors}
    for key, place in model.outside.items():
        if place.location in starts:
            start, size = starts[place.location]
            nbytes = by_name[key].nbytes
            present = max(0, min(nbytes, size - place.offset))
            storages[key] = Storage(id=key, nbytes=nbytes, present_nbytes=present, offset=start + place.offset)
    lost = [key for key, place in model.outside.items() if place.location not in starts]
    findings = _observe_outside(model, outside, missing, lost, alone=peek.folder is None)
    joined = JoinedSource(sources, peek.source.name) if len(sources) > 1 else peek.source
    return joined, storages, parts[:1000], findings


def _leads_out(place: str, folder: Folder | None) -> bool:
    return leads_outside(place) or (folder is not None and folder.is_linked_out(place))


def _observe_outside(
    model: OnnxModel, outside: Sequence[str], missing: Sequence[str], lost: Sequence[str], *, alone: bool
) -> list[Finding]:
    found: list[Finding] = []
    if outside:
        found.append(
            EXTERNAL_DATA_OUTSIDE.found(
                f"{counted(len(outside), 'place')} that the model names for its data lead out of its folder, "
                f"first {outside[0][:80]!r}. They were not followed.",
                subjects=tuple(n[:200] for n in outside[:20]),
                evidence=(("places", len(outside)),),
                remedy="No exporter writes such a place: the model was made to read a file of yours.",
            )
        )
    if missing:
        why = "the file came alone" if alone else "not beside the model"
        found.append(
            EXTERNAL_DATA_MISSING.found(
                f"The numbers of {counted(len(lost), 'tensor')} of {len(model.tensors):,} lie in "
                f"{counted(len(missing), 'other file')}, first {missing[0][:80]}: {why}.",
                severity=Severity.WARNING if alone else Severity.ERROR,
                subjects=tuple(n[:200] for n in missing[:20]),
                evidence=(("files", len(missing)), ("tensors", len(lost))),
                remedy="Put it into the folder of the model and open the model by its path, or the whole folder.",
            )
        )
    return found


def _inside(model: OnnxModel, walk: Walk) -> str:
    """What the end of the file falls into, "" where its list of tensors is whole."""
    if model.problem:
        return f"its graph, which could be followed only so far: {model.problem}"
    return "its list of tensors: what follows the cut is unknown" if walk.cut else ""


def _observe_model(model: OnnxModel, *, cut: bool) -> list[Finding]:
    found: list[Finding] = []
    if not any(key == "opset" for key, _ in model.facts) and not cut:
        found.append(
            NO_OPSET.found(
                "The model does not say which operator set it uses. That follows the graph: the file may be cut "
                "short right behind it.",
                remedy="onnxruntime refuses it. Download or export it again.",
            )
        )
    if model.constants:
        found.append(
            CONSTANT_TENSORS.found(
                f"{counted(model.constants, 'tensor')} ({human_bytes(model.constant_nbytes)}) are constants "
                "inside operators, not among those listed.",
                evidence=(("tensors", model.constants), ("nbytes", model.constant_nbytes)),
                remedy="Exporters write shapes, scalars and steps so. Real numbers with a dimension are listed.",
            )
        )
    generated = [n for n in (t.name.rpartition("/")[2] for t in model.tensors) if _GENERATED.fullmatch(n)]
    if generated:
        found.append(
            GENERATED_NAMES.found(
                f"{len(generated):,} of {counted(len(model.tensors), 'tensor')} have names that the exporter made "
                f"up, first {generated[0][:80]}.",
                subjects=tuple(n[:200] for n in generated[:20]),
                evidence=(("tensors", len(generated)),),
                remedy="It folded or transposed these weights, so they are not those of the PyTorch model one to one.",
            )
        )
    if model.runs_python:
        found.append(
            PYTHON_OPERATORS.found(
                f"{counted(len(model.runs_python), 'kind')} of operators hand their inputs to Python code, first "
                f"{next(iter(model.runs_python))[:80]}.",
                subjects=tuple(name[:200] for name in model.runs_python)[:20],
                evidence=(("kinds", len(model.runs_python)),),
                remedy="Nothing was run here. A runtime that knows them runs code which the model only names.",
            )
        )
    custom = [name for name in model.operators if "::" in name and not name.startswith(_STANDARD)]
    if custom:
        found.append(
            CUSTOM_OPERATORS.found(
                f"{counted(len(custom), 'kind')} of operators are not ONNX's own, first {custom[0][:80]}.",
                subjects=tuple(n[:200] for n in custom[:20]),
                evidence=(("kinds", len(custom)),),
                remedy="It runs only where a library brings them, or where the model's own functions define them.",
            )
        )
    return found


READER = Reader(
    id="onnx",
    says="ONNX model",
    suffixes=(".onnx",),
    claims=_claims,
    read=_read,
    no_index="the numbers lie between the entries that describe them",
)
