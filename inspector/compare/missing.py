"""What a file lacks that it should hold: it must not look like another model.

A shard that the index names and nobody finds, or a file that ends too early, is a download to be done again and no
difference between two models.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.checkpoint.types import Checkpoint

#: Ids of the readers' findings that say so.
KINDS = frozenset(
    (
        "cut-short",
        "damaged-directory",
        "missing-shard",
        "shard-gap",
        "unreadable-shard",
        "not-in-shards",
        "storage-missing",
        "storage-size",
        "missing-data-file",
        "chunks-missing",
        "external-data-missing",
        "broken-pickle",
        "broken-member",
        "unreadable-items",
    )
)


def what_is_missing(checkpoint: Checkpoint, which: str) -> Iterator[str]:
    """A sentence for each thing. which: "first" or "second"."""
    for finding in checkpoint.findings:
        if finding.id in KINDS:
            named = [name for name in finding.subjects if name not in finding.says] if finding.subjects else []
            more = f" ({', '.join(named[:3])}{' ...' if len(named) > 3 else ''})" if named else ""
            yield f"The {which} file is not whole: {finding.says}{more}"
