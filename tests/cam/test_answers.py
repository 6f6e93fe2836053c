"""What an answer is: what a file says of it, what becomes of its scores, and what the measures of trust watch."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from inspector.cam.engine.scene import open_scene
from inspector.cam.targets.answers import AnswerKind, infer_answer, stated_answer
from inspector.cam.targets.readings import BoxScore, shares_of
from inspector.cam.trust.measure import Case
from inspector.cam.trust.measures import MEASURES
from inspector.cam.trust.measures.perturbation import deletion, insertion
from inspector.readers import open_checkpoint
from tests.cam.measuring import assessed

ONE, SEVERAL, NUMBERS = AnswerKind
WEIGHTS = {"fc.weight": torch.zeros(2, 2)}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("single_label_classification", ONE),
        ("multi_label_classification", SEVERAL),
        ("regression", NUMBERS),
        ("guesswork", None),
        (None, None),
    ],
)
def test_a_file_says_what_its_answer_is(tmp_path: Path, said: str | None, kind: AnswerKind | None) -> None:
    torch.save({"state_dict": WEIGHTS, "config": {"problem_type": said}}, tmp_path / "a.pth")
    torch.save({"state_dict": WEIGHTS, "problem_type": said}, tmp_path / "b.pth")
    save_file(WEIGHTS, tmp_path / "c.safetensors", metadata={"problem_type": str(said)})
    (tmp_path / "model").mkdir()
    save_file(WEIGHTS, tmp_path / "model" / "model.safetensors")
    (tmp_path / "model" / "config.json").write_text(json.dumps({"problem_type": said}))
    for name in ("a.pth", "b.pth", "c.safetensors", "model/model.safetensors"):
        checkpoint = open_checkpoint(tmp_path / name)
        assert stated_answer(checkpoint) is kind, name
        assert infer_answer(checkpoint) is (kind or ONE)


def test_nobody_says_anything(tmp_path: Path) -> None:
    torch.save(WEIGHTS, tmp_path / "plain.pth")
    assert stated_answer(open_checkpoint(tmp_path / "plain.pth")) is None
    assert infer_answer(None) is ONE


def test_shares_by_hand() -> None:
    scores = torch.tensor([[0.0, math.log(3.0)]])
    assert shares_of(scores, ONE).tolist()[0] == pytest.approx([0.25, 0.75])
    assert shares_of(scores, SEVERAL).tolist()[0] == pytest.approx([0.5, 0.75])
    assert shares_of(scores, NUMBERS) is None
    # One output alone is a yes or a no.
    assert shares_of(torch.tensor([math.log(4.0)]), ONE).tolist() == pytest.approx([0.8])
    box = BoxScore(torch.zeros(1, 4), [1])
    for kind in AnswerKind:
        assert shares_of(torch.tensor([[0.4, 1.2]]), kind, box).tolist()[0] == pytest.approx([0.4, 1.0])


class Brightness(nn.Module):
    """Two outputs: 3 and 1 times the mean of the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 1, bias=False)
        nn.init.ones_(self.conv.weight)

    def forward(self, x: Tensor) -> Tensor:
        mean = self.conv(x).mean(dim=(2, 3))
        return torch.cat([3 * mean, mean], dim=1)


@pytest.mark.parametrize(
    ("kind", "watched"),
    [
        # Of a picture of ones: 3 as a number, its sigmoid, its softmax beside 1.
        (NUMBERS, lambda mean: 3 * mean),
        (SEVERAL, lambda mean: 1 / (1 + math.exp(-3 * mean))),
        (ONE, lambda mean: 1 / (1 + math.exp(-2 * mean))),
    ],
)
def test_deletion_and_insertion_watch_what_the_answer_is(kind: AnswerKind, watched: object) -> None:
    picture = torch.ones(1, 1, 24, 24)
    heat = torch.linspace(1, 0, 24 * 24).reshape(24, 24)
    with open_scene(Brightness().eval(), picture, [], 0) as scene:
        case = Case(scene=scene, heat=heat, answer=kind)
        found = deletion(case)
        assert callable(watched)
        points = [watched(1 - step / 24) for step in range(25)]
        assert [y for _, y in found.curve] == pytest.approx(points, abs=1e-6)
        assert found.value == pytest.approx((sum(points) - (points[0] + points[-1]) / 2) / 24, abs=1e-6)
        # A blurred picture of one colour is the picture.
        assert insertion(case).value == pytest.approx(watched(1.0), abs=1e-6)


def test_a_plain_number_has_no_drop_of_a_probability() -> None:
    torch.manual_seed(0)
    made = assessed(Brightness().eval(), torch.rand(1, 1, 16, 16), answer=NUMBERS, target=0, layer="conv")
    assert made.answer is NUMBERS
    assert [name for name, _ in made.refused] == ["average-drop", "increase-in-confidence"]
    assert "the answer is a plain number" in made.refused[0][1]
    measured = {name for name, _ in made.rows[0].values}
    assert measured == {m.id for m in MEASURES} - {"average-drop", "increase-in-confidence"}
    several = assessed(Brightness().eval(), torch.rand(1, 1, 16, 16), answer=SEVERAL, target=0, layer="conv")
    assert several.refused == ()
    assert {name for name, _ in several.rows[0].values} == {m.id for m in MEASURES}
