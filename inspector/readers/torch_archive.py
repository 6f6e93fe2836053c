"""What the archives of torch.save, TorchScript and torch.package have in common: members, pickles, storages.

`<stem>/data.pkl` names storages, `<stem>/data/<key>` is one member per storage. Source: torch/serialization.py,
caffe2/serialize/inline_container.cc.
"""

from __future__ import annotations

import zlib

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Storage
from inspector.errors import CorruptFile, LimitExceeded, ReadError
from inspector.findings import Finding, Severity
from inspector.limits import Limits
from inspector.readers.assemble import Unpickled, unpickle, unpickle_bytes
from inspector.readers.storage_findings import missing_storages, wrong_sizes
from inspector.readers.torch_words import missing_record, wrong_record
from inspector.readers.unpickle.machine import Outcome
from inspector.readers.unpickle.stand_ins import StorageRef
from inspector.readers.zip_directory import Directory, Member, find_member, payload_offsets
from inspector.units import human_bytes

_STORED, _DEFLATED = 0, 8
_SMALL_NBYTES = 1 << 20
_MOST_OTHERS = 8


def other_pickles(source: ByteSource, directory: Directory, main: Member, limits: Limits) -> list[Outcome]:
    """Every other member that some reader may take for the main pickle; torch's own choice among equal names depends
    on how its directory happens to be sorted (miniz, a heap sort and a binary search)."""
    found: list[Outcome] = []
    for member in directory.members:
        if member is main or member.name.lower().rpartition("/")[2] != "data.pkl" or len(found) >= _MOST_OTHERS:
            continue
        try:
            found.append(unpickle_member(source, member, limits).outcome)
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


def byte_order(source: ByteSource, directory: Directory, prefix: str, limits: Limits) -> bytes:
    member = find_member(directory, f"{prefix}/byteorder")
    return member_bytes(source, member, limits, most=16) if member else b"little"


def archive_storages(
    source: ByteSource,
    directory: Directory,
    prefix: str,
    pickle: Unpickled,
    big_endian: bool,
    folder: str = "data",
    suffix: str = "",
) -> tuple[dict[str, Storage], list[Finding]]:
    """The member of each storage that a pickle names, by its key, and what is wrong with them.

    folder: where they lie below the archive's own folder; TorchScript of 1.0 to 1.2 has them under tensors/.
    suffix: how their names end.
    """
    by_name: dict[str, Member] = {}
    for member in directory.members:
        by_name.setdefault(member.name.lower(), member)
    wanted: list[tuple[StorageRef, Member]] = []
    missing: list[str] = []
    made: dict[str, Storage] = {}
    for ref in pickle.storages.values():
        places = (f"{prefix}/{where}/{ref.key}{suffix}".lower() for where in (folder, "tensors"))
        found = next((by_name[place] for place in places if place in by_name), None)
        if found is None:
            missing.append(ref.key)
            made[ref.key] = Storage(
                id=ref.key, nbytes=ref.nbytes, present_nbytes=0, offset=None, device=ref.location or None
            )
        else:
            wanted.append((ref, found))
    offsets = payload_offsets(source, [m for _, m in wanted])
    wrong: list[tuple[str, int, int]] = []
    for (ref, member), offset in zip(wanted, offsets, strict=True):
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


def _storage_findings(missing: list[str], wrong: list[tuple[str, int, int]]) -> list[Finding]:
    found = missing_storages(missing, "the archive", missing_record(missing[0][:40]) if missing else "")
    return found + wrong_sizes(wrong, wrong_record(wrong[0][1], wrong[0][2]) if wrong else "")


def archive_findings(source: ByteSource, directory: Directory, main: Member) -> list[Finding]:
    found: list[Finding] = []
    if directory.doubts:
        found.append(
            Finding(
                id="ambiguous-archive",
                severity=Severity.WARNING,
                says="torch and other tools may read different content from this archive: "
                f"{'; '.join(directory.doubts[:4])}. Shown is the first of each name; the globals of every candidate "
                "are listed.",
                evidence=(("doubts", len(directory.doubts)),),
                remedy="No ordinary program writes such an archive; do not trust another tool's scan of it.",
            )
        )
    if directory.trailing_nbytes:
        found.append(
            Finding(
                id="trailing-data",
                severity=Severity.NOTICE,
                says=f"{human_bytes(directory.trailing_nbytes)} lie behind the end of the archive.",
                evidence=(("nbytes", directory.trailing_nbytes),),
                remedy="torch.load fails when it is more than a few kilobytes; cut it off.",
            )
        )
    if main.method == _DEFLATED:
        found.append(
            Finding(
                id="compressed-archive",
                severity=Severity.INFO,
                says="The archive is compressed; torch.save never compresses, so it was packed by another program.",
                remedy="torch.load(mmap=True) cannot open it.",
            )
        )
    return found
