"""Pieces of pictures by a sweep: each picture once, a bad one costs itself, what is kept is not done again.

Pieces are by position alone, so that a second start, another machine or a picture that cannot be read leave the others'
neighbours as they are (pytorch/pytorch#25162 is what becomes of metrics otherwise).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from inspector.cam.runs import ReadyModel
from inspector.cam.sweeping.held import (
    Files,
    FilesPlace,
    Held,
    ModelPlace,
    Pictures,
    Reopen,
    content_of,
    digest_of,
    lent,
    raise_ending,
)
from inspector.errors import InspectorError
from inspector.progress import Progress, silent
from inspector.sweep.engines import Engine, Inline
from inspector.sweep.piece import WHOLE, Outcome, Part, Piece, Work, key_of
from inspector.sweep.run import sweep
from inspector.sweep.store import Kept

# Pictures of a piece: what is lost where the work is stopped.
PIECE = 32
# How an outcome begins that no worker gave; what follows is why.
_LOST = b"!"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Running:
    """Where pictures go through the model. store: where results are kept, and taken from. part: the share that is
    done. reopen: opens the model in another process, None where all runs in this one. piece: pictures of a piece."""

    engine: Engine = field(default_factory=Inline)
    store: Kept | None = None
    part: Part = WHOLE
    reopen: Reopen | None = None
    piece: int = field(default_factory=lambda: PIECE)

    def numbers(self, pictures: int) -> range:
        """Of the part's pieces."""
        return self.part.places(-(-pictures // self.piece))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """What is asked of pictures. name: of the results in a store. facts: all that an answer depends on beside the
    pictures and the model's weights. nothing: what is kept of pictures that could not be done, (row, why) of each."""

    name: str
    facts: tuple[object, ...]
    work: Callable[[ModelPlace], Work[Pictures]]
    nothing: Callable[[Pictures, tuple[tuple[int, str], ...]], bytes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PieceResult:
    """number: of the piece. key: of its result in a store, "" where it is in none. again: does it here."""

    number: int
    key: str
    pictures: Pictures
    data: bytes
    again: Callable[[], bytes]


def run_pictures(
    ready: ReadyModel,
    paths: Sequence[str],
    opened: tuple[FilesPlace, Files],
    question: Question,
    running: Running,
    *,
    progress: Progress = silent,
) -> Iterator[PieceResult]:
    """Each piece of the part once, in the order in which they are there; with a store it has them then.

    opened: where the pictures lie, and what reads them here. A picture that ends its worker is a row that says so.
    progress counts pictures. Raises what the work ends with, ReadError and ExportError of the store and the engine,
    ReadError of a worker that has not the same model. The model is left as it was.
    """
    place, files = opened
    numbers = running.numbers(len(paths))
    items = [Pictures(paths=tuple(paths[n * running.piece : (n + 1) * running.piece])) for n in numbers]
    told = _Told(progress, sum(len(item.paths) for item in items))
    model = ModelPlace(
        run=secrets.token_hex(8),
        reopen=running.reopen,
        content=content_of(ready),
        files=place,
        threads=torch.get_num_threads(),
    )
    pieces = [Piece(item=item) for item in items]
    if running.store is not None:
        facts = key_of(question.name, model.content, model.threads, question.facts)
        pieces = [_keyed(question.name, item, files, facts, told) for item in items]
    work = question.work(model)
    inside = told.inside if isinstance(running.engine, Inline) else silent
    with lent(model.run, Held(model=ready.model, files=files, progress=inside)):
        for at, outcome in _each(pieces, work, question, running, told):
            if not outcome.kept:
                raise_ending(outcome.data)
            item = pieces[at].item
            told.done(len(item.paths))
            key = pieces[at].key if outcome.kept else ""

            def again(item: Pictures = item) -> bytes:
                data = work(item).data
                raise_ending(data)
                return data

            yield PieceResult(number=numbers[at], key=key, pictures=item, data=outcome.data, again=again)
    progress(told.total, told.total, "")


def _keyed(name: str, item: Pictures, files: Files, facts: str, told: _Told) -> Piece[Pictures]:
    """With the digests of its pictures, by which its result is known again; without a key where one cannot be read."""
    digests = []
    for path in item.paths:
        told.waiting(0, None, path)
        try:
            digests.append(digest_of(files.read(path)))
        except InspectorError:
            digests.append("")
    key = key_of(name, facts, digests) if all(digests) else ""
    return Piece(item=replace(item, digests=tuple(digests)), key=key)


def _each(
    pieces: Sequence[Piece[Pictures]], work: Work[Pictures], question: Question, running: Running, told: _Told
) -> Iterator[tuple[int, Outcome]]:
    """Pieces that no worker survives are done without the pictures that are to blame: each is tried alone, and the
    others are done again beside the neighbours that they have anyhow."""
    lost: list[int] = []
    for place, outcome in _swept(pieces, work, question, running, told):
        if _is_lost(outcome):
            lost.append(place)
        else:
            yield place, outcome
    unkept = replace(running, store=None)
    alone = [(place, row) for place in lost for row in range(len(pieces[place].item.paths))]
    tried = [Piece(item=Pictures(paths=(pieces[place].item.paths[row],))) for place, row in alone]
    fatal: dict[int, list[tuple[int, str]]] = {place: [] for place in lost}
    for number, outcome in _swept(tried, work, question, unkept, told):
        place, row = alone[number]
        if _is_lost(outcome):
            fatal[place].append((row, _blamed(outcome)))
    again = [Piece(item=replace(pieces[place].item, left_out=tuple(sorted(fatal[place])))) for place in lost]
    for number, outcome in _swept(again, work, question, unkept, told):
        if _is_lost(outcome):
            item, why = again[number].item, f"{_blamed(outcome)[:-1]}, beside its neighbours."
            known = dict(item.left_out)
            rows = tuple((row, known.get(row, why)) for row in range(len(item.paths)))
            outcome = Outcome(data=question.nothing(item, rows), kept=False)
        yield lost[number], outcome


def _swept(
    pieces: Sequence[Piece[Pictures]], work: Work[Pictures], question: Question, running: Running, told: _Told
) -> Iterator[tuple[int, Outcome]]:
    return sweep(
        question.name,
        pieces,
        work,
        lost=_lost,
        engine=running.engine,
        store=running.store,
        together=1,
        progress=told.waiting,
    )


def _lost(item: Any, why: str) -> Outcome:
    memory = "MemoryError" in why or "out of memory" in why
    says = "took more memory than there was" if memory else "ended the process that did it"
    return Outcome(data=_LOST + says.encode("ascii"), kept=False)


def _is_lost(outcome: Outcome) -> bool:
    return not outcome.kept and outcome.data.startswith(_LOST)


def _blamed(outcome: Outcome) -> str:
    return f"Working on it {outcome.data.removeprefix(_LOST).decode('ascii')}."


class _Told:
    """Progress in pictures, where a sweep counts pieces; it never goes back."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.total = total
        self._progress, self._done, self._shown = progress, 0, 0

    def done(self, pictures: int) -> None:
        """So many more."""
        self._done += pictures
        self._show(self._done, "")

    def waiting(self, done: int, total: int | None, note: str) -> None:
        """As a sweep calls it."""
        self._show(self._done, note)

    def inside(self, done: int, total: int | None, note: str) -> None:
        """As work in this process calls it: of the piece under way."""
        self._show(self._done + done, note)

    def _show(self, done: int, note: str) -> None:
        self._shown = max(self._shown, done)
        self._progress(self._shown, self.total, note)
