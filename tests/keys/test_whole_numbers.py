"""Quantised weights saved as real numbers are not loaded without the scale that lies beside them."""

from __future__ import annotations

import pytest
import torch

from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

GOAL = {f"fc{n}.{own}": shape for n in (1, 2) for own, shape in (("weight", (6, 5 + n)), ("bias", (6,)))}
SCALES = ("scale", "w_mul", "scaling_factor", "weight_scales", "lr_mul", "output_scale", "amax", "weight.scale")


def _state(scale, made):
    torch.manual_seed(0)
    state = {name: torch.randn(shape) for name, shape in GOAL.items()}
    for n in (1, 2):
        state[f"fc{n}.weight"] = made(state[f"fc{n}.weight"])
        state[f"fc{n}.{scale}"] = torch.tensor(0.02)
    return state


def _report(state, level, tmp_path, target_of, **says):
    path = tmp_path / "net.pth"
    torch.save({"state_dict": {level + name: value for name, value in state.items()}, **says}, path)
    return diagnose(open_checkpoint(path), target_of(GOAL))


@pytest.mark.parametrize("level", ["", "module."])
@pytest.mark.parametrize("scale", SCALES)
def test_whole_numbers_beside_their_scale_are_no_repair(scale, level, tmp_path, target_of):
    report = _report(_state(scale, lambda x: (x * 40).round()), level, tmp_path, target_of)
    assert report.plan is None or not report.plan.complete
    assert "off by that factor" in report.says and f"fc1.{scale}" in report.says


@pytest.mark.parametrize("made", [lambda x: x, torch.zeros_like, lambda x: (x > 0).float()])
def test_weights_beside_a_scale_may_come_without_it(made, tmp_path, target_of):
    report = _report(_state("scale", made), "", tmp_path, target_of)
    assert report.plan is not None and "off by that factor" not in report.says


def test_whole_numbers_that_the_file_calls_quantised_are_asked_about(tmp_path, target_of):
    whole = {name: (value * 40).round() for name, value in _state("scale", lambda x: x).items() if "scale" not in name}
    report = _report(whole, "", tmp_path, target_of, quantized=True)
    assert [one.id for one in report.plan.ambiguities] == ["stated-beside"]
    assert _report(whole, "", tmp_path, target_of).plan.complete
