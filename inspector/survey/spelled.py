"""Pickles spelled in the text of a file that is no checkpoint: base64, hexadecimal, arrays of numbers.

A program that decodes such a text and loads it runs the pickle. Looked at are the runs of letters whose first three can
begin one (`encoded.STARTS`), over several lines and quoted pieces, and what is compressed or encoded once more in them.
Base32, Ascii85 and base85 are not decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.checkpoint.source import BufferSource, ByteSource
from inspector.checkpoint.types import GlobalVerdict
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.unpickle.globals.verdicts import judge, may_exist
from inspector.readers.unpickle.nested.encoded import STARTS, decodings
from inspector.readers.unpickle.nested.hidden_pickles import names_of, search_behind
from inspector.survey.beginning import Beginning
from inspector.units import human_bytes

SPELLED_PICKLE = FindingKind(
    "spelled-pickle", Severity.NOTICE, "A pickle spelled in letters or numbers", also=(Severity.WARNING, Severity.ERROR)
)
TEXT_NOT_SEARCHED = FindingKind(
    "text-not-searched", Severity.NOTICE, "Not all of a text was searched for encoded pickles", also=(Severity.WARNING,)
)

_HEAD_NBYTES = 4096
_NBYTES = 64 << 20
_WINDOW_NBYTES = 4 << 20
# As long as one spelled pickle is followed, and so the windows overlap.
_RUN_NBYTES = 64 << 10
# Of all that is put together and decoded.
_MOST_NBYTES = 64 << 20
_TRIAL_NBYTES = 1 << 12
_BETWEEN = r"[\s\"',+\\]{1,40}"
_RUN = re.compile(r"[A-Za-z0-9+/_\-]{16,}+")
_BASE64 = re.compile(rf"[A-Za-z0-9+/_\-]++(?:{_BETWEEN}[A-Za-z0-9+/_\-]++)*+={{0,2}}")
_HEX = re.compile(r"(?:(?:0[xX]|\\+x)?[0-9A-Fa-f]{2}(?:[\s:,;\-\"']{1,8}|(?![0-9A-Fa-f]{2})|)){12,}+")
_NO_DIGIT = re.compile(r"0[xX]|\\+x|[^0-9A-Fa-f]+")
_NUMBERS = re.compile(r"(?<![\d.,])(?:128\s*,\s*[0-5]|(?:99|40|93|125)\s*,\s*\d{2,3})(?:\s*,\s*\d{1,3}){14,}+")
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|([\"\\/bfnrt]))")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def observe_spelled(beginning: Beginning, limits: Limits) -> Finding | None:
    """The worst pickle that a text file spells, None when it is no text or spells none."""
    source = beginning.source
    if not beginning.is_wide and b"\x00" in beginning.raw(_HEAD_NBYTES):
        return None
    worst: Finding | None = None
    left = _MOST_NBYTES
    for start in range(0, min(source.size, _NBYTES), _WINDOW_NBYTES):
        nbytes = min(_WINDOW_NBYTES + _RUN_NBYTES, source.size - start)
        raw = source.read(start, nbytes) if start else beginning.raw(nbytes)
        for at, candidate, decoded in _candidates(raw.decode(beginning.encoding, "replace")):
            left -= _TRIAL_NBYTES + len(candidate)
            if left < 0:
                return worst or _unsearched(source, "it spells more than was tried", Severity.WARNING)
            if not decoded:
                continue
            finding = _tried(candidate, f"about byte {start + at:,} of {source.name[-80:]}", limits)
            if finding is not None and (worst is None or finding.severity.rank > worst.severity.rank):
                worst = finding
            if worst is not None and worst.severity is Severity.ERROR:
                return worst
    if worst is None and source.size > _NBYTES:
        return _unsearched(source, f"only its first {human_bytes(_NBYTES)} were")
    return worst


def _candidates(text: str) -> Iterator[tuple[int, bytes, bool]]:
    """(character, bytes, whether they may be a pickle) of what the text spells, and of what is put together for it."""
    plain = unescaped(text) if "\\" in text else text
    for match in _RUN.finditer(plain):
        # Each by itself: the words in front of one could be taken for its beginning.
        if match[0][:3].encode() in STARTS:
            joined = _BASE64.match(plain, match.start(), match.start() + _RUN_NBYTES)
            run = re.sub(r"[\s\"',\\]", "", joined[0] if joined is not None else match[0])
            yield match.start(), run.encode(), False
            yield from ((match.start(), found, True) for found in decodings(run))
    for match in _HEX.finditer(text):
        digits = _NO_DIGIT.sub("", match[0][:_RUN_NBYTES])
        if digits[:3].encode() in STARTS:
            yield from ((match.start(), found, True) for found in decodings(digits[: len(digits) & ~1]))

    for match in _NUMBERS.finditer(text):
        numbers = [int(number) for number in match[0][:_RUN_NBYTES].rstrip(", ").split(",")]
        if max(numbers) < 256:
            yield match.start(), bytes(numbers), True


def unescaped(text: str) -> str:
    """The text of JSON with its escapes taken off, quotes and braces left as they are."""
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else _LETTERS.get(m[2], m[2]), text)


def _tried(candidate: bytes, where: str, limits: Limits) -> Finding | None:
    hidden = search_behind(BufferSource(candidate), 0, len(candidate), limits, where)
    names = list(dict.fromkeys(name for _, outcome in hidden.found for name in names_of(outcome)))
    if not names:
        return None
    verdicts = {judge(u.module, u.name)[0] for _, outcome in hidden.found for u in outcome.uses.values()}
    dangerous, unknown = (verdict in verdicts for verdict in (GlobalVerdict.DANGEROUS, GlobalVerdict.UNKNOWN))
    announced = candidate[0] == 0x80 or all(map(may_exist, (name.partition(".")[0] for name in names)))
    if not dangerous and (not announced or any(outcome.broken for _, outcome in hidden.found)):
        return None  # Among many random bytes some name nothing that is known, and go nowhere.
    return SPELLED_PICKLE.found(
        f"A pickle is spelled in letters or numbers at {where} and would import "
        f"{', '.join(name[:80] for name in names[:3])}: a program that decodes and loads it runs that.",
        severity=Severity.ERROR if dangerous else Severity.WARNING if unknown else Severity.NOTICE,
        subjects=tuple(name[:200] for name in names[:20]),
        evidence=(("nbytes", len(candidate)),),
        remedy="No ordinary settings, notes or code hold a pickle. Nothing was decoded into objects here.",
    )


def _unsearched(source: ByteSource, why: str, severity: Severity = Severity.NOTICE) -> Finding:
    return TEXT_NOT_SEARCHED.found(
        f"Not all of {source.name[-80:]} was searched for encoded pickles: {why}.",
        severity=severity,
        evidence=(("nbytes", source.size),),
        remedy="Data and logs may be that long; settings are not.",
    )
