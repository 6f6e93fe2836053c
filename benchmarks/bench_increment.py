"""The day after: a million files listed, one in a hundred changed, the others from the store. Nothing else is read.

python -m benchmarks.bench_increment [files] [tensors]

The listing is made up and the bytes are those of one safetensors file; the audit, its store, its report and its
catalogue are the product's own. Seconds and memory of the one process that drives and reads.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors.numpy import save

from inspector.checkpoint.source import BufferSource
from inspector.lint import audit as auditing
from inspector.lint.audit import audit
from inspector.lint.check import reading_of
from inspector.lint.request import CheckRequest
from inspector.remote.buckets import BucketFile
from inspector.survey.described import DESCRIBED
from inspector.survey.survey import How, plan_places
from inspector.survey.swept import UnitRows, data_of, facts_of, rows_of
from inspector.survey.unit_pieces import QUESTION, UnitPieces
from inspector.sweep.piece import Piece
from inspector.sweep.store import ResultStore, open_store

Answer = TypeVar("Answer")
_FILES, _TENSORS, _BATCH, _CHANGED = 1_000_000, 3, 100, 100
_BYTES = b""
_PLACE = "s3://zoo/file0.safetensors"


class _Held(BufferSource):
    def changed(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed(BucketFile):
    """An object of a listing; whatever it is called, the bytes are those of one file."""

    def open(self) -> _Held:  # type: ignore[override]
        return _Held(_BYTES, self.name)


def main(count: int, tensors: int) -> None:
    global _BYTES
    _BYTES = save({f"layers.{n}.weight": np.full((4, 4), n, np.float32) for n in range(tensors)})
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/store")
        first = _listing(count, "monday")
        _timed("a store of that many results, written by hand", lambda: _fill(store, first, Path(folder)))
        _audited("the same again", store, first)
        _catalogue(store, f"{folder}/store")
        later = _listing(count, "tuesday")
        assert sum(one != other for one, other in zip(first, later, strict=True)) == -(-count // _CHANGED)
        _audited("one in a hundred changed", store, later)
        _catalogue(store, f"{folder}/store")


def _listing(count: int, day: str) -> list[BucketFile]:
    return [
        _Listed(
            address=f"s3://zoo/owner{n // 1000}/model{n // 10}/file{n}.safetensors",
            size=len(_BYTES),
            said=f"ETag\0{n:032x}{day if n % _CHANGED == 0 else ''}",
        )
        for n in range(count)
    ]


def _request() -> CheckRequest:
    return CheckRequest(paths=(), base=Path(), headers=True)


def _fill(store: ResultStore, listed: Sequence[BucketFile], beside: Path) -> None:
    """What reading each would have kept: the result of one, under the name of every other."""
    alone = open_store(str(beside / "alone"))
    _audit(alone, [_Listed(address=_PLACE, size=len(_BYTES), said="ETag\0001")])
    (_, text), *_ = alone.texts("results", QUESTION)
    (_, aside), *_ = alone.texts("results", DESCRIBED)
    row, aside = text.split(b"\t")[1].strip(), aside.split(b"\t")[1].strip()
    assert _PLACE.encode() in row and data_of(rows_of(row)) == row and isinstance(rows_of(row), UnitRows)
    pieces = _pieces(listed)
    for start in range(0, len(pieces), _BATCH):
        some = [(piece.key, piece.item.path.encode()) for piece in pieces[start : start + _BATCH]]
        store.put(DESCRIBED, [(key, aside.replace(_PLACE.encode(), path)) for key, path in some])
        store.put(QUESTION, [(key, row.replace(_PLACE.encode(), path)) for key, path in some])


def _pieces(listed: Sequence[BucketFile]) -> Sequence[Piece[Any]]:
    reading = reading_of(_request(), digests=True)
    return UnitPieces(plan_places((), reading.limits, remote=listed).units, facts_of(reading))


def _audited(what: str, store: ResultStore, listed: Sequence[BucketFile]) -> None:
    keys = {piece.key for piece in _pieces(listed)}
    before = sum(1 for _ in store.load(QUESTION, keys))
    files = _timed(what, lambda: _audit(store, listed))
    assert files == len(listed) and sum(1 for _ in store.load(QUESTION, keys)) == len(keys)
    print(f"{len(keys) - before} results more in the store")


def _audit(store: ResultStore, listed: Sequence[BucketFile]) -> int:
    """The files of its report. A thread reads, so that nothing travels between processes."""
    auditing.list_all = lambda addresses, limits: tuple(listed)
    return len(audit(_request(), How(jobs=1, executor="threads", store=store), addresses=("s3://zoo/",)).report.files)


def _catalogue(store: ResultStore, where: str) -> None:
    from inspector.catalogue.parts import catalogue_of
    from inspector.catalogue.update import update

    _timed("its catalogue brought up to date", lambda: update((store,), catalogue_of(where)))


def _timed(what: str, work: Callable[[], Answer]) -> Answer:
    began, cpu = time.perf_counter(), time.process_time()
    found = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{what}: {time.perf_counter() - began:.1f} s, {time.process_time() - cpu:.1f} of them processor; "
          f"peak {peak:,.0f} MB", flush=True)  # fmt: skip
    return found


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    main(*given[:2]) if len(given) > 1 else main(given[0] if given else _FILES, _TENSORS)
