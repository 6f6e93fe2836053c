"""What torch's own reader asks of an archive before it looks at any tensor.

Source: caffe2/serialize/inline_container.cc (PyTorchStreamReader::init, getAllRecords), torch/serialization.py (_load).
"""

from __future__ import annotations

import re
from dataclasses import replace

from inspector.checkpoint.source import ByteSource
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.archives.archive_folder import is_junk
from inspector.readers.archives.zip_directory import Directory, find_member
from inspector.readers.archives.zip_end import search_refusal
from inspector.readers.archives.zip_members import Member
from inspector.readers.checks.torch_words import NO_HEADER
from inspector.readers.formats.torch_archive import byte_order, member_bytes
from inspector.readers.not_checkpoints.naming import WEIGHT_SUFFIXES
from inspector.units import human_bytes

REFUSED_ARCHIVE = FindingKind("refused-archive", Severity.ERROR, "torch.load refuses the archive")

_OLDEST, _NEWEST = 1, 10  # of the archive's own version
# What torch.save writes into the archive's folder.
_OF_TORCH = re.compile(r"(data\.pkl|data/[^/]+|version|byteorder|\.format_version|\.storage_alignment|\.data/[^/]+)$")
_PACKED_AGAIN = "another program packed this archive again"
_BACKSLASHES = "its names have backslashes, as some programs on Windows write them"
_ASTRAY = "its last end record does not say where the directory is, and torch looks at no other"
_BEHIND = "{} lie behind the archive, and torch does not look so far back for its end"


def loader_findings(source: ByteSource, directory: Directory, prefix: str | None, limits: Limits) -> list[Finding]:
    """One at most: what torch.load ends with, though the tensors are here. prefix: the folder of data.pkl, None where
    it has none."""
    error, why = search_refusal(source.size, directory.end_at), _BEHIND.format(human_bytes(directory.trailing_nbytes))
    if not error and directory.astray:
        error, why = NO_HEADER, _ASTRAY
    if not error:
        error, why = _refusal(source, directory, limits), _PACKED_AGAIN
    if not error:
        return []
    if with_slashes(directory) is not directory:
        why = _BACKSLASHES
    elif prefix != _torchs_root(directory):
        where = "at its top" if prefix is None else f"in the folder {prefix[:80]}"
        why = f"{why}, which puts data.pkl {where}; torch looks in the folder of the first record"
    return [
        REFUSED_ARCHIVE.found(
            f'torch.load ends with "{error}": {why}. Its tensors can be read here.',
            evidence=(("error", error), ("why", why)),
            remedy="Convert it: the file that is written loads.",
        )
    ]


def with_slashes(directory: Directory) -> Directory:
    """The same with "/" in its names where every one that has a folder is written with a backslash."""
    names = [member.name for member in directory.members]
    if any("/" in name for name in names) or not any("\\" in name for name in names):
        return directory
    members = tuple(replace(member, name=member.name.replace("\\", "/")) for member in directory.members)
    return replace(directory, members=members)


def repacked_main(directory: Directory) -> Member | None:
    """The one data.pkl with what torch.save writes beside it, wherever in the archive another program put it.

    None for an archive of several checkpoints, or of files beside one: which of them is meant is for `packed`.
    """
    members = [member for member in directory.members if not is_junk(member.name)]
    found = [m for m in members if m.name.rpartition("/")[2] == "data.pkl"]
    if len(found) != 1:
        return None
    root = found[0].name.removesuffix("data.pkl")
    own = {m.name for m in members if m.name.startswith(root) and _OF_TORCH.match(m.name[len(root) :])}
    if own == {found[0].name} or find_member(directory, f"{root}constants.pkl") is not None:
        return None
    other = any(m.name.lower().endswith(WEIGHT_SUFFIXES) for m in members if m.name not in own)
    return None if other else found[0]


def _torchs_root(directory: Directory) -> str | None:
    """The folder that torch takes for the archive's own, None where its first record lies in none."""
    first = directory.members[0].name
    return first.partition("/")[0] if "/" in first else None


def _refusal(source: ByteSource, directory: Directory, limits: Limits) -> str:
    prefix = _torchs_root(directory)
    if prefix is None:
        return f"file in archive is not in a subdirectory: {directory.members[0].name[:60]}"
    version = find_member(directory, f"{prefix}/.data/version") or find_member(directory, f"{prefix}/version")
    if version is None:
        return 'Expected hasRecord("version") to be true, but got false.'
    text = member_bytes(source, version, limits, most=32).decode("ascii", "replace").strip()
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    if not digits:
        return f"Couldn't parse the version {text[:20]!r} as Long Long."
    number = int(digits)
    if number > _NEWEST:
        return (
            f"Attempted to read a PyTorch file with version {number}, but the maximum supported version for reading "
            f"is {_NEWEST}."
        )
    if number < _OLDEST:
        return f"Attempted to read a PyTorch file with version {number}, which no longer is supported."
    stray = next((m.name for m in directory.members if not m.name.startswith(f"{prefix}/")), "")
    if stray:
        return f"file in archive is not in a subdirectory {prefix}/: {stray[:60]}"
    order = byte_order(source, directory, prefix, limits)
    if order not in (b"little", b"big"):
        return f"Unknown endianness type: {order.decode('utf-8', 'replace')[:16]}"
    return ""
