"""load_state_dict copies any element type into any other without an error: what comes of it is said, not green."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def target() -> Target:
    tensors = [
        TargetTensor(name=name, shape=tuple(t.shape), dtype="float32", is_buffer=False)
        for name, t in net().state_dict().items()
    ]
    return Target(label="net", kind=TargetKind.FILE, tensors=tuple(tensors))


def said(change: Callable[[Tensor], Tensor], path: Path) -> tuple[str, bool]:
    """(the sentence, whether load_state_dict raised nothing)."""
    state = net().state_dict()
    state["1.weight"] = change(state["1.weight"])
    torch.save(dict(state), path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            net().load_state_dict(torch.load(path))
        except RuntimeError:
            return diagnose(open_checkpoint(path), target()).compared, False
    return diagnose(open_checkpoint(path), target()).compared, True


@pytest.mark.parametrize(("dtype", "what"), [(torch.bool, "truth values"), (torch.int8, "whole numbers of eight bits")])
def test_eight_bits_were_said_to_be_refused(dtype: torch.dtype, what: str, tmp_path: Path) -> None:
    says, loads = said(lambda weight: weight.to(dtype), tmp_path / "m.pth")
    assert loads
    assert says.startswith("load_state_dict takes it without an error, and it is not what the model means. ")
    assert f"1 tensor (1.weight first) holds {what} where net has real ones" in says


def test_complex_weights_needed_nothing(tmp_path: Path) -> None:
    says, loads = said(lambda weight: weight.to(torch.complex64), tmp_path / "m.pth")
    assert loads
    assert says == "All 4 tensors fit net as they are; 1 complex tensor (1.weight) loses its imaginary half."


def test_a_sparse_weight_failed_twice(tmp_path: Path) -> None:
    says, loads = said(Tensor.to_sparse, tmp_path / "m.pth")
    assert not loads
    assert says.startswith("All names fit net, and 1 tensor is sparse (1.weight), which load_state_dict does not copy")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int32])
def test_the_quiet_twin(dtype: torch.dtype, tmp_path: Path) -> None:
    says, loads = said(lambda weight: weight.to(dtype), tmp_path / "m.pth")
    assert loads
    assert says == "All 4 tensors fit net as they are; no name or shape needs repair."
