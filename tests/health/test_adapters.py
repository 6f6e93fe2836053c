"""LoRA's matrices, fresh, trained, broken and of other kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from inspector.health.checks.adapters import CHECK
from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from tests.health.trainings import findings, loud

State = dict[str, torch.Tensor]


def _adapter(layers: int = 3, rank: int = 4) -> State:
    torch.manual_seed(0)
    state: State = {}
    for n in range(layers):
        state[f"base_model.model.layers.{n}.q_proj.lora_A.weight"] = torch.randn(rank, 16) * 0.1
        state[f"base_model.model.layers.{n}.q_proj.lora_B.weight"] = torch.randn(16, rank) * 0.1
    return state


def _kohya() -> State:
    torch.manual_seed(0)
    state: State = {}
    for n in range(2):
        state[f"lora_unet_down_blocks_{n}_conv.lora_down.weight"] = torch.randn(4, 8, 3, 3)
        state[f"lora_unet_down_blocks_{n}_conv.lora_up.weight"] = torch.randn(16, 4, 1, 1)
        state[f"lora_unet_down_blocks_{n}_conv.alpha"] = torch.tensor(4.0)
    return state


def test_a_trained_adapter_lacks_its_scale_at_most(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, _adapter(), CHECK)
    assert (found.id, found.severity) == ("adapter-scale-unknown", Severity.INFO)
    assert found.says.startswith("3 adapters of rank 4 and no alpha")
    assert findings(tmp_path, _kohya(), CHECK) == ()


def test_a_fresh_adapter_is_a_notice_and_a_warning_once_steps_were_made(tmp_path: Path) -> None:
    state = {n: torch.zeros_like(t) if "lora_B" in n else t for n, t in _adapter().items()}
    found = findings(tmp_path, state, CHECK)
    assert (found[0].id, found[0].severity) == ("adapter-never-trained", Severity.NOTICE)
    assert found[0].says == "B is zero in all 3 adapters: the adapter adds nothing."
    torch.save({"state_dict": state, "global_step": 500}, tmp_path / "trained.pth")
    reports = examine(open_checkpoint(tmp_path / "trained.pth")).findings
    (stepped,) = [f for f in reports if f.id == "adapter-never-trained"]
    assert stepped.severity is Severity.WARNING
    assert stepped.says == "B is zero in all 3 adapters: the adapter adds nothing after 500 steps."


def test_one_dead_adapter_among_trained_ones_is_a_warning(tmp_path: Path) -> None:
    state = _adapter()
    state["base_model.model.layers.1.q_proj.lora_B.weight"].zero_()
    found = findings(tmp_path, state, CHECK)
    assert (found[0].severity, found[0].subjects) == (Severity.WARNING, ("base_model.model.layers.1.q_proj",))


@pytest.mark.parametrize(
    ("layer", "severity"),
    [
        ("model.layers.1.mlp.experts.7.up_proj", Severity.NOTICE),
        ("text_encoder.text_model.encoder.layers.2.mlp.fc1", Severity.NOTICE),
        ("text_encoder.text_model.encoder.layers.1.mlp.fc1", Severity.WARNING),
    ],
)
def test_adapters_that_no_gradient_need_reach_are_a_notice(layer: str, severity: Severity, tmp_path: Path) -> None:
    torch.manual_seed(0)
    others = [f"text_encoder.text_model.encoder.layers.{n}.mlp.fc2" for n in range(3)]
    state = {f"{name}.lora_{side}.weight": torch.randn(4, 4) for name in (layer, *others) for side in "AB"}
    state[f"{layer}.lora_B.weight"].zero_()
    found = findings(tmp_path, state, CHECK)
    assert (found[0].id, found[0].severity) == ("adapter-never-trained", severity)


def test_pissa_begins_with_both_matrices_and_is_left_alone(tmp_path: Path) -> None:
    left, values, right = torch.linalg.svd(torch.randn(16, 16))
    state = {"q.lora_A.weight": right[:4] * values[:4, None].sqrt(), "q.lora_B.weight": left[:, :4] * values[:4].sqrt()}
    assert loud(findings(tmp_path, state)) == []


def test_an_embedding_begins_with_the_other_matrix(tmp_path: Path) -> None:
    state = {"emb.lora_embedding_A": torch.zeros(4, 50), "emb.lora_embedding_B": torch.randn(16, 4)}
    assert findings(tmp_path, state, CHECK)[0].id == "adapter-never-trained"
    state["emb.lora_embedding_A"] = torch.randn(4, 50)
    assert [f.id for f in findings(tmp_path, state, CHECK)] == ["adapter-scale-unknown"]


def test_two_zero_matrices_never_move(tmp_path: Path) -> None:
    found = findings(tmp_path, {n: torch.zeros_like(t) for n, t in _adapter().items()}, CHECK)
    assert (found[0].id, found[0].severity) == ("adapter-dead", Severity.WARNING)


@pytest.mark.parametrize("state", [_adapter(), _kohya()], ids=["peft", "kohya"])
def test_ranks_that_differ_are_an_error(tmp_path: Path, state: State) -> None:
    name = next(n for n in state if "lora_B" in n or "lora_up" in n)
    state[name] = torch.cat([state[name], state[name]], 1)
    found = findings(tmp_path, state, CHECK)
    assert (found[0].id, found[0].severity) == ("adapter-ranks-differ", Severity.ERROR)
    assert "ranks 4 and 8" in found[0].says


def test_half_an_adapter_is_a_notice(tmp_path: Path) -> None:
    state = _adapter()
    del state["base_model.model.layers.2.q_proj.lora_A.weight"]
    found = findings(tmp_path, state, CHECK)
    assert (found[0].id, found[0].severity) == ("adapter-half-missing", Severity.NOTICE)
    assert found[0].subjects == ("base_model.model.layers.2.q_proj.lora_B.weight",)


def test_two_adapters_of_one_layer_are_two_pairs(tmp_path: Path) -> None:
    state = {
        f"q.lora_{side}.{name}.weight": torch.randn(*(shape if side == "A" else shape[::-1]))
        for name, shape in (("first", (4, 16)), ("second", (8, 16)))
        for side in "AB"
    }
    assert [f.id for f in findings(tmp_path, state, CHECK)] == ["adapter-scale-unknown"]


def test_a_module_that_is_called_down_is_no_adapter(tmp_path: Path) -> None:
    assert findings(tmp_path, {"mlp.down.weight": torch.randn(4, 16), "mlp.up.weight": torch.randn(16, 3)}, CHECK) == ()


def test_blocks_in_which_no_adapter_was_trained_are_a_warning(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state: State = {}
    for i in range(4):
        for name in ("q_proj", "v_proj"):
            layer = f"base_model.model.layers.{i}.{name}"
            state[f"{layer}.lora_A.weight"] = torch.randn(4, 16)
            state[f"{layer}.lora_B.weight"] = torch.randn(16, 4) if i > 1 else torch.zeros(16, 4)
    found = findings(tmp_path, state, CHECK)
    assert (found[0].id, found[0].severity, len(found[0].subjects)) == ("adapter-never-trained", Severity.WARNING, 4)
    assert "among them all of base_model.model.layers.0, base_model.model.layers.1" in found[0].says
    experts = {name.replace("layers", "layers.0.experts"): tensor for name, tensor in state.items()}
    assert findings(tmp_path, experts, CHECK)[0].severity is Severity.NOTICE
