"""Every picture through the model once, by a sweep over pieces: the same scores whatever runs them, kept on the way.

Pieces and batches are by position alone, so that a second start, another machine or a picture that cannot be read
leave the others' neighbours as they are (pytorch/pytorch#25162 is what becomes of metrics otherwise).
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from inspector.cam.describe import versions
from inspector.cam.engine.capture import capture
from inspector.cam.inputs.picture import input_shape
from inspector.cam.report import Preprocessing
from inspector.cam.runs import ReadyModel
from inspector.errors import LimitExceeded
from inspector.evaluate.files import PictureFiles
from inspector.evaluate.labels import ClassFolders
from inspector.evaluate.pieces import QUESTION, Pictures, Scored, packed, raise_error, unpacked
from inspector.evaluate.work import Held, Reopen, Scoring, content_of, forward, lent
from inspector.progress import Progress, silent
from inspector.sweep.engines import Engine, Inline
from inspector.sweep.piece import WHOLE, Outcome, Part, Piece, key_of
from inspector.sweep.run import sweep
from inspector.sweep.store import Kept
from inspector.units import human_bytes

# Pictures of a piece: what is lost where the work is stopped.
PIECE = 32
MOST_NBYTES = 2_000_000_000
# How an outcome begins that no worker gave; what follows is why.
_LOST = b"!"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Running:
    """Where pictures go through the model. store: where scores are kept, and taken from. part: the share that is
    scored. reopen: opens the model in another process, None where all runs in this one."""

    engine: Engine = field(default_factory=Inline)
    store: Kept | None = None
    part: Part = WHOLE
    reopen: Reopen | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureScores:
    """values: (N, K) float32 in the order of the listing; unread: (position, why) of pictures without, whose rows are
    NaN."""

    values: NDArray[np.float32]
    unread: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPiece:
    """number: of the piece. key: of its scores in a store, "" where they are in none."""

    number: int
    key: str
    scored: Scored


def answer_to_noise(model: nn.Module, preprocessing: Preprocessing) -> Tensor:
    """(1, K) scores of one fixed picture of noise. Raises ExplainError where it gives none."""
    noise = torch.rand((1, *input_shape(preprocessing)), generator=torch.Generator().manual_seed(0))
    with capture(model) as borrowed:
        torch.manual_seed(0)
        return forward(borrowed, noise)


def head_size(model: nn.Module, preprocessing: Preprocessing) -> int:
    """How many scores it gives for a picture, by one pass. Raises ExplainError where it gives none."""
    return int(answer_to_noise(model, preprocessing).shape[1])


def scores_nbytes(pictures: int, outputs: int) -> int:
    """Of all scores. Raises LimitExceeded for more than are held."""
    nbytes = 4 * pictures * outputs
    if nbytes > MOST_NBYTES:
        raise LimitExceeded(
            f"Scores of {pictures:,} pictures for {outputs:,} classes take {human_bytes(nbytes)}; "
            f"{human_bytes(MOST_NBYTES)} are held.",
            hint="Evaluate a part of the pictures at a time.",
        )
    return nbytes


def score_pictures(
    ready: ReadyModel,
    folders: ClassFolders,
    answer: Tensor,
    running: Running,
    *,
    progress: Progress = silent,
) -> Iterator[ScoredPiece]:
    """Each piece of the part once, in the order in which they are there; with a store it has them then.

    answer: `answer_to_noise`. A picture that cannot be read is said and the others go on, one that ends its worker too.
    progress counts pictures. Raises ExplainError where the model does not run on one, ReadError and ExportError of the
    store, the engine, and a worker that has not the same model. The model is left as it was.
    """
    paths = folders.listing.paths
    outputs = int(answer.shape[1])
    scores_nbytes(len(paths), outputs)
    starts = range(0, len(paths), PIECE)
    numbers = running.part.places(len(starts))
    told = _Told(progress, sum(len(paths[starts[n] : starts[n] + PIECE]) for n in numbers))
    work = Scoring(
        run=secrets.token_hex(8),
        reopen=running.reopen,
        content=content_of(ready),
        place=folders.files.place,
        preprocessing=ready.preprocessing,
        outputs=outputs,
        threads=torch.get_num_threads(),
    )
    items = [Pictures(paths=paths[starts[n] : starts[n] + PIECE]) for n in numbers]
    pieces = [Piece(item=item) for item in items]
    if running.store is not None:
        facts = _facts(ready, answer, work)
        pieces = [_keyed(item, folders.files, facts, told) for item in items]
    inside = told.inside if isinstance(running.engine, Inline) else silent
    with lent(work.run, Held(model=ready.model, files=folders.files, progress=inside)):
        lost: list[int] = []
        for place, outcome in _swept(pieces, work, running, told):
            if outcome.data.startswith(_LOST):
                lost.append(place)
                continue
            yield _scored(numbers[place], pieces[place], outcome, work, told)
        for place, outcome in _without_fatal(lost, pieces, work, running, told):
            yield _scored(numbers[place], pieces[place], outcome, work, told)
    progress(told.total, told.total, "")


def assembled(pieces: Iterable[ScoredPiece], pictures: int, outputs: int, each: int = 0) -> PictureScores:
    """Pieces in any order as one table; what is in none of them is NaN. each: pictures of a piece, 0 for ours."""
    values = np.full((pictures, outputs), np.nan, dtype=np.float32)
    unread: list[tuple[int, str]] = []
    for piece in pieces:
        start, found = piece.number * (each or PIECE), piece.scored
        values[start : start + len(found.values)] = found.values
        unread += [(start + row, why) for row, why in found.unread]
    return PictureScores(values=values, unread=tuple(sorted(unread)))


def _scored(number: int, piece: Piece[Pictures], outcome: Outcome, work: Scoring, told: _Told) -> ScoredPiece:
    raise_error(outcome.data)
    told.done(len(piece.item.paths))
    rows, kept = len(piece.item.paths), outcome.kept
    found = unpacked(outcome.data, rows, work.outputs)
    if found is None:
        # Of a store that somebody else wrote into: scored here.
        again, kept = work(piece.item).data, False
        raise_error(again)
        found = unpacked(again, rows, work.outputs)
        assert found is not None
    return ScoredPiece(number=number, key=piece.key if kept else "", scored=found)


def _keyed(item: Pictures, files: PictureFiles, facts: str, told: _Told) -> Piece[Pictures]:
    """With the digests of its pictures, by which its scores are known again; without a key where one cannot be read."""
    digests = []
    for path in item.paths:
        told.waiting(0, None, path)
        digests.append(files.digest(path))
    key = key_of(QUESTION, facts, digests) if all(digests) else ""
    return Piece(item=replace(item, digests=tuple(digests)), key=key)


def _facts(ready: ReadyModel, answer: Tensor, work: Scoring) -> str:
    """What scores depend on beside the pictures: the weights, the network, the preprocessing, what computes. Code of
    one's own may change under its name, which the answer to noise shows."""
    return key_of(
        "scoring",
        work.content,
        ready.architecture,
        answer.float().cpu().numpy().tobytes().hex(),
        dataclasses.asdict(work.preprocessing),
        work.outputs,
        work.threads,
        versions(),
    )


def _swept(
    pieces: Sequence[Piece[Pictures]], work: Scoring, running: Running, told: _Told
) -> Iterator[tuple[int, Outcome]]:
    return sweep(
        QUESTION,
        pieces,
        work,
        lost=_lost,
        engine=running.engine,
        store=running.store,
        together=1,
        progress=told.waiting,
    )


def _lost(item: Pictures, why: str) -> Outcome:
    memory = "MemoryError" in why or "out of memory" in why
    says = "took more memory than there was" if memory else "ended the process that did it"
    return Outcome(data=_LOST + says.encode("ascii"), kept=False)


def _without_fatal(
    lost: Sequence[int], pieces: Sequence[Piece[Pictures]], work: Scoring, running: Running, told: _Told
) -> Iterator[tuple[int, Outcome]]:
    """Pieces that no worker survived, without the pictures that are to blame: each is tried alone, and the others are
    scored again beside the neighbours that they have anyhow."""
    unkept = replace(running, store=None)
    alone = [(place, row) for place in lost for row in range(len(pieces[place].item.paths))]
    tried = [Piece(item=Pictures(paths=(pieces[place].item.paths[row],))) for place, row in alone]
    fatal: dict[int, list[tuple[int, str]]] = {place: [] for place in lost}
    for number, outcome in _swept(tried, work, unkept, told):
        place, row = alone[number]
        if outcome.data.startswith(_LOST):
            fatal[place].append((row, _blamed(outcome)))
    again = [Piece(item=replace(pieces[place].item, left_out=tuple(sorted(fatal[place])))) for place in lost]
    for number, outcome in _swept(again, work, unkept, told):
        if outcome.data.startswith(_LOST):
            outcome = _nothing(again[number].item, work.outputs, f"{_blamed(outcome)[:-1]}, beside its neighbours.")
        yield lost[number], outcome


def _blamed(outcome: Outcome) -> str:
    return f"Scoring it {outcome.data.removeprefix(_LOST).decode('ascii')}."


def _nothing(item: Pictures, outputs: int, says: str) -> Outcome:
    known = dict(item.left_out)
    values = np.full((len(item.paths), outputs), np.nan, dtype=np.float32)
    unread = tuple((row, known.get(row, says)) for row in range(len(item.paths)))
    return Outcome(data=packed(Scored(values=values, unread=unread)), kept=False)


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
