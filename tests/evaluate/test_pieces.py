"""An evaluation by pieces: the same bytes from every engine and from merged parts, each picture once, one bad picture
costs itself, nothing kept is scored again."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from inspector.cam.runs import ReadyModel
from inspector.cam.sweeping import run as sweeping
from inspector.cam.sweeping.held import CHANGED, ModelPlace, Pictures, content_of, raise_ending
from inspector.cam.sweeping.run import Running
from inspector.cli.explaining import load
from inspector.cli.main import run
from inspector.errors import ReadError
from inspector.evaluate.labels import ClassFolders, open_class_folders
from inspector.evaluate.parts import NO_PART, Share, evaluation_runs, merge_scores, score_share
from inspector.evaluate.run import evaluate_pictures, evaluated, score_model
from inspector.evaluate.summarise import summarise
from inspector.evaluate.work import Scoring
from inspector.render.json import as_json
from inspector.sweep.engines import Inline, engine_of
from inspector.sweep.piece import Part
from inspector.sweep.store import open_store
from sample_models.labelled import write_labelled
from tests.evaluate.works import loading

ROOT = Path(__file__).resolve().parents[2]
MODEL = str(ROOT / "sample_models" / "files" / "shapes.pth")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def ready() -> ReadyModel:
    return load(MODEL, state="", target="", preprocessing="", names="")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 pictures in a zip, and a file that is none."""
    place = write_labelled(tmp_path_factory.mktemp("labelled") / "shapes.zip", each=5)
    with zipfile.ZipFile(place, "a") as archive:
        archive.writestr("star/02x.png", b"no picture")
    return place


@pytest.fixture
def folder(pictures: Path, tmp_path: Path) -> Path:
    with zipfile.ZipFile(pictures) as archive:
        archive.extractall(tmp_path / "data")
    return tmp_path / "data"


SMALL = Running(piece=4)


@pytest.fixture(scope="module")
def once(ready: ReadyModel, pictures: Path) -> tuple[str, bytes]:
    """The evaluation by one pass, here, with nothing kept."""
    folders = open_class_folders(pictures)
    scores, mapping = score_model(ready, folders, SMALL)
    report = summarise(scores.values, scores.unread, folders.listing, mapping, evaluated(ready))
    return as_json(report), scores.values.tobytes()


class Nobody(Inline):
    def submit(self, *_: Any) -> Any:
        raise AssertionError("scored again")


def test_scores_are_the_models_own(ready: ReadyModel, pictures: Path, once: tuple[str, bytes]) -> None:
    """By torch alone, in batches of four by position, whatever code scores them here."""
    from inspector.cam.inputs.picture import open_picture
    from inspector.cam.inputs.preprocess import prepare

    folders = open_class_folders(pictures)
    found = np.frombuffer(once[1], dtype=np.float32).reshape(21, 4)
    for start in range(0, 21, 4):
        rows = [n for n in range(start, min(start + 4, 21)) if "02x" not in folders.listing.paths[n]]
        batch = torch.cat([
            prepare(open_picture(folders.read(folders.listing.paths[n])), ready.preprocessing)[0] for n in rows
        ])  # fmt: skip
        with torch.no_grad():
            np.testing.assert_array_equal(found[rows], ready.model(batch).numpy())
    assert np.isnan(found).any(axis=1).sum() == 1


def test_threads_parts_and_a_store_give_the_same_bytes(
    ready: ReadyModel, pictures: Path, once: tuple[str, bytes], tmp_path: Path
) -> None:
    folders = open_class_folders(pictures)
    stores = [open_store(str(tmp_path / str(number))) for number in range(3)]
    shares: list[Share] = []
    for number, store in enumerate(stores):
        with engine_of("threads", 2) as engine:
            running = replace(SMALL, engine=engine, part=Part(number=number + 1, of=3))
            shares.append(score_share(ready, folders, running, store))
    assert sorted(n for share in shares for n in share.positions) == list(range(21))
    assert len({share.run for share in shares}) == 1
    report, scores = merge_scores(stores, shares[0].run)
    assert (as_json(report), scores.values.tobytes()) == once
    # One store that all of them wrote into has it too, and the whole is taken from it.
    for number in range(3):
        score_share(ready, folders, replace(SMALL, part=Part(number=number + 1, of=3)), stores[0])
    again = score_share(ready, folders, replace(SMALL, engine=Nobody()), stores[0])
    assert again.scores.values.tobytes() == once[1]
    report, _ = merge_scores(stores[:1], again.run)
    assert as_json(report) == once[0]


def test_a_folder_and_an_archive_of_the_same_pictures_share_their_scores(
    ready: ReadyModel, pictures: Path, folder: Path, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "store"))
    one = evaluate_pictures(ready, pictures, store=store)
    running = Running(engine=Nobody(), store=store)
    scores, _ = score_model(ready, open_class_folders(folder), running)
    assert scores.values.shape == (21, 4) and len(scores.unread) == len(one.unread) == 1


def test_a_missing_part_is_said_and_its_pictures_are_not_counted(
    ready: ReadyModel, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(str(tmp_path / "store"))
    share = score_share(ready, open_class_folders(pictures), replace(SMALL, part=Part(number=2, of=3)), store)
    (known,) = evaluation_runs([store])
    assert (known.id, known.of, known.ended) == (share.run, 3, (2,))
    assert run(["merge-parts", str(tmp_path / "store"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["evaluation"]
    assert told["pictures"] == 8 - sum(why != NO_PART for _, why in told["unread"])
    assert sum(why == NO_PART for _, why in told["unread"]) == 21 - 8
    assert told["notes"][-1] == "Of 3 parts these did not come to their end: 1, 3."


def test_parts_that_saw_other_pictures_are_not_merged(ready: ReadyModel, folder: Path, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    share = score_share(ready, open_class_folders(folder), replace(SMALL, part=Part(number=1, of=2)), store)
    (folder / "star" / "00.png").rename(folder / "star" / "99.png")
    score_share(ready, open_class_folders(folder), replace(SMALL, part=Part(number=2, of=2)), store)
    with pytest.raises(ReadError, match="did not see the same pictures: part 1 saw others than 2"):
        merge_scores([store], share.run)


def test_a_picture_that_changes_meanwhile_is_said_and_nothing_of_its_piece_is_kept(
    ready: ReadyModel, folder: Path, tmp_path: Path
) -> None:
    class Changing(Inline):
        def submit(self, function: Any, /, *args: Any) -> Any:
            (folder / "circle" / "03.png").write_bytes(b"another")
            return super().submit(function, *args)

    store = open_store(str(tmp_path / "store"))
    share = score_share(ready, open_class_folders(folder), replace(SMALL, engine=Changing()), store)
    assert (3, CHANGED) in share.scores.unread
    assert len(store.blobs.names("results")) == 5
    # What stands in no store stands in the note.
    report, scores = merge_scores([store], share.run)
    np.testing.assert_array_equal(scores.values, share.scores.values)
    assert ("circle/03.png", CHANGED) in report.unread


class Dying(Inline):
    """An executor whose process ends with a piece that holds a fatal picture."""

    def __init__(self, fatal: str) -> None:
        self.fatal = fatal

    def submit(self, function: Any, /, *args: Any) -> Any:
        (item,) = args[1]
        gone = {row for row, _ in item.left_out}
        if any(self.fatal in path for row, path in enumerate(item.paths) if row not in gone):
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor())
            return future
        return super().submit(function, *args)


def test_a_picture_that_ends_its_process_costs_itself_alone(
    ready: ReadyModel, pictures: Path, once: tuple[str, bytes], tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "store"))
    share = score_share(ready, open_class_folders(pictures), replace(SMALL, engine=Dying("circle/03.png")), store)
    assert (3, "Working on it ended the process that did it.") in share.scores.unread
    whole = np.frombuffer(once[1], dtype=np.float32).reshape(21, 4)
    np.testing.assert_allclose(share.scores.values[4:], whole[4:], atol=1e-5)
    assert not np.isnan(share.scores.values[[0, 1, 2]]).any()
    # Another machine may have the room: nothing of that piece is kept.
    again = score_share(ready, open_class_folders(pictures), SMALL, open_store(str(tmp_path / "store")))
    assert again.scores.values.tobytes() == once[1]


def test_a_worker_with_another_model_ends_it(ready: ReadyModel, pictures: Path) -> None:
    place = ModelPlace(
        run="elsewhere", reopen=loading(MODEL), content=content_of(replace(ready, sha256="2" * 64)),
        files=open_class_folders(pictures).files.place, threads=1,
    )  # fmt: skip
    outcome = Scoring(model=place, preprocessing=ready.preprocessing, outputs=4)(Pictures(paths=("circle/00.png",)))
    assert not outcome.kept
    with pytest.raises(ReadError, match="is not what it was when this began: a worker read another one"):
        raise_ending(outcome.data)


def test_a_model_that_draws_random_numbers_draws_the_same_everywhere(ready: ReadyModel, pictures: Path) -> None:
    class Drawing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.rand(len(x), 4) + x.mean(dim=(1, 2, 3))[:, None]

    drawing = replace(ready, model=Drawing().eval(), sha256="")
    folders: ClassFolders = open_class_folders(pictures)
    one = score_model(drawing, folders, SMALL)[0].values
    torch.manual_seed(7)
    with engine_of("threads", 2) as engine:
        np.testing.assert_array_equal(score_model(drawing, folders, replace(SMALL, engine=engine))[0].values, one)


def test_weights_without_a_digest_are_known_by_their_tensors(ready: ReadyModel) -> None:
    bare = replace(ready, sha256="")
    before = content_of(bare)
    assert before == content_of(dataclasses.replace(bare)) != content_of(ready)
    parameter = next(ready.model.parameters())
    with torch.no_grad():
        first = parameter.view(-1)[0].clone()
        parameter.view(-1)[0] += 1e-6
        assert content_of(bare) != before
        parameter.view(-1)[0] = first
    assert content_of(bare) == before


def test_the_command_by_pieces(
    pictures: Path, once: tuple[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sweeping, "PIECE", 4)
    store, out = str(tmp_path / "store"), tmp_path / "out"
    asked = ["evaluate", MODEL, str(pictures), "--store", store]
    for part in ("1/2", "2/2"):
        assert run([*asked, "--executor", "threads", "--jobs", "2", "--part", part]) in (0, 1)
        assert f"Part {part[0]} of 2: " in capsys.readouterr().out
    assert run(["merge-parts", store, "--out", str(out)]) == 1
    assert (out / "evaluation.json").read_text() == once[0] + "\n"
    np.testing.assert_array_equal(np.load(out / "scores.npy"), np.frombuffer(once[1], np.float32).reshape(21, 4))
    assert "1 picture could not be read and is not counted: star/02x.png" in capsys.readouterr().out
    assert run([*asked, "--jobs", "1", "--out", str(tmp_path / "again")]) == 1
    assert (tmp_path / "again" / "evaluation.json").read_text() == once[0] + "\n"
    capsys.readouterr()
    assert run(["merge-parts", store]) == 2
    assert "Name one with --run." in capsys.readouterr().err


@pytest.mark.parametrize(("more", "says"), [
    (("--part", "1/2"), "A part is scored into a store."),
    (("--part", "1/2", "--store", "s", "--out", "o"), "--out, --csv and --against are of all pictures."),
])  # fmt: skip
def test_what_a_part_cannot_give_is_refused(
    more: tuple[str, ...], says: str, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(["evaluate", MODEL, str(pictures), *more]) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_processes_open_the_model_themselves_and_give_the_same_bytes(
    ready: ReadyModel, pictures: Path, once: tuple[str, bytes]
) -> None:
    with engine_of("processes", 1) as engine:
        running = replace(SMALL, engine=engine, reopen=loading(MODEL))
        assert score_model(ready, open_class_folders(pictures), running)[0].values.tobytes() == once[1]


@pytest.mark.timeout(1200)
def test_a_driver_killed_at_half_repeats_what_was_under_way(ready: ReadyModel, tmp_path: Path, thorough: bool) -> None:
    """Two processes on 240 pictures in pieces of 32, all killed at half; then what is missing is done."""
    if not thorough:
        pytest.skip("make thorough")
    folder, log, store = tmp_path / "data", tmp_path / "log", tmp_path / "store"
    log.mkdir()
    with zipfile.ZipFile(write_labelled(tmp_path / "shapes.zip", each=60)) as archive:
        archive.extractall(folder)
    environment = {**os.environ, "LOG": str(log), "PYTHONPATH": str(ROOT)}
    asked = [sys.executable, "-m", "tests.evaluate.works", MODEL, str(folder), str(store), "processes"]
    driver = subprocess.Popen(asked, cwd=ROOT, env=environment, start_new_session=True)
    while len(list(store.glob("results/*.gz"))) < 4:
        assert driver.poll() is None
        time.sleep(0.01)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    kept = len(list(store.glob("results/*.gz")))
    before = len(list(log.iterdir()))
    assert 4 <= kept < 8 and before <= kept + 2
    subprocess.run(asked, cwd=ROOT, env=environment, check=True)
    assert len(list(log.iterdir())) == before + 8 - kept
    (found,) = evaluation_runs([open_store(str(store))])
    _, scores = merge_scores([open_store(str(store))], found.id)
    whole = score_model(ready, open_class_folders(folder))[0].values
    assert scores.values.tobytes() == whole.tobytes()
