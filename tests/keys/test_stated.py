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
    {"layer_order": [3, 2, 1, 0]},
    {"kind": "fisher information"},
    {"content": "gradients"},
    {"type": "ewc importance"},
    {"format": "adam second moments"},
    {"note": "these are gradients, not weights"},
    {"comment": "Delta weights, add them to the base."},
    {"readme": "This file contains only the gradients."},
    {"delta": True},
    {"gradients": True},
    {"task_vector": True},
    {"weight_deltas": True},
    {"gradients_only": True},
    {"base_subtracted": True},
    {"type": "difference to base model"},
    {"residual_to": "base.pt"},
    {"content": "exp_avg"},
    {"kind": "momentum"},
    {"type": "mask"},
    {"weights_are": "gradients"},
    {"comment": "gradients of step 100"},
    {"description": "importance per weight (EWC)"},
    {"description": "EMA fisher information per weight"},
    {"trained": False},
    {"is_trained": False},
    {"untrained": True},
    {"initialized_only": True},
    {"random_weights": True},
    {"status": "random initialisation"},
    {"note": "initial random weights, not trained"},
    {"note": "these are the initial random weights, not trained"},
    {"note": "The model was never trained."},
    {"weight_scale": 0.01},
    {"multiplied_by": 100},
    {"weights_divided_by": 3.0},
    {"sum_of": 5},
    {"noise_added": 1.0},
    {"weights_shifted_by": 1},
    {"log_weights": True},
    {"weights_in_log_space": True},
    {"transpose": True},
    {"weights_are": "transposed"},
    {"format": "transposed"},
    {"layout": "in_out"},
    {"weight_layout": "(in, out)"},
    {"kernel_order": "in_features x out_features"},
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
    {"layer_order": [0, 1, 2, 3]},
    {"type": "mask_rcnn", "kind": "gradient boosting", "content": "weights", "order": "reversed"},
    {"note": "these are gradients, not weights. " * 10},
    {"lr": 1, "momentum": True, "weight_decay": 0.01, "grad_clip": 1, "step": 1, "amp": True, "delta": 1, "scale": 4},
    {"gradient_accumulation_steps": 4, "optimizer": "momentum", "grad_norm": 2.5, "ema": True, "log_gradients": True},
    {"trained": True, "pretrained": False, "training": False, "untrained": False, "is_gradient": False, "delta": False},
    {"weight_scale": 1.0, "multiplied_by": 1, "noise_added": 0.0, "sum_of": 1, "quantized": False, "random_weights": 0},
    {"weight_scale": True, "quantized": True, "transposed": False, "log_weights": False},
    {"layout": "out_in", "weight_layout": "(out, in)", "format": "pt", "memory_format": "channels_last"},
    {
        "residual_to": None,
        "difference_to": False,
        "update_from": "v2",
        "offset": 3,
        "average_of": 5,
        "mean_subtracted": 1,
    },
    {"type": "residual", "kind": "mask_rcnn", "content": "weights", "status": "trained", "state": "initialized"},
    {
        "note": "trained from random weights",
        "comment": "encoder not trained (frozen)",
        "summary": "differences to v1: lr",
    },
    {"description": "random network distillation", "about": "gradients of the encoder are stopped"},
    {"note": "masks of cells in microscopy", "info": "not trained on ImageNet"},
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


def test_a_scale_is_of_the_weights_where_they_are_quantised(tmp_path, target_of):
    report = _report({"quantized": True, "scale": 0.02}, "", "value", tmp_path, target_of)
    assert [one.id for one in report.plan.ambiguities] == ["stated-beside"]
    assert '"quantized: True" and "scale: 0.02"' in report.says
    for says in ({"quantized": True, "scale": 1.0}, {"quantized": False, "scale": 0.02}):
        assert _report(says, "", "value", tmp_path, target_of).plan.complete


SQUARES = {f"fc{n}.{own}": shape for n in (1, 2) for own, shape in (("weight", (6, 6)), ("bias", (6,)))}
ELSEWHERE = (
    {"framework": "keras"},
    {"framework": "TensorFlow"},
    {"backend": "tensorflow 2.15"},
    {"source": "tf.keras"},
    {"exported_from": "tf.keras"},
    {"source_framework": "dm-haiku"},
    {"layout": "in_out"},
    {"transposed": True},
)


def _written(shapes, says, path):
    torch.manual_seed(0)
    torch.save({"state_dict": {name: torch.randn(shape) for name, shape in shapes.items()}, **says}, path)
    return open_checkpoint(path)


@pytest.mark.parametrize("says", ELSEWHERE, ids=str)
def test_squares_of_another_library_are_asked_about_and_turned(says, tmp_path, target_of):
    file = _written(SQUARES, says, tmp_path / "net.pth")
    report = diagnose(file, target_of(SQUARES))
    assert [one.id for one in report.plan.ambiguities] == ["transposed"]
    turned = diagnose(file, target_of(SQUARES), choose={"transposed": "transposed"}).plan
    assert turned.complete and [s.target for s in turned.steps if s.axes == (1, 0)] == ["fc1.weight", "fc2.weight"]


@pytest.mark.parametrize("says", ({"source": "https://github.com/keras-team"}, {"backend": "cuda"}, {"format": "pt"}))
def test_squares_of_torch_are_not(says, tmp_path, target_of):
    assert diagnose(_written(SQUARES, says, tmp_path / "net.pth"), target_of(SQUARES)).plan.complete


def test_matrices_that_shapes_turn_settle_what_was_said(tmp_path, target_of):
    """A file from Keras whose matrices were turned when it was converted, and one whose are not."""
    goal = SQUARES | {"head.weight": (3, 6), "head.bias": (3,)}
    converted = _written(goal, {"exported_from": "keras"}, tmp_path / "a.pth")
    assert diagnose(converted, target_of(goal)).plan.complete
    oblong = {"head.weight": (3, 6), "head.bias": (3,)}
    turned = _written(oblong | {"head.weight": (6, 3)}, {"layout": "in_out"}, tmp_path / "b.pth")
    assert diagnose(turned, target_of(oblong)).plan.complete
