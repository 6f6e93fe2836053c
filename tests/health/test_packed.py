"""Layers as GPTQ and AWQ pack them, made here from numbers, and parts that do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from inspector.findings import Severity
from inspector.health.checks.packed import CHECK
from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from tests.health.trainings import findings, loud, one

State = dict[str, torch.Tensor]
_IN, _OUT, _GROUP = 128, 64, 32


def _packed(values: np.ndarray, bits: int, axis: int) -> torch.Tensor:
    """Unsigned numbers of so many bits, side by side in int32 along an axis, the lowest first."""
    moved = np.moveaxis(values.astype(np.uint64), axis, -1)
    stream = ((moved[..., None] >> np.arange(bits, dtype=np.uint64)) & 1).reshape(*moved.shape[:-1], -1)
    words = stream.reshape(*stream.shape[:-1], -1, 32) << np.arange(32, dtype=np.uint64)
    packed = np.moveaxis(words.sum(-1), -1, axis).astype(np.uint32).view(np.int32)
    return torch.from_numpy(np.ascontiguousarray(packed))


def _gptq(layers: int = 3, bits: int = 4, *, zero: int | None = None, act_order: bool = False) -> State:
    draw = np.random.default_rng(0)
    state: State = {}
    groups = _IN // _GROUP
    for n in range(layers):
        zeros = draw.integers(0, 1 << bits, (groups, _OUT)) if zero is None else np.full((groups, _OUT), zero)
        index = np.arange(_IN, dtype=np.int32) // _GROUP
        name = f"model.layers.{n}.mlp.up_proj"
        state[f"{name}.qweight"] = _packed(draw.integers(0, 1 << bits, (_IN, _OUT)), bits, 0)
        state[f"{name}.qzeros"] = _packed(zeros, bits, 1)
        state[f"{name}.scales"] = torch.from_numpy(draw.uniform(0.001, 0.01, (groups, _OUT))).half()
        state[f"{name}.g_idx"] = torch.from_numpy(draw.permutation(index) if act_order else index)
    return state


def _awq(layers: int = 3) -> State:
    draw = np.random.default_rng(0)
    state: State = {}
    for n in range(layers):
        name = f"model.layers.{n}.mlp.up_proj"
        state[f"{name}.qweight"] = _packed(draw.integers(0, 16, (_IN, _OUT)), 4, 1)
        state[f"{name}.qzeros"] = _packed(draw.integers(0, 16, (_IN // _GROUP, _OUT)), 4, 1)
        state[f"{name}.scales"] = torch.from_numpy(draw.uniform(0.001, 0.01, (_IN // _GROUP, _OUT))).half()
    return state


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("act_order", [False, True])
def test_gptq_is_described(tmp_path: Path, bits: int, act_order: bool) -> None:
    (found,) = findings(tmp_path, _gptq(bits=bits, act_order=act_order), CHECK)
    assert (found.id, found.severity) == ("packed-layers", Severity.INFO)
    assert found.says == f"3 layers packed as GPTQ with {bits} bits, in groups of 32 inputs."
    assert loud(findings(tmp_path, _gptq(bits=bits, act_order=act_order))) == []


def test_awq_is_described(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, _awq(), CHECK)
    assert found.says == "3 layers packed as AWQ with 4 bits, in groups of 32 inputs."
    assert loud(findings(tmp_path, _awq())) == []


@pytest.mark.parametrize(
    ("bits", "zero", "says"),
    [(4, 7, "less one"), (4, 8, "as they are"), (8, 127, "less one"), (2, 2, "as they are")],
)
def test_both_formats_of_zero_points_are_told_apart(tmp_path: Path, bits: int, zero: int, says: str) -> None:
    found = one(findings(tmp_path, _gptq(bits=bits, zero=zero), CHECK), "packed-layers")
    assert f"symmetric, zero points stored {says}" in found.says


@pytest.mark.parametrize("part", ["qweight", "qzeros", "scales", "g_idx"])
def test_a_part_of_another_size_is_an_error_beside_layers_that_fit(tmp_path: Path, part: str) -> None:
    state = _gptq()
    name = f"model.layers.1.mlp.up_proj.{part}"
    state[name] = state[name][: len(state[name]) // 2].clone()
    found = one(findings(tmp_path, state, CHECK), "packed-shapes")
    assert (found.severity, found.subjects) == (Severity.ERROR, ("model.layers.1.mlp.up_proj",))


def test_a_layout_that_nobody_knows_is_a_notice(tmp_path: Path) -> None:
    state = {"a.qweight": torch.ones(5, 7, dtype=torch.int32).random_(), "a.scales": torch.rand(3, 11)}
    assert [(f.id, f.severity) for f in findings(tmp_path, state, CHECK)] == [("packed-shapes", Severity.NOTICE)]


def test_an_index_outside_its_groups_is_an_error(tmp_path: Path) -> None:
    state = _gptq()
    state["model.layers.1.mlp.up_proj.g_idx"][5] = 4
    found = one(findings(tmp_path, state, CHECK), "packed-group-index")
    assert (found.severity, found.subjects) == (Severity.ERROR, ("model.layers.1.mlp.up_proj",))


def test_uneven_groups_are_a_notice_and_an_empty_index_is_none(tmp_path: Path) -> None:
    state = _gptq(act_order=True)
    state["model.layers.1.mlp.up_proj.g_idx"][:40] = 3
    assert one(findings(tmp_path, state, CHECK), "packed-group-index").severity is Severity.NOTICE
    for name in state:
        if name.endswith("g_idx"):
            state[name].zero_()
    assert [f.id for f in findings(tmp_path, state, CHECK)] == ["packed-layers"]


def test_an_index_of_zeros_beside_others_or_an_act_order_is_an_error(tmp_path: Path) -> None:
    state = _gptq(act_order=True)
    state["model.layers.1.mlp.up_proj.g_idx"].zero_()
    found = one(findings(tmp_path, state, CHECK), "packed-group-index")
    assert (found.severity, found.subjects) == (Severity.ERROR, ("model.layers.1.mlp.up_proj",))
    for name in state:
        if name.endswith("g_idx"):
            state[name].zero_()
    save_file(state, tmp_path / "model.safetensors")
    for said, ids in ((True, ["packed-group-index", "packed-layers"]), (False, ["packed-layers"])):
        config = {"model_type": "llama", "quantization_config": {"quant_method": "gptq", "desc_act": said}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        report = examine(open_checkpoint(tmp_path / "model.safetensors"))
        assert [f.id for f in report.findings if f.id.startswith("packed")] == ids


def test_a_group_without_any_scale_is_a_warning(tmp_path: Path) -> None:
    state = _awq()
    state["model.layers.1.mlp.up_proj.scales"][2] = 0
    found = one(findings(tmp_path, state, CHECK), "packed-scales")
    assert found.severity is Severity.WARNING and "64 zeros, among them all those of a group" in found.says


@pytest.mark.parametrize(("value", "lowest"), [(0.0, 0.0), (-0.5, -0.5)])
def test_scales_that_are_not_above_zero_are_a_notice(tmp_path: Path, value: float, lowest: float) -> None:
    state = _awq()
    state["model.layers.1.mlp.up_proj.scales"][0, 0] = value
    found = one(findings(tmp_path, state, CHECK), "packed-scales")
    assert (found.severity, dict(found.evidence)["lowest"]) == (Severity.NOTICE, lowest)
