"""What is wrong with a torch.distributed.checkpoint folder: files, chunks and places that do not fit each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.coverage import Coverage
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.checks.contents import UNREADABLE_ITEMS, UNUSABLE_ENTRY
from inspector.readers.checks.truncation import CUT_SHORT
from inspector.readers.folders.dcp.metadata import Contents, TensorEntry
from inspector.units import counted, human_share

MISSING_DATA_FILE = FindingKind("missing-data-file", Severity.ERROR, "Data files are missing")
OUTSIDE_PATH = FindingKind("outside-path", Severity.ERROR, "The metadata leads outside the folder")
CHUNKS_MISSING = FindingKind("chunks-missing", Severity.ERROR, "Chunks do not fill their tensor")
CHUNKS_OVERLAP = FindingKind("chunks-overlap", Severity.WARNING, "Chunks of a tensor overlap")
TRANSFORMED_CHUNKS = FindingKind("transformed-chunks", Severity.WARNING, "Chunks are packed by an extension")
UNKNOWN_VERSION = FindingKind("unknown-version", Severity.NOTICE, "The metadata is of an unknown version")
UNUSED_FILES = FindingKind("unused-files", Severity.NOTICE, "Data files that no entry names")

_KNOWN_VERSIONS = frozenset({"1.0.0"})
_LISTED = 20
_AGAIN = "Copy the whole folder again; the tensors that are whole can be read."


@dataclass(slots=True)
class Losses:
    """Collected while a folder is read. lost: share of each tensor that cannot be read; gaps, doubled: elements of
    each tensor in no chunk, and in several."""

    missing_files: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    cut: list[tuple[str, int, int]] = field(default_factory=list)
    transformed: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    unplaced: int = 0
    lost: dict[str, float] = field(default_factory=dict)
    gaps: dict[str, tuple[int, int]] = field(default_factory=dict)
    doubled: dict[str, int] = field(default_factory=dict)

    def add(self, entry: TensorEntry, listed: Coverage, there: Coverage) -> None:
        """listed: what all its chunks cover. there: what those cover that can be read."""
        numel = math.prod(entry.shape)
        if there.missing > listed.missing:
            self.lost[entry.name] = (there.missing - listed.missing) / numel
        if listed.missing:
            self.gaps[entry.name] = (listed.missing, numel)
        if listed.doubled:
            self.doubled[entry.name] = listed.doubled


def observe(contents: Contents, losses: Losses, unused: Sequence[str]) -> list[Finding]:
    """Every finding about the folder as a whole."""
    found = [
        _missing(losses),
        _cut(losses),
        _outside(losses),
        _gaps(losses),
        _doubled(losses),
        _unreadable(losses),
        _transformed(losses),
        _unusable(contents, losses),
        _version(contents),
        _unused(unused),
    ]
    return [finding for finding in found if finding is not None]


def _lost(losses: Losses) -> tuple[str, tuple[str, ...], tuple[tuple[str, float], ...]]:
    """(sentence part, names, evidence) of the tensors that lose something, the worst first."""
    worst = sorted(losses.lost.items(), key=lambda item: -item[1])
    if not worst:
        return "No tensor loses anything.", (), ()
    name, share = worst[0]
    says = f"{counted(len(worst), 'tensor loses', 'tensors lose')} elements, most {name[:80]}: {human_share(share)}."
    return says, tuple(n[:200] for n, _ in worst[:_LISTED]), tuple((f"lost of {n[:80]}", s) for n, s in worst[:_LISTED])


def _missing(losses: Losses) -> Finding | None:
    if not losses.missing_files:
        return None
    says, names, shares = _lost(losses)
    n = len(losses.missing_files)
    return MISSING_DATA_FILE.found(
        f"{counted(n, 'data file is', 'data files are')} missing, first {losses.missing_files[0][:80]}. {says}",
        subjects=names,
        evidence=(("files", n), ("tensors", len(losses.lost)), *shares),
        remedy=_AGAIN,
    )


def _cut(losses: Losses) -> Finding | None:
    if not losses.cut:
        return None
    says, names, shares = _lost(losses)
    file, end, size = losses.cut[0]
    return CUT_SHORT.found(
        f"{counted(len(losses.cut), 'item reaches', 'items reach')} behind the end of their file: "
        f"{file[:80]} has {size:,} bytes, byte {end:,} is needed. {says}",
        subjects=names,
        evidence=(("items", len(losses.cut)), ("needed", end), ("nbytes", size), *shares),
        remedy=_AGAIN,
    )


def _outside(losses: Losses) -> Finding | None:
    if not losses.outside:
        return None
    return OUTSIDE_PATH.found(
        f"{counted(len(losses.outside), 'place')} in the .metadata would lead outside the folder, first "
        f"{losses.outside[0][:80]!r}. It was not followed.",
        subjects=tuple(losses.outside[:_LISTED]),
        evidence=(("places", len(losses.outside)),),
        remedy="torch would open that file. No ordinary program writes such a place; do not load this folder.",
    )


def _gaps(losses: Losses) -> Finding | None:
    if not losses.gaps:
        return None
    name, (missing, numel) = next(iter(losses.gaps.items()))
    return CHUNKS_MISSING.found(
        f"The chunks of {counted(len(losses.gaps), 'tensor')} do not fill their size: {name[:80]} lacks "
        f"{missing:,} of {numel:,} elements ({human_share(missing / numel)}).",
        subjects=tuple(n[:200] for n in list(losses.gaps)[:_LISTED]),
        evidence=(("tensors", len(losses.gaps)), ("missing", missing), ("numel", numel)),
        remedy="The metadata of a rank is missing, or the folder was made by hand. torch refuses it.",
    )


def _doubled(losses: Losses) -> Finding | None:
    if not losses.doubled:
        return None
    name, doubled = next(iter(losses.doubled.items()))
    return CHUNKS_OVERLAP.found(
        f"Chunks of {counted(len(losses.doubled), 'tensor')} overlap: {name[:80]} has {doubled:,} elements "
        "more than once. The later chunk is shown.",
        subjects=tuple(n[:200] for n in list(losses.doubled)[:_LISTED]),
        evidence=(("tensors", len(losses.doubled)), ("elements", doubled)),
        remedy="If the chunks differ, nobody can tell which one counts. Save it again from its source.",
    )


def _unreadable(losses: Losses) -> Finding | None:
    if not losses.unreadable:
        return None
    return UNREADABLE_ITEMS.found(
        f"{counted(len(losses.unreadable), 'item')} of the data files cannot be read as announced: "
        f"{losses.unreadable[0][:300]}.",
        subjects=tuple(text.partition(": ")[0] for text in losses.unreadable[:_LISTED]),
        evidence=(("items", len(losses.unreadable)),),
        remedy=_AGAIN,
    )


def _transformed(losses: Losses) -> Finding | None:
    if not losses.transformed:
        return None
    name, how = losses.transformed[0]
    return TRANSFORMED_CHUNKS.found(
        f"{counted(len(losses.transformed), 'item is', 'items are')} packed by an extension ({how[:80]}), first "
        f"{name[:80]}; they are listed, but not read here.",
        subjects=tuple(n[:200] for n, _ in losses.transformed[:_LISTED]),
        evidence=(("items", len(losses.transformed)), ("extension", how[:80])),
        remedy="Load it with torch.distributed.checkpoint and that extension, and save it without.",
    )


def _unusable(contents: Contents, losses: Losses) -> Finding | None:
    n = len(contents.unusable) + contents.strange + losses.unplaced
    if not n:
        return None
    first = (
        contents.unusable[0]
        if contents.unusable
        else "a chunk is listed, but the metadata does not say where it lies"
        if losses.unplaced
        else "a place has no file, offset or length"
    )
    return UNUSABLE_ENTRY.found(
        f"{counted(n, 'entry', 'entries')} of the .metadata cannot be used: {first}.",
        subjects=tuple(text.partition(": ")[0] for text in contents.unusable[:_LISTED]),
        evidence=(("entries", n),),
        remedy="The metadata was damaged or made by hand. Get it again from its source.",
    )


def _version(contents: Contents) -> Finding | None:
    unknown = sorted(contents.versions - _KNOWN_VERSIONS)
    if not unknown:
        return None
    return UNKNOWN_VERSION.found(
        f"The .metadata is of version {unknown[0]!r}; known here is 1.0.0. It was read as if it were that.",
        evidence=(("version", unknown[0]),),
        remedy="Compare a tensor with what your torch loads.",
    )


def _unused(unused: Sequence[str]) -> Finding | None:
    if not unused:
        return None
    return UNUSED_FILES.found(
        f"No entry names {counted(len(unused), 'data file')} of the folder, first {unused[0][:80]}.",
        subjects=tuple(name[:200] for name in unused[:_LISTED]),
        evidence=(("files", len(unused)),),
        remedy="They may be left over from another save into the same folder.",
    )
