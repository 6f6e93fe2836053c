"""What a decoder is given and what it hands over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from inspector.checkpoint.data import iter_chunks, iter_reused_chunks
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.errors import ReadError
from inspector.weights.report import Decoding

Chunks: TypeAlias = Iterable[NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorBytes:
    """One tensor of one file, to be read piece by piece.

    at_once: about how many numbers a piece should have. watch: sees the stored pieces pass, for progress.
    """

    checkpoint: Checkpoint
    tensor: TensorInfo
    at_once: int
    watch: Callable[[Chunks], Chunks] = lambda chunks: chunks

    def stored(
        self, tensor: TensorInfo, count: int, *, first: int = 0, numel: int | None = None, reused: bool = False
    ) -> Iterator[NDArray[Any]]:
        """The elements of a tensor (itself or a part of it) as the file stores them, `count` in each piece.

        first, numel: of these alone. reused: one piece may be overwritten by the next. Raises ReadError where the file
        has no data, CorruptFile where they are cut off.
        """
        storage = self.checkpoint.storages.get(tensor.storage_id or "")
        if tensor.numel and storage is not None and storage.offset is None and storage.inline is None:
            raise self.refusal("the file declares it but holds no data for it")
        if reused:
            chunks = iter_reused_chunks(self.checkpoint, tensor, count=count, first=first, numel=numel)
        else:
            step = count * DTYPES[tensor.dtype].itemsize
            chunks = iter_chunks(self.checkpoint, tensor, chunk_nbytes=step, first=first, count=numel)
        yield from self.watch(chunks)

    def refusal(self, why: str) -> ReadError:
        """The sentence for a tensor without numbers. why: half a sentence."""
        return ReadError(f"{self.tensor.name or 'The tensor'} has no statistics: {why}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Numbers to be measured in place of a tensor's elements.

    dtype: their type, one that `measure_chunks` takes. shape: of which rows are kept, () for none. chunks: 1-D arrays
    in row-major order; one may be overwritten by the next. decoding: what is to be said about it, None where the
    elements are plain numbers. per_element: numbers for one element.
    """

    dtype: str
    shape: tuple[int, ...]
    chunks: Chunks
    decoding: Decoding | None = None
    per_element: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """claims: whether such tensors are its business. decode: raises ReadError with the reason where it cannot."""

    id: str
    claims: Callable[[TensorInfo], bool]
    decode: Callable[[TensorBytes], Decoded]
