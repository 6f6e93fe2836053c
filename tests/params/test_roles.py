"""Which names are buffers, against the modules that register them."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm

from inspector.checkpoint.types import TensorInfo
from inspector.params.report import TensorRole
from inspector.params.roles import role_by_name


def info(name, shape=(4,), dtype="float32"):
    return TensorInfo(name=name, path=(name,), shape=shape, dtype=dtype, nbytes=0, storage_id=None)


def roles_of(model):
    """name -> role for everything in the model's state dict."""
    tensors = [
        info(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in model.state_dict().items()
    ]
    names = {tensor.name for tensor in tensors}
    return {tensor.name: role_by_name(tensor, names) for tensor in tensors}


def torchs_roles(model):
    parameters = dict(model.named_parameters(remove_duplicate=False))
    return {name: TensorRole.PARAMETER if name in parameters else TensorRole.BUFFER for name in model.state_dict()}


def old_spectral():
    return nn.Sequential(spectral_norm(nn.Linear(4, 4)))


def old_weight_norm():
    with pytest.warns(FutureWarning):
        return nn.Sequential(weight_norm(nn.Linear(4, 4)))


def pruned():
    layer = nn.Conv2d(2, 2, 3)
    prune.l1_unstructured(layer, "weight", 0.5)
    return nn.Sequential(layer)


def with_loss():
    model = nn.Module()
    model.net = nn.Linear(3, 2)
    model.criterion = nn.CrossEntropyLoss(weight=torch.ones(2))
    model.loss_fn = nn.BCEWithLogitsLoss(pos_weight=torch.ones(2))
    return model


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.PReLU()),
        lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
        lambda: nn.TransformerEncoderLayer(8, 2),
        lambda: nn.LSTM(4, 4),
        lambda: parametrizations.spectral_norm(nn.Linear(4, 4)),
        lambda: parametrizations.weight_norm(nn.Linear(4, 4)),
        lambda: torch.optim.swa_utils.AveragedModel(nn.Linear(2, 2)),
        old_spectral,
        old_weight_norm,
        pruned,
        with_loss,
    ],
)
def test_roles_by_name_are_torchs_own(make):
    model = make()
    assert roles_of(model) == torchs_roles(model)


@pytest.mark.parametrize(
    ("tensor", "role"),
    [
        (info("features.0.total_ops", (1,), "float64"), TensorRole.BUFFER),
        (info("layers.0.attn.relative_position_index", (49, 49), "int64"), TensorRole.BUFFER),
        (info("layers.0.attn.relative_position_bias_table", (169, 3)), TensorRole.PARAMETER),
        (info("h.0.attn.bias", (1, 1, 8, 8), "bool"), TensorRole.BUFFER),
        (info("h.0.attn.bias"), TensorRole.PARAMETER),
        (info("fc.weight", (4, 4), "int8"), TensorRole.PARAMETER),
        (info("lookup", (4,), "int32"), TensorRole.BUFFER),
        (info("fc.weight", (4, 4), "bfloat16"), TensorRole.PARAMETER),
        (info("fc.weight", (4, 4), "float8_e4m3fn"), TensorRole.PARAMETER),
        (info("cls_token", (1, 1, 8)), TensorRole.PARAMETER),
        (info("loss.weight", (4, 4)), TensorRole.PARAMETER),  # a learned loss, not class weights
        (info("weight_mask", (4, 4)), TensorRole.PARAMETER),  # nothing beside it says that it is pruning's
    ],
)
def test_single_names(tensor, role):
    assert role_by_name(tensor, {tensor.name}) is role
