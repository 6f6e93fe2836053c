"""What is wrong with a sharded checkpoint: every tensor of the index looked for in every file, with the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.errors import ReadError
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.folder import Folder
from inspector.readers.folders.sharded.layout import ShardIndex, families, gaps, shard_name
from inspector.units import counted

NO_INDEX = FindingKind("no-index", Severity.WARNING, "Shards without an index")
SHARD_FORMAT = FindingKind("shard-format", Severity.WARNING, "A shard is of another format than its ending says")
DUPLICATE_TENSOR = FindingKind("duplicate-tensor", Severity.WARNING, "A tensor is in several shards")
TOTAL_SIZE = FindingKind("total-size", Severity.WARNING, "The index tells another total size")
STRAY_SHARD = FindingKind("stray-shard", Severity.WARNING, "Shards that the index does not name")
SHARD_COUNTS = FindingKind("shard-counts", Severity.WARNING, "Names of shards announce different counts")
WRONG_SHARD = FindingKind("wrong-shard", Severity.ERROR, "Tensors are in another shard than the index says")
SHARD_GAP = FindingKind("shard-gap", Severity.ERROR, "Numbers of shards are missing")
MISSING_SHARD = FindingKind("missing-shard", Severity.ERROR, "Shards are missing")
SHARD_OUTSIDE = FindingKind("shard-outside", Severity.ERROR, "The index names a file outside the folder")
UNREADABLE_SHARD = FindingKind("unreadable-shard", Severity.ERROR, "Shards cannot be read")
NOT_IN_SHARDS = FindingKind("not-in-shards", Severity.ERROR, "Tensors of the index that no shard holds")
NOT_IN_INDEX = FindingKind("not-in-index", Severity.WARNING, "Tensors that the index does not name")
INDEX_NAMES_TWICE = FindingKind("index-names-twice", Severity.WARNING, "The index names a tensor twice")
INDEX_ENTRY = FindingKind("index-entry", Severity.WARNING, "An entry of the index names no file")

_LISTED = 20


@dataclass(slots=True)
class Shards:
    """The files of a sharded checkpoint.

    opened: (path, what is in it). missing, outside: named by the index but not there, or by a name that leads outside;
    with how many tensors it puts there. unreadable: path -> why. holders: tensor -> numbers of the opened files that
    hold it.
    """

    opened: list[tuple[str, Checkpoint]] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, ReadError] = field(default_factory=dict)
    holders: dict[str, list[int]] = field(default_factory=dict)


def observe_shards(shards: Shards, index: ShardIndex, folder: Folder, tensors: Sequence[TensorInfo]) -> list[Finding]:
    """Every finding about the files together. tensors: all, with their storages among all."""
    found = [*_lost(shards, index), *_gaps(index, folder), *_formats(shards)]
    if index.name:
        found += [*_disagreements(shards, index), *_sizes(shards, index, tensors), *_strays(index, folder)]
    else:
        found.append(_no_index(shards))
    found += _duplicates(shards, index)
    return found


def _names(names: Sequence[str], most: int = 2) -> str:
    return ", ".join(name[:100] for name in names[:most]) + (" …" if len(names) > most else "")


def _lost(shards: Shards, index: ShardIndex) -> list[Finding]:
    found: list[Finding] = []
    for files, kind, what in (
        (list(shards.missing), MISSING_SHARD, "missing"),
        (list(shards.outside), SHARD_OUTSIDE, "named by a path that leads outside the folder, and not opened"),
        (list(shards.unreadable), UNREADABLE_SHARD, "unreadable"),
    ):
        if not files:
            continue
        gone = [key for key, file in index.weight_map.items() if file in set(files) and key not in shards.holders]
        whole = counted(len(index.weight_map), "tensor")
        share = f", and with {'it' if len(files) == 1 else 'them'} {len(gone):,} of {whole}" if index.name else ""
        why = f" ({shards.unreadable[files[0]].says[:200].rstrip('.')})" if kind is UNREADABLE_SHARD else ""
        found.append(
            kind.found(
                f"{counted(len(files), 'shard')} {'is' if len(files) == 1 else 'are'} {what}: {_names(files)}{why}"
                f"{share}{f', first {gone[0][:100]}' if gone else ''}.",
                subjects=tuple(gone[:_LISTED]),
                evidence=(("shards", len(files)), ("tensors", len(gone)), ("first", files[0][:200])),
                remedy="Put the missing files beside the others; what is there is shown and can be converted."
                if kind is not SHARD_OUTSIDE
                else "No program writes such an index; do not let another program follow it.",
            )
        )
    return found


def _gaps(index: ShardIndex, folder: Folder) -> list[Finding]:
    """Numbers that the names of the shards announce and no file has, beside what the index says."""
    there = set(folder.top()) | {file for file in index.files if folder.size_of(file) is not None}
    named = {name.family for file in index.files if (name := shard_name(file)) is not None}
    found: list[Finding] = []
    counts = {family[1] for family in named}
    if len(counts) > 1:
        found.append(
            SHARD_COUNTS.found(
                f"The names of the shards announce different counts: {', '.join(map(str, sorted(counts)[:6]))}.",
                evidence=(("counts", len(counts)),),
                remedy="Two savings may be mixed in this folder; compare the dates of the files.",
            )
        )
    for family, numbers in families(there).items():
        missing, first = gaps(numbers, family[1])
        if family in named and missing:
            found.append(
                SHARD_GAP.found(
                    f"The names count to {family[1]:,}, but {counted(missing, 'shard')} of them "
                    f"{'is' if missing == 1 else 'are'} not there: number {', '.join(map(str, first[:6]))}"
                    f"{' …' if missing > 6 else ''}.",
                    evidence=(("announced", family[1]), ("missing", missing)),
                    remedy="Get the missing files from where the others came from.",
                )
            )
    return found


def _formats(shards: Shards) -> list[Finding]:
    wrong = [
        (path, checkpoint.format_says)
        for path, checkpoint in shards.opened
        if path.lower().endswith(".safetensors") != (checkpoint.format == "safetensors")
    ]
    if not wrong:
        return []
    return [
        SHARD_FORMAT.found(
            f"{counted(len(wrong), 'shard')} {'is' if len(wrong) == 1 else 'are'} of another format than the "
            f"ending says: {wrong[0][0][:100]} is a {wrong[0][1]}.",
            subjects=tuple(path for path, _ in wrong[:_LISTED]),
            evidence=(("shards", len(wrong)),),
            remedy="Loaders choose by the ending and fail on it; convert it to the format that it names.",
        )
    ]


def _disagreements(shards: Shards, index: ShardIndex) -> list[Finding]:
    opened = {path: number for number, (path, _) in enumerate(shards.opened)}
    wrong: list[tuple[str, str, str]] = []
    absent: list[str] = []
    for key, file in index.weight_map.items():
        holders = shards.holders.get(key)
        if holders is None:
            if file in opened:
                absent.append(key)
        elif opened.get(file, -1) not in holders:
            wrong.append((key, file, shards.opened[holders[0]][0]))
    unnamed = [key for key in shards.holders if key not in index.weight_map]
    found = _in_wrong_shard(wrong)
    for keys, kind, what, remedy in (
        (
            absent,
            NOT_IN_SHARDS,
            "named by the index, but in no shard",
            "A model loaded from this starts with random numbers there. Get the files again from their source.",
        ),
        (
            unnamed,
            NOT_IN_INDEX,
            "in the shards, but not in the index",
            "A loader that goes by the index leaves them out. They are shown here.",
        ),
        (
            list(index.twice),
            INDEX_NAMES_TWICE,
            "named twice by the index; the last one counts",
            "Write the index again.",
        ),
        (
            list(index.unusable),
            INDEX_ENTRY,
            "given no file name by the index",
            "Write the index again.",
        ),
    ):
        if keys:
            found.append(
                kind.found(
                    f"{counted(len(keys), 'tensor')} {'is' if len(keys) == 1 else 'are'} {what}: {_names(keys)}.",
                    subjects=tuple(key[:200] for key in keys[:_LISTED]),
                    evidence=(("tensors", len(keys)),),
                    remedy=remedy,
                )
            )
    return found


def _in_wrong_shard(wrong: Sequence[tuple[str, str, str]]) -> list[Finding]:
    """wrong: (key, the shard that the index names, the one that holds it) each."""
    if not wrong:
        return []
    key, named, real = wrong[0]
    return [
        WRONG_SHARD.found(
            f"{counted(len(wrong), 'tensor')} {'is' if len(wrong) == 1 else 'are'} in another shard than the "
            f"index says: {key[:100]} is in {real[:100]}, the index says {named[:100]}.",
            subjects=tuple(key for key, _, _ in wrong[:_LISTED]),
            evidence=(("tensors", len(wrong)),),
            remedy="A loader that goes by the index does not find them; write the index again. Shown is what the "
            "files hold.",
        )
    ]


def _duplicates(shards: Shards, index: ShardIndex) -> list[Finding]:
    twice = {key: numbers for key, numbers in shards.holders.items() if len(numbers) > 1}
    if not twice:
        return []
    key, numbers = next(iter(twice.items()))
    places = [shards.opened[number][0] for number in numbers]
    return [
        DUPLICATE_TENSOR.found(
            f"{counted(len(twice), 'tensor')} {'is' if len(twice) == 1 else 'are'} in more than one shard: "
            f"{key[:100]} in {_names(places, 3)}. Shown is the one "
            f"{'that the index names' if index.name else 'in the first'}.",
            subjects=tuple(list(twice)[:_LISTED]),
            evidence=(("tensors", len(twice)),),
            remedy="Loaders read the shards one after the other, so that the last wins there.",
        )
    ]


def _sizes(shards: Shards, index: ShardIndex, tensors: Sequence[TensorInfo]) -> list[Finding]:
    """total_size against the sum of all tensors; tied ones are counted once by some writers and twice by others."""
    told = index.total_nbytes
    if told is None or shards.missing or shards.outside or shards.unreadable:
        return []
    real = sum(t.nbytes for t in tensors)
    once = sum({(t.storage_id, t.offset, t.shape): t.nbytes for t in tensors}.values())
    if told in (real, once):
        return []
    return [
        TOTAL_SIZE.found(
            f"The index says {told:,} bytes in all; the tensors in the shards have {real:,} "
            f"({abs(real - told):,} {'more' if real > told else 'fewer'}).",
            evidence=(("told_nbytes", told), ("real_nbytes", real)),
            remedy="The index belongs to another saving, or was edited; loaders use the number only to plan memory.",
        )
    ]


def _strays(index: ShardIndex, folder: Folder) -> list[Finding]:
    """Shards of the same kind beside those that the index names."""
    endings = {name.ending for file in index.files if (name := shard_name(file)) is not None}
    stray = [
        path
        for path in folder.top()
        if path not in index.files and (name := shard_name(path)) is not None and name.ending in endings
    ]
    if not stray:
        return []
    return [
        STRAY_SHARD.found(
            f"{counted(len(stray), 'shard')} in the folder {'is' if len(stray) == 1 else 'are'} not named by "
            f"{index.name}: {_names(stray)}.",
            subjects=tuple(stray[:_LISTED]),
            evidence=(("shards", len(stray)),),
            remedy="They may be left from an earlier saving; they were not opened.",
        )
    ]


def _no_index(shards: Shards) -> Finding:
    return NO_INDEX.found(
        f"{counted(len(shards.opened), 'shard')} without an index.json; they were put together by their names.",
        evidence=(("shards", len(shards.opened)),),
        remedy="Loaders need the index: get it from where the shards came from.",
    )
