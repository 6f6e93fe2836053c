"""Text that stands for bytes: base64 and hexadecimal, and what is compressed in it. A pickle hides there as well as in
bytes, so what such text decodes to is looked into like any other constant.

Most texts of a pickle are names, and there are tens of thousands: `may_stand_for_bytes` rules them out by their first
letters, as a pickle's own first bytes leave few for its encoding.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import lzma
import re
import zlib
from collections.abc import Iterator
from itertools import product

LEAST = 16
# Longer texts may have it somewhere in the middle.
LONG = 100
_MOST_RUNS = 256
_MOST_LEVELS = 3
_UNPACKED_NBYTES = 1 << 20
_LZMA_NBYTES = 32 << 20
# How a pickle can begin: a protocol, a name, or an opcode that begins something. As for pickles behind numbers.
LETTERS = b"_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SECOND = {0x80: bytes(range(6)), ord("c"): LETTERS, **dict.fromkeys(b"(]}", b"c(]}lditSVXUIK")}
_PACKED = (b"\x1f\x8b", b"BZ", b"\xfd7", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")
_HEADS = frozenset([bytes((first, second)) for first, seconds in SECOND.items() for second in seconds]) | {b"PK"}
# Possessive: spaces could belong to either end, and a text of them would be tried at every one.
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]{16,}+={0,2}\s*+")
_HEX = re.compile(r"(?:0[xX])?(?:[0-9A-Fa-f]{2}[\s:,]*+){12,}+")
_ESCAPED = re.compile(r"(?:\\x[0-9A-Fa-f]{2}){8,}+")
_RUN = re.compile(r"(?:\\x[0-9A-Fa-f]{2}){8,}+|[A-Za-z0-9+/_\-]{22,}+={0,2}+")
_NAMED = re.compile(r"[ci][A-Za-z_][\w.]*+\n[A-Za-z_][\w.]*+\n")
_DATA_URI = re.compile(r"data:[\w/+.\-;=]{0,100};base64,")


def _base64_starts() -> Iterator[str]:
    """The first three letters of whatever begins with two given bytes."""
    for head in (*_HEADS, *_PACKED):
        for last in (0x00, 0x40, 0x80, 0xC0):
            yield base64.b64encode(head + bytes((last,))).decode()[:3]


def _hex_starts() -> Iterator[str]:
    for head in (*_HEADS, *_PACKED):
        spelled = head.hex()
        for letters in product(*({c, c.upper()} for c in spelled[:3])):
            yield "".join(letters)


def _twice(starts: frozenset[str]) -> Iterator[str]:
    """The same, encoded once more."""
    for start in starts:
        yield base64.b64encode(start.encode()).decode()[:3]
        yield start.encode().hex()[:3]


_ONCE = frozenset(_base64_starts()) | frozenset(_hex_starts())
_ALL = _ONCE | frozenset(_twice(_ONCE))
STARTS = frozenset(start.encode() for start in (*_ALL, *(s.replace("/", "_") for s in _ALL)))
# What the names of tensors and modules are made of.
_NAME = b"._-/" + bytes(range(0x30, 0x3A)) + bytes(range(0x41, 0x5B)) + bytes(range(0x61, 0x7B))


def is_plain_name(raw: bytes) -> bool:
    """Whether a short text is a name, in which nothing can be spelled: the first question, asked of every text."""
    return len(raw) < LONG and raw[:3] not in STARTS and not raw.translate(None, _NAME)


def may_hide_pickle(raw: bytes) -> bool:
    """Whether a bytes constant could be a pickle, an archive, either of them compressed, or the text of one. raw: its
    first hundred bytes, or all of it."""
    if begins_as_pickle(raw) and (raw[0] not in b"c(]}" or _is_plain(raw.decode("latin-1"))):
        return True
    if raw[:2] in _PACKED:
        found = unpacked(raw)
        return found is not None and begins_as_pickle(found)
    return len(raw) >= LEAST and raw[:3] in STARTS


def begins_as_pickle(raw: bytes) -> bool:
    """Whether the first two bytes could be those of a pickle, or of an archive that may hold one."""
    return raw[:2] in _HEADS


def may_stand_for_bytes(text: str) -> bool:
    """Whether a pickle, or an archive, may be spelled in the text, or be the text."""
    return len(text) >= LEAST and (_is_plain(text) or next(decodings(text), None) is not None)


def _is_plain(text: str) -> bool:
    """Protocol 0 is text by itself: a module and a name, each to the end of its line. Any other is one character for a
    byte when it was decoded as Latin-1."""
    if text[0] == "\x80":
        return text[1] <= "\x05"
    if text[0] == "c":
        return _NAMED.match(text) is not None
    return text[0] in "(]}" and text.isascii() and begins_as_pickle(text[:2].encode()) and bool(_NAMED.search(text))


def decodings(text: str, level: int = 0) -> Iterator[bytes]:
    """What the text, or a part of it, spells that begins as a pickle or an archive; also behind compression."""
    if level >= _MOST_LEVELS:
        return
    for raw in _decoded(text):
        for found in (raw, unpacked(raw)):
            if found is None:
                continue
            if begins_as_pickle(found):
                yield found
            elif found[:LONG].isascii() and len(found) >= LEAST and found != text.encode():
                yield from decodings(found.decode("latin-1"), level + 1)


def _decoded(text: str) -> Iterator[bytes]:
    """The whole text as bytes, else every run in it that looks like some."""
    body = text.strip()
    uri = _DATA_URI.match(body)
    whole = _one(body[uri.end() :] if uri else body)
    if whole is not None:
        yield whole
        if begins_as_pickle(whole):
            return
    for number, match in enumerate(_RUN.finditer(text)):
        if number >= _MOST_RUNS:
            return
        raw = _one(match[0]) if match[0][:3].encode() in STARTS or match[0][0] == "\\" else None
        if raw is not None:
            yield raw


def _one(text: str) -> bytes | None:
    """What a text that is wholly base64 or hexadecimal spells."""
    if _ESCAPED.fullmatch(text):
        return bytes.fromhex(text.replace("\\x", ""))
    if _HEX.fullmatch(text):
        return bytes.fromhex(re.sub(r"[\s:,]", "", text.removeprefix("0x").removeprefix("0X")))
    if not _BASE64.fullmatch(text):
        return None
    plain = re.sub(r"\s", "", text).replace("-", "+").replace("_", "/").rstrip("=")
    plain = plain[: len(plain) - (len(plain) % 4 == 1)]
    try:
        return binascii.a2b_base64(plain + "=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        return None


def unpacked(raw: bytes) -> bytes | None:
    """The beginning of what is compressed in raw, None when nothing is."""
    packed = raw[:_UNPACKED_NBYTES]
    try:
        if raw[:2] == b"\x1f\x8b" or raw[:2] in _PACKED[3:]:
            return zlib.decompressobj(47).decompress(packed, _UNPACKED_NBYTES)
        if raw[:3] == b"BZh":
            return bz2.BZ2Decompressor().decompress(packed, _UNPACKED_NBYTES)
        if raw[:6] == b"\xfd7zXZ\x00":
            return lzma.LZMADecompressor(memlimit=_LZMA_NBYTES).decompress(packed, _UNPACKED_NBYTES)
    except (zlib.error, OSError, lzma.LZMAError):
        return None
    return None
