"""Storages that a pickle names and the file lacks, or has in another size. One wording for every format."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.findings import Finding, FindingKind, Severity
from inspector.units import counted

STORAGE_MISSING = FindingKind("storage-missing", Severity.ERROR, "Storages are missing")
STORAGE_SIZE = FindingKind("storage-size", Severity.ERROR, "Storages do not have their declared size")

_LISTED = 20


def missing_storages(keys: Sequence[str], where: str, torch_says: str = "") -> list[Finding]:
    """where: the place that lacks them ("the archive", "the list of storages"). torch_says: the loader's words."""
    if not keys:
        return []
    return [
        STORAGE_MISSING.found(
            f"{counted(len(keys), 'storage')} named by the pickle {'is' if len(keys) == 1 else 'are'} not in "
            f"{where}, first {keys[0][:40]}.",
            subjects=tuple(key[:200] for key in keys[:_LISTED]),
            evidence=(("storages", len(keys)), *((("error", torch_says),) if torch_says else ())),
            remedy="Those tensors have no numbers; get the file again from its source.",
        )
    ]


def wrong_sizes(sizes: Sequence[tuple[str, int, int]], torch_says: str) -> list[Finding]:
    """sizes: (key, bytes that the pickle declares, bytes that the file holds) of each storage that does not fit."""
    if not sizes:
        return []
    key, declared, held = sizes[0]
    return [
        STORAGE_SIZE.found(
            f"{counted(len(sizes), 'storage')} {'does' if len(sizes) == 1 else 'do'} not have the size that the "
            f"pickle declares: storage {key[:40]} declares {declared:,} bytes, the file holds {held:,}.",
            subjects=tuple(key[:200] for key, _, _ in sizes[:_LISTED]),
            evidence=(
                ("storages", len(sizes)),
                ("declared_nbytes", declared),
                ("held_nbytes", held),
                ("error", torch_says),
            ),
            remedy="torch.load refuses it, archives since 2.10; earlier versions read beyond the member. "
            "Get the file again from its source.",
        )
    ]
