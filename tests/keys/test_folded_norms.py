"""Batch norms that only one side has behind its layers: never left out as what is merely extra."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose

NORM = {"weight": (6,), "bias": (6,), "running_mean": (6,), "running_var": (6,), "num_batches_tracked": ()}


def norm(name):
    return {f"{name}.{leaf}": shape for leaf, shape in NORM.items()}


def conv(name, *, bias=False):
    return {f"{name}.weight": (6, 6, 3, 3)} | ({f"{name}.bias": (6,)} if bias else {})


def net(*, bias, norms):
    made = {}
    for block in ("layer1", "layer2"):
        made |= conv(f"{block}.conv1", bias=bias) | (norm(f"{block}.bn1") if norms else {})
    return made | {"fc.weight": (3, 6), "fc.bias": (3,)}


EVERYTHING = {"accept": ("extra-tensors",), "partial": True}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("more", [{}, EVERYTHING])
def test_a_batch_norm_behind_a_placed_layer_is_not_left_out(bias, more, file_of, target_of):
    """The target has the norm folded into its layer (with a bias), or has none at all."""
    report = diagnose(file_of(net(bias=False, norms=True)), target_of(net(bias=bias, norms=False)), **more)
    assert report.plan is None
    assert "layer1.bn1 is a batch norm that" in report.refusal and "2 such norms" in report.refusal


@pytest.mark.parametrize("more", [{}, EVERYTHING])
def test_a_bias_that_stands_for_a_batch_norm_is_not_left_out(more, file_of, target_of):
    report = diagnose(file_of(net(bias=True, norms=False)), target_of(net(bias=False, norms=True)), **more)
    assert report.plan is None and "folded into the layers of the file" in report.refusal


def test_a_second_set_of_norms_beside_the_targets_own_may_come_off(file_of, target_of):
    """AdvProp's and domain adaptation's: each layer keeps a norm."""
    goal = net(bias=False, norms=True)
    report = diagnose(file_of(goal | norm("layer1.aux_bn1") | norm("layer2.aux_bn1")), target_of(goal))
    assert not report.refusal and report.plan is not None


def test_a_branch_with_norms_of_its_own_may_come_off(file_of, target_of):
    goal = net(bias=False, norms=True)
    plan = diagnose(file_of(goal | conv("aux.conv1") | norm("aux.bn1")), target_of(goal)).plan
    assert plan.needs_accept == ("extra-tensors",) and not plan.missing


def test_a_part_without_norms_in_the_file_is_only_missing(file_of, target_of):
    """Nothing of the file is left out: what is missing is no folded norm."""
    plan = diagnose(file_of(net(bias=False, norms=False)), target_of(net(bias=False, norms=True))).plan
    assert plan is not None and "layer1.bn1.running_var" in plan.missing
