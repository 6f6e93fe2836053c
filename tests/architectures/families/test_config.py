"""config.json beside a family's file: it settles what shapes do not, unless it is about another model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_spec, target_of
from inspector.architectures.types import Recognition
from inspector.readers import open_checkpoint

BERT = "transformers/bert?hidden=64&layers=2&mlp=96&pooler=True&positions=32&types=2&vocab=120"
LLAMA = "transformers/llama?hidden=64&layers=2&mlp=96&vocab=120&query_width=64&key_width=32&lm_head=True"
RIGHT = {
    "model_type": "bert",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "vocab_size": 120,
    "intermediate_size": 96,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "num_attention_heads": 4,
    "hidden_act": "relu",
    "layer_norm_eps": 1e-6,
}


def seen(folder: Path, label: str, config: dict[str, object]) -> Recognition:
    target = target_of(parse_spec(label))
    save_file({t.name: np.zeros(t.shape or (), np.float32) for t in target.tensors}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return recognise(open_checkpoint(folder / "model.safetensors"))


def test_a_right_config_confirms(tmp_path: Path) -> None:
    found = seen(tmp_path, BERT, RIGHT)
    assert found.best is not None and found.best.exact
    options = dict(found.best.spec.options)
    assert (options["heads"], options["activation"], options["epsilon"]) == (4, "relu", 1e-6)
    assert found.best.spec.assumed == () and found.findings == ()


@pytest.mark.parametrize("wrong", [{"hidden_size": 128}, {"vocab_size": 30522}, {"num_hidden_layers": 12}])
def test_a_config_of_another_model_is_told_and_not_believed(tmp_path: Path, wrong: dict[str, int]) -> None:
    found = seen(tmp_path, BERT, {**RIGHT, **wrong})
    assert found.best is not None and found.best.exact
    assert {one.name: one.value for one in found.best.spec.assumed} == {
        "heads": 1,
        "activation": "gelu",
        "epsilon": 1e-12,
    }
    assert [finding.id for finding in found.findings] == ["config-contradicts"]
    (key, value) = next(iter(wrong.items()))
    assert f"{key} = {value:,} where the shapes say" in found.findings[0].says


def test_heads_that_do_not_divide_the_width_are_told(tmp_path: Path) -> None:
    found = seen(tmp_path, BERT, {**RIGHT, "num_attention_heads": 5})
    assert found.best is not None
    assert [one.name for one in found.best.spec.assumed] == ["heads"]
    assert "num_attention_heads = 5 in config.json beside the file does not fit" in found.findings[0].says


def test_rotary_positions_are_read_where_transformers_5_writes_them(tmp_path: Path) -> None:
    config = {
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", "factor": 8.0},
    }
    found = seen(tmp_path, LLAMA, config)
    assert found.best is not None and found.best.spec.assumed == ()
    options = dict(found.best.spec.options)
    # Scaled angles change every answer, so the plain ones are not built in their place.
    assert (options["rope_theta"], options["rope"]) == (500000.0, "llama3")


def test_a_configs_other_numbers_are_nobodys(tmp_path: Path) -> None:
    found = seen(tmp_path, BERT, {**RIGHT, "dim": None, "patch_size": "x", "num_labels": 7, "n_inner": None})
    assert found.findings == ()
