"""Exports: written, read back and compared here, into a folder of the store that nobody can download from yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.architectures.types import Target
from inspector.checkpoint.types import StateDict
from inspector.exports.convert import export_as_is
from inspector.exports.export import export_repaired
from inspector.exports.merge import merge_adapter
from inspector.exports.report import ExportReport
from inspector.jobs.bench import Bench
from inspector.jobs.kinds.files import checkpoint_of, state_of
from inspector.jobs.kinds.reports import compared
from inspector.jobs.subjects import Destination, FileRef, Held
from inspector.keys.report import RepairPlan


def repaired(
    bench: Bench,
    file: FileRef,
    plan: RepairPlan,
    target: Target,
    destination: Destination,
    optimizer: bool,
    groups_by_kind: bool,
    held: Held,
) -> ExportReport:
    """A plan applied."""
    checkpoint = checkpoint_of(bench, file)
    bench.need(min(2 * checkpoint.origin.nbytes, bench.settings.memory_nbytes // 2))
    return export_repaired(
        checkpoint,
        plan,
        target,
        destination.place,
        optimizer=optimizer,
        groups_by_kind=groups_by_kind,
        compared=compared(bench, held),
        progress=bench.progress,
        **_how(destination),
    )


def as_is(
    bench: Bench, file: FileRef, state: StateDict, destination: Destination, salvage: bool, without_broken: bool
) -> ExportReport:
    """Tensors under the names they have in `state`, which may be a part of the file's."""
    return export_as_is(
        checkpoint_of(bench, file),
        state,
        destination.place,
        salvage=salvage,
        without_broken=without_broken,
        progress=bench.progress,
        **_how(destination),
    )


def merged(
    bench: Bench, file: FileRef, adapter: FileRef, config: Mapping[str, object], destination: Destination
) -> ExportReport:
    """An adapter merged into its base."""
    base = checkpoint_of(bench, file)
    return merge_adapter(
        base,
        checkpoint_of(bench, adapter),
        config,
        destination.place,
        state=state_of(base, file),
        progress=bench.progress,
        **_how(destination),
    )


def _how(destination: Destination) -> dict[str, Any]:
    return {
        "writer": destination.writer,
        "dtype": destination.dtype or None,
        "shard_nbytes": destination.shard_nbytes,
    }
