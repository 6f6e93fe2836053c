"""What the Explain page gives away: the command line of its manifest writes the same bytes again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torch import nn

from inspector.cam.columns import Kind
from inspector.cam.inputs.picture import input_shape
from inspector.cam.layers.layouts import with_layout
from inspector.cam.report import Explanation, LayerProposal, Options
from inspector.cam.targets.answers import AnswerKind
from inspector.cli.main import run
from inspector.web import uploads
from inspector.web.explain import inputs, looking
from inspector.web.explain.answer import Naming, asked_label, stated_names
from inspector.web.explain.files import files_of
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import Picture
from inspector.web.session import Hand
from tests.web.finishing import forget_client

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"
FACTS = {"preprocessing": {"size": 64, "mean": [0.5] * 3, "std": [0.25] * 3}}


def _build(name: str) -> nn.Module:
    torch.manual_seed(1)
    more = {} if name.startswith("resnet") else {"weights_backbone": None}
    model = torchvision.models.get_model(name, weights=None, num_classes=4, **more)
    if name.startswith("ssd"):
        # What was never normalised fades to nothing on its way to the boxes.
        model.train()
        for _ in range(5):
            model.head(list(model.backbone(torch.randn(2, 3, 320, 320)).values()))
    return model.eval()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A picture and the folder that files are built in."""
    folder = tmp_path_factory.mktemp("explained")
    noise = np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((120, 90)).save(folder / "it's noise.png")
    patch = pytest.MonkeyPatch()
    patch.setenv("INSPECTOR_STORE", str(folder / "store"))
    patch.setattr(uploads, "_mounted", False)
    patch.setenv("INSPECTOR_WORKERS", "0")
    uploads.the_store.cache_clear()
    forget_client()
    yield folder
    patch.undo()
    forget_client()
    uploads.the_store.cache_clear()


def _subject(here: Path, name: str, *facts: Any) -> Subject:
    file = here / name
    if SAMPLES.joinpath(name).is_file():
        file.write_bytes(SAMPLES.joinpath(name).read_bytes())
    elif not file.exists():
        torch.save({"state_dict": _build(file.stem).state_dict(), **(facts[0] if facts else {})}, file)
    stored = uploads.the_store().put_bytes(file.read_bytes(), name=file.name, owner="me")
    hand = Hand(sha256=stored.sha256, name=file.name)
    data = (here / "it's noise.png").read_bytes()
    preprocessing = inputs.inferred(hand)
    layers = looking.proposals(hand, input_shape(preprocessing))
    picture = Picture(name="it's noise.png", data=data)
    return Subject(hand=hand, picture=picture, preprocessing=preprocessing, layers=layers)


def _also(subject: Subject, name: str) -> Subject:
    layer = looking.layer_named(subject.hand, input_shape(subject.preprocessing), name)
    return replace(subject, layers=(*subject.layers, layer))


Asked = tuple[str, LayerProposal, int, Options]


def _explained(subject: Subject, asked: Asked, naming: Naming) -> Explanation:
    method, layer, target, options = asked
    return looking.explained(subject, looking.spec_of(subject, method, layer, options), target, naming)


def _same_bytes(
    subject: Subject, asked: Asked, folder: Path, monkeypatch: pytest.MonkeyPatch, naming: Naming | None = None
) -> dict[str, Any]:
    """Export from the page, run the manifest's command, compare; the manifest's only entry."""
    made = _explained(subject, asked, naming or Naming())
    assert float(made.heat.max()) > 0
    files = {name: data() for _, data, name in files_of(subject.hand, subject.picture, made, **STYLE)}
    manifest = json.loads(files["it's noise-explanation.json"])
    monkeypatch.chdir(folder)
    words = shlex.split(manifest["command"])
    assert words[:2] == ["inspector", "explain"]
    assert run(words[1:]) == 0
    for ours, theirs in (("overlay.png", "overlay.png"), ("heat.png", "map.png"), ("maps.npz", "maps.npz")):
        assert (folder / "explained" / theirs).read_bytes() == files[f"it's noise-{ours}"], theirs
    again = json.loads((folder / "explained" / "manifest.json").read_text())
    (entry,), (theirs_entry,) = manifest["entries"], again["entries"]
    assert entry["key"] == theirs_entry["key"]
    for field in ("target", "scores", "asked", "answer", "method", "raw_minimum", "raw_maximum", "crop", "findings"):
        assert entry[field] == theirs_entry[field], field
    # The command of the command asks for the same once more.
    assert shlex.split(again["command"]) == words
    return dict(entry)


STYLE: dict[str, Any] = {"colour_map": "magma", "opacity": 0.7, "threads": torch.get_num_threads()}


@pytest.mark.parametrize(
    ("method", "options"),
    [("grad-cam", Options()), ("score-cam", Options()), ("layer-cam", Options(eigen_smooth=True, augmented=True))],
)
def test_a_class(here: Path, monkeypatch: pytest.MonkeyPatch, method: str, options: Options) -> None:
    subject = _subject(here, "resnet18.pth", FACTS)
    best = looking.look_at(subject).best
    layer = subject.layers[2] if method == "score-cam" else subject.layers[0]
    _same_bytes(subject, (method, layer, best, options), here, monkeypatch)


def test_a_second_call_of_a_shared_module(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = _subject(here, "resnet18.pth", FACTS)
    maps, best = [], looking.look_at(subject).best
    for call in (0, 1):
        with_call = _also(subject, f"layer3.1.relu:{call}")
        layer = with_call.layers[-1]
        assert (layer.call, layer.calls) == (call, 2)
        asked = ("grad-cam", layer, best, Options())
        entry = _same_bytes(with_call, asked, here, monkeypatch)
        assert (entry["layer"]["path"], entry["layer"]["call"]) == ("layer3.1.relu", call)
        maps.append(_explained(with_call, asked, Naming()).raw)
    assert not np.allclose(*maps)


def test_fused_layers_one_of_them_laid_out_otherwise(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = _subject(here, "resnet18.pth", FACTS)
    asked = ("grad-cam", subject.layers[0], 1, Options(fusion="mean"))
    entry = _same_bytes(subject, asked, here, monkeypatch)
    assert len(entry["layers"]) == len(subject.layers) > 1


def test_a_layout_and_a_preprocessing_of_ones_own(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = _subject(here, "shapes_vit.safetensors")
    found = subject.layers[0]
    assert (found.prefix_tokens, found.grid) == (1, (8, 8))
    changed = with_layout(found, "1+4x16")
    naming = Naming(names=stated_names(subject.hand))
    entry = _same_bytes(subject, ("grad-cam", changed, 1, Options()), here, monkeypatch, naming)
    assert entry["layer"]["grid"] == [4, 16]
    edited = inputs.edited(
        subject.preprocessing, resize=80, crop=64, mean="0.1 0.2 0.3", std="0.3 0.3 0.7", interpolation="bicubic"
    )
    other = replace(subject, preprocessing=edited)
    entry = _same_bytes(other, ("grad-cam", found, 1, Options()), here, monkeypatch, naming)
    assert entry["layer"]["grid"] == [8, 8]


@pytest.mark.parametrize("kind", [AnswerKind.SEVERAL, AnswerKind.NUMBERS])
def test_how_the_answer_is_read(here: Path, monkeypatch: pytest.MonkeyPatch, kind: AnswerKind) -> None:
    subject = _subject(here, "resnet18.pth", FACTS)
    asked = ("grad-cam", subject.layers[0], looking.look_at(subject).best, Options())
    entry = _same_bytes(subject, asked, here, monkeypatch, Naming(answer=kind))
    assert entry["answer"] == kind.value
    assert (entry["target"]["probability"] is None) == (kind is AnswerKind.NUMBERS)


@pytest.mark.parametrize("method", ["grad-cam", "finer-cam", "occlusion"])
def test_pixels_of_a_class(here: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    subject = _subject(here, "lraspp_mobilenet_v3_large.pth", FACTS)
    seen = looking.look_at(subject)
    assert seen.kind is Kind.PIXELS
    target = next(k for k, share in enumerate(seen.pixels) if share > 0)
    entry = _same_bytes(subject, (method, subject.layers[0], target, Options()), here, monkeypatch)
    assert entry["asked"] == f"pixels of class {target}"


def test_a_box(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = _subject(here, "ssdlite320_mobilenet_v3_large.pth")
    seen = looking.look_at(subject)
    assert seen.kind is Kind.BOXES
    wanted = [k for k in range(len(seen.boxes)) if seen.boxes[k].score > 0]
    each = [("grad-cam", subject.layers[0], k, Options()) for k in wanted]
    shown = next(asked for asked in each if float(_explained(subject, asked, Naming()).heat.max()) > 0)
    entry = _same_bytes(subject, shown, here, monkeypatch)
    assert entry["asked"].startswith("box ")
    made = _explained(subject, shown, Naming(names=("x", "cat", "dog", "cow")))
    assert asked_label(made) == f"{('x', 'cat', 'dog', 'cow')[entry['target']['index']]}, box {shown[2] + 1}"
