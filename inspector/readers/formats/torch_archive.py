"""What the archives of torch.save, TorchScript and torch.package have in common: members, pickles, storages.

`<stem>/data.pkl` names storages, `<stem>/data/<key>` is one member per storage. Source: torch/serialization.py,
caffe2/serialize/inline_container.cc.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from inspector.checkpoint.source import BufferSource, ByteSource, is_distant
from inspector.checkpoint.types import Storage
from inspector.errors import CorruptFile, LimitExceeded, ReadError
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import Directory, find_member
from inspector.readers.archives.zip_doubts import member_doubts
from inspector.readers.archives.zip_members import Member, calculated_offsets, payload_heads, payload_offsets
from inspector.readers.assemble import Unpickled, unpickle, unpickle_bytes
from inspector.readers.checks.contents import AMBIGUOUS_ARCHIVE, trailing_data
from inspector.readers.checks.storage_findings import missing_storages, wrong_sizes
from inspector.readers.checks.torch_words import missing_record, wrong_record
from inspector.readers.unpickle.machine.machine import Outcome
from inspector.readers.unpickle.nested.hidden_pickles import (
    Head,
    Hidden,
    names_of,
    search_behind,
    search_members,
    search_numbers,
)
from inspector.readers.unpickle.stand_ins import StorageRef
from inspector.units import counted, human_bytes

COMPRESSED_ARCHIVE = FindingKind("compressed-archive", Severity.INFO, "The archive is compressed")

_STORED, _DEFLATED = 0, 8
_SMALL_NBYTES = 1 << 20
_MOST_OTHERS = 8
# So many headers of members are looked at across a network, too.
_FEW = 2


def other_pickles(source: ByteSource, directory: Directory, main: Member, limits: Limits) -> list[tuple[str, Outcome]]:
    """Every other member that some reader may take for the main pickle: (where, outcome) each.

    torch's own choice among equal names depends on how its directory happens to be sorted (miniz, a heap sort and a
    binary search).
    """
    found: list[tuple[str, Outcome]] = []
    seen = {main.header_offset}
    for why, members in (("", directory.members), *directory.rivals):
        for member in members:
            if member.header_offset in seen or member.name.lower().rpartition("/")[2] != "data.pkl":
                continue
            seen.add(member.header_offset)
            if len(found) >= _MOST_OTHERS:
                return found
            where = f"{member.name[:80]} at byte {member.header_offset:,}{why and f', found {why}'}"
            try:
                found.append((where, unpickle_member(source, member, limits).outcome))
            except ReadError:
                continue  # It cannot be read by anybody; the main one is what counts.
    return found


def member_bytes(source: ByteSource, member: Member, limits: Limits, most: int | None = None) -> bytes:
    """A member's content, inflated within the limits."""
    (offset,) = payload_offsets(source, [member])
    if offset is None:
        raise CorruptFile(f"{source.name}: the local header of {member.name[:80]} is not where the directory says.")
    if member.method not in (_STORED, _DEFLATED):
        raise CorruptFile(
            f"{source.name}: {member.name[:80]} is compressed by method {member.method}, which torch cannot read."
        )
    if member.method == _STORED:
        return source.read(offset, member.packed_nbytes if most is None else min(most, member.packed_nbytes))
    raw = source.read(offset, member.packed_nbytes)
    cap = min(limits.inflated_nbytes, max(_SMALL_NBYTES, limits.inflation_ratio * max(1, member.packed_nbytes)))
    if most is not None:
        cap = min(cap, most)
    try:
        inflater = zlib.decompressobj(-15)
        data = inflater.decompress(raw, cap + 1)
    except zlib.error as error:
        raise CorruptFile(f"{source.name}: {member.name[:80]} cannot be inflated ({error}).") from error
    if len(data) > cap and most is None:
        raise LimitExceeded(
            f"{source.name}: {member.name[:80]} inflates from {human_bytes(member.packed_nbytes)} to more than "
            f"{human_bytes(cap)}.",
            hint="That is what a decompression bomb looks like; no real checkpoint compresses so well.",
        )
    return data[:cap]


def unpickle_member(source: ByteSource, member: Member, limits: Limits) -> Unpickled:
    if member.method != _STORED:
        return unpickle_bytes(member_bytes(source, member, limits), limits)
    (offset,) = payload_offsets(source, [member])
    if offset is None or offset > source.size:
        raise CorruptFile(f"{source.name}: the local header of {member.name[:80]} is not where the directory says.")
    return unpickle(source, offset, min(offset + member.packed_nbytes, source.size), limits)


def below(prefix: str | None, name: str) -> str:
    """A member's name in the archive's own folder; None where it has none, as only another program packs it."""
    return name if prefix is None else f"{prefix}/{name}"


def byte_order(source: ByteSource, directory: Directory, prefix: str | None, limits: Limits) -> bytes:
    member = find_member(directory, below(prefix, "byteorder"))
    return member_bytes(source, member, limits, most=16) if member else b"little"


def archive_storages(
    source: ByteSource,
    directory: Directory,
    prefix: str | None,
    pickle: Unpickled,
    big_endian: bool,
    folder: str = "data",
    heads: list[Head] | None = None,
    suffix: str = "",
) -> tuple[dict[str, Storage], list[Finding]]:
    """The member of each storage that a pickle names, by its key, and what is wrong with them.

    heads: collects the first bytes of each, for who looks for pickles among the numbers.
    folder: where they lie below the archive's own folder; TorchScript of 1.0 to 1.2 has them under tensors/.
    suffix: how their names end.
    """
    by_name: dict[str, Member] = {}
    for member in directory.members:
        by_name.setdefault(member.name.lower(), member)
    wanted: list[tuple[StorageRef, Member]] = []
    missing: list[str] = []
    made: dict[str, Storage] = {}
    inside, older = (below(prefix, f"{name}/").lower() for name in (folder, "tensors"))
    for ref in pickle.storages.values():
        own = f"{ref.key}{suffix}".lower()
        found = by_name.get(inside + own) or by_name.get(older + own)
        if found is None:
            missing.append(ref.key)
            made[ref.key] = Storage(
                id=ref.key, nbytes=ref.nbytes, present_nbytes=0, offset=None, device=ref.location or None
            )
        else:
            wanted.append((ref, found))
    members = [member for _, member in wanted]
    calculated = None
    if heads is not None and len(members) > _FEW and is_distant(source):
        calculated = calculated_offsets(directory.members, directory.start, members)
    starts = payload_heads(source, members) if calculated is None else [(offset, b"") for offset in calculated]
    wrong: list[tuple[str, int, int]] = []
    for (ref, member), (offset, head) in zip(wanted, starts, strict=True):
        if heads is not None and offset is not None and member.method == _STORED:
            heads.append((member.name, offset, member.packed_nbytes, head))
        declared = ref.nbytes
        if member.nbytes != declared or member.method not in (_STORED, _DEFLATED):
            wrong.append((ref.key, declared, member.nbytes))
        room = max(0, source.size - offset) if offset is not None else 0
        whole = member.packed_nbytes <= room
        if member.method == _DEFLATED:
            present = member.nbytes if whole else 0
        else:
            present = min(member.nbytes, room) if member.method == _STORED else 0
        made[ref.key] = Storage(
            id=ref.key,
            nbytes=declared,
            present_nbytes=min(declared, present),
            offset=offset,
            deflated_nbytes=member.packed_nbytes if member.method == _DEFLATED else None,
            device=ref.location or None,
            big_endian=big_endian,
        )
    return made, _storage_findings(missing, wrong)


def unsearched_heads(heads: Sequence[Head]) -> list[str]:
    """What is not examined of storages whose first bytes were not fetched, each from another place of a server."""
    many = sum(not head and nbytes > 1 for _, _, nbytes, head in heads)
    if many <= _FEW:
        return []
    return [
        f"The first bytes of {counted(many, 'storage')} were not searched for pickles, and where they begin was "
        "calculated as torch does it: looking takes a request to the server for each."
    ]


def _storage_findings(missing: list[str], wrong: list[tuple[str, int, int]]) -> list[Finding]:
    found = missing_storages(missing, "the archive", missing_record(missing[0][:40]) if missing else "")
    return found + wrong_sizes(wrong, wrong_record(wrong[0][1], wrong[0][2]) if wrong else "")


def archive_findings(
    source: ByteSource, directory: Directory, main: Member, candidates: Sequence[tuple[str, Outcome]] = ()
) -> list[Finding]:
    """What is odd about the archive itself. candidates: as `other_pickles` gives them."""
    found: list[Finding] = []
    doubts = [*directory.doubts, *member_doubts(source, directory, main)]
    if candidates and not doubts:
        doubts.append("it holds more than one data.pkl")
    if doubts:
        shown = f"; {counted(len(candidates), 'other candidate')} for the main pickle" if candidates else ""
        found.append(
            AMBIGUOUS_ARCHIVE.found(
                "torch and other tools may read different content from this archive: "
                f"{'; '.join(doubts[:4])}{shown}. Shown is {main.name[:80]} at byte {main.header_offset:,}; the "
                "names of every candidate are listed.",
                subjects=tuple(where for where, _ in candidates),
                evidence=(
                    ("doubts", len(doubts)),
                    *((f"doubt {n}", doubt) for n, doubt in enumerate(doubts[:20], 1)),
                    *((where, ", ".join(names_of(o))[:500] or "no names") for where, o in candidates),
                ),
                remedy="No ordinary program writes such an archive; do not trust another tool's scan of it.",
            )
        )
    if directory.trailing_nbytes:
        found.append(
            trailing_data(
                directory.trailing_nbytes,
                "the end of the archive",
                "torch.load finds no archive behind more than about 69 kB; cut it off.",
            )
        )
    if main.method == _DEFLATED:
        found.append(
            COMPRESSED_ARCHIVE.found(
                "The archive is compressed; torch.save never compresses, so it was packed by another program.",
                remedy="torch.load(mmap=True) cannot open it.",
            )
        )
    return found


# Beside data.pkl and the storages, what torch.save writes.
_USUAL = ("version", "byteorder", ".format_version", ".storage_alignment", ".data/serialization_id")


def search_archive(
    source: ByteSource, directory: Directory, main: Member, pickle: Unpickled, heads: Sequence[Head], limits: Limits
) -> Hidden:
    """Pickles that torch.load does not look at: behind the main one, in other members, in front of numbers."""
    top = main.name[: main.name.rfind("/") + 1]
    usual = {f"{top}{name}".lower() for name in _USUAL} | {name.lower() for name, _, _, _ in heads}
    pickles = {m.name.lower() for m in directory.members if m.name.lower().rpartition("/")[2] == "data.pkl"}
    found = search_members(source, directory.members, frozenset(usual | pickles), limits)
    if not pickle.outcome.broken:
        stream, stop = _stream(source, main, limits)
        found.add(search_behind(stream, pickle.outcome.end, stop, limits, "behind the main pickle"))
    found.add(search_numbers(source, heads, limits))
    return found


def _stream(source: ByteSource, member: Member, limits: Limits) -> tuple[ByteSource, int]:
    """Where a pickle that was followed lies, and where its member ends there."""
    if member.method != _STORED:
        data = member_bytes(source, member, limits)
        return BufferSource(data), len(data)
    (offset,) = payload_offsets(source, [member])
    return source, min((offset or 0) + member.packed_nbytes, source.size)
