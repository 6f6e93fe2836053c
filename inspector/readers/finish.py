"""The end of every reader: from what it found to a `Checkpoint`, with what is noticed about any checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from inspector.checkpoint.nested import NamedTensors, find_state_dicts
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import (
    Checkpoint,
    GlobalUse,
    Origin,
    Part,
    SourceText,
    StateDict,
    Storage,
    TensorInfo,
)
from inspector.checkpoint.values import Value, ValueKind
from inspector.findings import Finding, ranked
from inspector.readers.checks.observations import observe_storages
from inspector.readers.checks.odd_names import observe_names
from inspector.readers.checks.wrapper_names import observe_wrappers

NOTHING = Value(kind=ValueKind.NONE, type_name="", says="")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """What a reader found, in a file or in several that are one checkpoint. Fields as those of a `Checkpoint`."""

    format: str
    format_says: str
    root: Value = NOTHING
    tensors: Sequence[TensorInfo] = ()
    storages: Mapping[str, Storage] = field(default_factory=dict)
    # Of these the state dicts are made.
    groups: Sequence[NamedTensors] = ()
    # Where mappings with "state" and "param_groups" lie.
    optimizers: Sequence[tuple[str, ...]] = ()
    # Instead of groups, where the reader knows the state dicts itself.
    states: Sequence[StateDict] | None = None
    # Tensors behind the others that were looked at when a file inside was read.
    inner: Sequence[TensorInfo] = ()
    findings: Sequence[Finding] = ()
    # Whether the findings already say what is to be said about storages and wrappers, as those of joined files do.
    observed: bool = False
    metadata: Sequence[tuple[str, str]] = ()
    globals: Sequence[GlobalUse] = ()
    skipped: Sequence[str] = ()
    parts: Sequence[Part] = ()
    code: Sequence[SourceText] = ()


def finished(source: ByteSource, content: FileContent, *, name: str = "", nbytes: int | None = None) -> Checkpoint:
    """The checkpoint, its findings worst first. name, nbytes: of the file, where source is more or less than it."""
    shown = name or source.name
    states = content.states
    if states is None:
        states = find_state_dicts(content.groups, optimizers=content.optimizers, tensors=content.tensors)
    findings = list(content.findings)
    if not content.observed:
        findings += observe_storages(content.tensors, content.storages, shown)
        findings += observe_wrappers(states)
        findings += observe_names(content.tensors, content.format)
    return Checkpoint(
        origin=Origin(name=shown, nbytes=source.size if nbytes is None else nbytes),
        format=content.format,
        format_says=content.format_says,
        root=content.root,
        tensors=(*content.tensors, *content.inner),
        storages=dict(content.storages),
        state_dicts=tuple(states),
        metadata=tuple(content.metadata),
        globals=tuple(content.globals),
        findings=ranked(findings),
        skipped=tuple(content.skipped),
        parts=tuple(content.parts),
        code=tuple(content.code),
        source=source,
    )


def with_findings(
    checkpoint: Checkpoint, before: Iterable[Finding] = (), *, behind: Iterable[Finding] = ()
) -> Checkpoint:
    """The checkpoint with more findings, before or behind its own of the same severity."""
    return replace(checkpoint, findings=ranked((*before, *checkpoint.findings, *behind)))
