"""Which tensors are the same numbers, wherever they lie: a digest of all bytes of each, taken as they are measured."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.layout import PACKED_LAYOUTS
from inspector.checkpoint.stacks import Stack
from inspector.checkpoint.types import Checkpoint, TensorInfo

# 128 bits: among 10^9 tensors two are the same by chance once in 10^20 times.
_DIGEST_NBYTES = 16


class DigestTap:
    """Sees the stored pieces of one tensor pass, and nothing else."""

    def __init__(self, checkpoint: Checkpoint, tensor: TensorInfo) -> None:
        self._wanted = _digested_nbytes(checkpoint, tensor)
        self._hash = _begun(tensor)
        self._done = 0

    def watching(self, chunks: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """The same chunks, each taken in before whoever asked may write into it."""
        for chunk in chunks:
            if self._wanted:
                self._hash.update(np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).data)
                self._done += chunk.nbytes
            yield chunk

    def result(self) -> str:
        """32 hexadecimal digits; "" where not all of its bytes came by, or they do not tell its numbers alone."""
        return self._hash.hexdigest() if self._wanted and self._done == self._wanted else ""


def digests_of_stack(stack: Stack) -> list[str]:
    """The same of small tensors that were read side by side, in the stack's order."""
    begun = _begun(stack.tensors[0])
    rows = np.ascontiguousarray(stack.raw).view(np.uint8)
    found = []
    for tensor, row in zip(stack.tensors, rows, strict=True):
        digest = begun.copy()
        digest.update(row.data)
        found.append(digest.hexdigest() if tensor.nbytes == row.nbytes else "")
    return found


def _begun(tensor: TensorInfo) -> hashlib.blake2b:
    scheme = tensor.encoding.scheme if tensor.encoding is not None else ""
    kind = f"{tensor.dtype} {list(tensor.shape)} {tensor.layout} {scheme}\n"
    return hashlib.blake2b(kind.encode("utf-8", "backslashreplace"), digest_size=_DIGEST_NBYTES)


def _digested_nbytes(checkpoint: Checkpoint, tensor: TensorInfo) -> int:
    """How many bytes its numbers follow from, given its type and shape; 0 where something else has a say, too."""
    storage = checkpoint.storages.get(tensor.storage_id or "")
    own = tensor.encoding
    if own is None:
        swapped_inside = tensor.layout in PACKED_LAYOUTS and storage is not None and storage.big_endian
        return 0 if swapped_inside or tensor.layout != "strided" else tensor.nbytes
    if tensor.layout != "quantised_blocks" or len(own.parts) != 1 or own.conjugated or own.negated:
        return 0
    held = checkpoint.storages.get(own.parts[0].storage_id or "")
    return 0 if held is None or held.big_endian else own.parts[0].nbytes
