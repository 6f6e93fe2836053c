"""Zip archives written field by field, so that every field can lie. Source: PKWARE APPNOTE 6.3.9, section 4.3."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
import zlib
from dataclasses import dataclass, replace

import torch


@dataclass(frozen=True, kw_only=True)
class Member:
    """None: what is right. local_*: what the local header says instead of the directory."""

    name: str
    data: bytes = b""
    packed: bytes | None = None
    method: int = 0
    flags: int = 0
    crc: int | None = None
    nbytes: int | None = None
    packed_nbytes: int | None = None
    extra: bytes = b""
    comment: bytes = b""
    offset: int | None = None
    local_name: str | None = None
    local_flags: int | None = None
    local_method: int | None = None
    local_nbytes: int | None = None
    local: bool = True
    listed: bool = True


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The end record. gap: between it and the directory. zip64: the record and locator before it (count, size, at)."""

    comment: bytes = b""
    gap: bytes = b""
    count: int | None = None
    nbytes: int | None = None
    offset: int | None = None
    zip64: tuple[int, int, int] | None = None
    before_directory: bytes = b""


def build(members: list[Member], ends: Ends = Ends(), before: bytes = b"") -> bytes:
    out = bytearray(before)
    entries = bytearray()
    listed = 0
    for m in members:
        packed = m.data if m.packed is None else m.packed
        crc = zlib.crc32(m.data) if m.crc is None else m.crc
        nbytes = len(m.data) if m.nbytes is None else m.nbytes
        packed_nbytes = len(packed) if m.packed_nbytes is None else m.packed_nbytes
        at = len(out) if m.offset is None else m.offset
        if m.local:
            name = (m.name if m.local_name is None else m.local_name).encode()
            method = m.method if m.local_method is None else m.local_method
            flags = m.flags if m.local_flags is None else m.local_flags
            local_nbytes = nbytes if m.local_nbytes is None else m.local_nbytes
            local_packed = packed_nbytes if m.local_nbytes is None else m.local_nbytes
            out += struct.pack(
                "<4sHHHHHIIIHH", b"PK\3\4", 20, flags, method, 0, 33, crc, local_packed, local_nbytes, len(name), 0
            )
            out += name + packed
        if m.listed:
            listed += 1
            name = m.name.encode()
            fields = (0, 0, 0, 0, at)
            entries += struct.pack(
                "<4sHHHHHHIIIHHHHHII",
                *(b"PK\1\2", 20, 20, m.flags, m.method, 0, 33, crc, packed_nbytes, nbytes, len(name), len(m.extra)),
                *(len(m.comment), *fields[1:]),
            )
            entries += name + m.extra + m.comment
    out += ends.before_directory
    start = len(out)
    out += entries + ends.gap
    if ends.zip64 is not None:
        record = len(out)
        out += struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, ends.zip64[0], *ends.zip64)
        out += struct.pack("<4sIQI", b"PK\6\7", 0, record, 1)
    count = listed if ends.count is None else ends.count
    out += struct.pack(
        "<4sHHHHIIH",
        *(b"PK\5\6", 0, 0, count, count),
        len(entries) if ends.nbytes is None else ends.nbytes,
        start if ends.offset is None else ends.offset,
        len(ends.comment),
    )
    return bytes(out + ends.comment)


def root(text: str) -> bytes:
    """A pickle of {"who": text}, which torch.load gives back."""
    return pickle.dumps({"who": text}, protocol=2)


def members(*who: str, prefix: str = "a") -> list[Member]:
    """data.pkl with each text, then version: what a file of torch.save holds at least."""
    return [Member(name=f"{prefix}/data.pkl", data=root(w)) for w in who] + [
        Member(name=f"{prefix}/version", data=b"3\n")
    ]


def torch_reads(data: bytes) -> str:
    """The text that the installed torch finds, or "fails: " and why."""
    try:
        value = torch.load(io.BytesIO(data), weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError) as error:
        return f"fails: {str(error)[:160]}"
    return str(value["who"])


def zipfile_reads(data: bytes, name: str = "a/data.pkl") -> str:
    """The same by Python's zipfile, the way a scanner would look for data.pkl."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return str(pickle.loads(archive.read(name))["who"])
    except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, EOFError, zlib.error, ValueError) as error:
        return f"fails: {type(error).__name__}: {str(error)[:120]}"


__all__ = ["Ends", "Member", "build", "members", "replace", "root", "torch_reads", "zipfile_reads"]
