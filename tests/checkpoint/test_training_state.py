"""Scalers, schedules, random generators, callbacks: named as the training state they are, never taken for weights."""

from __future__ import annotations

import io
import pickle
import random
from typing import Any

import numpy as np
import pytest
import torch

from inspector.checkpoint.types import Checkpoint
from inspector.readers import open_checkpoint

WEIGHTS = {"fc.weight": torch.ones(2, 3), "fc.bias": torch.ones(2)}


def opened(value: object) -> Checkpoint:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return open_checkpoint(buffer.getvalue())


def roles(checkpoint: Checkpoint) -> dict[str, str]:
    return {s.label: s.role.value for s in checkpoint.state_dicts}


def test_apex_and_grad_scaler_states_are_metadata() -> None:
    scaler = torch.amp.GradScaler("cpu").state_dict()
    checkpoint = opened(
        {
            "model": WEIGHTS,
            "amp": {"loss_scaler0": {"loss_scale": 65536.0, "unskipped": 12}},
            "scaler": scaler,
            "native_amp_scaling_state": {"scale": 1024.0},
            "lr_scheduler": {"last_epoch": 3, "_last_lr": [0.01, 0.1]},
            "lr_schedulers": [{"last_epoch": 4}],
        }
    )
    assert roles(checkpoint) == {"model": "weights"}
    metadata = dict(checkpoint.metadata)
    assert metadata["amp.loss_scaler0.loss_scale"] == "65536.0"
    assert metadata["amp.loss_scaler0.unskipped"] == "12"
    assert metadata["scaler.scale"] == "65536.0"
    assert metadata["native_amp_scaling_state.scale"] == "1024.0"
    assert metadata["lr_scheduler.last_epoch"] == "3"
    assert metadata["lr_scheduler._last_lr"] == "[0.01, 0.1]"
    assert metadata["lr_schedulers.0.last_epoch"] == "4"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scaler", {"scale": torch.tensor(2.0), "growth": torch.tensor(1)}),
        ("scheduler_state_dict", {"lrs": torch.ones(4), "steps": torch.arange(4)}),
        ("rng_states", {"torch": torch.get_rng_state(), "cuda": torch.get_rng_state()}),
        ("callbacks", {"best": torch.tensor(0.5), "last": torch.tensor(0.25)}),
        ("loops", {"seen": torch.tensor(5), "total": torch.tensor(6)}),
    ],
)
def test_tensors_of_the_training_state_are_no_weights(key: str, value: dict[str, torch.Tensor]) -> None:
    checkpoint = opened({"state_dict": WEIGHTS, key: value})
    assert roles(checkpoint) == {"state_dict": "weights", key: "training"}
    alone = opened({key: value})
    assert alone.weights is None
    assert roles(alone) == {key: "training"}


def test_a_file_of_generator_states_has_no_weights() -> None:
    """rng_state.pth as the transformers library writes it."""
    state = {
        "python": random.Random(0).getstate(),
        "numpy": np.random.RandomState(0).get_state(),
        "cpu": torch.get_rng_state(),
        "cuda": torch.get_rng_state(),
    }
    checkpoint = opened(state)
    assert checkpoint.weights is None
    assert roles(checkpoint) == {"the file itself": "training"}
    assert checkpoint.state_dicts[0].why == "its bytes are states of random number generators"


@pytest.mark.parametrize("key", ["optimal_model", "optimized", "network", "scaled"])
def test_names_that_only_sound_alike_stay_weights(key: str) -> None:
    assert roles(opened({key: WEIGHTS})) == {key: "weights"}


def test_a_model_with_a_scaler_of_its_own_stays_weights() -> None:
    inner = {"scaler.weight": torch.ones(2), "scaler.bias": torch.ones(2), "rng.weight": torch.ones(3)}
    assert roles(opened({"state_dict": inner})) == {"state_dict": "weights"}
    pixels = {"weight": torch.zeros(4, dtype=torch.uint8), "bias": torch.zeros(4, dtype=torch.uint8)}
    assert roles(opened(pixels)) == {"the file itself": "weights"}


def test_a_consolidated_optimizer_of_sharded_training() -> None:
    """fairscale's and FSDP's full optimizer state: names instead of numbers, one group."""
    state = {
        "state": {"fc.weight": {"exp_avg": torch.ones(2, 3), "step": torch.tensor(5.0)}},
        "param_groups": [{"lr": 0.002, "params": ["fc.weight"]}],
        "uncollected_local_ids": [],
    }
    checkpoint = opened({"model": WEIGHTS, "last_optimizer_state": state})
    assert roles(checkpoint) == {"model": "weights", "last_optimizer_state": "optimizer"}
    assert dict(checkpoint.metadata)["last_optimizer_state.param_groups.0.lr"] == "0.002"


def test_lightning_names_callbacks_settings_and_progress() -> None:
    checkpoint = opened(
        {
            "epoch": 2, "global_step": 300, "pytorch-lightning_version": "2.4.0", "state_dict": WEIGHTS,
            "loops": {"fit_loop": {"epoch_progress": {"current": {"completed": 2}}}},
            "callbacks": {"ModelCheckpoint{'mode': 'min'}": {"best_model_score": torch.tensor(0.5), "monitor": "loss"}},
            "optimizer_states": [], "lr_schedulers": [], "hparams_name": "cfg", "hyper_parameters": {"width": 64},
            "MixedPrecision": {"scale": 512.0},
        }
    )  # fmt: skip
    metadata = dict(checkpoint.metadata)
    assert (metadata["epoch"], metadata["global_step"], metadata["hparams_name"]) == ("2", "300", "cfg")
    assert (metadata["hyper_parameters.width"], metadata["MixedPrecision.scale"]) == ("64", "512.0")
    assert metadata["callbacks.ModelCheckpoint{'mode': 'min'}.monitor"] == "loss"
    assert roles(checkpoint)["state_dict"] == "weights"
    assert set(roles(checkpoint).values()) == {"weights", "training"}


class _Stub:
    """Pickles under another class name, with a state."""

    def __init__(self, where: str, state: dict[str, Any]) -> None:
        self.where = where
        self.state = state


class _Pickler(pickle._Pickler):
    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        if not isinstance(obj, _Stub):
            return super().save(obj, save_persistent_id)  # type: ignore[misc]
        module, name = obj.where.rsplit(".", 1)
        self.write(b"c" + module.encode() + b"\n" + name.encode() + b"\n)\x81")  # type: ignore[attr-defined]
        super().save(obj.state)  # type: ignore[misc]
        self.write(b"b")  # type: ignore[attr-defined]
        return None


def test_settings_of_omegaconf_are_read_through() -> None:
    def node(value: object) -> _Stub:
        return _Stub("omegaconf.nodes.AnyNode", {"_metadata": None, "_parent": None, "_val": value})

    content = {"lr": node(0.5), "name": node("resnet")}
    config = _Stub("omegaconf.dictconfig.DictConfig", {"_metadata": None, "_parent": None, "_content": content})
    buffer = io.BytesIO()
    _Pickler(buffer, 2).dump({"cfg": config, "epoch": 1})
    metadata = dict(open_checkpoint(buffer.getvalue()).metadata)
    assert metadata == {"cfg.lr": "0.5", "cfg.name": "resnet", "epoch": "1"}
