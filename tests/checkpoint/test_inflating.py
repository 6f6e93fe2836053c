"""Members that compress well are read to their last byte, wherever a piece ends."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from inspector.checkpoint.data import read_array
from inspector.checkpoint.inflating import inflated
from inspector.readers import open_checkpoint

MB = 1 << 20


@pytest.mark.parametrize("most", [1, 7, 258, 1000, 4096])
@pytest.mark.parametrize("length", [0, 1, 257, 258, 259, 1000, 4096, 4097, 8192, 20_000])
@pytest.mark.parametrize("what", [b"\0", b"ab", b"abcdefgh"])
def test_every_byte_comes(what: bytes, length: int, most: int) -> None:
    plain = (what * length)[:length]
    packed = zlib.compress(plain, 9)
    for cut in {1, len(packed) // 2, len(packed)}:
        inflater = zlib.decompressobj()
        parts = [part for at in range(0, len(packed), cut) for part in inflated(inflater, packed[at : at + cut], most)]
        assert b"".join(parts) == plain and all(0 < len(part) <= most for part in parts)


@pytest.mark.parametrize("numel", [MB // 4 - 32, MB, 2 * MB, 2 * MB + 1, 4 * MB - 1])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_arrays_of_one_number_are_whole(tmp_path: Path, numel: int, value: float) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, first=np.arange(5.0), a=np.full(numel, value, np.float32))
    checkpoint = open_checkpoint(path)
    tensor = next(tensor for tensor in checkpoint.tensors if tensor.name == "a")
    assert np.array_equal(read_array(checkpoint, tensor), np.full(numel, value, np.float32))
