"""Kinds of finding about what a file holds that several formats can give."""

from __future__ import annotations

from inspector.findings import Finding, FindingKind, Severity
from inspector.units import human_bytes

AMBIGUOUS_ARCHIVE = FindingKind(
    "ambiguous-archive", Severity.WARNING, "Programs may read different content from the archive"
)
DATA_OVERLAPS = FindingKind(
    "data-overlaps", Severity.ERROR, "Tensors lie on top of each other", also=(Severity.WARNING,)
)
TRAILING_DATA = FindingKind(
    "trailing-data", Severity.NOTICE, "Data behind the end of the content", also=(Severity.WARNING,)
)
UNNAMED_TENSORS = FindingKind("unnamed-tensors", Severity.INFO, "Tensors without names")
UNREADABLE_ITEMS = FindingKind("unreadable-items", Severity.ERROR, "Parts cannot be read")
UNUSABLE_ENTRY = FindingKind("unusable-entry", Severity.ERROR, "Entries that make no tensor")


def trailing_data(nbytes: int, behind: str, remedy: str) -> Finding:
    """behind: what comes before the bytes that nothing reads ("the last tensor")."""
    return TRAILING_DATA.found(
        f"{human_bytes(nbytes)} lie behind {behind}.", evidence=(("nbytes", nbytes),), remedy=remedy
    )


def unnamed_tensors(says: str, tensors: int) -> Finding:
    """A file that is an array or a list of tensors. says: which."""
    return UNNAMED_TENSORS.found(
        says, evidence=(("tensors", tensors),), remedy="Nothing is wrong with it; it just is no model."
    )
