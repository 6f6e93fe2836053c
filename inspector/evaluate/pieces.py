"""A piece of an evaluation: so many pictures by their place in the listing, and the scores that they gave.

Scores are kept as a line of JSON with the bytes of the numbers in it, float32 in the order of the bytes of small
machines. It is read back with every length checked, since it may lie in a folder that others can write to.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.errors import ExplainError, InspectorError, ReadError

#: What the results are called in a store.
QUESTION = "scores"
_MOST_WHY = 500
_ERRORS = {kind.__name__: kind for kind in (ExplainError, ReadError)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """What a worker is given. paths: in their order. digests: of the bytes of each, () where nothing is kept. left_out:
    (row, why) of those that are not to be touched."""

    paths: tuple[str, ...]
    digests: tuple[str, ...] = ()
    left_out: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """values: (n, K) float32, NaN in the rows of pictures that could not be read. unread: (row, why) of these."""

    values: NDArray[np.float32]
    unread: tuple[tuple[int, str], ...] = ()


def packed(piece: Scored) -> bytes:
    """One line, the same bytes for the same numbers."""
    values = np.ascontiguousarray(piece.values, dtype="<f4")
    told = {
        "rows": values.shape[0],
        "outputs": values.shape[1],
        "unread": [(row, why[:_MOST_WHY]) for row, why in piece.unread],
        "values": base64.b64encode(values.tobytes()).decode("ascii"),
    }
    return _line(told)


def unpacked(data: bytes, rows: int, outputs: int) -> Scored | None:
    """None for what are no scores of so many pictures."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or [told.get(name) for name in ("rows", "outputs")] != [rows, outputs]:
        return None
    unread, numbers = _unread(told.get("unread"), rows), _numbers(told.get("values"))
    if unread is None or len(numbers) != 4 * rows * outputs:
        return None
    values = np.frombuffer(numbers, dtype="<f4").reshape(rows, outputs).astype(np.float32)
    return Scored(values=values, unread=unread)


def packed_error(error: InspectorError) -> bytes:
    """What ends the whole evaluation: the model does not run."""
    kind = "ReadError" if isinstance(error, ReadError) else "ExplainError"
    return _line({"error": kind, "says": error.says, "hint": error.hint})


def raise_error(data: bytes) -> None:
    """Raise what `packed_error` was given, where it was given anything."""
    if data.startswith(b'{"error":'):
        told = json.loads(data)
        raise _ERRORS[told["error"]](told["says"], hint=told["hint"])


def _line(told: dict[str, object]) -> bytes:
    return json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _numbers(told: object) -> bytes:
    try:
        return base64.b64decode(told, validate=True) if isinstance(told, str) else b""
    except ValueError:  # binascii's too
        return b""


def _unread(told: object, rows: int) -> tuple[tuple[int, str], ...] | None:
    if not isinstance(told, list):
        return None
    found: list[tuple[int, str]] = []
    for one in told:
        match one:
            case [int(row), str(why)] if 0 <= row < rows:
                found.append((row, why))
            case _:
                return None
    return tuple(found)
