"""Scores kept while an evaluation is under way, so that it goes on where it was stopped: a piece for so many pictures.

A piece is a line of JSON and the numbers behind it, float32 in the order of the bytes of small machines. It is read
back with every length checked, since it may lie in a folder that others can write to.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inspector.errors import ReadError
from inspector.new_files import new_file
from inspector.side_files import read_bytes

_MOST_HEAD_NBYTES = 1 << 20
_MOST_WHY = 500


class Keeper(Protocol):
    """Where pieces are kept. read: None where there is none, or none that can be read."""

    def read(self, number: int) -> bytes | None: ...

    def write(self, number: int, data: bytes) -> None: ...


class Nowhere:
    """Keeps nothing."""

    def read(self, number: int) -> bytes | None:
        return None

    def write(self, number: int, data: bytes) -> None:
        return None


class InFolder:
    """A file for each piece. folder: made when the first is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, number: int) -> bytes | None:
        place = self._place(number)
        try:
            return read_bytes(place) if place.is_file() else None
        except ReadError:
            return None  # it is made again

    def write(self, number: int, data: bytes) -> None:
        self.folder.mkdir(exist_ok=True)
        with new_file(self._place(number)) as temporary:
            temporary.write_bytes(data)

    def drop(self) -> None:
        """The evaluation has ended: nothing is left to go on with."""
        for piece in self.folder.glob("*.scores"):
            piece.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _place(self, number: int) -> Path:
        return self.folder / f"{number:06d}.scores"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """values: (n, K) float32, NaN in the rows of pictures that could not be read. unread: (row, why) of these."""

    values: NDArray[np.float32]
    unread: tuple[tuple[int, str], ...] = ()


def packed(piece: Piece, key: str) -> bytes:
    """key: of the evaluation that it belongs to."""
    rows, outputs = piece.values.shape
    head = {"key": key, "rows": rows, "outputs": outputs, "unread": [(n, why[:_MOST_WHY]) for n, why in piece.unread]}
    return json.dumps(head).encode() + b"\n" + np.ascontiguousarray(piece.values, dtype="<f4").tobytes()


def unpacked(data: bytes, key: str, rows: int, outputs: int) -> Piece | None:
    """None for what is no piece of this evaluation."""
    end = data.find(b"\n", 0, _MOST_HEAD_NBYTES)
    try:
        head = json.loads(data[: max(end, 0)])
    except (ValueError, RecursionError):
        return None
    if not isinstance(head, dict) or [head.get(name) for name in ("key", "rows", "outputs")] != [key, rows, outputs]:
        return None
    unread, numbers = _unread(head.get("unread"), rows), data[end + 1 :]
    if unread is None or len(numbers) != 4 * rows * outputs:
        return None
    values = np.frombuffer(numbers, dtype="<f4").reshape(rows, outputs).astype(np.float32)
    return Piece(values=values, unread=unread)


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
