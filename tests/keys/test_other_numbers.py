"""Levels that say that the numbers below are no weights, or those of another moment, are not taken off in silence."""

from __future__ import annotations

import pytest
import torch

from inspector.checkpoint.level_words import (
    is_another_moment,
    is_before_training,
    is_not_as_used,
    is_quantity,
    is_quantity_of_all,
)
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

ASIDE = (
    "gauss_newton",
    "hvp",
    "last_update",
    "trust_ratio",
    "grad_norm",
    "rounding_error",
    "nf4_state",
    "outlier_mask",
    "change_since_init",
    "eligibility_trace",
    "spike_counts",
    "adamw_state",
    "lookahead_slow",
    "kfac_a",
    "mean_activation",
    "shap",
    "percentiles",
    "negated",
    "shuffled",
    "transposed",
    "do_not_load",
    "random_init",
    "student_grad",
    "actor_gradients",
    "critic_deltas",
    "lr_per_weight",
    "std_per_param",
    "permutation",
    "ema_sum",
    "swa_sum",
)
NETWORKS = (
    "my_net",
    "student",
    "critic",
    "policy",
    "density_net",
    "resnet50",
    "seg_model",
    "trainer.model",
    "score_model",
    "noise_net",
    "noise_predictor",
    "mask_rcnn",
    "mask_decoder",
    "mask2former",
    "residual_net",
    "mean_teacher",
    "grad_cam_model",
    "policy_gradient",
    "encoder_momentum",
    "max_vit",
    "change_detection",
)


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


@pytest.mark.parametrize("way", ["{}.{}", "{}/{}", "{}_{}"])
@pytest.mark.parametrize("level", ASIDE)
def test_a_level_before_all_names_that_no_network_is_called_is_asked_about(level, way, file_of, target_of):
    names = {way.format(level, n.replace(".", "/") if "/" in way else n): shape for n, shape in GOAL.items()}
    report = diagnose(file_of(names), target_of(GOAL))
    assert len(asked(report)) == 1 and f'"{level}"' in report.says
    yes = {asked(report)[0]: "as-placed"}
    assert diagnose(file_of(names), target_of(GOAL), choose=yes, accept=["same-order"]).plan.complete


@pytest.mark.parametrize("level", NETWORKS)
def test_a_network_about_a_quantity_is_a_network(level, file_of, target_of, tmp_path):
    report = diagnose(file_of({f"{level}.{name}": shape for name, shape in GOAL.items()}), target_of(GOAL))
    assert report.plan.complete
    torch.save({level: {name: torch.randn(shape) for name, shape in GOAL.items()}}, tmp_path / "net.pth")
    assert diagnose(open_checkpoint(tmp_path / "net.pth"), target_of(GOAL)).plan.complete


def test_a_mean_that_the_norms_have_too_is_asked_about(file_of, target_of):
    goal = GOAL | {f"bn.{own}": (4,) for own in ("weight", "bias", "running_mean", "running_var")}
    names = {f"mean_activation.{name}": shape for name, shape in goal.items()}
    assert asked(diagnose(file_of(names), target_of(goal))) == ["other-numbers"]


def test_what_is_asked_of_all_names_is_not_of_a_layer(file_of, target_of):
    # One layer, called after what it works on.
    names = {f"ratio_{name}" if name.startswith("fc1") else name: shape for name, shape in GOAL.items()}
    assert "other-numbers" not in asked(diagnose(file_of(names), target_of(GOAL)))


@pytest.mark.parametrize(
    "key", ["best", "last", "final", "lowest_error", "epoch=3-val_error=0.1", "end_to_end", "rev_2"]
)
def test_a_key_that_says_which_checkpoint_it_is_is_not_asked_about(key, tmp_path, target_of):
    torch.save({key: {name: torch.randn(shape) for name, shape in GOAL.items()}}, tmp_path / "net.pth")
    assert diagnose(open_checkpoint(tmp_path / "net.pth"), target_of(GOAL)).plan.complete


@pytest.mark.parametrize("pair", [("before", "after"), ("after", "before"), ("weights_before", "state_dict")])
def test_two_sets_of_one_network_are_asked_about_whatever_their_keys(pair, tmp_path, target_of):
    sets = {key: {name: torch.randn(shape) for name, shape in GOAL.items()} for key in pair}
    torch.save(sets, tmp_path / "net.pth")
    checkpoint = open_checkpoint(tmp_path / "net.pth")
    assert asked(diagnose(checkpoint, target_of(GOAL))) == ["state"]
    for key in pair:
        plan = diagnose(checkpoint, target_of(GOAL), choose={"state": key}).plan
        assert plan.complete and plan.state_dict == (key,)


def test_the_weights_from_before_training_beside_the_weights_raise_no_question(tmp_path, target_of):
    sets = {key: {name: torch.randn(shape) for name, shape in GOAL.items()} for key in ("model", "init")}
    torch.save(sets, tmp_path / "net.pth")
    assert diagnose(open_checkpoint(tmp_path / "net.pth"), target_of(GOAL)).plan.state_dict == ("model",)


@pytest.mark.parametrize("key", ["sigma", "init", "last_update", "placeholder", "do_not_load", "corrupted"])
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
        assert not is_not_as_used(level), level
        assert level == "norms" or not is_quantity_of_all(level) or "scale" in level, level
