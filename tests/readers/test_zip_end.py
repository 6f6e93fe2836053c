"""Where torch finds an archive's end record, and what it says where it does not."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch

from inspector.readers.archives.zip_end import search_refusal


def saved(numel: int) -> bytes:
    buffer = io.BytesIO()
    torch.save({"a": torch.zeros(numel)}, buffer)
    return buffer.getvalue()


def said_by_torch(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    try:
        torch.load(path)
    except (RuntimeError, OSError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("numel", [1, 1000, 20_000])
@pytest.mark.parametrize("behind", [0, 1, 4074, 4075, 65_500, 65_557, 67_000, 69_562, 69_563, 70_000, 200_000])
def test_bytes_behind_are_borne_as_far_as_torch_bears_them(numel: int, behind: int, tmp_path: Path) -> None:
    data = saved(numel)
    expected = search_refusal(len(data) + behind, data.rindex(b"PK\x05\x06"))
    said = said_by_torch(tmp_path / "m.pth", data + bytes(behind))
    assert said.startswith(expected) if expected else not said


@pytest.mark.parametrize("numel", [1, 1000, 20_000])
@pytest.mark.parametrize("lost", [1, 22, 100, 500, 1200])
def test_a_lost_end_is_said_in_torchs_words(numel: int, lost: int, tmp_path: Path) -> None:
    data = saved(numel)[:-lost]
    assert said_by_torch(tmp_path / "m.pth", data).startswith(search_refusal(len(data), -1))


def test_half_a_file_of_any_length_is_said_in_torchs_words(tmp_path: Path) -> None:
    data = saved(20_000)
    for size in range(100, len(data) - 30, 3001):
        assert said_by_torch(tmp_path / "m.pth", data[:size]).startswith(search_refusal(size, -1)), size
