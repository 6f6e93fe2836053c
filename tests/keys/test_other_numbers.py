"""Levels that say that the numbers below are no weights, or those of another moment, are not taken off in silence."""

from __future__ import annotations

import pytest
import torch

from inspector.checkpoint.level_words import is_another_moment, is_before_training, is_quantity
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

GOAL = {f"fc{n}.{own}": shape for n in (1, 2, 3) for own, shape in (("weight", (n + 3, n + 2)), ("bias", (n + 3,)))}
QUANTITIES = (
    "sigma",
    "scale",
    "lower",
    "upper",
    "prior",
    "rho",
    "weight_sigma",
    "log_sigma",
    "residual",
    "popup_scores",
    "max_exp_avg_sq",
    "grad_sum",
    "zero_points",
    "lora_delta",
    "amax",
)
BEFORE = ("init", "initial", "theta_0", "init_params")
MOMENTS = ("swa", "best", "old", "prev", "target", "best_model")


def asked(report):
    return [question.id for question in report.plan.ambiguities] if report.plan is not None else []


@pytest.mark.parametrize("way", ["{}.{}", "{}/{}", "{}_{}", "net.{}.{}"])
@pytest.mark.parametrize("level", (*QUANTITIES, *BEFORE))
def test_a_level_that_says_no_weights_is_asked_about(level, way, file_of, target_of):
    names = {way.format(level, n.replace(".", "/") if "/" in way else n): shape for n, shape in GOAL.items()}
    report = diagnose(file_of(names), target_of(GOAL))
    assert asked(report) == ["other-numbers"] and f'"{level}"' in report.says
    yes = diagnose(file_of(names), target_of(GOAL), choose={"other-numbers": "as-placed"}, accept=["same-order"]).plan
    assert yes.complete and {s.source: s.target for s in yes.steps} == dict(zip(names, GOAL, strict=True))
    no = diagnose(file_of(names), target_of(GOAL), choose={"other-numbers": "leave-out"})
    assert no.plan is None or not no.plan.complete


@pytest.mark.parametrize("level", (*QUANTITIES, *MOMENTS))
def test_a_part_of_the_names_with_such_a_level_is_asked_about(level, file_of, target_of):
    names = {f"{level}.{name}" if name.startswith("fc1") else name: shape for name, shape in GOAL.items()}
    assert asked(diagnose(file_of(names), target_of(GOAL)))


@pytest.mark.parametrize("level", MOMENTS)
def test_the_weights_of_another_moment_alone_in_a_file_are_taken_and_said(level, file_of, target_of):
    report = diagnose(file_of({f"{level}.{name}": shape for name, shape in GOAL.items()}), target_of(GOAL))
    assert report.plan.complete
    (found,) = [finding for finding in report.findings if finding.id == "another-moment"]
    assert f'"{level}"' in found.says


@pytest.mark.parametrize("level", ["net", "model", "module", "backbone", "clip", "score", "control_model", "sigma_net"])
def test_a_wrapper_is_no_such_level(level, file_of, target_of):
    report = diagnose(file_of({f"{level}.{name}": shape for name, shape in GOAL.items()}), target_of(GOAL))
    assert report.plan.complete
    assert "another-moment" not in [finding.id for finding in report.findings]


def test_what_the_target_has_as_well_is_no_such_level(file_of, target_of):
    names = {f"model.prior.{name}": shape for name, shape in GOAL.items()}
    assert diagnose(file_of(names), target_of({f"prior.{name}": shape for name, shape in GOAL.items()})).plan.complete


@pytest.mark.parametrize("key", ["sigma", "init"])
def test_a_key_around_all_of_them_is_asked_about_as_well(key, tmp_path, target_of):
    file = tmp_path / "net.pth"
    numbers = {name: torch.rand(shape) for name, shape in GOAL.items()}
    torch.save({key: numbers}, file)
    checkpoint, target = open_checkpoint(file), target_of(GOAL)
    assert asked(diagnose(checkpoint, target)) == ["other-numbers"]
    named = diagnose(checkpoint, target, state=checkpoint.state_dicts[0]).plan
    assert named.complete
    made = apply_plan(checkpoint, named)
    assert all(torch.equal(torch.as_tensor(made[name]), value) for name, value in numbers.items())


def test_words_of_parts_are_none_of_these():
    for level in (
        "encoder",
        "head",
        "clip",
        "control_model",
        "score_model",
        "norms",
        "layer_scale",
        "scale_shift",
        "v",
    ):
        assert not (is_quantity(level) or is_before_training(level) or is_another_moment(level)), level
