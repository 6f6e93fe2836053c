"""Archives with bytes before or behind them, or with names as Windows writes paths: what is said is what torch says."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.checkpoint.data import read_array
from inspector.errors import InspectorError
from inspector.overview import Topic, summarise
from inspector.readers import open_checkpoint


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()


def saved() -> bytes:
    buffer = io.BytesIO()
    torch.save(net().state_dict(), buffer)
    return buffer.getvalue()


def script() -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(net()), buffer)
    return buffer.getvalue()


def exported() -> bytes:
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(net(), (torch.zeros(1, 3),)), buffer)
    return buffer.getvalue()


def backslashed(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            info = zipfile.ZipInfo()
            info.filename = name.replace("/", "\\")
            new.writestr(info, old.read(name))
    return buffer.getvalue()


def torch_says(path: Path) -> str:
    with pytest.raises((RuntimeError, OSError)) as error:
        torch.load(path)
    return str(error.value)


@pytest.mark.parametrize("make", [script, exported])
def test_much_behind_an_archive_was_called_cut_short(make: Callable[[], bytes], tmp_path: Path) -> None:
    data = make()
    path = tmp_path / "m.pt"
    path.write_bytes(data + bytes(200_000))
    with pytest.raises(InspectorError, match="is a zip archive with 200 kB behind it") as error:
        open_checkpoint(path)
    assert f"what follows byte {len(data):,}" in str(error.value)
    (words,) = re.findall(r'torch.load says "(.+?)"', str(error.value))
    assert words in torch_says(path)
    path.write_bytes(path.read_bytes()[: len(data)])
    assert open_checkpoint(path).tensors


@pytest.mark.parametrize("make", [script, exported])
def test_an_archive_that_lost_its_end_is_still_cut_short(make: Callable[[], bytes], tmp_path: Path) -> None:
    (tmp_path / "m.pt").write_bytes(make()[:-3000])
    with pytest.raises(InspectorError, match="is a zip archive cut short"):
        open_checkpoint(tmp_path / "m.pt")


@pytest.mark.parametrize("make", [saved, script])
@pytest.mark.parametrize("front", [bytes(200_000), b"\n", b"HTTP/1.1 200 OK\r\n\r\n", b"\1" * 5000])
def test_zeros_before_an_archive_were_called_a_lost_download(
    front: bytes, make: Callable[[], bytes], tmp_path: Path
) -> None:
    (tmp_path / "m.pth").write_bytes(front + make())
    n = f"{len(front):,} byte{'' if len(front) == 1 else 's'} before a zip archive begins"
    with pytest.raises(InspectorError, match=n):
        open_checkpoint(tmp_path / "m.pth")


def test_names_with_backslashes_had_no_sentence(tmp_path: Path) -> None:
    path = tmp_path / "m.pth"
    path.write_bytes(backslashed(saved()))
    checkpoint = open_checkpoint(path)
    says = {answer.topic: answer.says for answer in summarise(checkpoint).answers}[Topic.LOADING]
    (words,) = re.findall(r'torch.load ends with "(.+?)": its names have backslashes', says)
    assert words in torch_says(path)
    for tensor in checkpoint.tensors:
        assert (read_array(checkpoint, tensor) == net().state_dict()[tensor.name].numpy()).all()


def test_a_script_with_backslashes_is_said_to_be_packed_again(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(backslashed(script()))
    with pytest.raises(InspectorError, match="whose names have backslashes") as error:
        open_checkpoint(path)
    (words,) = re.findall(r"torch.load says “(.+?)”", str(error.value))
    assert words in torch_says(path)
