"""A folder that was dropped is a folder in every sentence, though it came as a tar."""

from __future__ import annotations

import tarfile
from io import BytesIO
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from inspector.checkpoint.sent_folder import OWNER, is_sent_folder
from inspector.checkpoint.source import BufferSource
from inspector.keys.plain_load import plain_load
from inspector.readers import open_checkpoint
from inspector.web.tar_chunks import tar_chunks

NAME = "model-{}-of-00002.safetensors"


def sharded(folder: Path, above: str = "") -> Path:
    folder.mkdir(parents=True)
    for i in (1, 2):
        save_file({f"layers.{i}.weight": torch.ones(i, 3)}, folder / (above + NAME.format(f"{i:05}")))
    names = ",".join(f'"layers.{i}.weight": "{above}{NAME.format(f"{i:05}")}"' for i in (1, 2))
    (folder / f"{above}model.safetensors.index.json").write_text(f'{{"metadata": {{}}, "weight_map": {{{names}}}}}')
    return folder


@pytest.mark.parametrize("above", ["", "ü" * 60], ids=["short", "long"])
def test_a_dropped_folder_loads_as_the_folder_does(tmp_path: Path, above: str) -> None:
    folder = sharded(tmp_path / "sharded", above)
    sent = BufferSource(b"".join(tar_chunks(folder)[1]), "sharded")
    assert is_sent_folder(sent)
    one, other = [plain_load(c, c.weights) for c in (open_checkpoint(sent), open_checkpoint(folder))]
    assert [o.says for o in one.obstacles] == [o.says for o in other.obstacles]
    assert not any("archives" in o.says for o in one.obstacles)


def test_an_archive_that_somebody_has_stays_one(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "sharded")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(folder, "sharded")
    assert not is_sent_folder(BufferSource((tmp_path / "a.tar").read_bytes()))
    checkpoint = open_checkpoint(tmp_path / "a.tar")
    found = plain_load(checkpoint, checkpoint.weights)
    assert any("archives" in o.says for o in found.obstacles)


@pytest.mark.parametrize("content", [b"", b"x" * 511, b"\0" * 2048, b"x" * 4096])
def test_other_bytes_are_no_folder(content: bytes) -> None:
    assert not is_sent_folder(BufferSource(content))


def test_the_browser_marks_what_it_sends_in_the_same_place() -> None:
    script = (Path(__file__).parents[2] / "inspector/web/static/dropzone.js").read_text(encoding="utf-8")
    assert f"put(265, '{OWNER}')" in script
    info = tarfile.TarInfo("a")
    info.uname = OWNER
    assert is_sent_folder(BufferSource(info.tobuf(tarfile.PAX_FORMAT) + bytes(1024)))
    with tarfile.open(fileobj=BytesIO(info.tobuf() + bytes(1024))) as read:
        assert read.getmembers()[0].uname == OWNER
