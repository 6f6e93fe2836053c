"""What torch's own reader asks of an archive before it looks at any tensor.

Source: caffe2/serialize/inline_container.cc (PyTorchStreamReader::init, getAllRecords), torch/serialization.py (_load).
"""

from __future__ import annotations

from inspector.checkpoint.source import ByteSource
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import Directory, find_member
from inspector.readers.formats.torch_archive import byte_order, member_bytes

REFUSED_ARCHIVE = FindingKind("refused-archive", Severity.ERROR, "torch.load refuses the archive")

_OLDEST, _NEWEST = 1, 10  # of the archive's own version


def loader_findings(source: ByteSource, directory: Directory, prefix: str, limits: Limits) -> list[Finding]:
    """One at most: what torch.load ends with, though the tensors are here. prefix: the folder of data.pkl."""
    error = _refusal(source, directory, prefix, limits)
    if not error:
        return []
    return [
        REFUSED_ARCHIVE.found(
            f'torch.load ends with "{error}": another program packed this archive. Its tensors can be read here.',
            evidence=(("error", error),),
            remedy="Convert it: the file that is written loads.",
        )
    ]


def _refusal(source: ByteSource, directory: Directory, prefix: str, limits: Limits) -> str:
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
