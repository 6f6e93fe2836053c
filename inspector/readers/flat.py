"""A checkpoint that is a list of named tensors and a few facts: GGUF, ONNX, numpy archives. Shared by their readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.nested import NamedTensors, find_state_dicts
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, GlobalUse, Origin, Part, Storage, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.findings import Finding, ranked
from inspector.readers.noticed.contents import UNUSABLE_ENTRY
from inspector.readers.noticed.observations import observe_storages
from inspector.readers.noticed.truncation import CUT_SHORT
from inspector.readers.noticed.wrapper_names import observe_wrappers
from inspector.units import counted, human_bytes, human_shape

_LISTED = 20
# Blocks and packed elements have no stride, so sizes of their views in elements mean nothing to `observe_storages`.
PACKED = ("quantised_blocks", "packed_elements")


def flat_checkpoint(
    *,
    source: ByteSource,
    format_id: str,
    format_says: str,
    kind: str,
    tensors: Sequence[TensorInfo],
    storages: Mapping[str, Storage],
    findings: Sequence[Finding] = (),
    metadata: Sequence[tuple[str, str]] = (),
    facts: Sequence[tuple[str, Value]] = (),
    values: Sequence[tuple[str, Value]] = (),
    nested: Sequence[TensorInfo] = (),
    globals_: Sequence[GlobalUse] = (),
    skipped: Sequence[str] = (),
    parts: Sequence[Part] = (),
    nbytes: int | None = None,
    name: str = "",
) -> Checkpoint:
    """Put it together: the tree, the one state dict, what is noticed about storages and names.

    kind: of the state dict ("GGUF"). facts: shown before the tensors in the tree, values: behind them. nested: tensors
    inside `values`, which belong to no state dict. nbytes, name: of the file, where source is more than it.
    """
    everything = (*tensors, *nested)
    group = NamedTensors(
        path=(), kind=kind, tensors=tuple(tensors), others=tuple(label for label, _ in values)[:200], ordered=True
    )
    states = find_state_dicts([group])
    shown = name or source.name
    noticed = [
        *findings,
        *observe_storages([t for t in everything if t.layout not in PACKED], storages, shown),
        *observe_wrappers(states),
    ]
    children = (*facts, *((t.name, tensor_value(t)) for t in tensors), *values)
    return Checkpoint(
        origin=Origin(name=shown, nbytes=source.size if nbytes is None else nbytes),
        format=format_id,
        format_says=format_says,
        root=Value(
            kind=ValueKind.MAPPING,
            type_name=kind,
            says=counted(len(tensors), "tensor"),
            children=children,
            size=len(children),
        ),
        tensors=everything,
        storages=dict(storages),
        state_dicts=states,
        metadata=tuple(metadata),
        globals=tuple(globals_),
        findings=ranked(noticed),
        skipped=tuple(skipped),
        parts=tuple(parts),
        source=source,
    )


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


def observe_cut(
    tensors: Sequence[TensorInfo], storages: Mapping[str, Storage], name: str, *, unknown: str = ""
) -> list[Finding]:
    """The finding about a file that ends before its tensors do. unknown: what else may be lost, a sentence."""
    found = [(t, storages.get(t.storage_id or "")) for t in tensors]
    cut = [(t, s) for t, s in found if s is not None and s.offset is not None and s.present_nbytes < s.nbytes]
    if not cut and not unknown:
        return []
    missing = sum(s.nbytes - s.present_nbytes for _, s in cut)
    lost = [t for t, s in cut if not s.present_nbytes]
    says = f"{name} is cut short."
    if cut:
        first, storage = cut[0]
        says = (
            f"{name} is cut short: {human_bytes(missing)} of tensor data are missing, which touches "
            f"{counted(len(cut), 'tensor')}, {len(lost):,} of them wholly. First {first.name[:80]}, "
            f"of which {human_bytes(storage.present_nbytes)} of {human_bytes(storage.nbytes)} are there."
        )
    return [
        CUT_SHORT.found(
            f"{says} {unknown}".strip(),
            subjects=tuple(t.name for t, _ in cut[:_LISTED]),
            evidence=(("missing_nbytes", missing), ("tensors", len(cut)), ("lost", len(lost))),
            remedy="Download or copy it again. The tensors before the cut can be read and exported.",
        )
    ]


def whole_text(raw: bytes) -> str:
    """UTF-8 from a header; what is none is shown escaped."""
    return raw.decode("utf-8", "backslashreplace")
