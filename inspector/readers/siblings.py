"""What lies around a file that was opened by itself: evidence beside it, and the shards that it is one of."""

from __future__ import annotations

import os

from inspector.checkpoint.source import PathSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import ReadError
from inspector.findings import FindingKind, Severity
from inspector.readers.entry import Peek
from inspector.readers.finish import with_findings
from inspector.readers.sidecars import add_evidence
from inspector.units import counted

ONE_SHARD = FindingKind("one-shard", Severity.WARNING, "One shard of several")


def look_around(checkpoint: Checkpoint, peek: Peek) -> Checkpoint:
    """The checkpoint with what its place says about it. Only names are looked up, one by one: the folder may be one
    of downloads with anything in it. Raises nothing but what the operating system does."""
    own = os.path.basename(peek.source.path) if isinstance(peek.source, PathSource) else peek.source.name
    checkpoint = _say_shard(checkpoint, peek, own)
    if peek.folder is None:
        return checkpoint
    if own.startswith("adapter_model."):
        from inspector.readers.folders.peft.reader import CONFIG, FILES, adapter_beside

        if own in FILES and peek.folder.size_of(CONFIG) is not None:
            checkpoint = adapter_beside(checkpoint, peek.folder)
    return add_evidence(checkpoint, peek.folder, peek.limits, own=own)


def _say_shard(checkpoint: Checkpoint, peek: Peek, own: str) -> Checkpoint:
    """The finding that a file is one of several, by its name."""
    if "-of-" not in own:
        return checkpoint
    from inspector.readers.folders.sharded.layout import shard_name

    name = shard_name(own)
    if name is None or name.count < 2:
        return checkpoint
    index = f"{name.stem}{name.ending}.index.json"
    beside = peek.folder is not None and _there(peek, index)
    finding = ONE_SHARD.found(
        f"By its name this is shard {name.number} of {name.count} of {name.stem[:100]}{name.ending}: "
        f"{counted(len(checkpoint.tensors), 'tensor')}, not the whole model.",
        evidence=(("number", name.number), ("count", name.count)),
        remedy=f"Open {index[:120]} beside it, or the folder: that opens all shards as one."
        if beside
        else "Open the folder with all its shards, or a zip or tar of them.",
    )
    return with_findings(checkpoint, [finding])


def _there(peek: Peek, name: str) -> bool:
    try:
        return peek.folder is not None and peek.folder.size_of(name) is not None
    except ReadError:
        return False
