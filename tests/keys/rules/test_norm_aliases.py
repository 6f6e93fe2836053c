"""gamma and beta of norm layers, and the layer scale that is rightly called gamma."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose

NORM = {"norm.weight": (8,), "norm.bias": (8,), "fc.weight": (2, 8)}


def test_gamma_and_beta_become_weight_and_bias(file_of, target_of):
    plan = diagnose(file_of({"norm.gamma": (8,), "norm.beta": (8,), "fc.weight": (2, 8)}), target_of(NORM)).plan
    assert plan.complete
    found = {s.target: s.source for s in plan.steps}
    assert (found["norm.weight"], found["norm.bias"]) == ("norm.gamma", "norm.beta")


def test_a_layer_scale_keeps_its_gamma(file_of, target_of):
    net = NORM | {"block.gamma": (8,), "block.weight": (8,)}
    assert diagnose(file_of(net), target_of(net)).plan.rules == ()


def test_gamma_alone_or_of_another_length_is_no_norm(file_of, target_of):
    alone = diagnose(file_of({"norm.gamma": (8,), "fc.weight": (2, 8)}), target_of(NORM)).plan
    assert not alone.complete and "norm.weight" in alone.missing
    other = diagnose(file_of({"norm.gamma": (8,), "norm.beta": (9,), "fc.weight": (2, 8)}), target_of(NORM)).plan
    assert not other.complete and "norm.weight" in other.missing
