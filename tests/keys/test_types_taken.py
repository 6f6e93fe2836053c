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
from inspector.keys.verify import verify_plan
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


@pytest.mark.parametrize(
    ("dtype", "what"),
    [
        (torch.bool, "truth values"),
        (torch.int8, "whole numbers of eight bits"),
        *((dtype, "whole numbers") for dtype in (torch.int16, torch.uint16, torch.int32, torch.int64)),
    ],
)
def test_whole_numbers_were_said_to_be_refused(dtype: torch.dtype, what: str, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_the_quiet_twin(dtype: torch.dtype, tmp_path: Path) -> None:
    says, loads = said(lambda weight: weight.to(dtype), tmp_path / "m.pth")
    assert loads
    assert says == "All 4 tensors fit net as they are; no name or shape needs repair."


@pytest.mark.parametrize("wanted", ["int64", "float32"])
@pytest.mark.parametrize("name", ["relative_position_index", "embeddings.position_ids", "bn.num_batches_tracked"])
def test_counters_and_indices_are_whole_numbers(name: str, wanted: str, tmp_path: Path) -> None:
    state = {**net().state_dict(), name: torch.zeros(() if "num" in name else (2, 3), dtype=torch.int64)}
    torch.save(state, tmp_path / "m.pth")
    place = TargetTensor(name=name, shape=tuple(state[name].shape), dtype=wanted)
    goal = Target(label="net", kind=TargetKind.FILE, tensors=(*target().tensors, place))
    assert diagnose(open_checkpoint(tmp_path / "m.pth"), goal).loads


def test_a_target_of_whole_numbers_takes_them(tmp_path: Path) -> None:
    state = {name: (40 * value).int() for name, value in net().state_dict().items()}
    torch.save(state, tmp_path / "m.pth")
    places = [TargetTensor(name=name, shape=tuple(t.shape), dtype="int32") for name, t in state.items()]
    checkpoint = open_checkpoint(tmp_path / "m.pth")
    goal = Target(label="net", kind=TargetKind.FILE, tensors=tuple(places))
    report = diagnose(checkpoint, goal)
    assert report.loads and report.plan is not None
    (proof,) = [one for one in verify_plan(checkpoint, report.plan, goal).proofs if one.id == "values"]
    assert proof.says.startswith("No floating-point values in it")
