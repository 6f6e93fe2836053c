"""A deviation, a logarithm or an inverse is never offered as a plain copy of the variance, nor a centre as a bias."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose
from inspector.keys.placing.roles import roles_of
from inspector.keys.placing.tree import Leaf

CONV = {"conv.weight": (8, 3, 3, 3), "conv.bias": (8,)}
END = {"fc.weight": (4, 8), "fc.bias": (4,)}


def net(norm):
    return CONV | {f"norm.{own}": (8,) for own in norm} | END


@pytest.mark.parametrize(
    "own",
    ["std", "running_std", "running_inv_var", "inv_std", "logvar", "running_log_var", "rstd", "sigma", "precision"],
)
def test_what_is_worked_out_of_a_variance_is_no_variance(own, file_of, target_of):
    file = file_of(net(("weight", "bias", "running_mean", own)))
    goal = target_of(net(("weight", "bias", "running_mean", "running_var")))
    for choose, accept in (({}, ()), ({}, ("same-order",))):
        report = diagnose(file, goal, choose=choose, accept=accept)
        assert report.plan is None and f"norm.{own}" in report.refusal and "running_var" in report.refusal


@pytest.mark.parametrize("own", [("center", "scale"), ("loc", "scale"), ("scale", "center"), ("mean", "std")])
def test_what_is_taken_off_and_divided_by_is_no_weight_and_bias(own, file_of, target_of):
    report = diagnose(file_of(net(own)), target_of(net(("weight", "bias"))))
    assert report.plan is None and "no copy" in report.refusal


@pytest.mark.parametrize("own", [("scale", "shift"), ("gamma", "beta"), ("scale", "offset")])
def test_a_norms_own_words_are_its_weight_and_bias(own, file_of, target_of):
    report = diagnose(file_of(net(own)), target_of(net(("weight", "bias"))))
    assert report.plan is not None and not report.refusal


def test_variances_of_other_libraries_are_variances():
    names = ("running_var", "moving_variance", "log_var", "inv_var", "moving_var")
    found = roles_of([Leaf(f"bn.{name}", (8,)) for name in names])
    assert found == ["variance", "variance", "logarithm", "inverse", None]
