"""A checkpoint that is a list of named tensors and a few facts: GGUF, ONNX, numpy archives. Shared by their readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.checkpoint.nested import NamedTensors
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.findings import Finding
from inspector.readers.checks.contents import UNUSABLE_ENTRY
from inspector.readers.finish import FileContent, finished
from inspector.units import counted, human_shape

_LISTED = 20


def flat_checkpoint(
    source: ByteSource,
    content: FileContent,
    *,
    kind: str,
    facts: Sequence[tuple[str, Value]] = (),
    values: Sequence[tuple[str, Value]] = (),
    nested: Sequence[TensorInfo] = (),
    name: str = "",
    nbytes: int | None = None,
) -> Checkpoint:
    """Put it together: the tree, and one state dict of all tensors.

    kind: of the state dict ("GGUF"). facts: shown before the tensors in the tree, values: behind them. nested: tensors
    inside `values`, which belong to no state dict. name, nbytes: of the file, where source is more than it.
    """
    tensors = tuple(content.tensors)
    others = tuple(label for label, _ in values)[:200]
    children = (*facts, *((t.name, tensor_value(t)) for t in tensors), *values)
    root = Value(
        kind=ValueKind.MAPPING,
        type_name=kind,
        says=counted(len(tensors), "tensor"),
        children=children,
        size=len(children),
    )
    group = NamedTensors(path=(), kind=kind, tensors=tensors, others=others, ordered=True)
    whole = replace(content, root=root, tensors=(*tensors, *nested), groups=[group])
    return finished(source, whole, name=name, nbytes=nbytes)


def tensor_value(tensor: TensorInfo) -> Value:
    """How a tensor is shown in the tree."""
    says = f"{human_shape(tensor.shape)[:200]} {tensor.dtype}" + (f", {tensor.note}" if tensor.note else "")
    return Value(kind=ValueKind.TENSOR, type_name="tensor", says=says, name=tensor.name)


def mapping_value(pairs: Sequence[tuple[str, str]], *, type_name: str = "dict", more: int = 0) -> Value:
    """Facts as a mapping of texts. more: how many there are beside those."""
    children = tuple((k, Value(kind=ValueKind.TEXT, type_name="str", says=v[:200], size=len(v))) for k, v in pairs)
    n = len(children) + more
    return Value(
        kind=ValueKind.MAPPING, type_name=type_name, says=counted(n, "entry", "entries"), children=children, size=n
    )


def observe_unusable(unusable: Sequence[str], *, what: str, remedy: str) -> list[Finding]:
    """The finding about entries of a header that make no tensor. unusable: "name: why" each."""
    if not unusable:
        return []
    return [
        UNUSABLE_ENTRY.found(
            f"{counted(len(unusable), 'tensor')} of {what} cannot be used: {unusable[0]}.",
            subjects=tuple(u.partition(": ")[0] for u in unusable[:_LISTED]),
            evidence=(("tensors", len(unusable)),),
            remedy=remedy,
        )
    ]


def whole_text(raw: bytes) -> str:
    """UTF-8 from a header; what is none is shown escaped."""
    return raw.decode("utf-8", "backslashreplace")
