"""What a file lacks that it should hold: it must not look like another model.

A shard that the index names and nobody finds, or a file that ends too early, is a download to be done again and no
difference between two models.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.checkpoint.types import Checkpoint
from inspector.readers import assemble
from inspector.readers.checks import contents, storage_findings, truncation
from inspector.readers.folders.dcp import findings as dcp
from inspector.readers.folders.sharded import checks as sharded
from inspector.readers.formats import torch_tar
from inspector.readers.formats.onnx import file as onnx

_KINDS = frozenset(
    kind.id
    for kind in (
        truncation.CUT_SHORT,
        truncation.DAMAGED_DIRECTORY,
        sharded.MISSING_SHARD,
        sharded.SHARD_GAP,
        sharded.UNREADABLE_SHARD,
        sharded.NOT_IN_SHARDS,
        storage_findings.STORAGE_MISSING,
        storage_findings.STORAGE_SIZE,
        dcp.MISSING_DATA_FILE,
        dcp.CHUNKS_MISSING,
        onnx.EXTERNAL_DATA_MISSING,
        assemble.BROKEN_PICKLE,
        torch_tar.BROKEN_MEMBER,
        contents.UNREADABLE_ITEMS,
    )
)


def what_is_missing(checkpoint: Checkpoint, which: str) -> Iterator[str]:
    """A sentence for each thing. which: "first" or "second"."""
    for finding in checkpoint.findings:
        if finding.id in _KINDS:
            named = [name for name in finding.subjects if name not in finding.says] if finding.subjects else []
            more = f" ({', '.join(named[:3])}{' ...' if len(named) > 3 else ''})" if named else ""
            yield f"The {which} file is not whole: {finding.says}{more}"
