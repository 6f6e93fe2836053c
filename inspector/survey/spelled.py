"""Pickles spelled in the text of a file that is no checkpoint: base64, hexadecimal, escapes.

A program that decodes such a text and loads it runs the pickle. Looked at are the runs of letters whose first three can
begin one (`encoded.STARTS`), over several lines and quoted pieces, and what is compressed or encoded once more in them.
Base32, Ascii85 and arrays of numbers are not decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.checkpoint.source import BufferSource, ByteSource
from inspector.checkpoint.types import GlobalVerdict
from inspector.findings import Finding, Severity
from inspector.limits import Limits
from inspector.readers.unpickle.encoded import STARTS, decodings
from inspector.readers.unpickle.hidden_pickles import names_of, search_behind
from inspector.readers.unpickle.verdicts import judge

_NBYTES = 64 << 20
_WINDOW_NBYTES = 4 << 20
# As long as one spelled pickle is followed, and so the windows overlap.
_RUN_NBYTES = 128 << 10
_MOST_TRIALS = 2000
_BETWEEN = r"[\s\"',+\\]{1,40}"
_BASE64 = re.compile(rf"[A-Za-z0-9+/_\-]{{16,}}+(?:{_BETWEEN}[A-Za-z0-9+/_\-]++)*+={{0,2}}")
_HEX = re.compile(r"(?:(?:0[xX]|\\+x)?[0-9A-Fa-f]{2}(?:[\s:,;\-\"']{1,8}|(?![0-9A-Fa-f]{2})|)){12,}+")
_NO_DIGIT = re.compile(r"0[xX]|\\+x|[^0-9A-Fa-f]+")
_BYTE = re.compile(r"\\+x([0-9A-Fa-f]{2})")
_ANY = re.compile(r"[A-Za-z0-9+/_\-]{16}|(?:[0-9A-Fa-f]{2}[\s:,;]{1,8}){8}|\\x[0-9A-Fa-f]{2}")


def observe_spelled(source: ByteSource, limits: Limits) -> Finding | None:
    """The worst pickle that a text file spells, None when it is no text or spells none."""
    head = source.read(0, min(source.size, 4096))
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    if encoding == "utf-8" and b"\x00" in head:
        return None
    worst: Finding | None = None
    trials = _MOST_TRIALS
    for start in range(0, min(source.size, _NBYTES), _WINDOW_NBYTES):
        raw = source.read(start, min(_WINDOW_NBYTES + _RUN_NBYTES, source.size - start))
        for at, candidate in _candidates(raw.decode(encoding, "replace")):
            trials -= 1
            if trials < 0:
                return worst or _unsearched(source, "it spells more than was tried")
            finding = _tried(candidate, f"about byte {start + at:,} of {source.name[-80:]}", limits)
            if finding is not None and (worst is None or finding.severity.rank > worst.severity.rank):
                worst = finding
            if worst is not None and worst.severity is Severity.ERROR:
                return worst
    if worst is None and source.size > _NBYTES:
        return _unsearched(source, f"only its first {_NBYTES >> 20} MiB were")
    return worst


def _candidates(text: str) -> Iterator[tuple[int, bytes]]:
    """(character, bytes) of what the text spells that may be a pickle."""
    if _ANY.search(text) is None:
        return
    # JSON writes a slash and a line's end with a backslash, and Python a byte.
    plain = text.replace("\\/", "/").replace("\\n", "\n").replace("\\u003d", "=") if "\\" in text else text
    for match in _BASE64.finditer(plain):
        if match[0][:3].encode() in STARTS:
            run = re.sub(r"[\s\"',\\]", "", match[0][:_RUN_NBYTES])
            yield from ((match.start(), found) for found in decodings(run))
    for match in _HEX.finditer(text):
        digits = _NO_DIGIT.sub("", match[0][:_RUN_NBYTES])
        if digits[:3].encode() in STARTS:
            yield from ((match.start(), found) for found in decodings(digits[: len(digits) & ~1]))


def _tried(candidate: bytes, where: str, limits: Limits) -> Finding | None:
    hidden = search_behind(BufferSource(candidate), 0, len(candidate), limits, where)
    names = list(dict.fromkeys(name for _, outcome in hidden.found for name in names_of(outcome)))
    if not names:
        return None
    verdicts = {judge(*name.rsplit(".", 1))[0] for name in names if "." in name}
    verdicts |= {judge(u.module, u.name)[0] for _, outcome in hidden.found for u in outcome.uses.values()}
    dangerous, unknown = (verdict in verdicts for verdict in (GlobalVerdict.DANGEROUS, GlobalVerdict.UNKNOWN))
    return Finding(
        id="spelled-pickle",
        severity=Severity.ERROR if dangerous else Severity.WARNING if unknown else Severity.NOTICE,
        says=f"A pickle is spelled in base64 or hexadecimal at {where} and would import "
        f"{', '.join(name[:80] for name in names[:3])}: a program that decodes and loads it runs that.",
        subjects=tuple(name[:200] for name in names[:20]),
        evidence=(("nbytes", len(candidate)),),
        remedy="No ordinary settings, notes or code hold a pickle. Nothing was decoded into objects here.",
    )


def _unsearched(source: ByteSource, why: str) -> Finding:
    return Finding(
        id="text-not-searched",
        severity=Severity.NOTICE,
        says=f"Not all of {source.name[-80:]} was searched for encoded pickles: {why}.",
        evidence=(("nbytes", source.size),),
        remedy="Data and logs may be that long; settings are not.",
    )
