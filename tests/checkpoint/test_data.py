"""Numbers out of raw bits, chunks, digests and pickled checkpoints."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.checkpoint.data import iter_chunks, read_array, to_float32
from inspector.checkpoint.digest import sha256_of, with_digest
from inspector.errors import CorruptFile, LimitExceeded, ReadError
from inspector.readers import open_checkpoint


@pytest.mark.parametrize(
    "name",
    [
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    ],
)
def test_every_bit_pattern_of_the_small_floats(name: str) -> None:
    """All 256 or 65,536 patterns against torch's own conversion, NaNs included."""
    dtype = getattr(torch, name)
    wide = dtype.itemsize == 2
    bits = np.arange(65536 if wide else 256).astype(np.uint16 if wide else np.uint8)
    expected = torch.from_numpy(bits.copy()).view(dtype).to(torch.float32).numpy()
    got = to_float32(bits.view(np.float16) if name == "float16" else bits, name)
    assert got.dtype == np.float32
    assert np.array_equal(got, expected, equal_nan=True)


def test_other_types_to_float32() -> None:
    assert to_float32(np.array([1 << 40, -3], np.int64), "int64").tolist() == [2.0**40, -3.0]
    assert to_float32(np.array([True, False]), "bool").tolist() == [1.0, 0.0]
    assert to_float32(np.array([3 + 4j], np.complex64), "complex64").tolist() == [5.0]
    assert to_float32(np.array([1e300, 0.1]), "float64").tolist() == [float("inf"), float(np.float32(0.1))]
    assert to_float32(np.array([255, 1], np.uint8), "qint8").tolist() == [-1.0, 1.0]
    half = np.array([3.0, 4.0], np.float16).view(np.uint32)
    assert to_float32(half, "complex32").tolist() == [5.0]
    with pytest.raises(ReadError, match="no single numbers"):
        to_float32(np.zeros(1, np.uint8), "float4_e2m1fn_x2")


def saved(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def test_chunks_join_to_the_array_and_keep_their_size() -> None:
    tensor = torch.arange(1000, dtype=torch.float64)
    checkpoint = open_checkpoint(saved({"w": tensor, "t": tensor.view(10, 100).t()}))
    for info in checkpoint.tensors:
        chunks = list(iter_chunks(checkpoint, info, chunk_nbytes=1024))
        assert [len(c) for c in chunks] == [128] * 7 + [104]
        assert np.array_equal(np.concatenate(chunks), read_array(checkpoint, info).reshape(-1))


def test_an_expanded_view_is_streamed_but_not_written_out() -> None:
    huge = torch.ones(1).expand(1 << 40)
    checkpoint = open_checkpoint(saved({"w": huge}))
    with pytest.raises(LimitExceeded, match=r"repeats 4 B of its storage as 4\.40 TB"):
        read_array(checkpoint, checkpoint.tensors[0])


def test_a_view_outside_its_storage_is_a_finding_and_an_error() -> None:
    data = saved({"w": torch.arange(200, dtype=torch.float32)})
    # BININT1 200 is "K\xc8"; the size (200,) becomes (201,) while the storage keeps its 200.
    at = data.rindex(b"K\xc8\x85")
    checkpoint = open_checkpoint(data[:at] + b"K\xc9\x85" + data[at + 3 :])
    assert "view-outside-storage" in {f.id for f in checkpoint.findings}
    with pytest.raises(CorruptFile, match=r"w needs 804 bytes of storage 0, which has 800"):
        read_array(checkpoint, checkpoint.tensors[0])


def test_digest(tmp_path: Path) -> None:
    data = saved({"w": torch.ones(3)})
    (tmp_path / "a.pt").write_bytes(data)
    checkpoint = open_checkpoint(tmp_path / "a.pt")
    steps: list[tuple[int, int | None]] = []
    digested = with_digest(checkpoint, lambda done, total, note: steps.append((done, total)))
    assert digested.origin.sha256 == sha256_of(checkpoint.source) == hashlib.sha256(data).hexdigest()
    assert steps == [(0, len(data))]
    assert with_digest(digested) is digested


def test_a_checkpoint_pickles_with_its_source(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(saved({"w": torch.arange(3.0)}))
    again = pickle.loads(pickle.dumps(open_checkpoint(tmp_path / "a.pt")))
    assert read_array(again, again.tensors[0]).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(("offset", "stride"), [(9, (-1,)), (-1, (1,))])
def test_negative_steps_are_refused_before_memory_is_touched(offset: int, stride: tuple[int, ...]) -> None:
    checkpoint = open_checkpoint(saved({"w": torch.arange(10.0)}))
    info = dataclasses.replace(checkpoint.tensors[0], offset=offset, stride=stride)
    with pytest.raises(CorruptFile, match="negative offset or stride"):
        read_array(checkpoint, info)
