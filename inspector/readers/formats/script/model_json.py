"""TorchScript of torch 1.0 and 1.1: model.json names modules and tensors, tensors/ holds raw bytes.

Source: caffe2/proto/torch.proto of torch 1.1 (ModelDef, ModuleDef, ParameterDef, TensorDef, RecordRef), written as
protobuf's JSON, where 64-bit integers are texts and default values are left out.
"""

from __future__ import annotations

import math
from typing import Any

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import row_major
from inspector.checkpoint.nested import NamedTensors
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, ModuleNode, Storage, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import CorruptFile
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.archives.json_member import read_json
from inspector.readers.archives.zip_directory import Directory
from inspector.readers.archives.zip_members import Member, payload_offsets
from inspector.readers.assemble import Unpickled
from inspector.readers.finish import FileContent, finished
from inspector.readers.unpickle.stand_ins import Named, text_of
from inspector.units import counted, human_shape

TORCHSCRIPT_LEGACY = FindingKind("torchscript-legacy", Severity.NOTICE, "A layout of the first TorchScript")
SCRIPT_MODEL_JSON = FindingKind("script-model-json", Severity.ERROR, "Entries of model.json do not fit")

# caffe2/proto/caffe2.proto, TensorProto.DataType
_DTYPES = {
    "FLOAT": "float32", "INT32": "int32", "BYTE": "uint8", "BOOL": "bool", "UINT8": "uint8", "INT8": "int8",
    "INT16": "int16", "INT64": "int64", "FLOAT16": "float16", "DOUBLE": "float64", "BFLOAT16": "bfloat16",
}  # fmt: skip
_MOST_DEPTH = 100
_MOST_NUMEL = 1 << 62


def read_model_json(
    source: ByteSource, directory: Directory, prefix: str, main: Member, attributes: Unpickled | None, limits: Limits
) -> Checkpoint:
    """The checkpoint that a model.json describes. attributes: attributes.pkl of torch 1.1, where there is one."""
    model, twice = read_json(source, main, limits)
    if not isinstance(model, dict) or not isinstance(model.get("mainModule"), dict):
        raise CorruptFile(f"{source.name}: {main.name[:120]} describes no TorchScript module.")
    reading = _Reading(source, directory, prefix, model, attributes, limits)
    modules = reading.module(model["mainModule"], "", "", 0)
    tensors = tuple(reading.tensors)
    findings = [_legacy_finding()]
    if reading.wrong or twice:
        wrong = [*reading.wrong, *(f"the key {key[:60]} occurs twice" for key in twice)]
        findings.append(
            SCRIPT_MODEL_JSON.found(
                f"{counted(len(wrong), 'entry of model.json', 'entries of model.json')} do not fit: {wrong[0]}.",
                subjects=tuple(wrong[:20]),
                evidence=(("entries", len(wrong)),),
                remedy="Get the file again from its source.",
            )
        )
    kind = str(model["mainModule"].get("name", ""))[:200] or "TorchScript module"
    group = NamedTensors(path=(), kind=kind, tensors=tensors, is_module=True, modules=modules)
    producer = " ".join(str(model.get(k, ""))[:60] for k in ("producerName", "producerVersion")).strip()
    content = FileContent(
        format="torchscript",
        format_says="TorchScript archive",
        root=_root(tensors),
        tensors=tensors,
        storages=reading.storages,
        groups=[group],
        metadata=[("producer", producer)] if producer else [],
        findings=findings,
    )
    return finished(source, content)


def _legacy_finding() -> Finding:
    return TORCHSCRIPT_LEGACY.found(
        "It has the layout of torch 1.0 and 1.1, which torch 2.15 refuses: "
        '"Legacy model format is not supported on mobile."',
        remedy="Convert it here; the torch version that wrote it can load it.",
    )


def _root(tensors: tuple[TensorInfo, ...]) -> Value:
    children = tuple(
        (
            t.name,
            Value(
                kind=ValueKind.TENSOR,
                type_name="torch.Tensor",
                says=f"{human_shape(t.shape)[:100]} {t.dtype}",
                name=t.name,
            ),
        )
        for t in tensors
    )
    says = counted(len(tensors), "tensor")
    return Value(kind=ValueKind.MODULE, type_name="model.json", says=says, children=children, size=len(children))


class _Reading:
    def __init__(
        self,
        source: ByteSource,
        directory: Directory,
        prefix: str,
        model: dict[str, Any],
        attributes: Unpickled | None,
        limits: Limits,
    ) -> None:
        self.source = source
        self.prefix = prefix
        self.limits = limits
        entries = model.get("tensors")
        self.entries: list[object] = entries if isinstance(entries, list) else []
        values = attributes.outcome.value if attributes is not None else None
        self.attributes: list[object] = list(values) if isinstance(values, list | tuple) else []
        self.members: dict[str, Member] = {}
        for member in directory.members:
            self.members.setdefault(member.name.lower(), member)
        wanted = [m for m in directory.members if m.name.lower().startswith(f"{prefix.lower()}/tensors/")]
        self.offsets = dict(zip((m.name.lower() for m in wanted), payload_offsets(source, wanted), strict=True))
        self.tensors: list[TensorInfo] = []
        self.storages: dict[str, Storage] = {}
        self.wrong: list[str] = []

    def module(self, entry: dict[str, Any], name: str, path: str, depth: int) -> ModuleNode:
        own: list[TensorInfo] = []
        for parameter in _objects(entry.get("parameters")):
            found = self.tensor(parameter, path)
            if found is not None and len(self.tensors) < self.limits.tensors:
                own.append(found)
                self.tensors.append(found)
        settings: list[tuple[str, str]] = []
        for attribute in _objects(entry.get("attributes")):
            label, value = str(attribute.get("name", ""))[:80], self.attribute(attribute)
            number = _tensor_number(value)
            if number is None:
                if len(settings) < 64:
                    settings.append((label, text_of(value, 80)))
                continue
            # 1.1 writes buffers as attributes of type Tensor.
            found = self.tensor({"name": label, "tensorId": number, "isBuffer": True}, path)
            if found is not None and len(self.tensors) < self.limits.tensors:
                own.append(found)
                self.tensors.append(found)
        children = []
        for child in _objects(entry.get("submodules")):
            if depth >= _MOST_DEPTH:
                self.wrong.append(f"{path[:80]} is nested deeper than {_MOST_DEPTH} modules")
                break
            inner = str(child.get("name", ""))[:200]
            children.append(self.module(child, inner, f"{path}.{inner}" if path else inner, depth + 1))
        return ModuleNode(
            name=name, path=path, hyperparameters=tuple(settings), tensors=tuple(own), children=tuple(children)
        )

    def attribute(self, entry: dict[str, Any]) -> object:
        """What attributes.pkl holds for it."""
        number = _integer(entry.get("id", 0))
        if number is None or not 0 <= number < len(self.attributes):
            return None
        return self.attributes[number]

    def tensor(self, parameter: dict[str, Any], path: str) -> TensorInfo | None:
        name = str(parameter.get("name", ""))[:500]
        dotted = f"{path}.{name}" if path else name
        number = _integer(parameter.get("tensorId", 0))
        entry = self.entries[number] if number is not None and 0 <= number < len(self.entries) else None
        if not isinstance(entry, dict):
            self.wrong.append(f"{dotted[:80]} names tensor {str(number)[:20]}, which is not there")
            return None
        dtype = _DTYPES.get(str(entry.get("dataType", "")))
        shape, stride = _integers(entry.get("dims", [])), _integers(entry.get("strides", []))
        offset = _integer(entry.get("offset", 0))
        data = entry.get("data")
        key = str(data.get("key", ""))[:500] if isinstance(data, dict) else ""
        if dtype is None or shape is None or stride is None or offset is None:
            self.wrong.append(f"{dotted[:80]} has no usable type, sizes or strides")
            return None
        if len(shape) > self.limits.dimensions or math.prod(shape) >= _MOST_NUMEL or not 0 <= offset < _MOST_NUMEL:
            self.wrong.append(f"{dotted[:80]} has impossible sizes")
            return None
        if len(stride) != len(shape):
            stride = row_major(shape)
        if not self.storage(key, dotted):
            return None
        return TensorInfo(
            name=dotted,
            path=tuple(dotted.split(".", 64)),
            shape=shape,
            dtype=dtype,
            nbytes=math.prod(shape) * DTYPES[dtype].itemsize,
            storage_id=key,
            offset=offset,
            stride=stride,
            device=str(entry.get("device", ""))[:40] or None,
            requires_grad=entry.get("requiresGrad") is True,
            is_parameter=parameter.get("isBuffer") is not True,
        )

    def storage(self, key: str, dotted: str) -> bool:
        if key in self.storages:
            return True
        name = f"{self.prefix}/{key}".lower()
        member, offset = self.members.get(name), self.offsets.get(name)
        if member is None or offset is None or member.method not in (0, 8):
            self.wrong.append(f"{dotted[:80]} names the member {key[:80]}, which is not there")
            return False
        room = max(0, self.source.size - offset)
        whole = member.packed_nbytes <= room
        self.storages[key] = Storage(
            id=key,
            nbytes=member.nbytes,
            present_nbytes=min(member.nbytes, room) if member.method == 0 else (member.nbytes if whole else 0),
            offset=offset,
            deflated_nbytes=member.packed_nbytes if member.method else None,
        )
        return True


def _tensor_number(value: object) -> int | None:
    """N of `torch.jit._pickle.build_tensor_from_id(N)`, which stands for an entry of the model's tensors."""
    is_number = isinstance(value, Named) and value.kind == "tensor number"
    return _integer(value.text) if is_number and isinstance(value, Named) else None


def _objects(value: object) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _integer(value: object) -> int | None:
    """A number as protobuf's JSON writes it: an int, or its text."""
    if type(value) is int:
        return value if 0 <= value < _MOST_NUMEL else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return None


def _integers(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > 1000:
        return None
    found = [_integer(v) for v in value]
    return None if None in found else tuple(n for n in found if n is not None)
