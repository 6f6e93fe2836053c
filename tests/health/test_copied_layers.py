"""Whole weights that are equal though stored twice."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import nn

from inspector.findings import Severity
from tests.health.observed import number, observe, only


def _blocks(count: int = 4) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {f"layers.{i}.{name}.weight": torch.randn(24, 24) for i in range(count) for name in ("q", "k", "fc1", "fc2")}


def test_one_weight_copied_between_blocks_that_differ_is_a_warning(tmp_path: Path) -> None:
    state = _blocks()
    state["layers.3.fc1.weight"] = state["layers.1.fc1.weight"].clone()
    found = only(observe(tmp_path, state, "copied-layers"))
    assert found.severity is Severity.WARNING
    assert found.says == "layers.3.fc1.weight is the same as layers.1.fc1.weight, though stored a second time."
    assert (number(found, "equal_in_block"), number(found, "weights_of_block")) == (1, 4)


def test_one_layer_over_another_of_its_block_is_a_warning(tmp_path: Path) -> None:
    state = _blocks()
    state["layers.3.fc2.weight"] = state["layers.3.fc1.weight"].clone()
    assert only(observe(tmp_path, state, "copied-layers")).severity is Severity.WARNING


def _copy_block(state: dict[str, torch.Tensor], source: int, target: int) -> None:
    for name in ("q", "k", "fc1", "fc2"):
        state[f"layers.{target}.{name}.weight"] = state[f"layers.{source}.{name}.weight"].clone()


def test_whole_blocks_are_copied_on_purpose(tmp_path: Path) -> None:
    far, many, few = _blocks(6), _blocks(6), _blocks(3)
    _copy_block(far, 1, 4)
    for i in (0, 2, 4):
        _copy_block(many, i, i + 1)
    _copy_block(few, 1, 2)
    for state in (far, many, few):
        assert only(observe(tmp_path, state, "copied-layers")).severity is Severity.NOTICE
    found = only(observe(tmp_path, far, "copied-layers"))
    assert len(found.subjects) == 4 and number(found, "nbytes") == 4 * 24 * 24 * 4


def test_one_block_of_many_as_the_one_before_it_is_a_warning(tmp_path: Path) -> None:
    """A number too low in a conversion."""
    state = _blocks(5)
    _copy_block(state, 2, 3)
    found = only(observe(tmp_path, state, "copied-layers"))
    assert found.severity is Severity.WARNING and len(found.subjects) == 4


def test_the_backward_direction_as_the_forward_one_is_a_warning(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {f"rnn.{k}": v for k, v in nn.LSTM(24, 16, 2, bidirectional=True).state_dict().items()}
    assert observe(tmp_path, state, "copied-layers") == ()
    for part in ("weight_ih_l1", "weight_hh_l1"):
        state[f"rnn.{part}_reverse"] = state[f"rnn.{part}"].clone()
    found = only(observe(tmp_path, state, "copied-layers"))
    assert found.severity is Severity.WARNING and len(found.subjects) == 2


def test_new_transformers_of_torch_begin_with_equal_layers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 2, 64, batch_first=True), 3)
    assert only(observe(tmp_path, net.state_dict(), "copied-layers")).severity is Severity.NOTICE


def test_a_teacher_begins_as_its_student(tmp_path: Path) -> None:
    torch.manual_seed(0)
    student = nn.Linear(32, 32)
    pair = nn.ModuleDict({"student": student, "teacher": copy.deepcopy(student)})
    assert only(observe(tmp_path, pair.state_dict(), "copied-layers")).severity is Severity.NOTICE


def test_tied_weights_constants_and_nearly_equal_ones_are_quiet(tmp_path: Path) -> None:
    state = _blocks() | {"a.weight": torch.ones(24, 24), "b.weight": torch.ones(24, 24)}
    state["tied.weight"] = state["layers.0.q.weight"]
    near = state["layers.0.k.weight"].clone()
    near[0, 0], near[0, 1] = near[0, 1].clone(), near[0, 0].clone()
    state["near.weight"] = near
    assert observe(tmp_path, state, "copied-layers") == ()
