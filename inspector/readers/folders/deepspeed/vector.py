"""ZeRO's flat vectors: runs of elements in the files of the ranks, cut into parameters.

Stage 1 and 2 cut one vector per group into as many partitions as there are ranks; stage 3 cuts every parameter, padded
to a multiple of the ranks, so that each rank has a vector of its own. Source: deepspeed/utils/zero_to_fp32.py (0.19).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from inspector.checkpoint.assembled_source import Piece
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import is_contiguous
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, TensorInfo


@dataclass(frozen=True, slots=True)
class Run:
    """Elements that lie one behind the other in a file. source: None when they are missing, and `says` why.

    present: how many of them the file has, fewer than numel when it is cut short.
    """

    numel: int
    source: ByteSource | None
    start: int = 0
    present: int = 0
    says: str = ""


def run_of(tensor: TensorInfo, checkpoint: Checkpoint, file: str) -> Run | None:
    """A flat tensor of a file as a run; None when it is none."""
    storage = checkpoint.storages.get(tensor.storage_id or "")
    if not is_contiguous(tensor) or storage is None or tensor.offset < 0:
        return Run(0, None) if tensor.numel == 0 else None
    if storage.offset is None and storage.inline is None:
        return Run(tensor.numel, None, says=f"{file} is cut short before it")
    if (
        storage.offset is None
        or storage.deflated_nbytes is not None
        or storage.big_endian
        or storage.inline is not None
    ):
        return None
    k = DTYPES[tensor.dtype].itemsize
    present = min(tensor.numel, max(0, storage.present_nbytes // k - tensor.offset))
    start = storage.offset + tensor.offset * k
    return Run(tensor.numel, checkpoint.source, start, present, f"{file} is cut short")


class Vector:
    """Runs one behind the other."""

    def __init__(self, runs: Sequence[Run], itemsize: int) -> None:
        self.runs = [run for run in runs if run.numel]
        self.itemsize = itemsize
        self._starts: list[int] = []
        self.numel = 0
        for run in self.runs:
            self._starts.append(self.numel)
            self.numel += run.numel

    def pieces(self, first: int, count: int, at: int = 0) -> list[Piece]:
        """Elements first .. first + count as pieces of a flat tensor that begin at its element `at`."""
        found: list[Piece] = []
        number = max(0, bisect_right(self._starts, first) - 1)
        while count > 0 and number < len(self.runs):
            run, inside = self.runs[number], first - self._starts[number]
            n = min(count, run.numel - inside)
            there = min(n, max(0, run.present - inside)) if run.source is not None else 0
            if there:
                found.append(Piece((at,), (there,), run.source, run.start + inside * self.itemsize))
            if there < n:
                found.append(Piece((at + there,), (n - there,), None, says=run.says))
            first, at, count, number = first + n, at + n, count - n, number + 1
        return found


@dataclass(frozen=True, slots=True)
class Cut:
    """One parameter: its shape and its pieces, as a flat tensor."""

    name: str
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]


def cut_groups(
    vectors: Sequence[Vector],
    groups: Sequence[Sequence[tuple[str, tuple[int, ...]]]],
    paddings: Sequence[Sequence[int]] | None,
    ranks: int,
) -> tuple[list[Cut], str]:
    """Stage 1 and 2: parameters of each group in the order of its vector. ("", or why the numbers do not fit)."""
    found: list[Cut] = []
    if len(vectors) != len(groups):
        return [], f"the files hold {len(vectors)} flat groups, param_shapes names {len(groups)}"
    align = 2 * ranks
    for number, (vector, group) in enumerate(zip(vectors, groups, strict=True)):
        behind = paddings[number] if paddings is not None and number < len(paddings) else None
        if paddings is not None and (behind is None or len(behind) != len(group)):
            return [], f"group {number} has {len(group)} parameters, its alignment paddings are of another number"
        at = 0
        for i, (name, shape) in enumerate(group):
            numel = math.prod(shape)
            found.append(Cut(name, shape, tuple(vector.pieces(at, numel))))
            at += numel + (behind[i] if behind is not None else 0)
        # Both numbers may carry padding up to the next multiple of 2 x ranks, as DeepSpeed's own script allows.
        if -(-at // align) != -(-vector.numel // align):
            return [], f"group {number} needs {at:,} elements, the files hold {vector.numel:,}"
    return found, ""


def cut_parameters(
    ranks: Sequence[Vector], groups: Sequence[Sequence[tuple[str, tuple[int, ...]]]]
) -> tuple[list[Cut], str]:
    """Stage 3: every parameter is spread over all ranks. ("", or why the numbers do not fit)."""
    found: list[Cut] = []
    at = 0
    for name, shape in {name: shape for group in groups for name, shape in group}.items():
        numel = math.prod(shape)
        part = -(-numel // len(ranks))
        pieces: list[Piece] = []
        for rank, vector in enumerate(ranks):
            pieces += vector.pieces(at, max(0, min(part, numel - rank * part)), rank * part)
        found.append(Cut(name, shape, tuple(pieces)))
        at += part
    wrong = next((f"rank {r} holds {v.numel:,}" for r, v in enumerate(ranks) if v.numel != at), "")
    return ([], f"every rank needs {at:,} elements, {wrong}") if wrong else (found, "")


def without(runs: Sequence[Run | None], numel: int, files: Sequence[str]) -> list[Run]:
    """Runs of all ranks, those of missing files as gaps of the length that partitions have. numel: of all together."""
    length = max((run.numel for run in runs if run is not None), default=0)
    found: list[Run] = []
    left = numel
    for run, file in zip(runs, files, strict=True):
        made = run if run is not None else Run(min(length, max(0, left)), None, says=f"{file} is missing")
        found.append(made)
        left -= made.numel
    return found


__all__ = ["Cut", "Run", "Vector", "cut_groups", "cut_parameters", "run_of", "without"]
