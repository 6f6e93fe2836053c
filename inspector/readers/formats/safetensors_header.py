"""The JSON header of a safetensors file, entry by entry: no more of it is turned into objects than one tensor needs.

`json.loads` on a whole header makes ten to a hundred bytes of memory out of each of its own; here only names and texts
grow with the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import Limits

# A tensor's entry has a type, two positions and at most a few dozen sizes.
_MOST_ENTRY = 8192
_MOST_METADATA = 10_000  # Trainers write a few dozen.
_SPACE = re.compile(r"[ \t\n\r]*")
_Metadata = dict[str, str]


class _Invalid(ValueError):
    """The header breaks the rules of JSON, or of the format."""


def read_entries(raw: bytes, file_name: str, limits: Limits) -> Iterator[tuple[str, object]]:
    """(name, entry) in order; the entry of "__metadata__" is a dict of texts, all others are as JSON has them.

    Raises CorruptFile where the header is no valid JSON object, or names something twice.
    """
    # latin-1 keeps a byte a character whatever is in it, so the text is no larger than the file; names are UTF-8, and
    # decoded one by one. All of JSON's own signs are ASCII.
    text = raw.decode("latin-1")
    del raw
    seen: set[str] = set()
    try:
        at = _after(text, 0, "{")
        while text[at : at + 1] != "}" or seen:
            name, at = _text(text, at, limits)
            if name in seen:
                raise CorruptFile(f'The header of {file_name} names "{name[:100]}" twice.')
            seen.add(name)
            at = _after(text, at, ":")
            entry, at = _metadata(text, at, file_name, limits) if name == "__metadata__" else _entry(text, at)
            yield name, entry
            if text[at : at + 1] == "}":
                break
            at = _after(text, at, ",")
        if _space(text, at + 1) != len(text):
            raise _Invalid(f"there is more behind its end, at byte {at + 9:,}")
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors.
        raise CorruptFile(
            f"The header of {file_name} is no valid JSON ({str(error)[:120]}).", hint="Download or copy it again."
        ) from error


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _after(text: str, at: int, sign: str) -> int:
    """Where the next thing begins behind a sign that must be here."""
    at = _space(text, at)
    if text[at : at + 1] != sign:
        raise _Invalid(f"{sign!r} expected at byte {at + 8:,}, found {text[at : at + 1]!r}")
    return _space(text, at + 1)


def _text(text: str, at: int, limits: Limits) -> tuple[str, int]:
    """A JSON string and where the next thing begins."""
    if text[at : at + 1] != '"':
        raise _Invalid(f"a name expected at byte {at + 8:,}, found {text[at : at + 1]!r}")
    found, end = _DECODER.raw_decode(text, at)
    if not found.isascii():
        limits.need(12 * len(found), f"A text of {len(found):,} bytes")  # Up to four bytes a character, several times.
        found = json.loads(text[at:end].encode("latin-1").decode("utf-8"))
        # JSON can spell half a surrogate pair, which no terminal, table or browser could be given.
        found = found.encode("utf-8", "backslashreplace").decode("utf-8")
    return found, _space(text, end)


def _entry(text: str, at: int) -> tuple[object, int]:
    part = text[at : at + _MOST_ENTRY]
    try:
        entry, n = _DECODER.raw_decode(part)
    except json.JSONDecodeError as error:
        if len(part) == _MOST_ENTRY:
            raise _Invalid(f"the entry at byte {at + 8:,} is longer than {_MOST_ENTRY:,} bytes, or broken") from error
        raise _Invalid(f"{error.msg} at byte {at + error.pos + 8:,}") from error
    return entry, _space(text, at + n)


def _metadata(text: str, at: int, file_name: str, limits: Limits) -> tuple[object, int]:
    if text[at : at + 1] != "{":
        return _entry(text, at)
    found: _Metadata = {}
    at = _after(text, at, "{")
    while text[at : at + 1] != "}" or found:
        name, at = _text(text, at, limits)
        at = _after(text, at, ":")
        if text[at : at + 1] == '"':
            value, at = _text(text, at, limits)
        else:  # The format wants texts; what else is there is shown as its JSON.
            other, at = _entry(text, at)
            value = json.dumps(other)[:1000]
        if len(found) >= _MOST_METADATA:
            raise LimitExceeded(f"The header of {file_name} holds more than {_MOST_METADATA:,} texts of metadata.")
        if name in found:
            raise _Invalid(f'the metadata name "{name[:100]}" twice')
        found[name] = value
        if text[at : at + 1] == "}":
            break
        at = _after(text, at, ",")
    return found, _space(text, at + 1)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Invalid("an entry has a key twice")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
