"""The tensors of one opened member, a piece at a time; kept in memory once they were read where they are small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.compare.kernel import BLOCK, values
from inspector.compare.pair import blocks
from inspector.run.members import Candidate
from inspector.weights.decoded import find_decoder
from inspector.weights.decoded.types import Decoded, TensorBytes
from inspector.weights.meter import Meter

#: A member whose tensors take no more is kept while others are held against it: first, last and the one before.
KEPT_NBYTES = 64 << 20


class OpenMember:
    """One member while others are held against it. Tensors go by the names of the run."""

    def __init__(self, one: Candidate, meter: Meter, kept_nbytes: int = KEPT_NBYTES) -> None:
        self.one = one
        self.checkpoint: Checkpoint = one.file.opening()
        self._meter = meter
        ours = {its: name for name, its in one.names.items()}
        # In the file's order.
        self.tensors = {ours[t.name]: t for t in one.tensors(self.checkpoint) if t.name in ours}
        self._keep = one.nbytes <= kept_nbytes
        self._kept: dict[str, tuple[str, NDArray[Any]]] = {}

    def close(self) -> None:
        """Let go of it."""
        self._kept.clear()
        self.one.file.close(self.checkpoint)

    def decoded(self, name: str) -> Decoded:
        """Its numbers in pieces of BLOCK, each to be looked at before the next is taken. Raises InspectorError."""
        place = TensorBytes(
            checkpoint=self.checkpoint, tensor=self.tensors[name], at_once=BLOCK, watch=self._meter.watching
        )
        found = find_decoder(self.tensors[name]).decode(place)
        pieces = self._noting(name, found) if self._keep else blocks(found)
        return Decoded(dtype=found.dtype, shape=found.shape, chunks=pieces, decoding=found.decoding)

    def _noting(self, name: str, found: Decoded) -> Iterator[NDArray[Any]]:
        held: list[NDArray[Any]] = []
        for piece in blocks(found):
            held.append(piece.copy())
            yield piece
        self._kept[name] = (found.dtype, np.concatenate(held))

    def wide(self, name: str) -> Iterator[NDArray[np.float64]]:
        """Its numbers as float64 in pieces of BLOCK; read once more where they are not kept."""
        if name in self._kept:
            dtype, raw = self._kept[name]
            pieces: Iterator[NDArray[Any]] = (raw[at : at + BLOCK] for at in range(0, len(raw), BLOCK))
        else:
            found = self.decoded(name)
            dtype, pieces = found.dtype, iter(found.chunks)
        for piece in pieces:
            yield as_wide(piece, dtype)

    def holds(self, name: str, tensor: TensorInfo) -> bool:
        """Whether it has that tensor in that shape."""
        return name in self.tensors and self.tensors[name].shape == tensor.shape

    def check(self) -> None:
        """Read all of it, and keep it where it is small. Raises what reading raises."""
        for name in self.tensors:
            self._meter.begin(f"{self.one.file.name}: {name}")
            for _ in self.wide(name):
                pass


def as_wide(raw: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """Raw elements as float64."""
    with np.errstate(invalid="ignore"):
        wide: NDArray[np.float64] = values(raw, dtype).astype(np.float64)
    return wide
