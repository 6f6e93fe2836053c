"""Heat maps of many pictures by pieces: the same bytes from every engine and from parts, each picture once, maps kept
small within the error that is stated, nothing kept is made again."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inspector.cam.describe import Setting
from inspector.cam.explain import explain_many
from inspector.cam.inputs.picture import open_picture
from inspector.cam.report import Explanation, Options
from inspector.cam.runs import ReadyModel
from inspector.cam.spec import MapRequest
from inspector.cam.sweeping import run as sweeping
from inspector.cam.sweeping.maps import PictureMap, map_pictures
from inspector.cam.sweeping.run import Running
from inspector.cam.sweeping.stored_maps import MapsOfPiece, drawn, packed_maps, stored, unpacked_maps
from inspector.cli.explaining import load
from inspector.cli.main import run
from inspector.errors import NoSuchLayer, UsageError
from inspector.sweep.engines import Inline, engine_of
from inspector.sweep.piece import Part
from inspector.sweep.store import open_store
from sample_models.shapes import draw_scene
from tests.evaluate.works import loading

MODEL = str(Path(__file__).resolve().parents[2] / "sample_models" / "files" / "shapes.pth")
SMALL = Running(piece=4)
ASKED = MapRequest()


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
def setting(ready: ReadyModel) -> Setting:
    return Setting(preprocessing=ready.preprocessing, categories=ready.class_names)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Nine, of which the third is none."""
    from PIL import Image

    root = tmp_path_factory.mktemp("pictures")
    for number in range(9):
        pixels, _ = draw_scene(np.random.default_rng(number), number % 4, 80 + number % 2, 80)
        Image.fromarray(pixels).save(root / f"{number}.png")
    (root / "2.png").write_bytes(b"no picture")
    return sorted(root.iterdir())


def told(found: list[PictureMap]) -> list[tuple[object, ...]]:
    """All of it, to the last bit."""
    return [
        (one.number, one.error)
        if one.made is None
        else (one.number, one.made.heat.tobytes(), one.made.raw.tobytes(), repr(replace(one.made, heat=_NO, raw=_NO)))
        for one in found
    ]


_NO = np.zeros(0, dtype=np.float32)


@pytest.fixture(scope="module")
def once(ready: ReadyModel, setting: Setting, pictures: list[Path]) -> list[tuple[object, ...]]:
    return told(list(map_pictures(ready, pictures, ASKED, setting, SMALL)))


class Nobody(Inline):
    def submit(self, *_: Any) -> Any:
        raise AssertionError("made again")


def test_maps_are_those_of_one_pass_within_the_stated_error(
    ready: ReadyModel, setting: Setting, pictures: list[Path]
) -> None:
    found = list(map_pictures(ready, pictures, ASKED, setting, SMALL))
    assert [one.number for one in found] == list(range(9))
    assert [one.number for one in found if one.error] == [2] and "picture" in found[2].error
    kept = [one for n, one in enumerate(pictures) if n != 2]
    # In the batches that the pieces have: four by position, without the one that is none.
    batches = [kept[:3], kept[3:7], kept[7:]]
    whole = [
        one for some in batches for one in explain_many(ready.model, map(open_picture, some), ASKED, setting)
    ]  # fmt: skip
    for small, full in zip((one.made for one in found if one.made is not None), whole, strict=True):
        assert small.target == full.target and small.scores == full.scores and small.crop == full.crop
        assert small.layer == full.layer and small.findings == full.findings and small.raw_maximum == full.raw_maximum
        np.testing.assert_allclose(small.raw, full.raw, rtol=2**-11, atol=2**-24 * np.abs(full.raw).max())
        np.testing.assert_allclose(small.heat, full.heat, atol=2**-10)
        assert full.heat.max() > 0.9


def test_every_engine_and_parts_of_one_store_give_the_same_bytes(
    ready: ReadyModel, setting: Setting, pictures: list[Path], once: list[tuple[object, ...]], tmp_path: Path
) -> None:
    with engine_of("threads", 2) as engine:
        running = replace(SMALL, engine=engine)
        assert told(list(map_pictures(ready, pictures, ASKED, setting, running))) == once
    with engine_of("processes", 1) as engine:
        running = replace(SMALL, engine=engine, reopen=loading(MODEL))
        assert told(list(map_pictures(ready, pictures, ASKED, setting, running))) == once
    store = open_store(str(tmp_path / "s"))
    numbers = []
    for number in (2, 1):
        running = replace(SMALL, store=store, part=Part(number=number, of=2))
        numbers += [one.number for one in map_pictures(ready, pictures, ASKED, setting, running)]
    assert sorted(numbers) == list(range(9)) and numbers[:4] == [4, 5, 6, 7]
    running = replace(SMALL, store=open_store(str(tmp_path / "s")), engine=Nobody())
    assert told(list(map_pictures(ready, pictures, ASKED, setting, running))) == once
    # Another method, class or layer is another question.
    for request, target in ((MapRequest(method="eigen-cam"), None), (ASKED, 1)):
        with pytest.raises(AssertionError, match="made again"):
            list(map_pictures(ready, pictures, request, setting, running, target=target))


def test_a_small_map_is_read_back_only_if_all_of_it_is_right(
    ready: ReadyModel, setting: Setting, pictures: list[Path]
) -> None:
    (full,) = explain_many(ready.model, [open_picture(pictures[0])], ASKED, setting)
    piece = MapsOfPiece(maps=(stored(full, 1),), unread=((0, "no"),))
    data = packed_maps(piece)
    assert b"\n" not in data and unpacked_maps(data, 2) == piece
    assert len(piece.maps[0].raw) <= 4 * -(-2 * full.raw.size // 3)
    for wrong in (
        data[:-1],
        b"",
        b"[]",
        data.replace(b'"cells":[7', b'"cells":[8'),
        data.replace(b'"row":1', b'"row":0'),
    ):
        assert wrong != data and unpacked_maps(wrong, 2) is None
    assert unpacked_maps(data, 3) is None


@pytest.mark.parametrize("cells", [
    [[0.0, 0.0], [0.0, 0.0]], [[-3e30, 1.0], [2e30, 3e38]], [[1e-30, 2e-30], [0.0, -1e-31]],
    [[float("nan"), 1.0], [2, 3]],
])  # fmt: skip
def test_maps_of_any_size_of_numbers_are_drawn_alike(
    cells: list[list[float]], ready: ReadyModel, setting: Setting, pictures: list[Path]
) -> None:
    from inspector.cam.engine.tensors import enlarge, normalise

    (some,) = explain_many(ready.model, [open_picture(pictures[0])], ASKED, setting)
    raw = np.array(cells, dtype=np.float32)
    heat = enlarge(normalise(torch.from_numpy(raw)[None]), (20, 20))[0].numpy()
    full: Explanation = replace(some, raw=raw, heat=heat)
    small = drawn(stored(full, 0), ASKED, setting)
    np.testing.assert_allclose(small.heat, heat, atol=2**-10)
    np.testing.assert_allclose(small.raw, raw, rtol=2**-11, atol=2**-24 * np.nanmax(np.abs(raw)))


def test_what_cannot_be_asked_is_said_before_the_work(
    ready: ReadyModel, setting: Setting, pictures: list[Path]
) -> None:
    nobody = replace(SMALL, engine=Nobody())
    with pytest.raises(NoSuchLayer):
        list(map_pictures(ready, pictures, MapRequest(layers=("nowhere",)), setting, nobody))
    fused = MapRequest(options=Options(fusion="mean"))
    with pytest.raises(UsageError, match="A fused map has no raw one"):
        list(map_pictures(ready, pictures, fused, setting, nobody))


def test_the_command(
    pictures: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sweeping, "PIECE", 4)
    asked = ["explain", MODEL, str(pictures[0].parent), "--store", str(tmp_path / "s"), "--jobs", "1"]
    assert run([*asked, "--part", "1/2"]) == 1
    assert "Part 1 of 2: 4 maps of 9 pictures, 1 picture has none." in capsys.readouterr().out
    assert run([*asked, "--csv", str(tmp_path / "maps.csv"), "--output", str(tmp_path / "sheet.png"), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert len(report["explanations"]) == 8
    rows = list(csv.DictReader((tmp_path / "maps.csv").open(newline="")))
    assert [row["picture"] for row in rows] == [path.name for path in pictures] and rows[2]["error"]
    assert (tmp_path / "sheet.png").is_file()
    for more, says in (
        (["--part", "1/2", "--csv", "x.csv"], "A part writes into its store alone."),
        (["--method", "grad-cam", "--method", "eigen-cam"], "By pieces each picture has one map"),
    ):
        assert run([*asked, *more]) == 2
        assert says in capsys.readouterr().err
