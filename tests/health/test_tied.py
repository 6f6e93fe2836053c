"""One matrix under two names, two copies of one, and a tie that was lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from inspector.findings import Finding, Severity
from inspector.health.checks.tied import CHECK
from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from tests.health.trainings import findings

_IDS = {kind.id for kind in CHECK.kinds}


def _gpt(tied: bool = True) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    embedding = torch.randn(40, 8)
    return {
        "transformer.wte.weight": embedding,
        "transformer.h.0.attn.c_attn.weight": torch.randn(8, 24),
        "lm_head.weight": embedding if tied else torch.randn(40, 8),
    }


def test_one_storage_under_two_names_is_said(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, _gpt(), CHECK)
    assert (found.id, found.severity) == ("tied-weights-stored-once", Severity.INFO)
    assert "(1.28 kB saved): transformer.wte.weight = lm_head.weight" in found.says


def test_views_of_one_storage_are_no_tie(tmp_path: Path) -> None:
    whole = torch.randn(40, 16)
    assert findings(tmp_path, {"a.weight": whole[:20], "b.weight": whole[20:]}, CHECK) == ()


def test_a_second_copy_is_said_with_its_size(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, {name: tensor.clone() for name, tensor in _gpt().items()}, CHECK)
    assert (found.id, found.severity) == ("equal-weights-stored-twice", Severity.INFO)
    assert dict(found.evidence)["nbytes extra"] == 1280


def test_equal_statistics_are_no_copy(tmp_path: Path) -> None:
    state = _gpt()
    state["lm_head.weight"] = state["transformer.wte.weight"].flip(0).clone()
    assert [f.id for f in findings(tmp_path, state, CHECK)] == ["weight-tie-lost"]


def test_equal_constants_are_no_copy(tmp_path: Path) -> None:
    assert findings(tmp_path, {"a.weight": torch.ones(20, 20), "b.weight": torch.ones(20, 20)}, CHECK) == ()


def test_a_tie_of_gpt2_that_was_lost_is_a_notice(tmp_path: Path) -> None:
    state = {name: tensor.clone() for name, tensor in _gpt().items()}
    state["lm_head.weight"][3:5] += 1
    (found,) = findings(tmp_path, state, CHECK)
    assert (found.id, found.severity) == ("weight-tie-lost", Severity.NOTICE)
    assert "38 of 40 rows are equal" in found.says


@pytest.mark.parametrize("bias", [False, True])
def test_an_output_layer_of_its_own_is_left_alone(tmp_path: Path, bias: bool) -> None:
    """GPT-J has a bias there; Llama's families tie or do not."""
    state = _gpt(tied=False)
    if bias:
        state["lm_head.bias"] = torch.randn(40)
    else:
        del state["transformer.h.0.attn.c_attn.weight"]
    assert findings(tmp_path, state, CHECK) == ()


def _folder(tmp_path: Path, *, says: bool | None, tied: bool) -> list[Finding]:
    torch.manual_seed(0)
    state = {
        "model.embed_tokens.weight": torch.randn(40, 8),
        "model.layers.0.self_attn.q_proj.weight": torch.randn(8, 8),
    }
    state["lm_head.weight"] = state["model.embed_tokens.weight"].clone() if tied else torch.randn(40, 8)
    save_file(state, tmp_path / "model.safetensors")
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    (tmp_path / "config.json").write_text(
        json.dumps(config if says is None else {**config, "tie_word_embeddings": says})
    )
    return [f for f in examine(open_checkpoint(tmp_path)).findings if f.id in _IDS]


def test_a_tie_that_the_config_claims_and_the_file_lacks_is_a_warning(tmp_path: Path) -> None:
    (found,) = _folder(tmp_path, says=True, tied=False)
    assert (found.id, found.severity) == ("weight-tie-lost", Severity.WARNING)
    assert "tie_word_embeddings is true beside it; 0 of 40 rows are equal" in found.says


@pytest.mark.parametrize(("says", "tied"), [(False, False), (None, False), (True, True)])
def test_a_config_that_agrees_is_quiet(tmp_path: Path, says: bool | None, tied: bool) -> None:
    assert [f.id for f in _folder(tmp_path, says=says, tied=tied)] == (["equal-weights-stored-twice"] if tied else [])
