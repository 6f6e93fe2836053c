"""Tensors of two checkpoints held against each other by a sweep: the differences of one pass, to the last bit."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.compare.held import Held
from inspector.compare.pair import compare_pair
from inspector.compare.report import Relation, TensorDiff
from inspector.errors import ReadError
from inspector.giants.places import Known
from inspector.giants.plan import PIECE_NBYTES, KnownParts, part_with, place_of
from inspector.giants.work import elsewhere
from inspector.progress import silent
from inspector.reports_from_json import KEPT, report_from
from inspector.sweep.engines import Engine, engine_of
from inspector.sweep.piece import Outcome, Piece, key_of
from inspector.sweep.run import sweep
from inspector.sweep.store import ResultStore, open_store
from inspector.weights import kernel
from inspector.weights.meter import Meter

#: What the results are called in a store.
QUESTION = "pairs"
_MOST_PAIRS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsItem:
    """A piece as it travels. a, b: nothing of each checkpoint but where the bytes of these tensors lie. of_nbytes: what
    all pieces read together."""

    a: Checkpoint
    b: Checkpoint
    known_a: Known | None
    known_b: Known | None
    tensors: tuple[tuple[TensorInfo, TensorInfo], ...]
    of_nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """read: bytes that were read for it."""

    found: tuple[TensorDiff, ...]
    read: int


class PairsByPieces:
    """As `inspector.compare.diff.Pairwise`. A pair of tensors is never cut: of each a tile is in memory."""

    def __init__(self, engine: Engine, store: ResultStore | None = None, most_nbytes: int = PIECE_NBYTES) -> None:
        self._engine, self._store, self._most = engine, store, most_nbytes

    def __call__(self, pairs: Sequence[tuple[Held, Held]], meter: Meter) -> list[TensorDiff]:
        """The answer for each pair, in their order. Raises ReadError and ExportError of the store and the engine,
        ReadError where a file is gone, and what progress raises."""
        answers: dict[int, TensorDiff] = {}
        for place, (x, y) in enumerate(pairs):
            if x.place == y.place:
                # One tensor of one file: who reads it apart from the other does not see that.
                answers[place] = compare_pair(x, y, meter)
        try:
            groups = list(_groups([p for p in range(len(pairs)) if p not in answers], pairs, self._most))
            pieces = _pieces(groups, pairs)
        except OSError as error:
            raise ReadError(f"A file is not there any more: {error.strerror}.") from error

        def waiting(done: int, total: int | None, note: str) -> None:
            meter.begin(note)

        outcomes = sweep(
            QUESTION,
            pieces,
            compare_piece,
            lost=lost_pairs,
            engine=self._engine,
            store=self._store,
            progress=waiting,
        )
        for number, outcome in outcomes:
            given = report_from(_Given, json.loads(outcome.data), KEPT)
            answers.update(zip(groups[number], given.found, strict=True))
            meter.passed(given.read)
        return [answers[place] for place in range(len(pairs))]


@contextmanager
def pairs_in_pieces(executor: str, jobs: int, store: str = "") -> Iterator[PairsByPieces]:
    """On the engine of that name (`engine_of`), with the store of that folder or bucket, if any."""
    kept = open_store(store) if store else None
    with engine_of(executor, jobs) as engine:
        yield PairsByPieces(engine, kept)


def compare_piece(item: PairsItem) -> Outcome:
    """A difference for each pair of the piece. Kept is what says something of the files alone."""
    kernel.expect(item.of_nbytes)
    why = elsewhere(item.a, item.known_a) or elsewhere(item.b, item.known_b)
    if not why:
        meter = Meter(silent, 0)
        found = tuple(compare_pair(Held(item.a, x), Held(item.b, y), meter) for x, y in item.tensors)
        why = elsewhere(item.a, item.known_a, read=True) or elsewhere(item.b, item.known_b, read=True)
        if not why:
            kept = None not in (item.known_a, item.known_b) and all(_lasts(one) for one in found)
            return Outcome(data=_written(_Given(found=found, read=meter.done)), kept=kept)
    return Outcome(data=_unread(item, why), kept=False)


def lost_pairs(item: PairsItem, why: str) -> Outcome:
    """What becomes of a piece that no worker survives."""
    memory = why.startswith("MemoryError")
    says = "the process that read it ran out of memory" if memory else f"reading it failed ({why[:200]})"
    return Outcome(data=_unread(item, says), kept=False)


def _lasts(found: TensorDiff) -> bool:
    """Whether it will be the same another time: a network that gave nothing is told as a note, too."""
    return found.relation is not Relation.UNREAD and (found.numbers is not None or not found.note)


def _unread(item: PairsItem, why: str) -> bytes:
    held = [(Held(item.a, x), Held(item.b, y)) for x, y in item.tensors]
    found = tuple(TensorDiff(a=x.side, b=y.side, relation=Relation.UNREAD, note=why) for x, y in held)
    return _written(_Given(found=found, read=0))


def _written(given: _Given) -> bytes:
    return json.dumps(dataclasses.asdict(given), ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _groups(places: Sequence[int], pairs: Sequence[tuple[Held, Held]], most_nbytes: int) -> Iterator[tuple[int, ...]]:
    """Neighbours in the first file, so many bytes of both at the most; a larger pair goes by itself."""
    group: list[int] = []
    held = 0
    for place in sorted(places, key=lambda p: (place_of(pairs[p][0].checkpoint, pairs[p][0].tensor), p)):
        nbytes = _nbytes(pairs[place])
        if group and (held + nbytes > most_nbytes or len(group) >= _MOST_PAIRS):
            yield tuple(group)
            group, held = [], 0
        group.append(place)
        held += nbytes
    if group:
        yield tuple(group)


def _pieces(groups: Sequence[tuple[int, ...]], pairs: Sequence[tuple[Held, Held]]) -> list[Piece[PairsItem]]:
    known: tuple[KnownParts, KnownParts] = ({}, {})
    of_nbytes = sum(_nbytes(pairs[place]) for group in groups for place in group)
    found = []
    for group in groups:
        held = [pairs[place] for place in group]
        a = part_with(held[0][0].checkpoint, [x.tensor for x, _ in held], known[0])
        b = part_with(held[0][1].checkpoint, [y.tensor for _, y in held], known[1])
        item = PairsItem(
            a=a.checkpoint,
            b=b.checkpoint,
            known_a=a.known,
            known_b=b.known,
            tensors=tuple((x.tensor, y.tensor) for x, y in held),
            of_nbytes=of_nbytes,
        )
        told = [repr((x.tensor, y.tensor)) for x, y in held]
        key = key_of(QUESTION, a.facts, b.facts, told) if None not in (a.known, b.known) else ""
        found.append(Piece(item=item, key=key, nbytes=sum(_nbytes(pair) for pair in held)))
    return found


def _nbytes(pair: tuple[Held, Held]) -> int:
    return pair[0].tensor.nbytes + pair[1].tensor.nbytes
