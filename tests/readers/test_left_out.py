"""An archive that is not one checkpoint: what it left out is said with what it holds, the dangerous first."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import torch

from inspector.errors import UnknownFormat
from inspector.readers import open_checkpoint


def _packed(path: Path, names: list[str], links: int) -> Path:
    with tarfile.open(path, "w") as tar:
        for number, name in enumerate(names):
            buffer = io.BytesIO()
            torch.save({"w": torch.full((2,), float(number))}, buffer)
            info = tarfile.TarInfo(name)
            info.size = buffer.tell()
            buffer.seek(0)
            tar.addfile(info, buffer)
        for number in range(links):
            info = tarfile.TarInfo(f"link{number}.pth")
            info.type, info.linkname = tarfile.SYMTYPE, names[0]
            tar.addfile(info)
    return path


def test_members_that_lead_outside_are_said_before_links(tmp_path: Path) -> None:
    place = _packed(tmp_path / "a.tar", ["a.pth", "b.pth", "../../escape.pth"], links=8)
    with pytest.raises(UnknownFormat) as error:
        open_checkpoint(place)
    assert "Left out: ../../escape.pth leads outside the archive; link0.pth is a symbolic link" in error.value.says
    assert error.value.says.endswith("; and 3 more.")


def test_nothing_is_said_where_nothing_was_left_out(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat) as error:
        open_checkpoint(_packed(tmp_path / "a.tar", ["a.pth", "b.pth"], links=0))
    assert "Left out" not in error.value.says
