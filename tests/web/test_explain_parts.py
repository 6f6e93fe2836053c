"""Parts of the Explain page without a browser: scales, verdicts, masks, names, commands."""

from __future__ import annotations

import io
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from torch import Tensor

from inspector.cam.exporting.request import command_line
from inspector.cam.inputs.class_lists import list_named
from inspector.cam.inputs.picture import open_picture, upright
from inspector.cam.report import Crop, Explanation, LayerProposal, Preprocessing, Score
from inspector.cam.targets.answers import AnswerKind
from inspector.cam.trust.masks import mask_seen
from inspector.errors import ExplainError
from inspector.findings import Finding, Severity
from inspector.jobs.bench import Bench
from inspector.jobs.job import Job
from inspector.jobs.settings import Settings
from inspector.jobs.subjects import Naming, Wanted
from inspector.render.scores import share_text
from inspector.web import jobs
from inspector.web.explain.answer import names_option, score_bars
from inspector.web.explain.files import request_of
from inspector.web.explain.grid import show_grid
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import Picture
from inspector.web.explain.view import Style, difference, drawn_map, legend, signed
from inspector.web.session import Hand

RAW = np.array([[4.0, -8.0], [0.0, 2.0]], dtype=np.float32)


def _explanation(raw: np.ndarray = RAW) -> Explanation:
    return Explanation(
        heat=np.clip(raw / 4, 0, 1).astype(np.float32),
        raw=raw,
        method="grad-cam",
        layer=LayerProposal(
            path="conv", kind="Conv2d", shape=(1, 2, 2), layout="NCHW", prefix_tokens=0, grid=(2, 2), rank=1, reason=""
        ),
        target=Score(index=3, name="<cat>", logit=2.5, probability=0.9),
        scores=(Score(index=3, name="<cat>", logit=2.5, probability=0.9),),
        raw_minimum=float(raw.min()),
        raw_maximum=float(raw.max()),
        negative_share=0.5,
        preprocessing=Preprocessing(
            resize=None, crop=None, mean=(0.0,), std=(1.0,), channels=3, interpolation="bilinear", source="",
            assumed=False,
        ),
        crop=Crop(left=2, top=1, width=4, height=4, picture_width=8, picture_height=6),
        findings=(),
        versions=(),
        seconds=0.0,
    )  # fmt: skip


def _png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


def test_a_signed_map_is_divided_by_its_largest_magnitude_so_that_zero_stays_in_the_middle() -> None:
    values, size = signed(_explanation())
    assert size == 8
    assert values.tolist() == [[0.5, -1.0], [0.0, 0.25]]


def test_the_table_of_maps_marks_those_that_say_little(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.jobs.kinds import heat, panels

    faint = Finding(id="faint-map", severity=Severity.WARNING, says="")
    made = _explanation()
    layers = (made.layer, replace(made.layer, path="other"))
    subject = Subject(
        hand=Hand(sha256="0" * 64, name="x"),
        picture=Picture(name="a.png", data=_png(np.zeros((6, 8, 3), dtype=np.uint8))),
        preprocessing=made.preprocessing,
        layers=layers,
    )

    def explained(_bench: Bench, _subject: object, one: Wanted, _target: int, _naming: Naming) -> Explanation:
        if one.method == "xgrad-cam":
            raise ExplainError("none")
        bad = one.layers[0].path == "other" and one.method == "hires-cam"
        return replace(made, findings=(faint,) if bad else ())

    bench = Bench(Settings(workers=0, memory_nbytes=0, threads=1, results=Path()), None)  # type: ignore[arg-type]

    def ask(job: Job, *, says: str = "") -> object:
        return heat.methods(bench) if job.kind == "methods" else panels.grid(bench, *job.arguments)

    drawn: dict[str, object] = {}
    monkeypatch.setattr(panels, "explained", explained)
    monkeypatch.setattr(panels, "decoded", lambda _bench, _picture: Image.new("RGB", (8, 6)))
    monkeypatch.setattr(jobs, "ask", ask)
    monkeypatch.setattr(Subject, "asked", property(lambda self: SimpleNamespace(picture=None)))
    monkeypatch.setattr("inspector.web.explain.sprites._grid", lambda **given: drawn.update(given))
    naming = Naming(names=(), answer=AnswerKind.ONE)
    show_grid(subject, "grad-cam", made.layer, 3, naming, keys=("layer", "method"))
    assert drawn["data"]["notes"] == {"1,1": "faint-map"}  # type: ignore[index]
    row = [method.id for method in heat.methods(bench) if method.arithmetic].index("xgrad-cam")
    assert set(drawn["data"]["empty"]) == {f"{row},0", f"{row},1"}  # type: ignore[index]


def test_a_map_of_nothing_stays_one() -> None:
    values, size = signed(_explanation(np.zeros((2, 2), dtype=np.float32)))
    assert (size, values.any()) == (0.0, False)


def test_a_difference_is_of_the_raw_maps_on_one_scale() -> None:
    other = np.array([[0.0, -8.0], [1.0, 4.0]], dtype=np.float32)
    values, size = difference(_explanation(), _explanation(other))
    assert size == 4
    assert values.tolist() == [[1.0, 0.0], [-0.25, -0.5]]


def test_the_legend_has_the_raw_numbers_at_its_ends() -> None:
    style = Style(view="Overlay", colour_map="viridis", opacity=0.5, threshold=0.0)
    assert "<span>4</span>" in legend(_explanation(), style)
    assert "-8 against" in legend(_explanation(), replace(style, view="For and against"))


def test_an_outline_says_how_much_is_above_it() -> None:
    style = Style(view="Overlay", colour_map="viridis", opacity=0.5, threshold=0.9)
    picture = Image.new("RGB", (8, 6), (90, 90, 90))
    drawn, says = drawn_map(picture, _explanation(), style)
    # The hot cell's corner of 2 x 2 pixels: its one pixel centre beyond the cell's own is held at the edge.
    assert "reaches 0.90 of the highest" in says
    assert drawn.shape == (6, 8, 3)
    _, nothing = drawn_map(picture, _explanation(np.zeros((2, 2), dtype=np.float32)), style)
    assert nothing.startswith("No place")


def _mask_of(pixels: np.ndarray, made: Explanation) -> Tensor:
    return mask_seen(upright(open_picture(_png(pixels))), made.crop, made.heat.shape)


def test_a_mask_is_cut_to_what_the_model_saw() -> None:
    mask = np.zeros((6, 8), dtype=np.uint8)
    mask[1:3, 2:4] = 255  # the first quarter of the crop
    mask[0, 0] = 255  # outside of it
    made = replace(_explanation(), heat=np.zeros((4, 4), dtype=np.float32))
    found = _mask_of(mask, made)
    assert found.tolist() == [[True, True, False, False]] * 2 + [[False] * 4] * 2


def test_a_mask_of_another_size_or_of_nothing_is_refused() -> None:
    with pytest.raises(ExplainError, match="The mask has 8 x 8 pixels, the picture 8 x 6"):
        _mask_of(np.full((8, 8), 255, dtype=np.uint8), _explanation())
    with pytest.raises(ExplainError, match="marks nothing"):
        _mask_of(np.zeros((6, 8), dtype=np.uint8), _explanation())


def test_plain_numbers_have_no_shares() -> None:
    (score,) = _explanation().scores
    number = replace(score, probability=None)
    assert share_text(number) == "2.5"
    assert "%" not in score_bars((number,)).partition("<span>")[2]
    bars = score_bars((score,))
    assert "90" in bars
    assert "<cat>" not in bars


def test_shares_by_an_assumed_preprocessing_say_so_in_words() -> None:
    scores = _explanation().scores
    assert "preprocessing assumed" in score_bars(scores, assumed=True)
    assert "assumed" not in score_bars(scores)


def test_a_command_is_quoted_for_a_shell() -> None:
    asked = request_of("a b.pth", "it's.png", _explanation(), colour_map="jet", opacity=0.4, threads=1)
    words = shlex.split(command_line(asked, "out"))
    assert words[:4] == ["inspector", "explain", "a b.pth", "it's.png"]
    assert words[words.index("--class") + 1] == "3"
    assert words[words.index("--colour-map") + 1] == "jet"
    pixels = replace(_explanation(), asked="pixels of class 3", pixels_of=3)
    words = shlex.split(command_line(request_of("a", "b", pixels, colour_map="jet", opacity=0.4, threads=1), "out"))
    assert words[words.index("--pixels-of") + 1] == "3"
    assert "--class" not in words


def test_names_that_were_taken_stand_in_the_command() -> None:
    cifar = list_named("cifar-10")
    assert cifar is not None
    assert names_option(cifar.names(), ()) == "cifar-10"
    assert names_option(("a", "b"), ()) == "classes.json"
    assert names_option(("a", "b"), ("a", "b")) == names_option((), ("a", "b")) == ""
    asked = request_of("a", "b", _explanation(), colour_map="jet", opacity=0.4, threads=1, names="cifar-10")
    assert "--names cifar-10" in command_line(asked, "out")
