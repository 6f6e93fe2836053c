"""Statistics of a checkpoint by a sweep over its pieces: the same report as by one pass, to the last bit."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.errors import InspectorError, ReadError, UsageError
from inspector.giants.places import is_far
from inspector.giants.plan import PIECE_NBYTES, QUESTION, Stretch, plan_pieces
from inspector.giants.spilled import Spill
from inspector.giants.work import lost_piece, measure_piece
from inspector.giants.written import Answer, read
from inspector.progress import Progress, silent
from inspector.sweep.engines import Engine, engine_of
from inspector.sweep.run import sweep
from inspector.sweep.store import ResultStore, open_store
from inspector.units import human_bytes
from inspector.weights.measure import Reader, Readings, describe_parts, different_tensors
from inspector.weights.parts import Part
from inspector.weights.report import TensorStatistics


def read_in_pieces(
    checkpoint: Checkpoint,
    tensors: Sequence[TensorInfo],
    *,
    engine: Engine,
    store: ResultStore | None = None,
    most_nbytes: int = PIECE_NBYTES,
    progress: Progress = silent,
) -> Readings:
    """As `read_tensors`, by pieces of at most most_nbytes on any engine.

    What the store holds is not read again. progress counts bytes; raising from it ends the work within one piece. A
    tensor whose pieces could not all be read has no statistics. Raises ReadError and ExportError of the store and the
    engine, and ReadError where a file is gone.
    """
    began = time.perf_counter()
    first = different_tensors(tensors)
    try:
        pieces = plan_pieces(checkpoint, tuple(first.values()), most_nbytes=most_nbytes)
    except OSError as error:
        raise ReadError(f"{checkpoint.origin.name} is not there any more: {error.strerror}.") from error
    told = _Told(progress, sum(piece.nbytes for piece in pieces))
    gathered = _Gathered()
    outcomes = sweep(
        QUESTION, pieces, measure_piece, lost=lost_piece, engine=engine, store=store, progress=told.waiting
    )
    for number, outcome in outcomes:
        stretches = pieces[number].item.stretches
        for stretch, answer in zip(stretches, read(outcome.data), strict=True):
            gathered.add(stretch, answer)
        told.done(pieces[number].nbytes, stretches[-1].tensor.name)
    progress(told.total, told.total, "done")
    answers = {place: gathered.whole[tensor.path] for place, tensor in first.items()}
    return Readings(answers=answers, seconds=time.perf_counter() - began)


@contextmanager
def in_pieces(executor: str, jobs: int, store: str = "") -> Iterator[Reader]:
    """Who reads numbers by pieces on the engine of that name (`engine_of`), with the store of that folder, if any.

    Whatever ends the reading is raised at the end of the block, though the inspection calls it an answer: what is not
    whole is no report.
    """
    kept = open_store(store) if store else None
    ended: list[InspectorError] = []

    with engine_of(executor, jobs) as engine:

        def read(
            checkpoint: Checkpoint, tensors: Sequence[TensorInfo], *, workers: int = 1, progress: Progress = silent
        ) -> Readings:
            try:
                return read_in_pieces(checkpoint, tensors, engine=engine, store=kept, progress=progress)
            except InspectorError as error:
                ended.append(error)
                raise

        yield read
        if ended:
            raise ended[0]


def check_cost(checkpoint: Checkpoint, most_nbytes: int) -> None:
    """Raise UsageError where more than that would be fetched through a network."""
    nbytes = sum(tensor.nbytes for tensor in different_tensors(checkpoint.tensors).values())
    if nbytes > most_nbytes and is_far(checkpoint.source):
        raise UsageError(
            f"The numbers of {checkpoint.origin.name} are {human_bytes(nbytes)}, to be fetched from their address.",
            hint="Run it where they lie, or add --yes to fetch all of it.",
        )


class _Gathered:
    """Answers as they come. whole: of a tensor, by its path. Stretches wait for the others of their tensor."""

    def __init__(self) -> None:
        self.whole: dict[tuple[str, ...], TensorStatistics | str] = {}
        self._spill = Spill()
        self._waiting: dict[tuple[str, ...], list[tuple[Stretch, Part | str]]] = defaultdict(list)

    def add(self, stretch: Stretch, answer: Answer) -> None:
        tensor = stretch.tensor
        if stretch.numel is None:
            assert not isinstance(answer, Part)
            self.whole[tensor.path] = answer if isinstance(answer, str) else self._spill.kept(answer)
            return
        assert not isinstance(answer, TensorStatistics)
        waiting = self._waiting[tensor.path]
        waiting.append((stretch, answer))
        if sum(one.numel or 0 for one, _ in waiting) < tensor.numel:
            return
        del self._waiting[tensor.path]
        # The first reason, wherever the others came from: one pass would have ended there.
        why = next((a for _, a in sorted(waiting, key=lambda one: one[0].first) if isinstance(a, str)), "")
        parts = [a for _, a in waiting if isinstance(a, Part)]
        self.whole[tensor.path] = why or self._spill.kept(describe_parts(tensor, parts))


class _Told:
    """Progress in bytes, where a sweep counts pieces."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.total = total
        self._progress, self._bytes, self._note = progress, 0, ""

    def done(self, nbytes: int, note: str) -> None:
        self._bytes, self._note = self._bytes + nbytes, note
        self._progress(self._bytes, self.total, note)

    def waiting(self, done: int, total: int | None, note: str) -> None:
        self._progress(self._bytes, self.total, self._note)
