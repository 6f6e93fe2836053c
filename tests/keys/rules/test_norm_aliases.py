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


def test_other_libraries_names_of_a_norm(file_of, target_of, placed_as):
    goal = {"ln_1.weight": (4,), "ln_1.bias": (4,), "fc.weight": (2, 4)}
    for weight, bias in (("g", "b"), ("scale", "bias"), ("scale", "shift")):
        ours = {f"ln_1.{weight}": (4,), f"ln_1.{bias}": (4,), "fc.weight": (2, 4)}
        report = diagnose(file_of(ours, ordered=False), target_of(goal))
        assert report.plan.complete and placed_as(report)["ln_1.weight"] == f"ln_1.{weight}", report.says


def test_statistics_under_keras_names(file_of, target_of, tiny_cnn, placed_as):
    names = {"running_mean": "moving_mean", "running_var": "moving_variance"}
    truth = {n: ".".join(names.get(x, x) for x in n.split(".")) for n in tiny_cnn}
    report = diagnose(file_of({truth[n]: s for n, s in tiny_cnn.items()}, ordered=False), target_of(tiny_cnn))
    assert report.plan.complete and placed_as(report) == truth


def test_a_scale_alone_needs_a_module_that_is_called_a_norm(file_of, target_of):
    goal = {"act.weight": (4,), "fc.weight": (2, 4)}
    report = diagnose(file_of({"act.scale": (4,), "fc.weight": (2, 4)}, ordered=False), target_of(goal))
    assert report.plan.missing == ("act.weight",)
