"""Weights of one number: which are a defect, which begin so on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision

from inspector.findings import Severity
from tests.health.observed import layers, observe, only

KINDS = ("zero-weight", "constant-weight")


def test_a_zeroed_layer_among_trained_ones_is_a_warning(tmp_path: Path) -> None:
    state = layers()
    state["layers.3.fc.weight"].zero_()
    found = only(observe(tmp_path, state, *KINDS))
    assert (found.id, found.severity) == ("zero-weight", Severity.WARNING)
    assert found.says == "All 1,024 numbers of layers.3.fc.weight are 0."
    assert observe(tmp_path, layers(), *KINDS) == ()


def test_a_constant_weight_is_a_warning_and_several_are_one(tmp_path: Path) -> None:
    state = layers() | {"a.weight": torch.full((3, 3), 0.05), "b.weight": torch.full((2, 4), 0.5)}
    found = only(observe(tmp_path, state, *KINDS))
    assert (found.id, found.severity, found.subjects) == (
        "constant-weight",
        Severity.WARNING,
        ("a.weight", "b.weight"),
    )
    assert found.says == "All 9 numbers of a.weight are 0.05; one number each also in b.weight."


@pytest.mark.parametrize(
    "name",
    [
        "controlnet_down_blocks.0",
        "blocks.0.adaLN_modulation.1",
        "transformer_blocks.0.norm1.linear",
        "heads.head",
        "input_hint_block.14",
    ],
)
def test_layers_that_begin_at_zero_are_a_note_unless_their_bias_moved(tmp_path: Path, name: str) -> None:
    state = layers() | {f"{name}.weight": torch.zeros(8, 8), f"{name}.bias": torch.zeros(8)}
    assert only(observe(tmp_path, state, *KINDS)).severity is Severity.NOTICE
    state[f"{name}.bias"] = torch.randn(8)
    assert only(observe(tmp_path, state, *KINDS)).severity is Severity.WARNING


def test_offsets_of_deformable_layers_begin_at_zero_beside_a_bias_that_does_not(tmp_path: Path) -> None:
    state = {"attn.sampling_offsets.weight": torch.zeros(8, 8), "attn.sampling_offsets.bias": torch.randn(8)}
    assert only(observe(tmp_path, state, *KINDS)).severity is Severity.NOTICE


def test_the_ends_of_residual_branches_begin_at_zero_in_all_blocks_or_none(tmp_path: Path) -> None:
    zero = {f"blocks.{i}.mlp.fc2.weight": torch.zeros(8, 8) for i in range(4)}
    assert only(observe(tmp_path, zero, *KINDS)).severity is Severity.NOTICE
    some = {name: torch.randn(8, 8) for name in zero} | {"blocks.2.mlp.fc2.weight": torch.zeros(8, 8)}
    assert only(observe(tmp_path, some, *KINDS)).severity is Severity.WARNING


def test_norms_that_begin_at_zero_and_one_that_was_lost(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = torchvision.models.resnet18(zero_init_residual=True).state_dict()
    found = only(observe(tmp_path, state, *KINDS))
    assert found.severity is Severity.NOTICE and len(found.subjects) == 8
    for name in found.subjects:
        state[name] = torch.rand(state[name].shape)
    assert observe(tmp_path, state, *KINDS) == ()
    state["layer2.1.bn2.weight"].zero_()
    assert only(observe(tmp_path, state, *KINDS)).severity is Severity.WARNING


def test_what_is_constant_in_every_new_model_is_quiet(tmp_path: Path) -> None:
    state = layers() | {
        "bn.weight": torch.ones(8),
        "bn.bias": torch.zeros(8),
        "bn.running_mean": torch.zeros(8),
        "bn.running_var": torch.ones(8),
        "bn.num_batches_tracked": torch.tensor(0),
        "blocks.0.ls1.gamma": torch.full((8,), 1e-5),
        "features.1.layer_scale": torch.full((8, 1, 1), 1e-6),
        "head.cls.bias": torch.full((8,), -4.6),
        "class_token": torch.zeros(1, 1, 8),
        "x.q_proj.lora_A.weight": torch.randn(4, 8),
        "x.q_proj.lora_B.weight": torch.zeros(8, 4),
        "attn.causal_mask": torch.zeros(4, 4),
        "pixel_mean": torch.zeros(3, 1, 1),
    }
    assert observe(tmp_path, state, *KINDS) == ()


def test_tables_of_zeros_are_notes_and_an_embedding_of_zeros_is_none(tmp_path: Path) -> None:
    assert only(observe(tmp_path, {"pos_embed": torch.zeros(1, 4, 8)}, *KINDS)).severity is Severity.NOTICE
    embedding = {"embed_tokens.weight": torch.zeros(20, 8)}
    assert only(observe(tmp_path, embedding, *KINDS)).severity is Severity.WARNING
