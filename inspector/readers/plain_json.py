"""JSON from outside: bounded before it is parsed, and made of nothing that a table or terminal could not take."""

from __future__ import annotations

import json

from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import DEFAULT_LIMITS, Limits

_LISTED = 20
_DIGITS = 40
# Measured: an entry of a large object costs up to 250 bytes while it is made, and 100 afterwards.
_MADE_NBYTES, _KEPT_NBYTES = 250, 100


def parse_json(
    raw: bytes, name: str, *, most_values: int, limits: Limits = DEFAULT_LIMITS
) -> tuple[object, tuple[str, ...]]:
    """(the value, keys that occur twice in one object; the last counts, as for json.loads).

    NaN and Infinity are kept as text, and so are whole numbers of more than 40 digits. raw: UTF-8, a byte order mark is
    allowed. Raises LimitExceeded for more than most_values values or more memory than is left, before any of them is
    made; CorruptFile for what is no JSON or nested too deep.
    """
    # Each comma, bracket or brace can make one object of about 90 bytes.
    values = raw.count(b",") + raw.count(b"[") + raw.count(b"{")
    if values > most_values:
        raise LimitExceeded(f"{name} holds about {values:,} JSON values; the limit is {most_values:,}.")
    # Python keeps a text in as many bytes a character as its widest one needs.
    widest = max(raw, default=0)
    kept = len(raw) * (4 if widest >= 0xF0 else 2 if widest >= 0xC4 else 1)
    limits.charge(values * _MADE_NBYTES + 2 * kept, name)
    twice: list[str] = []

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = {whole(key): whole(value) if isinstance(value, str) else value for key, value in pairs}
        if len(made) != len(pairs) and len(twice) < _LISTED:
            seen: set[str] = set()
            for key, _ in pairs:
                if whole(key) in seen:
                    twice.append(whole(key)[:200])
                seen.add(whole(key))
        return made

    def number(text: str) -> int | str:
        return int(text) if len(text) <= _DIGITS else text[:_DIGITS] + "…"

    try:
        text = raw.decode("utf-8-sig")
        value: object = json.loads(text, object_pairs_hook=unique, parse_int=number, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(
            f"{name} is no valid JSON ({str(error)[:120]}).", hint="Get it again from its source."
        ) from error
    limits.spend(-(values * (_MADE_NBYTES - _KEPT_NBYTES) + kept))
    return value, tuple(twice[:_LISTED])


def whole(text: str) -> str:
    """The same text; half a surrogate pair, which JSON and pickles can spell, is shown escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
