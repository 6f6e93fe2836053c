"""A folder that is no format of several files: the one checkpoint that is meant, or an error that lists them."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from inspector.checkpoint.types import Checkpoint
from inspector.errors import UnknownFormat
from inspector.findings import Finding, Severity
from inspector.overview import Topic, summarise
from inspector.readers import claims_folder, open_checkpoint


def put(folder: Path, *paths: str) -> Path:
    """A checkpoint under each name, told apart by its key; any other ending is a text file."""
    for path in paths:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        state = {path.replace("/", "|"): torch.ones(2)}
        if path.endswith(".safetensors"):
            save_file(state, place)
        elif path.endswith((".txt", ".json", ".md", ".jpg")):
            place.write_text("{}")
        else:
            torch.save(state, place)
    return folder


def key(checkpoint: Checkpoint) -> str:
    return checkpoint.tensors[0].name.replace("|", "/")


def note(checkpoint: Checkpoint) -> Finding:
    return next(f for f in checkpoint.findings if f.id == "opened-inside")


def test_a_plain_folder_opens_its_one_checkpoint(tmp_path: Path) -> None:
    put(tmp_path, "model.safetensors", "config.json", "README.md", "images/a.jpg")
    assert claims_folder(tmp_path) == ""  # Files of such a folder are to be read one by one by a survey.
    checkpoint = open_checkpoint(tmp_path)
    assert key(checkpoint) == "model.safetensors"
    assert checkpoint.origin.name == tmp_path.name
    assert note(checkpoint).severity is Severity.INFO
    assert note(checkpoint).says == f"{tmp_path.name} is a folder of 4 files; shown is model.safetensors."


def test_content_decides_and_not_the_name(tmp_path: Path) -> None:
    put(tmp_path, "weights_without_ending", "notes.txt")
    (tmp_path / "best.pth").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    assert key(open_checkpoint(tmp_path)) == "weights_without_ending"


@pytest.mark.parametrize(
    ("paths", "opened", "not_opened"),
    [
        (("model.safetensors", "pytorch_model.bin"), "model.safetensors", 1),
        (("unet.safetensors", "unet.ckpt"), "unet.safetensors", 1),
        (
            ("pytorch_model.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"),
            "pytorch_model.bin",
            4,
        ),
        (
            ("model.safetensors", "checkpoint-1/model.safetensors", "checkpoint-2/model.safetensors"),
            "model.safetensors",
            2,
        ),
        (("runs/a/best.pth", "runs/a/optimizer_0.bin"), "runs/a/best.pth", 1),
        (("optimizer.pt",), "optimizer.pt", 0),
    ],
)
def test_the_one_that_is_meant(paths: tuple[str, ...], opened: str, not_opened: int, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(put(tmp_path, *paths))
    assert key(checkpoint) == opened
    assert ("not_opened", not_opened) in note(checkpoint).evidence
    assert note(checkpoint).severity is (Severity.NOTICE if not_opened else Severity.INFO)
    assert checkpoint.parts[0].name == opened


@pytest.mark.parametrize(
    "paths",
    [
        ("a.pth", "b.pth"),
        ("best.pth", "best.pt"),
        ("checkpoints/epoch=1.ckpt", "checkpoints/last.ckpt"),
        ("unet/model.safetensors", "vae/model.safetensors", "model_index.json"),
        ("best.pth", "old/model.safetensors"),
        ("optimizer.pt", "scheduler.pt"),
    ],
)
def test_several_that_are_independent_are_listed(paths: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match="checkpoints that do not belong together") as caught:
        open_checkpoint(put(tmp_path, *paths))
    for path in paths:
        assert (path in caught.value.says) is not path.endswith(".json")
    assert "inspector scan FOLDER" in caught.value.hint
    assert ("last.ckpt is the last state" in caught.value.hint) is any("last.ckpt" in path for path in paths)


def test_a_download_cache_opens_through_its_links(tmp_path: Path) -> None:
    """models--a--b: blobs without endings, and a snapshot of links to them."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    save_file({"w": torch.ones(1)}, blobs / "0123")
    (snapshot / "model.safetensors").symlink_to(blobs / "0123")
    checkpoint = open_checkpoint(tmp_path)
    assert [t.name for t in checkpoint.tensors] == ["w"]
    assert checkpoint.parts[0].name == "snapshots/abc/model.safetensors"


def test_a_format_of_several_files_further_in_is_opened_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    for n, name in enumerate(names):
        save_file({f"w{n}": torch.ones(1)}, folder / name)
    index = {"metadata": {"total_size": 8}, "weight_map": {"w0": names[0], "w1": names[1]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    checkpoint = open_checkpoint(tmp_path)
    assert (checkpoint.format, [t.name for t in checkpoint.tensors]) == ("sharded", ["w0", "w1"])
    assert note(checkpoint).subjects == ("a/b",)
    assert checkpoint.parts[0].name == f"a/b/{names[0]}"
    put(tmp_path, "other.pth")
    with pytest.raises(UnknownFormat, match=r"2 checkpoints that do not belong together: a/b/, other\.pth"):
        open_checkpoint(tmp_path)


def test_an_archive_counts_only_where_nothing_else_is_there(tmp_path: Path) -> None:
    import zipfile

    put(tmp_path, "model.pth")
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.writestr("a.jpg", b"\xff\xd8\xff")
    assert key(open_checkpoint(tmp_path)) == "model.pth"
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.write(tmp_path / "model.pth", "inner/model.pth")
    (tmp_path / "model.pth").unlink()
    assert key(open_checkpoint(tmp_path)) == "model.pth"


def test_none_says_why(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match="is an empty folder"):
        open_checkpoint(tmp_path)
    (tmp_path / "best.pth").write_text("<html><title>Sign in</title>")
    with pytest.raises(
        UnknownFormat, match=r'is a folder without a checkpoint: best\.pth is a web page titled "Sign in"'
    ):
        open_checkpoint(tmp_path)
    (tmp_path / "b.pth").write_text("x")
    with pytest.raises(UnknownFormat, match=r"2 files named like a checkpoint, first b\.pth, of which none is one"):
        open_checkpoint(tmp_path)


class _Runs:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("true",)


HOSTILE = pickle.dumps(_Runs())


def test_code_of_an_archives_unread_members_is_not_called_ok(tmp_path: Path) -> None:
    put(tmp_path / "quiet", "shapes.safetensors", "other.gguf.txt", "README.md")
    put(tmp_path / "hostile", "shapes.safetensors")
    (tmp_path / "hostile" / "shapes.pth").write_bytes(HOSTILE)
    put(tmp_path / "layout", "model-00001-of-00001.safetensors")
    (tmp_path / "layout" / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"model-00001-of-00001.safetensors": "model-00001-of-00001.safetensors"}})
    )
    (tmp_path / "layout" / "notes.dat").write_bytes(HOSTILE)
    for name, unread in (("quiet", ()), ("hostile", ("shapes.pth",)), ("layout", ("notes.dat",))):
        folder = tmp_path / name
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, path.name)
        with zipfile.ZipFile(tmp_path / f"{name}-in.zip", "w") as archive:
            archive.write(tmp_path / f"{name}.zip", "in.zip")
        for where, above in ((folder, ""), (tmp_path / f"{name}.zip", ""), (tmp_path / f"{name}-in.zip", "in.zip/")):
            checkpoint = open_checkpoint(where)
            if where == tmp_path / "layout":
                continue  # A directory is not walked for what lies beside a layout's own files.
            assert checkpoint.unread == tuple(above + path for path in unread), where.name
            (answer,) = [a for a in summarise(checkpoint).answers if a.topic is Topic.CODE]
            assert (answer.severity is Severity.INFO) is not bool(unread)
            assert all(path in answer.says for path in unread)


def test_of_two_members_of_one_name_the_other_ones_code_is_not_called_read(tmp_path: Path) -> None:
    put(tmp_path, "a.safetensors")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.write(tmp_path / "a.safetensors", "a.pth")
        archive.writestr("a.pth", HOSTILE)
    (unread,) = open_checkpoint(tmp_path / "two.zip").unread
    assert unread.startswith("a.pth (at byte")


def test_a_cap_on_looks_is_not_told_as_the_count(tmp_path: Path) -> None:
    folder = put(tmp_path, *(f"c{n:02}.safetensors" for n in range(70)))
    with pytest.raises(
        UnknownFormat, match=r"at least 64 checkpoints .* and 52 more\. 6 more files were not looked at"
    ):
        open_checkpoint(folder)
    for n in range(64):
        (folder / f"c{n:02}.safetensors").write_bytes(b"no")
    with pytest.raises(UnknownFormat, match=r"None of the 64 files .* 6 more files were not"):
        open_checkpoint(folder)
    put(folder, "c07.safetensors")
    checkpoint = open_checkpoint(folder)
    assert key(checkpoint) == "c07.safetensors"
    assert "6 more files, not looked at" in note(checkpoint).says
