"""Statistics of so many tensors that their tables lie on a disk: equal, and read like any others."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from inspector.giants import spilled
from inspector.giants.spilled import Spill
from inspector.weights.measure import measure_chunks
from inspector.weights.report import TensorStatistics
from inspector.weights.rows import row_means
from inspector.weights.table import to_arrays


def large(seed: int) -> TensorStatistics:
    values = (np.random.default_rng(seed).standard_normal((600, 500)) * 0.02).astype(np.float32)
    numbers = measure_chunks([values.reshape(-1)], "float32", values.shape)
    told = {name: getattr(numbers, name) for name in numbers.__slots__}
    return TensorStatistics(name=f"t{seed}", path=(f"t{seed}",), shape=values.shape, dtype="float32", **told)


def test_what_lies_on_a_disk_is_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilled, "_SEGMENT_NBYTES", 100_000)
    spill = Spill(most_nbytes=50_000)
    given = [large(seed) for seed in range(12)]
    kept = [spill.kept(one) for one in given]
    assert kept[0] is given[0] and isinstance(kept[0].table.codes, bytes)
    assert all(isinstance(one.table.counts, memoryview) for one in kept[1:])
    assert kept == given and hash(kept[-1].table) == hash(given[-1].table)
    for one, other in zip(kept, given, strict=True):
        assert len(one.table) == len(other.table) and list(one.table) == list(other.table)
        assert all(map(np.array_equal, to_arrays(one.table), to_arrays(other.table)))
        assert one.rows is not None and other.rows is not None
        assert np.array_equal(row_means(one.rows), row_means(other.rows))
    away = pickle.loads(pickle.dumps(kept))
    assert away == given and isinstance(away[-1].table.codes, bytes)


def test_nobody_can_write_into_it() -> None:
    kept = Spill(most_nbytes=0).kept(large(0))
    assert isinstance(kept.table.codes, memoryview) and kept.table.codes.readonly


def test_a_full_disk_keeps_all_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spilled.tempfile, "TemporaryFile", full)
    spill, given = Spill(most_nbytes=0), large(0)
    assert spill.kept(given) is given and spill.kept(given) is given
