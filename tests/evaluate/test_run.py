"""Pictures through a model: the scores are the model's own, and stopping, batches and bad files change none of them."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import transforms
from torchvision.datasets import ImageFolder

from inspector.cam.report import Preprocessing
from inspector.cam.runs import ReadyModel
from inspector.cam.targets.answers import AnswerKind
from inspector.errors import ExplainError, LimitExceeded, UsageError
from inspector.evaluate import scores as scoring
from inspector.evaluate import work
from inspector.evaluate.compare import compare
from inspector.evaluate.labels import open_class_folders
from inspector.evaluate.pieces import Scored, packed, unpacked
from inspector.evaluate.report import Evaluation
from inspector.evaluate.run import evaluate_pictures, score_model
from inspector.evaluate.sentences import answer, comparison_text, details
from inspector.progress import Stopped
from inspector.sweep.store import open_store

STEPS = Preprocessing(
    resize=20, crop=(16, 16), mean=(0.5,) * 3, std=(0.25,) * 3, channels=3, interpolation="bilinear", source="a test",
    assumed=False,
)  # fmt: skip
NAMES = ("blue", "green", "red")


class Colours(nn.Module):
    """Answers by the mean of each channel: red, green, blue, in that order."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(3.0))
        self.calls: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.calls.append(len(x))
        return self.scale * x.mean(dim=(2, 3))


def _picture(colour: int, seed: int) -> bytes:
    rng = np.random.default_rng((colour, seed))
    pixels = rng.integers(0, 200, (24, 30, 3))
    pixels[..., colour] += rng.integers(-40, 56)
    data = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(data, "PNG")
    return data.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """30 pictures of each of three colours, not all of which are right."""
    for number, name in enumerate(("red", "green", "blue")):
        (tmp_path / "data" / name).mkdir(parents=True)
        for seed in range(30):
            (tmp_path / "data" / name / f"{seed:02d}.png").write_bytes(_picture(number, seed))
    return tmp_path / "data"


def _ready(model: nn.Module, **changes: object) -> ReadyModel:
    made = ReadyModel(
        name="colours.pth", model=model.eval(), architecture="own", preprocessing=STEPS, sha256="1" * 64,
        class_names=("red", "green", "blue"),
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def test_accuracy_is_that_of_torchvisions_own_loader(root: Path) -> None:
    model = Colours()
    found = evaluate_pictures(_ready(model), root)
    steps = [transforms.Resize(20), transforms.CenterCrop(16), transforms.ToTensor()]
    data = ImageFolder(str(root), transforms.Compose([*steps, transforms.Normalize(STEPS.mean, STEPS.std)]))
    assert data.classes == list(NAMES)
    with torch.no_grad():
        answers = [("red", "green", "blue")[int(model(picture[None]).argmax())] for picture, _ in data]
    right = [one == data.classes[label] for one, (_, label) in zip(answers, data.samples, strict=True)]
    assert 0 < sum(right) < 90
    assert found.top1.mean == sum(right) / 90
    names = found.mapping.names
    assert [names[row.answer] for row in found.rows] == answers
    assert [names[row.label] for row in found.rows] == [data.classes[label] for _, label in data.samples]
    assert found.mapping.reordered
    assert sum(one.support for one in found.classes) == found.pictures == 90
    assert sum(one.pictures for one in found.confused) == found.wrong == 90 - sum(right)
    worst = [row.confidence for row in found.worst]
    assert worst == sorted(worst, reverse=True) and not any(row.right for row in found.worst)


def test_batches_change_nothing_but_rounding(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        nn.Linear(8, 3))  # fmt: skip
    folders = open_class_folders(root)
    together, _ = score_model(_ready(net), folders)
    monkeypatch.setattr(work, "BATCH", 1)
    alone, _ = score_model(_ready(net), folders)
    np.testing.assert_allclose(together.values, alone.values, atol=1e-5)


def test_pictures_that_a_model_would_mix_go_alone(root: Path) -> None:
    class Mixing(Colours):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm2d(3, track_running_stats=False)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(self.norm(x) + x)

    model = Mixing()
    evaluate_pictures(_ready(model), root)
    assert set(model.calls) == {1}


def test_a_picture_that_cannot_be_read_is_listed_and_its_neighbours_stay(root: Path) -> None:
    before, _ = score_model(_ready(Colours()), open_class_folders(root))
    (root / "green" / "04.png").write_bytes(b"\x89PNG broken")
    model = Colours()
    found, _ = score_model(_ready(model), open_class_folders(root))
    at = 30 + 4
    assert [position for position, _ in found.unread] == [at]
    assert np.isnan(found.values[at]).all()
    keep = np.arange(90) != at
    np.testing.assert_array_equal(found.values[keep], before.values[keep])
    # Only its own batch is smaller: what comes behind keeps its neighbours.
    assert model.calls == [1, 16, 16, 15, 16, 16, 10]
    report = evaluate_pictures(_ready(Colours()), root)
    assert report.pictures == 89 and [path for path, _ in report.unread] == ["green/04.png"]
    assert any("green/04.png" in says for says in details(report))


def test_a_second_start_goes_on_where_it_was_stopped(root: Path, tmp_path: Path) -> None:
    whole = evaluate_pictures(_ready(Colours()), root)
    folders = open_class_folders(root)

    def stop(done: int, total: int | None, note: str) -> None:
        if done >= 70:
            raise Stopped

    store = open_store(str(tmp_path / "store"))
    with pytest.raises(Stopped):
        evaluate_pictures(_ready(Colours()), folders, store=store, progress=stop)
    model, done = Colours(), []
    again = evaluate_pictures(_ready(model), folders, store=store, progress=lambda count, *_: done.append(count))
    assert sum(model.calls) == 1 + 90 - 64  # one picture of noise, and what was not kept
    assert done == sorted(done) and done[-1] == 90
    assert again == whole
    # Of other weights nothing that is kept is taken, nor of other pictures, nor of other code under the same name.
    other = Colours()
    evaluate_pictures(_ready(other, sha256="2" * 64), folders, store=store)
    evaluate_pictures(_ready(other, sha256="2" * 64), folders, store=store)
    assert sum(other.calls) == 91 + 1
    (root / "red" / "29.png").write_bytes(_picture(0, 99))
    evaluate_pictures(_ready(other, sha256="2" * 64), root, store=store)
    assert sum(other.calls) == 91 + 1 + 1 + 26
    edited = Colours()
    with torch.no_grad():
        edited.scale += 1
    evaluate_pictures(_ready(edited), root, store=store)
    assert sum(edited.calls) == 91


def test_scores_are_read_back_only_if_all_of_them_are_right() -> None:
    piece = Scored(values=np.array([[1.0, math.nan], [2.0, 3.0]], dtype=np.float32), unread=((0, "no"),))
    data = packed(piece)
    assert b"\n" not in data
    back = unpacked(data, 2, 2)
    assert back is not None and back.unread == piece.unread
    np.testing.assert_array_equal(back.values, piece.values)
    other = packed(Scored(values=piece.values, unread=((5, "no"),)))
    cut = data.replace(b'"values":"', b'"values":"AAAA')
    for wrong in (data[:-1], data + b"\0", b"", b"[]", b"{" * 100_000, other, cut, data.replace(b"=", b"\xc3\xa9")):
        assert unpacked(wrong, 2, 2) is None
    assert unpacked(data, 1, 4) is None


def test_a_constant_model_is_never_right_and_it_is_said(root: Path) -> None:
    class Same(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.zeros(len(x), 3)

    found = evaluate_pictures(_ready(Same()), root)
    assert (found.top1.mean, found.ties, found.wrong) == (0.0, 90, 90)
    assert any("counted as wrong" in says for says in details(found))
    assert [one.area_under_roc for one in found.classes] == [0.5] * 3


def test_scores_that_are_none_are_wrong_and_left_out_of_the_curves(root: Path) -> None:
    class Sick(Colours):
        def forward(self, x: Tensor) -> Tensor:
            scores = super().forward(x)
            return torch.where(scores.argmax(dim=1, keepdim=True) == 0, torch.nan, scores)

    found = evaluate_pictures(_ready(Sick()), root)
    assert found.not_finite > 0
    assert found.calibration.pictures == 90 - found.not_finite
    assert all(not row.right for row in found.rows if math.isnan(row.confidence))
    assert any("no finite number" in says for says in found.notes)


def test_one_picture_of_one_class_is_enough_and_means_little(root: Path, tmp_path: Path) -> None:
    one = tmp_path / "one" / "red"
    one.mkdir(parents=True)
    whole = evaluate_pictures(_ready(Colours()), root)
    right = next(row.path for row in whole.rows if row.right and row.path.startswith("red/"))
    (one / "a.png").write_bytes((root / right).read_bytes())
    found = evaluate_pictures(_ready(Colours()), tmp_path / "one")
    assert found.pictures == 1 and found.top5 is None
    assert (found.top1.low, found.top1.high) == (pytest.approx(0.2065, abs=1e-3), 1.0)
    assert found.mapping.missing == (1, 2)
    assert any("have no class folder (green, blue)" in says for says in found.notes)
    assert answer(found) == "100 % right (95 % interval 20.7 % to 100 %) of 1 picture."


def test_the_model_is_left_as_it_was(root: Path) -> None:
    model = Colours()
    ready = _ready(model)
    model.train()
    evaluate_pictures(ready, root)
    assert model.training and model.scale.requires_grad and model.scale.grad is None


def test_two_checkpoints_are_compared_picture_by_picture(root: Path) -> None:
    def changed(report: Evaluation, name: str, right: set[int]) -> Evaluation:
        rows = tuple(
            replace(row, rank=1 if n in right else 2, answer=row.label if n in right else (row.label + 1) % 3)
            for n, row in enumerate(report.rows)
        )
        return replace(report, rows=rows, checkpoint=replace(report.checkpoint, name=name))

    report = evaluate_pictures(_ready(Colours()), root)
    first, second = changed(report, "a.pth", {0, 1, 2, 3}), changed(report, "b.pth", set(range(2, 14)))
    found = compare(first, second)
    assert (found.both, found.only_first, found.only_second, found.neither) == (2, 2, 10, 76)
    assert found.p_value == pytest.approx(2 * (1 + 12 + 66) / 2**12)
    says = comparison_text(found)
    assert says.startswith("b.pth has 8 pictures more right than a.pth, more than chance would do at 5 %: 10 pictures")
    assert "p = 0.039." in says
    assert "which may be chance" in comparison_text(compare(first, changed(report, "c.pth", {0, 1, 2})))
    assert comparison_text(compare(first, first)).startswith("Equally many right")
    with pytest.raises(UsageError, match="did not score the same pictures"):
        compare(first, replace(second, rows=second.rows[1:]))


def test_what_is_no_classifier_of_one_class_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="several labels at once"):
        evaluate_pictures(_ready(Colours(), answer=AnswerKind.SEVERAL), root)
    with pytest.raises(ExplainError, match="class scores of shape"):
        evaluate_pictures(_ready(nn.Identity()), root)
    with pytest.raises(ExplainError, match="does not run on pictures of 1x3x16x16"):
        evaluate_pictures(_ready(nn.Sequential(nn.Flatten(), nn.Linear(3, 3))), root)
    monkeypatch.setattr(scoring, "MOST_NBYTES", 90 * 3 * 4 - 1)
    with pytest.raises(LimitExceeded, match="a part of the pictures at a time"):
        evaluate_pictures(_ready(Colours()), root)
