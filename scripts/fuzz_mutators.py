"""How the fuzzers damage a file: bytes anywhere, or one part of it with everything around it made right again.

A flipped byte inside an archive mostly fails at the archive. So a member is taken out, damaged for itself (which may
again be an archive), and put back with lengths and check sums that fit.
"""

from __future__ import annotations

import gzip
import io
import json
import pickletools
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence

OPCODES = (
    b"(.012FIJKLMNPQRSTUVXabcdeghijlopqrstu)}]\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"
    + bytes(range(0x90, 0x99))
)
_MOST_LEVELS = 3


def _flip(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(data))
        data[at] = rng.choice((rng.randrange(256), data[at] ^ 1 << rng.randrange(8), 0, 0xFF))


def _opcode(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    for _ in range(rng.choice((1, 1, 2, 5))):
        data[rng.randrange(min(len(data), 2000))] = rng.choice(OPCODES)


def _insert(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    data[at:at] = rng.choice((rng.randbytes(rng.randrange(1, 9)), bytes(rng.choices(OPCODES, k=rng.randrange(1, 9)))))


def _delete(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 2, 4, 8, 64, 1000))]


def _cut(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data)) :]


def _splice(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    other = rng.choice(pool)
    start = rng.randrange(len(other))
    at = rng.randrange(len(data))
    part = other[start : start + rng.choice((4, 16, 64, 400, 5000))]
    data[at : at + rng.choice((0, len(part)))] = part


def _number(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    width = rng.choice((2, 4, 8))
    at = rng.randrange(len(data))
    value = rng.choice(
        (0, 1, 0x7F, 0xFF, (1 << 8 * width) - 1, 1 << (8 * width - 1), len(data), rng.getrandbits(8 * width))
    )
    data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, rng.choice(("little", "big")))


MUTATIONS: tuple[Callable[[bytearray, random.Random, Sequence[bytes]], None], ...] = (
    _flip,
    _flip,
    _opcode,
    _insert,
    _delete,
    _cut,
    _splice,
    _splice,
    _number,
)


def damage(data: bytes, rng: random.Random, pool: Sequence[bytes]) -> bytes:
    """One to four mutations anywhere."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if made:
            rng.choice(MUTATIONS)(made, rng, pool)
    return bytes(made)


def damage_inside(data: bytes, rng: random.Random, pool: Sequence[bytes], level: int = 0) -> bytes:
    """One part of what this is, damaged, the rest made to fit; `damage` where the format is not known or broken."""
    if level < _MOST_LEVELS:
        for claims, change in _FORMATS:
            if claims(data):
                try:
                    return change(data, rng, pool, level)
                except (ValueError, LookupError, OSError, EOFError, RuntimeError, struct.error, zlib.error):
                    break
                except (zipfile.BadZipFile, tarfile.TarError, NotImplementedError, OverflowError):
                    break
    return damage(data, rng, pool)


def mutate(rng: random.Random, pool: Sequence[bytes]) -> bytes:
    """A sample, damaged."""
    return (damage if rng.random() < 0.5 else damage_inside)(rng.choice(pool), rng, pool)


def _members(files: list[tuple[str, bytes]], rng: random.Random, pool: Sequence[bytes], level: int) -> None:
    """Damage, double, drop, rename or swap members of an archive."""
    at = rng.randrange(len(files))
    name, content = files[at]
    what = rng.randrange(10)
    if what < 6:
        files[at] = (name, damage_inside(content, rng, pool, level + 1))
    elif what == 6:
        files.insert(rng.randrange(len(files) + 1), (name, rng.choice((content, rng.choice(pool)))))
    elif what == 7 and len(files) > 1:
        del files[at]
    elif what == 8:
        other = rng.choice(files)[0]
        files[at] = (rng.choice((other, name.upper(), f"../{name}", f"/{name}", name + "\0", name[1:] or "x")), content)
    else:
        files[at] = (name, rng.choice(files)[1])


def _zip(data: bytes, rng: random.Random, pool: Sequence[bytes], level: int) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = [(i.filename, archive.read(i)) for i in archive.infolist()[:200] if i.file_size < 1 << 20]
    _members(files, rng, pool, level)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", rng.choice((zipfile.ZIP_STORED,) * 4 + (zipfile.ZIP_DEFLATED,))) as archive:
        for name, content in files:
            # ZipFile.open and not writestr: the latter warns about a name that is there already.
            archive.NameToInfo.pop(name, None)
            archive.writestr(zipfile.ZipInfo(name), content)
    return made.getvalue()


def _tar(data: bytes, rng: random.Random, pool: Sequence[bytes], level: int) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        found = [(member, archive.extractfile(member)) for member in archive.getmembers()[:200] if member.isfile()]
        files = [(member.name, file.read()) for member, file in found if file is not None]
    _members(files, rng, pool, level)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=rng.choice((tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT))) as archive:
        for name, content in files:
            info = tarfile.TarInfo(name.replace("\0", "0"))
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def _gzip(data: bytes, rng: random.Random, pool: Sequence[bytes], level: int) -> bytes:
    inflater = zlib.decompressobj(31)
    return gzip.compress(damage_inside(inflater.decompress(data, 1 << 20), rng, pool, level + 1), 1, mtime=0)


_VALUES = (
    0,
    1,
    -1,
    2**31,
    2**63,
    2**64,
    10**30,
    1.5,
    True,
    None,
    "",
    "F32",
    "I64",
    "F4",
    "é😀\ud800",
    [],
    [0],
    {},
    [2, 3],
)


def _json_value(value: object, rng: random.Random) -> object:
    """The same with one thing in it replaced, doubled or left out."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        made = dict(value)
        if rng.random() < 0.7:
            made[key] = _json_value(made[key], rng)
        elif rng.random() < 0.5:
            made[rng.choice((str(key) + "x", "", "__metadata__", "weight_map", "../" + str(key)))] = made[key]
        else:
            del made[key]
        return made
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        changed = _json_value(value[at], rng)
        return rng.choice(([*value[:at], changed, *value[at + 1 :]], value * 2, value[:at], [*value, changed]))
    if type(value) is int and rng.random() < 0.6:
        return value + rng.choice((-1, 1, 8, 256, -value, value))
    return rng.choice(_VALUES)


def _json(data: bytes, rng: random.Random, pool: Sequence[bytes], level: int) -> bytes:
    changed = json.dumps(_json_value(json.loads(data), rng), ensure_ascii=rng.random() < 0.8)
    return changed.encode("utf-8", "surrogatepass")


def _safetensors(data: bytes, rng: random.Random, pool: Sequence[bytes], level: int) -> bytes:
    n = int.from_bytes(data[:8], "little")
    header = _json(data[8 : 8 + n], rng, pool, level)
    return struct.pack("<Q", len(header)) + header + data[8 + n :]


_STEPS = (b"K\x00", b"J\xff\xff\xff\x7f", b"N", b")", b"]", b"}", b"h\x00", b"(", b"t", b"R")


def _pickle(data: bytes, rng: random.Random, pool: Sequence[bytes], level: int) -> bytes:
    """Whole operations doubled, dropped, swapped, taken from another pickle, or with another argument."""
    starts = []
    end = 0
    for opcode, _, at in pickletools.genops(data):
        starts.append(at or 0)
        if opcode.code == ".":
            end = (at or 0) + 1
    steps = [data[a:b] for a, b in zip(starts, [*starts[1:], end], strict=True)]
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, other = rng.randrange(len(steps)), rng.randrange(len(steps))
        what = rng.randrange(6)
        if what == 0:
            steps.insert(at, steps[other])
        elif what == 1 and len(steps) > 1:
            del steps[at]
        elif what == 2:
            steps[at], steps[other] = steps[other], steps[at]
        elif what == 3:
            steps[at : at + rng.randrange(4)] = steps[other : other + rng.randrange(8)]
        elif what == 4:
            steps.insert(
                at, rng.choice((b"K\x00", b"J\xff\xff\xff\x7f", b"N", b")", b"]", b"}", b"h\x00", b"(", b"t", b"R"))
            )
        else:
            raw = bytearray(steps[at])
            raw[rng.randrange(len(raw))] = rng.randrange(256)
            steps[at] = bytes(raw)
        if not steps:
            break
    return b"".join(steps) + data[end:]


_FORMATS: tuple[tuple[Callable[[bytes], bool], Callable[[bytes, random.Random, Sequence[bytes], int], bytes]], ...] = (
    (lambda data: data[:2] == b"PK", _zip),
    (lambda data: data[:1] == b"\x80", _pickle),
    (lambda data: data[8:9] == b"{" and data[4:8] == bytes(4), _safetensors),
    (lambda data: data[257:262] == b"ustar", _tar),
    (lambda data: data[:3] == b"\x1f\x8b\x08", _gzip),
    (lambda data: data[:1] == b"{", _json),
)
