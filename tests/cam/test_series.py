"""A run's checkpoints: their order, who does not belong, one model at a time, and what two maps have in common."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from inspector.cam.describe import Setting
from inspector.cam.report import Explanation, Options, Preprocessing
from inspector.cam.runs import ReadyModel
from inspector.cam.series import (
    Common,
    Stage,
    agreement_with_last,
    explain_each,
    on_one_scale,
)
from inspector.cam.spec import MapRequest
from inspector.cam.targets.answers import AnswerKind
from inspector.checkpoint.training_place import Place, axis_of, in_order, natural, place_of
from inspector.errors import CorruptFile, ExplainError
from inspector.readers import open_checkpoint

STEPS = Preprocessing(
    resize=None, crop=None, mean=(0.5,) * 3, std=(0.5,) * 3, channels=3, interpolation="bilinear", source="here",
    assumed=False,
)  # fmt: skip
NAMES = ("cat", "dog")


@pytest.mark.parametrize(
    ("facts", "place"),
    [
        ({"epoch": 3, "global_step": 120}, Place(epoch=3, step=120)),
        ({"epoch": 0}, Place(epoch=0)),
        ({"epoch": 2.5, "iteration": 7}, Place(epoch=2.5, step=7)),
        ({"step": 9, "global_step": 90}, Place(step=90)),
        # What was planned, a flag, a number that means no place.
        ({"epochs": 100, "args": {"epoch": 4}}, Place()),
        ({"epoch": True, "step": -1}, Place()),
        ({"epoch": None, "step": float("nan")}, Place()),
        ({"epoch": "3; rm"}, Place()),
    ],
)
def test_a_place_is_what_the_file_itself_states(facts: dict[str, Any], place: Place, tmp_path: Path) -> None:
    torch.save({"state_dict": {"a.weight": torch.zeros(2, 2)}, **facts}, tmp_path / "net.pth")
    assert place_of(open_checkpoint(tmp_path / "net.pth")) == place


def test_a_place_stands_in_safetensors_and_beside_them(tmp_path: Path) -> None:
    save_file({"a.weight": torch.zeros(2, 2)}, tmp_path / "model.safetensors", metadata={"epoch": "4"})
    assert place_of(open_checkpoint(tmp_path / "model.safetensors")) == Place(epoch=4)
    (tmp_path / "trainer_state.json").write_text('{"epoch": 1.5, "global_step": 500}')
    (tmp_path / "config.json").write_text('{"model_type": "vit"}')
    # The file's own word goes first.
    assert place_of(open_checkpoint(tmp_path)) == Place(epoch=4, step=500)


def _order(*stated: tuple[str, Place]) -> tuple[list[str], str]:
    order, by = in_order(stated)
    return [stated[position][0] for position in order], by


def test_a_step_within_its_epoch_does_not_come_before_the_epoch() -> None:
    places = (("a", Place(epoch=2, step=10)), ("b", Place(epoch=1, step=90)), ("c", Place(epoch=1, step=20)))
    assert _order(*places) == (["c", "b", "a"], "epoch and step")


def test_what_only_some_of_them_state_orders_none() -> None:
    places = (("step10", Place(epoch=1)), ("step9", Place()), ("step100", Place(epoch=0)))
    assert _order(*places) == (["step9", "step10", "step100"], "name")


def test_one_kind_of_number_is_enough_when_all_state_it() -> None:
    steps = (("z", Place(step=1)), ("a", Place(step=30, epoch=1)), ("b", Place(step=4)))
    assert _order(*steps) == (["z", "b", "a"], "step")
    epochs = (("z", Place(epoch=1.5, step=3)), ("a", Place(epoch=1.25)))
    assert _order(*epochs) == (["a", "z"], "epoch")


def test_equal_places_and_names_keep_their_order() -> None:
    order, _ = in_order([("last.ckpt", Place(epoch=3)), ("best2.ckpt", Place(epoch=3)), ("last.ckpt", Place(epoch=3))])
    assert order == (1, 0, 2)


@pytest.mark.parametrize(
    "names",
    [
        ["a", "a1", "a2", "a10"],
        ["epoch=2-step=9.ckpt", "epoch=2-step=10.ckpt", "epoch=10-step=1.ckpt"],
        ["Net_007.pth", "net_8.pth", "NET_0009.pth"],
        ["1.pth", "2.pth", "9" * 5000 + ".pth"],
        ["", "0", "1", "a"],
        ["٣", "٣1"],  # a digit that is none of ours is a letter
    ],
)
def test_numbers_in_names_count_by_their_value(names: list[str]) -> None:
    turned = names[::-1]
    assert sorted(turned, key=natural) == names


def test_a_curve_runs_along_what_grows() -> None:
    assert axis_of([Place(epoch=1, step=5), Place(epoch=2, step=9)]) == ((5, 9), "step")
    assert axis_of([Place(epoch=1, step=9), Place(epoch=2, step=5)]) == ((1, 2), "epoch")
    assert axis_of([Place(epoch=1), Place(epoch=1)]) == ((1, 2), "checkpoint")
    assert axis_of([Place(step=3), Place()]) == ((1, 2), "checkpoint")


class Tiny(nn.Module):
    """A convolution whose map is the picture's red times `strength`, and a head that reads its mean."""

    def __init__(self, strength: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 1, bias=False)
        self.head = nn.Linear(1, 2)
        with torch.no_grad():
            self.conv.weight.copy_(torch.tensor([strength, 0, 0]).view(1, 3, 1, 1))
            self.head.weight.copy_(torch.tensor([[1.0], [-1.0]]))
            self.head.bias.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.conv(x).mean(dim=(2, 3)))


PICTURE = Image.fromarray(
    np.stack([np.linspace(130, 255, 64).reshape(8, 8), np.zeros((8, 8)), np.zeros((8, 8))], axis=2).astype(np.uint8)
)
COMMON = Common(architecture="tiny", setting=Setting(preprocessing=STEPS), own=STEPS, stated=NAMES)


def _ready(name: str, strength: float = 1.0, **changed: Any) -> Callable[[], ReadyModel]:
    plain: dict[str, Any] = {"preprocessing": STEPS, "class_names": NAMES, "architecture": "tiny"}
    return lambda: ReadyModel(name=name, sha256=name, model=Tiny(strength).eval(), **{**plain, **changed})


def _stages(
    *given: tuple[str, Callable[[], ReadyModel]], common: Common = COMMON, target: int | None = 0
) -> list[Stage]:
    return list(explain_each(given, PICTURE, common, MapRequest(layers=("conv",)), target=target))


def _maps(*strengths: float) -> list[Explanation]:
    stages = _stages(*((f"{n}", _ready(f"{n}", strength)) for n, strength in enumerate(strengths)))
    return [stage.made for stage in stages if stage.made is not None]


def test_each_map_is_its_own_checkpoints() -> None:
    one, two = _maps(1.0, 4.0)
    # Grad-CAM of a mean: every cell is gradient (1/64) times activation; red from 130 to 255 becomes 0.02 to 1.
    expected = (np.asarray(PICTURE)[..., 0] / 255 - 0.5) / 0.5 / 64
    assert np.allclose(one.raw, expected, atol=1e-6)
    assert np.allclose(two.raw, 4 * expected, atol=1e-6)
    assert two.target.probability == pytest.approx(1 / (1 + math.exp(-2 * 4 * 64 * expected.mean())), abs=1e-5)


def test_one_model_is_held_at_a_time_also_after_one_that_fails() -> None:
    alive: weakref.WeakSet[nn.Module] = weakref.WeakSet()
    seen = []

    def opening(strength: float, architecture: str) -> Callable[[], ReadyModel]:
        def make() -> ReadyModel:
            gc.collect()
            seen.append(len(alive))
            made = _ready("n", strength, architecture=architecture)()
            alive.add(made.model)
            return made

        return make

    given = [("a", opening(1, "tiny")), ("b", opening(1, "other")), ("c", opening(math.nan, "tiny"))]
    kept = _stages(*given, ("d", opening(2, "tiny")))
    assert seen == [0, 0, 0, 0]
    gc.collect()
    assert not alive and len(kept) == 4


def _broken() -> ReadyModel:
    raise CorruptFile("It is cut short.", hint="Copy it again.")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"architecture": "huge"}, "It is huge; the others are tiny."),
        ({"class_names": ("cat", "cow")}, "It calls class 1 'cow'; the others call it 'dog'."),
        ({"class_names": ("dog", "cat")}, "It calls class 0 'dog'; the others call it 'cat'."),
        ({"class_names": ("cat",)}, "It names 1 classes, the others 2."),
        ({"preprocessing": replace(STEPS, mean=(0.4,) * 3)}, "prepared otherwise, as here has it"),
        ({"answer": AnswerKind.SEVERAL}, "stated as 'several'; that of the others is 'one'"),
    ],
)
def test_what_does_not_belong_is_left_out_and_said(changed: dict[str, Any], says: str) -> None:
    common = replace(COMMON, own_answer=AnswerKind.ONE)
    first, other, last = _stages(("a", _ready("a")), ("b", _ready("b", **changed)), ("c", _ready("c")), common=common)
    assert (
        other.made is None and isinstance(other.error, ExplainError) and says in other.error.says and other.error.hint
    )
    assert first.made is not None and last.made is not None


@pytest.mark.parametrize(
    ("changed", "common"),
    [
        # Nothing stated is nothing to contradict.
        ({"class_names": (), "preprocessing": replace(STEPS, mean=(0.4,) * 3, assumed=True)}, COMMON),
        # Set by hand for all of them.
        ({"preprocessing": replace(STEPS, mean=(0.4,) * 3)}, replace(COMMON, own=None)),
        ({"preprocessing": replace(STEPS, source="elsewhere")}, COMMON),
        ({"answer": AnswerKind.SEVERAL}, COMMON),
    ],
)
def test_what_belongs_stays_and_sees_the_same_picture(changed: dict[str, Any], common: Common) -> None:
    first, other = _stages(("a", _ready("a")), ("b", _ready("b", **changed)), common=common)
    assert first.made is not None and other.made is not None
    assert np.array_equal(first.made.raw, other.made.raw)
    assert other.made.target.name == "cat"


def test_names_that_the_hand_does_not_state_come_from_the_first_that_does() -> None:
    common = replace(COMMON, stated=())
    stages = _stages(
        ("a", _ready("a", class_names=())), ("b", _ready("b")), ("c", _ready("c", class_names=())),
        ("d", _ready("d", class_names=("x", "y"))), common=common,
    )  # fmt: skip
    assert [stage.made and stage.made.target.name for stage in stages] == [None, "cat", "cat", None]
    assert stages[3].error is not None


def test_a_file_that_cannot_be_read_does_not_end_the_run() -> None:
    broken, good = _stages(("a", _broken), ("b", _ready("b")))
    assert broken.error is not None and broken.error.hint == "Copy it again."
    assert good.made is not None and (good.number, good.sha256) == (1, "b")


def test_the_best_class_is_each_ones_own() -> None:
    one, two = _stages(("a", _ready("a", 1.0)), ("b", _ready("b", -1.0)), target=None)
    assert one.made is not None and two.made is not None
    assert (one.made.target.name, two.made.target.name) == ("cat", "dog")


def test_one_scale_divides_by_the_highest_of_all() -> None:
    maps = _maps(1.0, 4.0, -1.0)
    drawn = on_one_scale(maps)
    for one, shown in zip(maps, drawn, strict=True):
        # The layer has the picture's own size, so nothing is enlarged in between.
        expected = functional.relu(torch.from_numpy(one.raw)) / float(maps[1].raw.max())
        assert np.allclose(shown.heat, expected.numpy(), atol=1e-6)
    assert maps[0].heat.max() == pytest.approx(1)
    assert drawn[0].heat.max() == pytest.approx(0.25)
    with pytest.raises(ExplainError, match="no common scale"):
        on_one_scale([replace(maps[0], options=Options(fusion="mean"))])


def test_likeness_is_of_ranks_and_of_maps_that_show_something() -> None:
    up, more, down, dark = _maps(1.0, 3.0, -1.0, 0.0)
    assert agreement_with_last([up, down, more]) == pytest.approx((1, -1, 1))
    assert [finding.id for finding in dark.findings]
    first, empty, _ = agreement_with_last([up, dark, more])
    assert first == pytest.approx(1) and math.isnan(empty)
    assert all(math.isnan(value) for value in agreement_with_last([up, more, dark]))
    # Cells that differ by rounding alone have an order too: what was found about the map decides.
    flat, _ = agreement_with_last([replace(up, findings=dark.findings), more])
    assert math.isnan(flat)
    assert agreement_with_last([]) == ()


def test_progress_goes_through_all_of_them() -> None:
    told: list[tuple[int, int | None, str]] = []
    given = [("a", _ready("a")), ("b", _ready("b"))]
    list(
        explain_each(
            given, PICTURE, COMMON, MapRequest(method="smooth-grad-cam++", layers=("conv",)), target=0,
            progress=lambda done, total, note: told.append((done, total, note)),
        )
    )  # fmt: skip
    done = [step for step, _, _ in told]
    assert done == sorted(done) and done[-1] <= 2000
    assert {total for _, total, _ in told} == {2000}
    assert any(500 <= step < 1000 for step in done) and any(step >= 1500 for step in done)
