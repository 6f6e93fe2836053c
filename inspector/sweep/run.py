"""The one loop of a sweep: what the store has, then a window of batches over any executor, each result as it comes.

Nothing is scheduled, retried or watched here: that is the executor's. What is done here is what no executor does: a
batch that fails is halved until the piece that fails is alone, so that one bad file costs no other its result.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic

from inspector.errors import InspectorError
from inspector.progress import Progress, silent
from inspector.sweep.engines import Engine
from inspector.sweep.piece import Item, Lost, Outcome, Piece, Work, batches_of
from inspector.sweep.store import Kept

# Batches that each worker gets at least, where there is enough: the last one is then short.
_SHARES = 16
_MOST_NBYTES = 256 << 20
_TICK_SECONDS = 0.2
# A broken pool tells all its futures at once.
_BREAK_SECONDS = 5
# Results that become one part of a store in a bucket, and how long they are held for it: what a kill costs besides.
_MOST_HELD = 1000
_HELD_SECONDS = 2

_Places = tuple[int, ...]


def sweep(
    question: str,
    pieces: Sequence[Piece[Item]],
    work: Work[Item],
    *,
    lost: Lost[Item],
    engine: Engine,
    store: Kept | None = None,
    aside: str = "",
    together: int = 0,
    progress: Progress = silent,
) -> Iterator[tuple[int, Outcome]]:
    """(place in pieces, its outcome) of each piece, in the order in which they are there.

    question: what the results are called in the store; aside: what is kept beside them. work: a function of the item
    alone, and of nothing else; it and the items must pickle. lost: says what became of a piece that no worker
    survives. together: how many pieces travel together at the most, 0 for as many as suit the engine; 1 for pieces
    that take seconds, so that a killed worker costs the one that it had. progress counts pieces and is called at least
    every 0.2 s while there is nothing to give; raising from it ends the sweep, within one piece. Raises ReadError and
    ExportError of the store, whose parts are whole then, too.
    """
    run = _Run(
        question=question,
        pieces=pieces,
        work=work,
        lost=lost,
        engine=engine,
        store=store,
        aside=aside,
        together=together,
        progress=progress,
    )
    try:
        yield from run.kept()
        yield from run.window()
        yield from run.suspects()
        run.flush()
    finally:
        run.cancel()


@dataclass(slots=True)
class _Run(Generic[Item]):
    """done: pieces that have an outcome. failed: batches that failed, or were under way when the executor broke. held:
    results on their way into a store where each part costs a round trip, since then."""

    question: str
    pieces: Sequence[Piece[Item]]
    work: Work[Item]
    lost: Lost[Item]
    engine: Engine
    store: Kept | None
    aside: str
    together: int
    progress: Progress
    done: int = 0
    left: array[int] = field(default_factory=lambda: array("q"))
    failed: deque[_Places] = field(default_factory=deque)
    under_way: dict[Future[list[Outcome]], _Places] = field(default_factory=dict)
    held: list[tuple[str, Outcome]] = field(default_factory=list)
    since: float = 0.0

    def kept(self) -> Iterator[tuple[int, Outcome]]:
        """What the store has already."""
        places: dict[str, int] = {}
        # Pieces whose key another has: few of a million, and a list for each key takes as much as all the rest.
        again: dict[str, list[int]] = {}
        for place, piece in enumerate(self.pieces if self.store is not None else ()):
            if piece.key and places.setdefault(piece.key, place) != place:
                again.setdefault(piece.key, []).append(place)
        found = bytearray(len(self.pieces))
        if self.store is not None:
            for key, data in self.store.load(self.question, places):
                for place in (places[key], *again.get(key, ())):
                    found[place] = True
                    self._tell(place)
                    yield place, Outcome(data=data)
        self.left = array("q", (place for place, there in enumerate(found) if not there))

    def window(self) -> Iterator[tuple[int, Outcome]]:
        """The rest, as many batches at a time as keep every worker busy."""
        share = max(1, len(self.left) // (self.engine.workers * _SHARES))
        sizes = ((place, self.pieces[place].nbytes) for place in self.left)
        most = min(self.engine.most, share, self.together or share)
        waiting = deque(batches_of(sizes, most=most, most_nbytes=_MOST_NBYTES))
        while waiting or self.under_way:
            while waiting and len(self.under_way) < self.engine.window and self._submit(waiting[0]):
                waiting.popleft()
            yield from self._next()

    def suspects(self) -> Iterator[tuple[int, Outcome]]:
        """What failed, one batch at a time, so that nobody is blamed for another: halved until it is alone."""
        while self.failed:
            batch = self.failed.popleft()
            if not self._submit(batch):
                self.failed.appendleft(batch)
                self.engine.renew()
                continue
            (future,) = self.under_way
            yield from self._next(blame=True)
            while future in self.under_way:
                yield from self._next(blame=True)

    def cancel(self) -> None:
        """Nothing new begins; what runs ends by itself, or with the engine."""
        self.engine.cancel(self.under_way)
        # What is done already is kept, whatever ended the others; why it ended says more than that it could not be.
        with suppress(InspectorError):
            self.flush()

    def flush(self) -> None:
        """Keep what is held. Raises ExportError of the store."""
        kept, self.held = self.held, []
        if self.store is None or not kept:
            return
        # First, so that whoever finds a result finds what belongs to it.
        if self.aside:
            self.store.put(self.aside, [(key, one.aside) for key, one in kept if one.aside])
        self.store.put(self.question, [(key, one.data) for key, one in kept])

    def _submit(self, batch: _Places) -> bool:
        items = [self.pieces[place].item for place in batch]
        try:
            self.under_way[self.engine.submit(run_batch, self.work, items)] = batch
        except BrokenExecutor:
            # Heard of with the futures that it took along; without any, it is renewed here.
            if not self.under_way:
                self.engine.renew()
            return False
        return True

    def _next(self, *, blame: bool = False) -> Iterator[tuple[int, Outcome]]:
        ready, _ = wait(self.under_way, timeout=_TICK_SECONDS, return_when=FIRST_COMPLETED)
        if not ready:
            self.progress(self.done, len(self.pieces), "")
            # The next result may take minutes, and a kill until then should not cost these.
            self._flush_old()
            return
        if any(isinstance(future.exception(), BrokenExecutor) for future in ready if not future.cancelled()):
            # The others are told the same, or had ended before.
            ready = wait(self.under_way, timeout=_BREAK_SECONDS).done | ready
            yield from self._take(ready, blame=blame)
            self.failed.extend(self.under_way.values())
            self.under_way.clear()
            self.engine.renew()
        else:
            yield from self._take(ready, blame=blame)

    def _take(self, ready: Iterable[Future[list[Outcome]]], *, blame: bool) -> Iterator[tuple[int, Outcome]]:
        for future in ready:
            batch = self.under_way.pop(future)
            try:
                outcomes = future.result()
            except (Exception, CancelledError) as error:  # noqa: BLE001 - whatever an executor says, it costs this batch
                self.engine.check()
                yield from self._failed(batch, error, blame=blame)
                continue
            self._keep(batch, outcomes)
            for place, outcome in zip(batch, outcomes, strict=True):
                self._tell(place)
                yield place, outcome

    def _failed(self, batch: _Places, error: BaseException, *, blame: bool) -> Iterator[tuple[int, Outcome]]:
        if not blame:
            self.failed.append(batch)
        elif len(batch) > 1:
            half = len(batch) // 2
            self.failed.extendleft((batch[half:], batch[:half]))
        else:
            why = "its worker ended" if isinstance(error, BrokenExecutor) else f"{type(error).__name__}: {error}"
            self._tell(batch[0])
            yield batch[0], self.lost(self.pieces[batch[0]].item, why)

    def _keep(self, batch: _Places, outcomes: Sequence[Outcome]) -> None:
        if self.store is None:
            return
        named = [(self.pieces[p].key, one) for p, one in zip(batch, outcomes, strict=True)]
        if not self.held:
            self.since = time.monotonic()
        self.held += [(key, one) for key, one in named if one.kept and key]
        if not self.store.distant or len(self.held) >= _MOST_HELD:
            self.flush()
        self._flush_old()

    def _flush_old(self) -> None:
        if self.held and time.monotonic() - self.since > _HELD_SECONDS:
            self.flush()

    def _tell(self, place: int) -> None:
        self.done += 1
        self.progress(self.done, len(self.pieces), "")


def run_batch(work: Work[Item], items: Sequence[Item]) -> list[Outcome]:
    """What a worker does."""
    return [work(item) for item in items]
