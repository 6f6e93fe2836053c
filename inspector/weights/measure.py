"""One pass over the bytes of every tensor of a state dict: what do its numbers look like?

The bytes come in tiles of 2^18 elements, so memory does not grow with the file. numpy only.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, reduce
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import is_contiguous, to_float32
from inspector.checkpoint.dtypes import DTYPES, find_dtype
from inspector.checkpoint.layout import PACKED
from inspector.checkpoint.stacks import read_stacks, stack_places
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import InspectorError
from inspector.gc_pause import without_collecting
from inspector.progress import Progress, silent
from inspector.weights import kernel
from inspector.weights.accumulate import accumulate, accumulate_part
from inspector.weights.decoded import find_decoder
from inspector.weights.decoded.plain import DECODER as PLAIN
from inspector.weights.decoded.plain import why_not_plain
from inspector.weights.decoded.types import TensorBytes
from inspector.weights.digests import DigestTap, digests_of_stack
from inspector.weights.meter import Meter
from inspector.weights.moments import TILE
from inspector.weights.parts import Numbers, Part, joined, numbers_of
from inspector.weights.report import TensorStatistics, WeightsReport
from inspector.weights.small_tensors import measure_stack

# Small tensors that are read side by side: as many bytes, so that progress is told and memory stays flat.
_LOT_NBYTES = 2 << 20
# So much is read in a second or two, however many tensors it is: for as long nobody looks for garbage.
_BRIEF_NBYTES = 256 << 20
# Tensors with where they begin (`stack_places`), None for one that is read by itself.
_Lot: TypeAlias = list[tuple[TensorInfo, int | None]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What one read over many tensors gave. answers: a tensor's statistics, or why it has none, by its place. digests:
    of its bytes, where they were asked for."""

    answers: Mapping[tuple[object, ...], TensorStatistics | str]
    seconds: float
    digests: Mapping[tuple[object, ...], str] = dataclasses.field(default_factory=dict)

    def digest(self, tensor: TensorInfo) -> tuple[str, bool]:
        """(digest, whether all its elements are one value); "" where it has none."""
        place = _place(tensor)
        answer = self.answers.get(place)
        if not isinstance(answer, TensorStatistics) or not self.digests.get(place):
            return "", False
        finite = not answer.nan and not answer.infinite
        return self.digests[place], finite and answer.minimum == answer.maximum

    def report(self, tensors: Iterable[TensorInfo]) -> WeightsReport:
        """Of those of them that were read, under their own names."""
        measured: list[TensorStatistics] = []
        skipped: list[tuple[str, str]] = []
        for tensor in tensors:
            answer = self.answers.get(_place(tensor))
            if isinstance(answer, str):
                skipped.append((tensor.name, answer))
            elif answer is not None:
                own = answer.name == tensor.name and answer.path == tensor.path
                measured.append(answer if own else dataclasses.replace(answer, name=tensor.name, path=tensor.path))
        return WeightsReport(state_dict=(), tensors=tuple(measured), skipped=tuple(skipped), seconds=self.seconds)


class Reader(Protocol):
    """Who reads the numbers of tensors, as `read_tensors` does: here, or elsewhere by pieces."""

    def __call__(
        self, checkpoint: Checkpoint, tensors: Sequence[TensorInfo], *, workers: int = 1, progress: Progress = silent
    ) -> Readings: ...


def measure_weights(
    checkpoint: Checkpoint, state: StateDict | None = None, *, workers: int = 1, progress: Progress = silent
) -> WeightsReport:
    """Statistics of every tensor of a state dict (the file's weights when not given, else all tensors of the file).

    workers: threads that read side by side; the report is the same to the last bit. progress counts bytes. A tensor
    that cannot be read as numbers is in `skipped` with the reason; the rest goes on. Tensors that show the same
    elements of the same storage are read once. Raises only what progress raises.
    """
    state = state or checkpoint.weights
    tensors = (state or checkpoint).tensors
    report = read_tensors(checkpoint, tensors, workers=workers, progress=progress).report(tensors)
    return dataclasses.replace(report, state_dict=state.path if state else ())


def read_tensors(
    checkpoint: Checkpoint,
    tensors: Sequence[TensorInfo],
    *,
    digests: bool = False,
    workers: int = 1,
    progress: Progress = silent,
) -> Readings:
    """The same of any tensors of the file. digests: of their bytes, too."""
    nbytes = sum(tensor.nbytes for tensor in tensors)
    with without_collecting() if nbytes <= _BRIEF_NBYTES else nullcontext():
        return _read_tensors(checkpoint, tensors, digests=digests, workers=workers, progress=progress)


def _read_tensors(
    checkpoint: Checkpoint, tensors: Sequence[TensorInfo], *, digests: bool, workers: int, progress: Progress
) -> Readings:
    began = time.perf_counter()
    first = different_tensors(tensors)
    nbytes = sum(t.nbytes for t in first.values())
    kernel.expect(nbytes)
    meter = Meter(progress, nbytes)
    found: dict[tuple[object, ...], str] = {}

    def one(tensor: TensorInfo, watched: Meter | None = meter) -> TensorStatistics | str:
        if watched is not None:
            watched.begin(tensor.name)
        try:
            if not digests:
                return measure_tensor(checkpoint, tensor, meter=watched)
            tap = DigestTap(checkpoint, tensor)
            measured = measure_tensor(checkpoint, tensor, meter=watched, tap=tap)
            found[_place(tensor)] = tap.result()
            return measured
        except InspectorError as error:
            return error.says
        except (OSError, ValueError, MemoryError) as error:
            return f"{tensor.name} could not be read: {error}."

    def lot(tensors: _Lot) -> list[TensorStatistics | str]:
        if len(tensors) == 1:
            return [one(tensors[0][0])]
        meter.begin(tensors[0][0].name)
        together = _measure_together(checkpoint, tensors, digests)
        if digests:
            found.update((_place(tensor), together[id(tensor)][1]) for tensor, _ in tensors if id(tensor) in together)
        answers = [together[id(tensor)][0] if id(tensor) in together else one(tensor, None) for tensor, _ in tensors]
        meter.passed(sum(tensor.nbytes for tensor, _ in tensors))
        return answers

    lots = _lots(checkpoint, first.values())
    read = {
        id(tensor): answer
        for lot_of, answers in zip(lots, meter.over(lot, lots, workers), strict=True)
        for (tensor, _), answer in zip(lot_of, answers, strict=True)
    }
    answers = {place: read[id(tensor)] for place, tensor in first.items()}
    meter.end()
    return Readings(answers=answers, seconds=time.perf_counter() - began, digests=found)


def _lots(checkpoint: Checkpoint, tensors: Collection[TensorInfo]) -> list[_Lot]:
    """In the file's order: large tensors each by itself, small ones many at a time."""
    found: list[_Lot] = []
    waiting: _Lot = []
    nbytes = 0
    for tensor, place in zip(tensors, stack_places(checkpoint, tensors), strict=True):
        if place is None or find_decoder(tensor) is not PLAIN:
            found.append([(tensor, None)])
            continue
        if not waiting:
            found.append(waiting)
        waiting.append((tensor, place))
        nbytes += tensor.nbytes
        if nbytes >= _LOT_NBYTES:
            waiting, nbytes = [], 0
    return found


def _measure_together(checkpoint: Checkpoint, lot: _Lot, digests: bool) -> dict[int, tuple[TensorStatistics, str]]:
    """(statistics, digest where it is asked for) of those that can be measured so, by the tensor's id; nothing where
    something cannot be read: each tensor says by itself why."""
    try:
        stacks = read_stacks(checkpoint, [(tensor, place) for tensor, place in lot if place is not None])
    except (InspectorError, OSError, ValueError, MemoryError):
        return {}
    answers: dict[int, tuple[TensorStatistics, str]] = {}
    for stack in stacks:
        of = dict(zip(map(id, stack.tensors), digests_of_stack(stack), strict=True)) if digests else {}
        answers.update((id(tensor), (found, of.get(id(tensor), ""))) for tensor, found in measure_stack(stack))
    return answers


def different_tensors(tensors: Iterable[TensorInfo]) -> dict[tuple[object, ...], TensorInfo]:
    """Those that are read, by their place: of several names for the very same elements the first."""
    first: dict[tuple[object, ...], TensorInfo] = {}
    for tensor in tensors:
        first.setdefault(_place(tensor), tensor)
    return first


def measure_tensor(
    checkpoint: Checkpoint,
    tensor: TensorInfo,
    *,
    chunk_nbytes: int | None = None,
    meter: Meter | None = None,
    tap: DigestTap | None = None,
) -> TensorStatistics:
    """Statistics of one tensor. Raises ReadError when it has no numbers or its bytes are not in the file.

    What is no plain number (complex, sparse, quantised, blocks) is decoded as it is read: see `TensorStatistics`.
    """
    # A tile at a time is read in place.
    at_once = max(1, chunk_nbytes // _itemsize(tensor)) if chunk_nbytes else TILE
    place = TensorBytes(checkpoint=checkpoint, tensor=tensor, at_once=at_once)
    watches = [one.watching for one in (tap, meter) if one is not None]
    if watches:
        place = dataclasses.replace(
            place, watch=lambda chunks: reduce(lambda seen, watch: watch(seen), watches, chunks)
        )
    decoded = find_decoder(tensor).decode(place)
    # Levels of a quantised tensor are few, and counting them would cost more than all the rest.
    numbers = measure_chunks(decoded.chunks, decoded.dtype, decoded.shape, narrow=decoded.decoding is None)
    found = describe(tensor, numbers)
    if decoded.decoding is None:
        return found
    first = numbers.first_non_finite
    return dataclasses.replace(
        found,
        first_non_finite=None if first is None else first // decoded.per_element,
        decoding=decoded.decoding,
    )


def may_be_cut(checkpoint: Checkpoint, tensor: TensorInfo) -> bool:
    """Whether a stretch of its elements can be read by itself, and is plain numbers; else it is measured whole."""
    plain = find_decoder(tensor) is PLAIN and not why_not_plain(tensor) and tensor.dtype not in PACKED
    if not plain or not is_contiguous(tensor):
        return False
    storage = checkpoint.storages.get(tensor.storage_id or "")
    return (
        storage is not None
        and storage.offset is not None
        and storage.inline is None
        and storage.deflated_nbytes is None
    )


def measure_part(checkpoint: Checkpoint, tensor: TensorInfo, first: int, numel: int) -> Part:
    """Of so many elements of a tensor that may be cut, from `first` on, the beginning of a leaf (`moments.LEAF`).

    Raises as `measure_tensor`.
    """
    place = TensorBytes(checkpoint=checkpoint, tensor=tensor, at_once=TILE)
    chunks = place.stored(tensor, TILE, first=first, numel=numel, reused=True)
    return accumulate_part(chunks, tensor.dtype, tensor.shape, code_values(tensor.dtype), first=first)


def describe_parts(tensor: TensorInfo, parts: Iterable[Part]) -> TensorStatistics:
    """The statistics of a tensor from all its parts, in any order: those of `measure_tensor`, to the last bit.

    Raises ValueError where one is missing.
    """
    whole = joined(parts)
    if whole.first or whole.numel != tensor.numel:
        raise ValueError(f"{tensor.name}: not all of its parts are there")
    return describe(tensor, numbers_of(whole, tensor.dtype, tensor.shape, code_values(tensor.dtype)))


def _itemsize(tensor: TensorInfo) -> int:
    dtype = find_dtype(tensor.dtype)
    return dtype.itemsize if dtype is not None else 1


def measure_chunks(
    chunks: Iterable[NDArray[Any]], dtype: str, shape: tuple[int, ...], *, narrow: bool = True
) -> Numbers:
    """chunks: 1-D arrays in row-major order, in the raw type of `dtype` (uint16 bits for bfloat16), all of `shape`."""
    return accumulate(chunks, dtype, shape, code_values(dtype), narrow=narrow)


def describe(tensor: TensorInfo, numbers: Numbers) -> TensorStatistics:
    """The numbers under the tensor's own name."""
    measured = {name: getattr(numbers, name) for name in _MEASURED}
    return TensorStatistics(name=tensor.name, path=tensor.path, shape=tensor.shape, dtype=tensor.dtype, **measured)


_MEASURED = tuple(field.name for field in dataclasses.fields(Numbers))


@cache
def code_values(dtype: str) -> NDArray[np.float64] | None:
    """The value of each bit pattern of a type with 8 or 16 bits: (256,) or (65536,). None for wider types."""
    kind = DTYPES[dtype]
    if kind.itemsize > 2:
        return None
    if dtype == "bool":
        # torch writes 0 and 1; any other byte still means true.
        return np.minimum(np.arange(256, dtype=np.float64), 1.0)
    codes = np.arange(1 << (8 * kind.itemsize), dtype=np.uint8 if kind.itemsize == 1 else np.uint16)
    if kind.native:
        native: NDArray[np.float64] = codes.view(kind.raw).astype(np.float64)
        return native
    with np.errstate(invalid="ignore"):  # Signalling NaNs become quiet ones.
        return to_float32(codes, dtype).astype(np.float64)


def _place(tensor: TensorInfo) -> tuple[object, ...]:
    """What has to be equal for two names to show the very same elements."""
    if tensor.storage_id is None:
        return ("", tensor.path)
    decoder = find_decoder(tensor).id
    return (tensor.storage_id, tensor.offset, tensor.shape, tensor.stride, tensor.dtype, tensor.encoding, decoder)
