"""Dots that were left out or exchanged come back where the target has them, and nowhere else."""

from __future__ import annotations

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose


def test_names_without_dots_get_them_back(file_of, target_of, tiny_vit, placed_as):
    goal = tiny_vit()
    truth = {name: "model_ema." + name.replace(".", "") for name in goal}
    report = diagnose(file_of({truth[n]: s for n, s in goal.items()}, ordered=False), target_of(goal))
    assert report.plan.complete and placed_as(report) == truth


def test_what_stands_before_every_name_may_be_without_its_dot_too(file_of, target_of, tiny_vit, placed_as):
    goal = tiny_vit()
    truth = {name: "model_ema." + f"diffusion_model.{name}".replace(".", "") for name in goal}
    report = diagnose(file_of({truth[n]: s for n, s in goal.items()}, ordered=False), target_of(goal))
    assert report.plan.complete and placed_as(report) == truth


def test_the_average_beside_the_weights_is_asked_about(file_of, target_of, tiny_vit, placed_as):
    goal = tiny_vit()
    ours = {f"model.{n}": s for n, s in goal.items()} | {f"model_ema.{n.replace('.', '')}": s for n, s in goal.items()}
    report = diagnose(file_of(ours), target_of(goal))
    assert [q.id for q in report.plan.ambiguities] == ["twins"]
    ema = diagnose(file_of(ours), target_of(goal), choose={"twins": "model_ema"})
    assert placed_as(ema) == {n: f"model_ema.{n.replace('.', '')}" for n in goal}


def test_underscores_and_slashes_are_read_against_the_target(file_of, target_of, placed_as):
    goal = {
        f"down.{i}.conv_in.{leaf}": (3 + i, i + 1)[: 2 - (leaf == "bias")]
        for i in range(4)
        for leaf in ("weight", "bias")
    }
    for other in ("_", "/", "-"):
        truth = {n: n.replace(".", other) for n in goal}
        report = diagnose(file_of({truth[n]: s for n, s in goal.items()}, ordered=False), target_of(goal))
        assert report.plan.complete and placed_as(report) == truth


def test_a_name_that_reads_as_two_is_asked_about(file_of, target_of, placed_as):
    goal = {
        "a.b_c.weight": (4, 4),
        "a_b.c.weight": (4, 4),
        "x.y.weight": (3, 4),
        "z.y.weight": (2, 4),
        "v.y.weight": (5, 4),
    }
    ours = {"a_b_c_weight": (4, 4), "x_y_weight": (3, 4), "z_y_weight": (2, 4), "v_y_weight": (5, 4)}
    report = diagnose(file_of(ours), target_of(goal))
    (question,) = report.plan.ambiguities
    assert question.id == "separators" and {o for o, _ in question.options} == {"a.b_c.weight", "a_b.c.weight"}
    assert "a_b_c_weight" not in placed_as(report).values() and not report.plan.complete
    chosen = diagnose(file_of(ours), target_of(goal), choose={"separators": "a_b.c.weight"})
    assert placed_as(chosen)["a_b.c.weight"] == "a_b_c_weight"


def test_a_name_the_target_has_is_asked_to_yield(file_of, target_of, placed_as):
    goal = {f"l{i}.weight": (4, i + 1) for i in range(5)}
    ours = {f"l{i}_weight": (4, i + 1) for i in range(5)} | {"l0.weight": (4, 1)}
    report = diagnose(file_of(ours), target_of(goal), accept=("extra-tensors",))
    assert not report.plan.complete and [q.id for q in report.plan.ambiguities] == ["separators"]
    other = diagnose(file_of(ours), target_of(goal), accept=("extra-tensors",), choose={"separators": "l0_weight"})
    assert other.plan.complete and placed_as(other)["l0.weight"] == "l0_weight"


def test_a_few_names_alike_are_no_separators(file_of, target_of, tiny_vit):
    goal = tiny_vit()
    ours = {f"other{i}.thing": (3, i + 1) for i in range(20)} | {"headweight": (10, 4)}
    assert diagnose(file_of(ours), target_of(goal)).plan is None


def test_a_prefix_is_no_separator(file_of, target_of, tiny_vit):
    goal = tiny_vit()
    report = diagnose(file_of({f"module.{n}": s for n, s in goal.items()}), target_of(goal))
    assert [use.id for use in report.plan.rules] == ["wrapper-segment"]


def test_code_and_plan_agree(saved, target_of, tiny_vit, tmp_path):
    goal = tiny_vit()
    state = {n.replace(".", "_"): torch.rand(s) for n, s in goal.items()}
    plan = diagnose(saved(state), target_of(goal)).plan
    made = apply_plan(saved(state), plan)
    assert all(torch.equal(made[n], state[n.replace(".", "_")]) for n in goal)
    torch.save(state, tmp_path / "net.pth")
    code = python_code(plan, file_name=str(tmp_path / "net.pth")).partition("# `model` is yours")[0]
    space: dict[str, object] = {}
    exec(code, space)
    assert {n: t.sum() for n, t in space["state"].items()} == {n: t.sum() for n, t in made.items()}


@pytest.mark.parametrize("ordered", [True, False])
def test_no_number_is_cut_in_two(file_of, target_of, ordered):
    goal = {f"layers.{i}.{n}": s for i in range(2) for n, s in (("a.weight", (4, 4)), ("a.bias", (4,)), ("b", (4,)))}
    ours = {name.replace("layers.", "layers.1", 1): size for name, size in goal.items()}
    plan = diagnose(file_of(ours, ordered=ordered), target_of(goal)).plan
    assert [question.id for question in plan.ambiguities] == ["index-shift"]
    assert "separators" not in {rule for step in plan.steps for rule in (step.rule, *step.also)}


@pytest.mark.parametrize("ordered", [True, False])
def test_a_minus_is_no_separator(file_of, target_of, ordered):
    """layers.-1 and layers.0, as counted from behind, read as layers.1 and layers.0: each loads."""
    goal = {
        f"layers.{i}.fc_{j}.{n}": s for i in (0, 1) for j in (1, 2) for n, s in (("weight", (4, 4)), ("bias", (4,)))
    }
    ours = {}
    for name, size in goal.items():
        _, number, layer, leaf = name.split(".")
        ours[f"layers.{int(number) - 1}.{layer.replace('_', '')}.{leaf}"] = size
    report = diagnose(file_of(ours, ordered=ordered), target_of(goal))
    assert report.plan is None or not report.plan.complete


def test_numbers_stay_apart_and_words_whole(file_of, target_of):
    goal = {f"layers.1{i}.weight": (4 + i, 4) for i in range(4)}
    for put in ("layers_1.", "sublayers_1"):
        report = diagnose(
            file_of({n.replace("layers.1", put): s for n, s in goal.items()}, ordered=False), target_of(goal)
        )
        assert report.plan is None or "separators" not in {use.id for use in report.plan.rules}, put
