"""Scores of a piece of an evaluation, as they are kept.

A line of JSON with the bytes of the numbers in it, float32 in the order of the bytes of small
machines. It is read back with every length checked, since it may lie in a folder that others can write to.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: What the results are called in a store.
QUESTION = "scores"
_MOST_WHY = 500


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
