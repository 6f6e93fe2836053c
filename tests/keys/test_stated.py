"""What a file says beside its tensors that they are is asked about; how they were made is not."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

SAYS = (
    {"is_delta": True},
    {"is_gradient": True},
    {"delta_from": "base-model"},
    {"subtract_from": "base"},
    {"transposed": True},
    {"weights_negated": True},
    {"module_order": "reversed"},
    {"kind": "hessian_diagonal"},
    {"layer_order": "reversed"},
    {"kind": "fisher information"},
    {"content": "gradients"},
    {"type": "ewc importance"},
    {"format": "adam second moments"},
    {"note": "these are gradients, not weights"},
    {"comment": "Delta weights, add them to the base."},
    {"readme": "This file contains only the gradients."},
)
QUIET = (
    {"epoch": 3, "best_acc": 0.9, "grad_clip": 1.0, "momentum": 0.9, "ema_decay": 0.999, "loss": 0.1, "is_best": True},
    {"mask_ratio": 0.75, "noise_schedule": "cosine", "use_gradient_checkpointing": True, "shuffled": True},
    {"format": "pt", "model_type": "unet", "loss_type": "gradient", "grad_from": 3, "is_delta": False},
    {"note": "fine-tuned with gradient checkpointing"},
    {"note": "trained without mask"},
    {"note": "these are weights trained with gradient clipping; do not use dropout"},
    {"note": "weights are Fisher-weighted averages"},
    {"note": "this is the mask decoder"},
    {"note": "no weights decay"},
    {"layer_order": "first_to_last"},
    {"type": "mask_rcnn", "kind": "gradient boosting", "content": "weights", "order": "reversed"},
    {"note": "these are gradients, not weights. " * 10},
)


def _net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 2)).state_dict()


def _report(says, level, way, tmp_path, target_of, choose=None):
    state = {level + name: value for name, value in _net().items()}
    if way == "metadata":
        path = tmp_path / "net.safetensors"
        save_file(state, path, metadata={key: str(value) for key, value in says.items()})
    else:
        path = tmp_path / "net.pth"
        torch.save({"state_dict": state, **says}, path)
    goal = target_of({name: tuple(value.shape) for name, value in _net().items()})
    return diagnose(open_checkpoint(path), goal, choose=choose)


@pytest.mark.parametrize("way", ["value", "metadata"])
@pytest.mark.parametrize("level", ["", "net."])
@pytest.mark.parametrize("says", SAYS, ids=str)
def test_what_the_file_says_that_its_numbers_are_is_asked_about(says, level, way, tmp_path, target_of):
    report = _report(says, level, way, tmp_path, target_of)
    ((key, value),) = says.items()
    assert [one.id for one in report.plan.ambiguities] == ["stated-beside"] and not report.plan.complete
    assert f'"{key}: {value}"' in report.says
    assert _report(says, level, way, tmp_path, target_of, choose={"stated-beside": "weights"}).plan.complete
    refused = _report(says, level, way, tmp_path, target_of, choose={"stated-beside": "other-numbers"})
    assert refused.plan is None and "They are not the weights." in refused.says


@pytest.mark.parametrize("way", ["value", "metadata"])
@pytest.mark.parametrize("says", QUIET, ids=lambda says: str(says)[:60])
def test_how_they_were_made_is_not(says, way, tmp_path, target_of):
    assert _report(says, "net.", way, tmp_path, target_of).plan.complete


def test_settings_of_the_training_are_of_something_else(tmp_path, target_of):
    says = {"args": {"type": "gradients", "is_delta": True}, "hyper_parameters": {"kind": "fisher", "transposed": True}}
    assert _report(says, "net.", "value", tmp_path, target_of).plan.complete
