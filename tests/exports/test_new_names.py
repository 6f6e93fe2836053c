"""A new file's name: of several that want it one gets it, and nothing that was there is lost in silence."""

from __future__ import annotations

import errno
import multiprocessing
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector import open_checkpoint
from inspector.cli.main import run
from inspector.errors import ExportError, UsageError
from inspector.exports.convert import export_as_is
from inspector.new_files import new_file

_AT_ONCE = 8
_ROUNDS = 6


def _write(folder: Path, number: int, barrier: Any, shards: int | None, found: Any) -> None:
    checkpoint = open_checkpoint(folder / f"{number}.safetensors")
    assert checkpoint.weights is not None
    for turn in range(_ROUNDS):
        barrier.wait()
        try:
            export_as_is(
                checkpoint,
                checkpoint.weights,
                folder / f"out{turn}{'' if shards else '.safetensors'}",
                writer="safetensors",
                shard_nbytes=shards,
                overwrite=False,
            )
            found.put((turn, number, ""))
        except (UsageError, ExportError) as error:
            found.put((turn, number, str(error)))


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("shards", [None, 4_000])
def test_of_several_processes_one_wins_and_the_others_say_so(tmp_path: Path, shards: int | None) -> None:
    for number in range(_AT_ONCE):
        save_file({name: torch.full((1000,), float(number)) for name in "abcd"}, tmp_path / f"{number}.safetensors")
    context = multiprocessing.get_context("fork")
    barrier, found = context.Barrier(_AT_ONCE), context.Queue()
    processes = [
        context.Process(target=_write, args=(tmp_path, number, barrier, shards, found)) for number in range(_AT_ONCE)
    ]
    for process in processes:
        process.start()
    answers = [found.get(timeout=120) for _ in range(_AT_ONCE * _ROUNDS)]
    for process in processes:
        process.join()
    for turn in range(_ROUNDS):
        (winner,) = [number for at, number, says in answers if at == turn and not says]
        said = [says for at, _, says in answers if at == turn and says]
        assert len(said) == _AT_ONCE - 1
        assert all("exists by now" in says or "exists already" in says or "no empty folder" in says for says in said)
        out = tmp_path / f"out{turn}{'' if shards else '.safetensors'}"
        files = sorted(out.glob("*.safetensors")) if shards else [out]
        tensors = {name: tensor for file in files for name, tensor in load_file(file).items()}
        assert set(tensors) == set("abcd")
        assert all(bool((tensor == winner).all()) for tensor in tensors.values())
    assert not list(tmp_path.glob(".writing-*"))


def test_a_name_that_was_taken_meanwhile_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "a.bin"
    with pytest.raises(FileExistsError), new_file(place, overwrite=False) as temporary:
        temporary.write_bytes(b"ours")
        place.write_bytes(b"theirs")
    assert place.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a.bin"]  # noqa: PTH208
    with new_file(place) as temporary:
        temporary.write_bytes(b"ours")
    assert place.read_bytes() == b"ours"


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.EXDEV])
def test_a_file_system_without_links_keeps_the_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    place = tmp_path / "a.bin"
    with new_file(place, overwrite=False) as temporary:
        temporary.write_bytes(b"first")
    with pytest.raises(FileExistsError), new_file(place, overwrite=False) as temporary:
        temporary.write_bytes(b"second")
    assert place.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["a.bin"]  # noqa: PTH208


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
def test_a_new_file_may_be_read_like_any_new_file(tmp_path: Path) -> None:
    for overwrite in (False, True):
        with new_file(tmp_path / f"{overwrite}", overwrite=overwrite) as temporary:
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
            temporary.write_bytes(b"x")
        (tmp_path / "usual").write_bytes(b"x")
        assert (tmp_path / f"{overwrite}").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("error", [RuntimeError("torch"), OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_whatever_ends_the_writing_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    for folder in (False, True):
        with pytest.raises(type(error)), new_file(tmp_path / "a", folder=folder) as temporary:
            (temporary / "x" if folder else temporary).write_bytes(b"half")
            raise error
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    torch.save({"a": torch.ones(3)}, "in.pth")
    return tmp_path


Make = Callable[[Path], object]
TAKEN: dict[str, Make] = {
    "a file": lambda path: path.write_bytes(b"theirs"),
    "a folder": lambda path: path.mkdir(),
    "a link": lambda path: path.symlink_to("in.pth"),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path),
}
if sys.platform != "win32":
    TAKEN["a pipe"] = lambda path: os.mkfifo(path)


@pytest.mark.parametrize("what", TAKEN)
def test_nothing_is_replaced_unasked(here: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = here / "out.pth"
    TAKEN[what](out)
    before = out.lstat()
    assert run(["convert", "in.pth", "--output", "out.pth"]) == 2
    assert "exists already" in capsys.readouterr().err or what == "a link"
    assert (out.lstat().st_ino, out.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert sorted(p.name for p in here.iterdir()) == ["in.pth", "out.pth"]


@pytest.mark.parametrize("what", ["a folder", "a pipe"])
def test_also_when_asked_only_files_are_replaced(here: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    TAKEN[what](here / "out.pth")
    assert run(["convert", "in.pth", "--output", "out.pth", "--overwrite"]) == 1
    assert ("is a folder" if what == "a folder" else "is no ordinary file") in capsys.readouterr().err


@pytest.mark.parametrize("output", ["in.pth", "./in.pth", "link.pth"])
def test_what_is_read_is_never_written(here: Path, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "link.pth").symlink_to("in.pth")
    (here / "keys.pth").write_text("a\n")
    before = (here / "in.pth").read_bytes()
    repair = ["repair", "in.pth", "--overwrite", "--output"]
    for command in (
        ["convert", "in.pth", "--output", output, "--overwrite"],
        [*repair, output, "--target", "keys:keys.pth"],
        [*repair, "keys.pth", "--target", "keys:keys.pth"],
        [*repair, "new.pth", "--output", "keys.pth", "--target", "keys:keys.pth"],
        ["merge", "link.pth", "keys.pth", "--output", output, "--overwrite"],
    ):
        assert run(command) == 2
        assert "is a file that this reads" in capsys.readouterr().err
    assert (here / "in.pth").read_bytes() == before and (here / "keys.pth").read_text() == "a\n"


@pytest.mark.parametrize("output", ["x" * 5000 + ".pth", "none/out.pth", "in.pth/out.pth", "/proc/out.pth"])
def test_a_place_where_nothing_can_be_is_a_sentence(
    here: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["convert", "in.pth", "--output", output]) == 1
    told = capsys.readouterr()
    assert told.err.startswith("Refused: ") and len(told.err.splitlines()) == 1 and len(told.err) < 400
    assert run(["convert", "in.pth", "--output", output, "--json"]) == 1
    assert '"refused"' in capsys.readouterr().out
