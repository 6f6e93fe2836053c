"""A whole state dict: what is read, what is skipped and why, progress, cancel and memory."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, ModuleNode, Origin, StateDict, StateRole, Storage, TensorInfo
from inspector.checkpoint.values import Value
from inspector.progress import Stopped
from inspector.weights.fingerprint import fingerprint
from inspector.weights.measure import measure_weights
from inspector.weights.report import TensorStatistics, WeightsReport


class Builder:
    """Makes a checkpoint of storages laid end to end, one for each tensor."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.storages: dict[str, Storage] = {}
        self.tensors: list[TensorInfo] = []

    def add(self, name: str, array: NDArray[Any], dtype: str = "", **changes: Any) -> TensorInfo:
        key = str(len(self.storages))
        raw = np.ascontiguousarray(array).tobytes()
        self.storages[key] = Storage(id=key, nbytes=len(raw), present_nbytes=len(raw), offset=len(self.data))
        self.data += raw
        stride = tuple(int(np.prod(array.shape[axis + 1 :])) for axis in range(array.ndim))
        tensor = TensorInfo(
            name=name,
            path=(name,),
            shape=array.shape,
            dtype=dtype or array.dtype.name,
            nbytes=len(raw),
            storage_id=key,
            stride=stride,
        )
        tensor = dataclasses.replace(tensor, **changes)
        self.tensors.append(tensor)
        return tensor

    def checkpoint(self, *, bare: bool = False) -> Checkpoint:
        tensors = tuple(self.tensors)
        state = StateDict(
            path=(),
            role=StateRole.WEIGHTS,
            why="",
            kind="dict",
            tensors=tensors,
            modules=ModuleNode(name="", path="", tensors=tensors),
        )
        return Checkpoint(
            origin=Origin(name="made.pth", nbytes=len(self.data)),
            format="made",
            format_says="made by a test",
            root=root_value(),
            tensors=tensors,
            storages=self.storages,
            state_dicts=() if bare else (state,),
            source=BufferSource(bytes(self.data)),
        )


def root_value() -> Value:
    """Anything: statistics do not look at the tree."""
    return None  # type: ignore[return-value]


def by_name(report: WeightsReport) -> dict[str, TensorStatistics]:
    return {s.name: s for s in report.tensors}


def test_every_tensor_in_file_order_with_its_own_numbers() -> None:
    rng = np.random.default_rng(0)
    b = Builder()
    weight = rng.normal(0, 0.02, (300, 1000)).astype(np.float32)
    half = rng.standard_normal((7, 3)).astype(np.float16)
    b.add("conv.weight", weight)
    b.add("head.weight", half)
    b.add("bn.num_batches_tracked", np.array(37, np.int64))
    b.add("empty", np.empty((0, 4), np.float32))
    report = measure_weights(b.checkpoint())
    assert [s.name for s in report.tensors] == ["conv.weight", "head.weight", "bn.num_batches_tracked", "empty"]
    assert report.skipped == ()
    found = by_name(report)
    assert found["conv.weight"].std == pytest.approx(weight.astype(np.float64).std(), rel=1e-12)
    assert found["conv.weight"].shape == (300, 1000)
    assert found["head.weight"].mean == pytest.approx(half.astype(np.float64).mean(), rel=1e-12)
    assert (found["bn.num_batches_tracked"].minimum, found["bn.num_batches_tracked"].shape) == (37.0, ())
    assert (found["empty"].numel, np.isnan(found["empty"].mean)) == (0, True)


def test_a_transposed_view_finds_the_first_nan_in_its_own_order() -> None:
    b = Builder()
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    array[0, 1] = np.nan  # element 1 of the storage, row 1 of the transpose: index 1 * 3
    b.add("t", array, shape=(4, 3), stride=(1, 4))
    statistics = measure_weights(b.checkpoint()).tensors[0]
    assert statistics.first_non_finite == 3
    assert statistics.maximum == 11.0


def test_what_is_no_plain_number_is_skipped_with_its_reason_and_the_rest_goes_on() -> None:
    b = Builder()
    b.add("sparse", np.ones(4, np.float32), layout="sparse_coo", stride=None)
    b.add("packed", np.ones(4, np.uint8), "quint8")
    b.add("strange", np.ones(4, np.float32), dtype="float7")
    b.add("meta", np.ones(4, np.float32), storage_id=None, note="meta tensor: no data")
    cut = b.add("cut", np.ones(1000, np.float32))
    b.storages[cut.storage_id or ""] = dataclasses.replace(b.storages[cut.storage_id or ""], present_nbytes=100)
    beyond = b.add("beyond", np.ones(4, np.float32), shape=(8,))
    b.add("fine", np.array([1.0, 2.0], np.float32))
    assert beyond.shape == (8,)
    report = measure_weights(b.checkpoint())
    assert [s.name for s in report.tensors] == ["fine"]
    why = dict(report.skipped)
    assert list(why) == ["sparse", "packed", "strange", "meta", "cut", "beyond"]
    assert "stored as sparse COO" in why["sparse"]
    assert "quantised codes" in why["packed"]
    assert "float7 is unknown" in why["strange"]
    assert "meta tensor: no data" in why["meta"]
    assert "only 100 of its 4,000 bytes" in why["cut"]
    assert "needs 32 bytes" in why["beyond"]


def test_tied_tensors_are_read_once_and_reported_twice() -> None:
    b = Builder()
    first = b.add("embedding.weight", np.full((4, 4), 2.0, np.float32))
    b.tensors.append(dataclasses.replace(first, name="head.weight", path=("head.weight",)))
    checkpoint = b.checkpoint()
    reads: list[int] = []

    class Counting(BufferSource):
        def read(self, offset: int, n: int) -> bytes:
            reads.append(n)
            return super().read(offset, n)

    report = measure_weights(dataclasses.replace(checkpoint, source=Counting(bytes(b.data))))
    assert [(s.name, s.mean) for s in report.tensors] == [("embedding.weight", 2.0), ("head.weight", 2.0)]
    assert sum(reads) == 64


def test_a_file_without_a_state_dict_has_its_bare_tensors_measured() -> None:
    b = Builder()
    b.add("", np.array([1.0, 3.0], np.float32))
    report = measure_weights(b.checkpoint(bare=True))
    assert (report.tensors[0].mean, report.state_dict) == (2.0, ())


def test_progress_counts_bytes_and_names_tensors() -> None:
    b = Builder()
    b.add("a", np.ones(10_000, np.float32))
    b.add("b", np.ones(20_000, np.float32))
    told: list[tuple[int, int | None, str]] = []
    measure_weights(b.checkpoint(), progress=lambda done, total, note: told.append((done, total, note)))
    assert told[0] == (0, 120_000, "a") and told[-1] == (120_000, 120_000, "done")
    assert (40_000, 120_000, "b") in told


def test_stopping_from_progress_passes_through() -> None:
    b = Builder()
    b.add("a", np.ones(10_000, np.float32))
    b.add("b", np.ones(10_000, np.float32))

    def stop(done: int, total: int | None, note: str) -> None:
        if note == "b":
            raise Stopped

    with pytest.raises(Stopped):
        measure_weights(b.checkpoint(), progress=stop)


def test_memory_does_not_grow_with_the_tensor() -> None:
    def peak(n: int) -> int:
        b = Builder()
        b.add("w", np.ones(n, np.float32))
        checkpoint = b.checkpoint()
        tracemalloc.start()
        try:
            measure_weights(checkpoint)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small, large = peak(1 << 19), peak(1 << 23)
    assert large < small * 1.1
    assert large < 10 * (1 << 20)


def test_neither_torch_nor_a_face_is_imported() -> None:
    code = (
        "import sys, inspector.weights.measure, inspector.weights.fingerprint;"
        "print([m for m in ('torch', 'streamlit', 'plotly', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_fingerprint_rows_are_floating_weights_on_their_own_scale() -> None:
    rng = np.random.default_rng(0)
    b = Builder()
    b.add("small.weight", rng.normal(0, 1e-3, (400, 500)).astype(np.float32))
    b.add("small.bias", rng.normal(0, 1, 400).astype(np.float32))
    b.add("index", np.ones((50, 50), np.int64))
    b.add("large.weight", rng.normal(0, 30.0, (400, 500)).astype(np.float32))
    b.add("flat.weight", rng.uniform(-0.2, 0.2, (400, 500)).astype(np.float32))
    strip = fingerprint(measure_weights(b.checkpoint()), bins=64)
    assert strip.names == ("small.weight", "large.weight", "flat.weight")
    assert len(strip.edges) == 65
    np.testing.assert_allclose(strip.edges, -np.asarray(strip.edges)[::-1])
    shares = np.asarray(strip.shares)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-9)
    # The two normal layers look alike at scales 30,000 apart, and both hold 68.3 % within one rms.
    assert np.abs(shares[0] - shares[1]).max() < 0.003
    one = np.abs(np.asarray(strip.edges)) <= 1.0
    inside = shares[0][one[:-1] & one[1:]].sum()
    assert inside == pytest.approx(0.6827, abs=0.005)
    # A uniform layer ends at sqrt(3) rms.
    edge = np.asarray(strip.edges)[:-1]
    assert shares[2][edge > 1.75].sum() == 0
    assert shares[2][(edge > 1.5) & (edge < 1.7)].min() > 0.02


def test_fingerprint_of_zeros_outliers_and_nan() -> None:
    b = Builder()
    b.add("zero", np.zeros((3, 4), np.float32))
    spiky = np.zeros((10, 10), np.float32)
    spiky[0, 0], spiky[0, 1] = 1000.0, np.nan
    b.add("spiky", spiky)
    b.add("lost", np.full((2, 2), np.nan, np.float32))
    strip = fingerprint(measure_weights(b.checkpoint()), bins=8)
    assert strip.names == ("zero", "spiky")
    assert strip.shares[0] == (0, 0, 0, 0, 1.0, 0, 0, 0)
    assert strip.shares[1] == pytest.approx((0, 0, 0, 0, 0.98, 0, 0, 0.01))
