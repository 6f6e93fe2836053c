"""A run on the Explain page: which checkpoints, in which order, what comes of them, and the same from a terminal."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from inspector.cam.exporting.request import command_line
from inspector.cam.layers.proposals import propose_layers
from inspector.cam.series import agreement_with_last, on_one_scale
from inspector.cli.main import run as command
from inspector.jobs.asked import Member, RunAsked, RunMade
from inspector.jobs.bench import Bench
from inspector.jobs.kinds.files import ready_of
from inspector.jobs.kinds.panels import run as make_run
from inspector.jobs.settings import Settings
from inspector.jobs.subjects import Naming, Wanted
from inspector.jobs.subjects import Subject as Asked
from inspector.progress import Progress, Stopped, silent
from inspector.web import jobs, reports, uploads
from inspector.web.explain import answer, run, strip
from inspector.web.explain.pictures import Picture
from inspector.web.session import Hand
from tests.sample_run import FACTS, SAMPLE, save_run
from tests.web.finishing import forget_client
from tests.web.recents import opened_before

ROOT = Path(__file__).resolve().parents[2]
STRIP = 'class="mi-strip"'
PICTURE = ROOT / "sample_models" / "pictures" / "star_1.png"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three checkpoints of one run and three files that are none of it."""
    if not SAMPLE.is_file():
        pytest.fail("The sample files are missing: python sample_models/build.py derive")
    here = tmp_path_factory.mktemp("run")
    paths = save_run(here, (0.0, 0.7, 1.0))
    turned = {**torch.load(paths[2], weights_only=True), "classes": ["square", "circle", "triangle", "star"]}
    torch.save({**turned, "epoch": 4, "global_step": 160}, here / "turned.pth")
    lacking = torch.load(paths[1], weights_only=True)
    del lacking["state_dict"]["stage3.0.branch1.0.weight"]
    torch.save({**lacking, "epoch": 5, "global_step": 200}, here / "lacking.pth")
    (here / "notes.pth").write_text("This is no checkpoint.")
    (here / "star_1.png").write_bytes(PICTURE.read_bytes())
    return here


def _open(app: AppTest, folder: Path, *names: str) -> list[Hand]:
    """The first file in hand, all of them opened in this session; the page at its fifth part."""
    hands = []
    for name in names:
        stored = uploads.the_store().put_bytes((folder / name).read_bytes(), name=name, owner="me")
        hands.append(Hand(sha256=stored.sha256, name=name))
    opened_before(app, hands)
    app.session_state["picture"] = Picture(name="star_1.png", data=PICTURE.read_bytes())
    app.run().switch_page("pages/explain.py").run()
    _of(app.get("button_group"), "More").set_value("A run").run()
    assert not app.exception
    return hands


def _of(among: Any, label: str) -> Any:
    return next(widget for widget in among if widget.label == label)


def _html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def _finish(app: AppTest) -> None:
    for job in jobs.the_client().running():
        assert job.wait(60)
    app.run()
    assert not app.exception


def test_without_other_checkpoints_it_says_what_it_is_for(app: AppTest, folder: Path) -> None:
    _open(app, folder, "epoch_3.pth")
    says = " ".join(caption.value for caption in app.caption)
    assert "through the checkpoints of one training run" in says and "Add the run's other checkpoints" in says
    assert not app.multiselect and STRIP not in _html(app)


def test_a_strip_in_the_order_of_training_with_what_is_left_out(app: AppTest, folder: Path) -> None:
    names = ("epoch_3.pth", "turned.pth", "epoch_1.pth", "notes.pth", "lacking.pth", "epoch_2.pth")
    hands = _open(app, folder, *names)
    _of(app.multiselect, "The run's other checkpoints").set_value([hand.sha256 for hand in hands[1:]]).run()
    assert not app.exception
    # What is no checkpoint at all is said at once, and takes no place in the order.
    assert [warning.value.replace("\\", "") for warning in app.warning] == ["**notes.pth** is left out."]
    table = _html(app).partition('data-table="run"')[2].partition("</table>")[0]
    assert [n for n in sorted(names, key=table.find) if n in table] == [
        "epoch_1.pth", "epoch_2.pth", "epoch_3.pth", "turned.pth", "lacking.pth",
    ]  # fmt: skip
    assert "in hand" in table.partition("epoch_3.pth")[2].partition("</tr>")[0]
    assert any("epoch and step" in caption.value for caption in app.caption)
    start = next(button for button in app.button if button.label.startswith("Make the strip · 5 checkpoints, about "))
    start.click().run()
    _finish(app)
    made = _html(app).partition(STRIP)[2]
    assert made.count("<figure>") == 3
    assert made.index("epoch_1.pth") < made.index("epoch_2.pth") < made.index("epoch_3.pth")
    assert "epoch 2, step 80" in made and "star" in made and "its own scale" in made
    said = " ".join(warning.value for warning in app.warning).replace("\\", "")
    assert "**turned.pth** is left out. It calls class 0 'square'; the others call it 'circle'." in said
    assert "**lacking.pth** is left out." in said and "stage3.0.branch1.0.weight" in said
    assert len(app.get("plotly_chart")) == 2
    _of(app.get("button_group"), "Colours divide").set_value(strip.COMMON).run()
    assert "one scale for all" in _html(app).partition(STRIP)[2]
    _of(app.get("button_group"), "Explain").set_value("each checkpoint's best class").run()
    assert any(button.label.startswith("Make the strip") for button in app.button)


def test_a_run_stays_when_another_of_its_checkpoints_is_taken_in_hand(app: AppTest, folder: Path) -> None:
    hands = _open(app, folder, "epoch_3.pth", "epoch_1.pth", "epoch_2.pth")
    _of(app.multiselect, "The run's other checkpoints").set_value([hand.sha256 for hand in hands[1:]]).run()
    app.session_state["hand"] = hands[1]
    app.run()
    assert not app.exception
    chosen = _of(app.multiselect, "The run's other checkpoints").value
    assert sorted(chosen) == sorted([hands[0].sha256, hands[2].sha256])


def test_dropped_files_join_the_run_at_once(app: AppTest, folder: Path) -> None:
    _open(app, folder, "epoch_3.pth")
    files = [(name, (folder / name).read_bytes(), "") for name in ("epoch_2.pth", "epoch_1.pth", "epoch_2.pth")]
    _of(app.file_uploader, "Checkpoints").set_value(files).run()
    assert not app.exception
    assert len(_of(app.multiselect, "The run's other checkpoints").value) == 2
    table = _html(app).partition('data-table="run"')[2]
    assert 0 < table.index("epoch_1.pth") < table.index("epoch_2.pth") < table.index("epoch_3.pth")


def _members(folder: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> list[Member]:
    monkeypatch.setenv("INSPECTOR_STORE", str(store))
    monkeypatch.setenv("INSPECTOR_WORKERS", "0")
    uploads.the_store.cache_clear()
    forget_client()
    members = []
    for epoch in (1, 2, 3):
        path = folder / f"epoch_{epoch}.pth"
        stored = uploads.the_store().put_bytes(path.read_bytes(), name=path.name, owner="me")
        hand = Hand(sha256=stored.sha256, name=path.name)
        place = run._place.__wrapped__(hand.sha256, hand.name)  # type: ignore[attr-defined]
        members.append(Member(file=reports.file_of(hand), place=place))
    return members


@pytest.fixture
def made(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """(stages of the three checkpoints, the work itself to be done again with another progress)."""
    members = _members(folder, tmp_path / "store", monkeypatch)
    bench = Bench(Settings(workers=0, memory_nbytes=10**10, threads=1, results=tmp_path), _Silent())
    last = ready_of(bench, members[-1].file)
    layers = propose_layers(last.model, (3, 192, 192))
    picture = Picture(name="star_1.png", data=PICTURE.read_bytes())
    asked = RunAsked(
        subject=Asked(file=members[-1].file, picture=picture.ref, preprocessing=last.preprocessing, layers=layers[:1]),
        members=tuple(members),
        wanted=Wanted(method="grad-cam", layers=layers[:1]),
        target=3,
        naming=Naming(),
        architecture=last.architecture,
        own=last.preprocessing,
        stated=last.class_names,
        own_answer=None,
    )

    def work(progress: Progress) -> RunMade:
        bench._desk = _Silent(progress)
        return make_run(bench, asked)

    yield work(silent).stages, work, picture
    uploads.the_store.cache_clear()
    forget_client()


class _Silent:
    def __init__(self, progress: Progress = silent) -> None:
        self._progress = progress

    def publish(self, done: int, total: int | None, note: str) -> None:
        self._progress(done, total, note)

    def need(self, nbytes: int, instead: str) -> None:
        return


@pytest.mark.parametrize("one_scale", [False, True])
def test_the_command_makes_the_same_strip_table_and_arrays(
    made: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_scale: bool
) -> None:
    stages, _, picture = made
    maps = [stage.made for stage in stages]
    look = {"one_scale": one_scale, "colour_map": "inferno", "opacity": 0.6}
    threads = torch.get_num_threads()
    asked = strip.request_of(stages, maps, picture, tuple(FACTS["classes"]), best=False, threads=threads, **look)
    monkeypatch.chdir(folder)
    words = shlex.split(command_line(asked, str(tmp_path / "out")))
    assert command(words[1:]) == 0
    drawn = on_one_scale(maps) if one_scale else maps
    assert strip.strip_png(stages, drawn, picture, **look) == (tmp_path / "out" / "sheet.png").read_bytes()
    table = strip.run_csv(stages, agreement_with_last(maps), picture)
    assert table == (tmp_path / "out" / "maps.csv").read_bytes().decode()
    with np.load(tmp_path / "out" / "maps.npz") as arrays:
        assert np.array_equal(arrays["0002_raw"], maps[2].raw)
    theirs = json.loads((tmp_path / "out" / "manifest.json").read_text())
    ours = json.loads(strip.manifest_json(stages, maps, picture, asked))
    assert ours["entries"] == theirs["entries"]
    assert [one["sha256"] for one in ours["checkpoints"]] == [one["sha256"] for one in theirs["checkpoints"]]


def test_names_that_the_first_file_does_not_state_go_along(made: Any) -> None:
    stages, _, picture = made
    maps = [stage.made for stage in stages]
    look: dict[str, Any] = {"best": True, "one_scale": False, "colour_map": "jet", "opacity": 0.5, "threads": 1}
    asked = strip.request_of(stages, maps, picture, ("a", "b", "c", "d"), **look)
    assert (asked.names, asked.classes) == (answer.NAMES_FILE, ())
    assert strip.request_of(stages, maps, picture, tuple(FACTS["classes"]), **look).names == ""


def test_a_table_says_what_was_left_out(made: Any) -> None:
    from inspector.cam.series import Stage
    from inspector.checkpoint.training_place import Place
    from inspector.errors import CorruptFile

    stages, _, picture = made
    lost = Stage(number=1, name="lost.pth", place=Place(epoch=2), error=CorruptFile("It is cut short."))
    maps = [stages[0].made, stages[2].made]
    rows = list(csv.DictReader(io.StringIO(strip.run_csv((stages[0], lost, stages[2]), (0.25, 1.0), picture))))
    assert [(row["checkpoint"], row["epoch"], row["agreement_with_last"], row["error"]) for row in rows] == [
        ("epoch_1.pth", "1", "0.250000", ""),
        ("lost.pth", "2", "", "It is cut short."),
        ("epoch_3.pth", "3", "1.000000", ""),
    ]
    assert float(rows[2]["probability"]) == pytest.approx(maps[1].target.probability, rel=1e-6)


def test_stop_ends_it_between_two_checkpoints(made: Any) -> None:
    _, work, _ = made
    told: list[str] = []

    def stop_at_the_second(done: int, total: int | None, note: str) -> None:
        told.append(note)
        if done >= 1000:
            raise Stopped

    with pytest.raises(Stopped):
        work(stop_at_the_second)
    assert any(note.startswith("epoch_2") for note in told)
    assert not any(note.startswith("epoch_3") for note in told)
    with pytest.raises(Stopped):
        work(_stopping)


def _stopping(done: int, total: int | None, note: str) -> None:
    raise Stopped
