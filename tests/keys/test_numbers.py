"""What a diagnosis looks at of the numbers: scales around zero, tied places, buffers of another base."""

from __future__ import annotations

import torch

from inspector.keys.diagnose import diagnose


def _shapes(state):
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def _norms(offset, spread, count=3):
    draw = torch.Generator().manual_seed(1)
    return {
        f"blocks.{i}.norm.{leaf}": torch.randn(16, generator=draw) * spread + (offset if leaf == "weight" else 0)
        for i in range(count)
        for leaf in ("weight", "bias")
    }


def test_scales_stored_less_one_are_said(saved, target_of):
    state = _norms(0, 0.1)
    report = diagnose(saved(state), target_of(_shapes(state)))
    found = [f for f in report.findings if f.id == "cannot-tell"]
    assert len(found) == 1 and len(found[0].subjects) == 3 and report.plan.complete
    assert "no name or shape needs repair" not in report.says and "scales of all 3 norms lie around 0" in report.says


def test_healthy_scales_are_not(saved, target_of):
    # Trained around one; small and positive, as residual branches begin; zero.
    for offset, spread in ((1, 0.1), (0.05, 0.001), (0, 0)):
        state = _norms(offset, spread)
        report = diagnose(saved(state), target_of(_shapes(state)))
        assert not report.findings and "no name or shape needs repair" in report.says, offset


def test_two_tensors_for_tied_places_are_refused(saved, target_of):
    first = torch.randn(8, 4)
    ties = (("wte.weight", "lm_head.weight"),)
    goal = {"wte.weight": (8, 4), "lm_head.weight": (8, 4)}
    report = diagnose(saved({"wte.weight": first, "lm_head.weight": first + 1}), target_of(goal, ties=ties))
    assert report.plan is None and not report.loads and "different numbers in the file" in report.refusal
    for other in (first, first.clone()):
        same = diagnose(saved({"wte.weight": first, "lm_head.weight": other}), target_of(goal, ties=ties))
        assert same.loads and "no name or shape needs repair" in same.says


def test_frequencies_of_another_base_are_asked_about(saved, target_of):
    def frequencies(base):
        return 1 / base ** (torch.arange(0, 16, 2) / 16)

    goal = {"q_proj.weight": (4, 4)}
    state = {"q_proj.weight": torch.eye(4), "rotary_emb.inv_freq": frequencies(500000.0)}
    report = diagnose(saved(state), target_of(goal))
    assert [q.id for q in report.plan.ambiguities] == ["computed-buffers"] and not report.plan.complete
    assert diagnose(saved(state), target_of(goal), choose={"computed-buffers": "leave-out"}).plan.complete
    assert diagnose(saved(state), target_of(goal), choose={"computed-buffers": "keep"}).plan is None
    usual = {**state, "rotary_emb.inv_freq": frequencies(10000.0)}
    assert diagnose(saved(usual), target_of(goal)).plan.complete


def test_gamma_and_beta_raise_the_question_of_square_matrices(file_of, target_of):
    goal = {"norm.weight": (4,), "norm.bias": (4,), "fc.weight": (4, 4)}
    ours = {"norm.gamma": (4,), "norm.beta": (4,), "fc.weight": (4, 4)}
    asked = diagnose(file_of(ours, ordered=False), target_of(goal)).plan.ambiguities
    assert [q.id for q in asked] == ["transposed"]
    # torch's first BERTs: a matrix whose shape tells lies as torch has it.
    wide = {"up.weight": (8, 4)}
    assert diagnose(file_of(ours | wide, ordered=False), target_of(goal | wide)).plan.complete
    scale = {"block.gamma": (4,), "fc.weight": (4, 4)}
    assert diagnose(file_of(scale), target_of(scale)).plan.complete


def test_gamma_beside_moving_means_asks_nothing_more_of_kernels(file_of, target_of):
    goal = {f"bn.{leaf}": (8,) for leaf in ("weight", "bias", "running_mean", "running_var")}
    ours = {f"bn.{leaf}": (8,) for leaf in ("gamma", "beta", "moving_mean", "moving_variance")}
    kernel = {"conv.weight": (8, 3, 3, 3)}
    assert diagnose(file_of(ours | kernel), target_of(goal | kernel)).plan.complete
