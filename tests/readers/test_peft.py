"""PEFT adapters: what they are and what is wrong with them, with hand-counted layers and ranks."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint
from inspector.errors import ReadError, UnknownFormat
from inspector.findings import Finding, Severity
from inspector.readers import claims_folder, open_checkpoint

State = dict[str, torch.Tensor]
PREFIX = "base_model.model.model.layers"
CONFIG: dict[str, Any] = {
    "peft_type": "LORA",
    "r": 8,
    "lora_alpha": 16,
    "target_modules": ["q_proj", "v_proj"],
    "base_model_name_or_path": "some/base",
    "task_type": "CAUSAL_LM",
    "bias": "none",
    "modules_to_save": None,
    "rank_pattern": {},
}


def lora(layers: int = 2, rank: int = 8) -> State:
    """q_proj and v_proj of each layer, 16 wide: lora_A (rank, 16), lora_B (16, rank)."""
    torch.manual_seed(0)
    state: State = {}
    for n in range(layers):
        for name in ("q_proj", "v_proj"):
            state[f"{PREFIX}.{n}.self_attn.{name}.lora_A.weight"] = torch.randn(rank, 16)
            state[f"{PREFIX}.{n}.self_attn.{name}.lora_B.weight"] = torch.randn(16, rank)
    return state


def adapter(folder: Path, state: State, *, ending: str = "safetensors", **config: Any) -> Path:
    if ending == "safetensors":
        save_file(state, folder / "adapter_model.safetensors")
    else:
        torch.save(state, folder / "adapter_model.bin")
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIG, **config}))
    return folder


def found(checkpoint: Checkpoint, ident: str) -> Finding:
    return next(f for f in checkpoint.findings if f.id == ident)


def idents(checkpoint: Checkpoint) -> list[str]:
    return sorted(f.id for f in checkpoint.findings)


@pytest.mark.parametrize("ending", ["safetensors", "bin"])
def test_a_sound_adapter_says_what_it_is_and_nothing_else(ending: str, tmp_path: Path) -> None:
    state = lora()
    checkpoint = open_checkpoint(adapter(tmp_path, state, ending=ending))
    assert claims_folder(tmp_path) == checkpoint.format == "peft"
    assert checkpoint.format_says.startswith("PEFT adapter (LORA, rank 8), ")
    assert checkpoint.findings == ()
    facts = dict(checkpoint.metadata)
    assert facts["adapter type"] == "LORA"
    assert facts["adapter rank"] == "8"
    assert facts["adapter alpha"] == "16"
    assert facts["adapter target modules"] == '["q_proj", "v_proj"]'
    assert facts["adapter base model"] == "some/base"
    assert facts["adapter_config.json: lora_alpha"] == "16"
    assert {t.name for t in checkpoint.tensors} == set(state)
    for info in checkpoint.tensors:
        np.testing.assert_array_equal(read_array(checkpoint, info), state[info.name].numpy())
    assert [p.name for p in checkpoint.parts] == [f"adapter_model.{ending}", "adapter_config.json"]


def test_convolutions_embeddings_and_dora_are_no_findings(tmp_path: Path) -> None:
    state = lora()
    state["base_model.model.conv.lora_A.weight"] = torch.ones(8, 3, 3, 3)
    state["base_model.model.conv.lora_B.weight"] = torch.ones(6, 8, 1, 1)
    state["base_model.model.embed.lora_embedding_A"] = torch.ones(8, 100)
    state["base_model.model.embed.lora_embedding_B"] = torch.ones(16, 8)
    state[f"{PREFIX}.0.self_attn.q_proj.lora_magnitude_vector"] = torch.ones(16)
    state["base_model.model.score.weight"] = torch.ones(2, 16)
    checkpoint = open_checkpoint(adapter(tmp_path, state, modules_to_save=["score"]))
    assert checkpoint.findings == ()
    assert dict(checkpoint.metadata)["adapter modules saved whole"] == '["score"]'


def test_a_missing_half(tmp_path: Path) -> None:
    state = lora()
    del state[f"{PREFIX}.1.self_attn.v_proj.lora_B.weight"]
    checkpoint = open_checkpoint(adapter(tmp_path, state))
    assert idents(checkpoint) == ["adapter-half"]
    half = found(checkpoint, "adapter-half")
    assert half.severity is Severity.ERROR
    assert half.says == (f"1 layer of 4 have only one of lora_A and lora_B: {PREFIX}.1.self_attn.v_proj has no lora_B.")
    del state[f"{PREFIX}.0.self_attn.v_proj.lora_A.weight"]
    assert "v_proj has no lora_A" in found(open_checkpoint(adapter(tmp_path, state)), "adapter-half").says


def test_ranks_against_the_config(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(adapter(tmp_path, lora(rank=4)))
    assert idents(checkpoint) == ["adapter-rank"]
    assert "4 layers of 4 have a rank that does not fit" in found(checkpoint, "adapter-rank").says
    assert "rank 4, the config says 8" in found(checkpoint, "adapter-rank").says
    assert dict(checkpoint.metadata)["adapter rank"] == "4"
    assert open_checkpoint(adapter(tmp_path, lora(rank=4), r=4)).findings == ()
    assert open_checkpoint(adapter(tmp_path, lora(rank=4), rank_pattern={"q_proj|v_proj": 4})).findings == ()
    assert open_checkpoint(adapter(tmp_path, lora(rank=4), peft_type="ADALORA")).findings == ()


def test_ranks_within_a_pair(tmp_path: Path) -> None:
    state = lora()
    state[f"{PREFIX}.0.self_attn.q_proj.lora_B.weight"] = torch.ones(16, 6)
    checkpoint = open_checkpoint(adapter(tmp_path, state))
    assert "lora_A is 8x16, lora_B 16x6" in found(checkpoint, "adapter-rank").says
    assert ("layers", 1) in found(checkpoint, "adapter-rank").evidence


def test_an_empty_adapter(tmp_path: Path) -> None:
    """What a training script saves that overwrote model.state_dict: a file of a few hundred bytes."""
    checkpoint = open_checkpoint(adapter(tmp_path, {}))
    assert "The adapter file holds no tensor" in found(checkpoint, "adapter-empty").says
    state = {name: torch.empty(0) for name in lora()}
    checkpoint = open_checkpoint(adapter(tmp_path, state))
    assert idents(checkpoint) == ["adapter-empty"]
    assert "Its 8 tensors have no elements" in found(checkpoint, "adapter-empty").says
    assert "empty" not in "".join(idents(open_checkpoint(adapter(tmp_path, lora()))))


def test_base_layers_and_merged_models(tmp_path: Path) -> None:
    base = {f"{PREFIX}.0.mlp.weight": torch.ones(4, 4), "base_model.model.lm_head.weight": torch.ones(10, 4)}
    checkpoint = open_checkpoint(adapter(tmp_path, {**lora(), **base}))
    extra = found(checkpoint, "adapter-base-layers")
    assert idents(checkpoint) == ["adapter-base-layers"]
    assert ("tensors", 2) in extra.evidence
    assert ("nbytes", 64 + 160) in extra.evidence
    merged = open_checkpoint(adapter(tmp_path, base))
    assert idents(merged) == ["adapter-base-layers", "adapter-without-lora"]
    assert "a whole model" in found(merged, "adapter-base-layers").says
    bias = {f"{PREFIX}.0.self_attn.q_proj.bias": torch.ones(16)}
    assert idents(open_checkpoint(adapter(tmp_path, {**lora(), **bias}))) == ["adapter-base-layers"]
    assert open_checkpoint(adapter(tmp_path, {**lora(), **bias}, bias="lora_only")).findings == ()


def test_names_of_a_running_model(tmp_path: Path) -> None:
    state = {name.replace(".weight", ".default.weight"): tensor for name, tensor in lora().items()}
    checkpoint = open_checkpoint(adapter(tmp_path, state))
    assert idents(checkpoint) == ["adapter-names"]
    assert "8 names as the running model has them" in found(checkpoint, "adapter-names").says
    bare = {name.removeprefix("base_model.model."): tensor for name, tensor in lora().items()}
    assert "8 names without" in found(open_checkpoint(adapter(tmp_path, bare)), "adapter-names").says


def test_other_kinds_of_adapters_are_left_in_peace(tmp_path: Path) -> None:
    state = {"base_model.model.encoder.layer.0.ia3_l": torch.ones(1, 16), "prompt_embeddings": torch.ones(8, 16)}
    checkpoint = open_checkpoint(adapter(tmp_path, state, peft_type="IA3"))
    assert checkpoint.findings == ()
    assert checkpoint.format_says.startswith("PEFT adapter (IA3")


def test_the_config_may_be_missing_or_broken(tmp_path: Path) -> None:
    adapter(tmp_path, lora())
    for content in (b"{", b"[1]", b'{"r": NaN, "rank_pattern": [], "modules_to_save": {"a": 1}}', b"x" * 2_000_000):
        (tmp_path / "adapter_config.json").write_bytes(content)
        checkpoint = open_checkpoint(tmp_path)
        assert checkpoint.format == "peft"
        assert idents(checkpoint) == ([] if b"NaN" in content else ["adapter-config"])
    (tmp_path / "adapter_config.json").unlink()
    assert "is not there" in found(open_checkpoint(tmp_path), "adapter-config").says
    (tmp_path / "adapter_config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "adapter_model.safetensors").unlink()
    with pytest.raises(UnknownFormat, match=r"no adapter_model\.safetensors or \.bin beside it"):
        open_checkpoint(tmp_path)
    (tmp_path / "adapter_model.bin").write_bytes(b"<html>")
    with pytest.raises(ReadError, match=r"adapter_model\.bin is a web page"):
        open_checkpoint(tmp_path)


def test_the_file_opened_by_itself_is_compared_with_the_config_beside(tmp_path: Path) -> None:
    adapter(tmp_path, lora(rank=4))
    checkpoint = open_checkpoint(tmp_path / "adapter_model.safetensors")
    assert checkpoint.format == "safetensors"
    assert idents(checkpoint) == ["adapter-rank"]
    assert open_checkpoint((tmp_path / "adapter_model.safetensors").read_bytes()).findings == ()


def test_both_formats_and_a_trainers_files_beside(tmp_path: Path) -> None:
    adapter(tmp_path, lora())
    torch.save(lora(), tmp_path / "adapter_model.bin")
    torch.save({"state": {}}, tmp_path / "optimizer.pt")
    checkpoint = open_checkpoint(tmp_path)
    assert idents(checkpoint) == ["two-adapter-files"]
    assert checkpoint.format_says.endswith("safetensors file")


def test_a_merged_model_with_an_adapters_config_is_the_model(tmp_path: Path) -> None:
    save_file({"w": torch.ones(2)}, tmp_path / "model.safetensors")
    (tmp_path / "adapter_config.json").write_text(json.dumps(CONFIG))
    assert claims_folder(tmp_path) == ""
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.format == "safetensors"
    assert dict(checkpoint.metadata)["adapter_config.json: r"] == "8"


def test_embeddings_that_save_pretrained_writes_whole_are_no_warning(tmp_path: Path) -> None:
    """PEFT 0.21 saves the base layer of an adapted embedding, and whole embeddings after a resize, by itself."""
    embedding = f"{PREFIX.removesuffix('.layers')}.embed_tokens"
    state = {
        f"{embedding}.lora_embedding_A": torch.ones(8, 50),
        f"{embedding}.lora_embedding_B": torch.ones(16, 8),
        f"{embedding}.base_layer.weight": torch.ones(50, 16),
    }
    checkpoint = open_checkpoint(adapter(tmp_path, {**lora(), **state}, target_modules=["embed_tokens", "q_proj"]))
    assert [(f.id, f.severity) for f in checkpoint.findings] == [("adapter-base-layers", Severity.INFO)]
    other = {f"{PREFIX}.0.self_attn.q_proj.base_layer.weight": torch.ones(16, 16)}
    assert "adapter-names" in idents(open_checkpoint(adapter(tmp_path, {**lora(), **other})))


def test_every_kind_of_tuner_is_an_adapter(tmp_path: Path) -> None:
    for number, part in enumerate(["ln_tuning_layers.weight", "hira_A", "delora_A.weight", "waveft_spectrum"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        state = {f"base_model.model.model.layers.0.x.{part}": torch.ones(4)}
        assert open_checkpoint(adapter(folder, state, peft_type="OTHER")).findings == ()


def test_a_collection_in_which_an_adapter_lies_is_no_adapter(tmp_path: Path) -> None:
    """Whoever asks whether anything in it is dangerous must see each file."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    adapter(folder, lora())
    torch.save({"w": torch.ones(2)}, folder / "best.pth")
    assert claims_folder(folder) == "peft"  # one file more may be a leftover
    (folder / "theirs.pkl").write_bytes(pickle.dumps(os.system))
    assert claims_folder(folder) == ""
    archive = shutil.make_archive(str(tmp_path / "inbox"), "zip", folder)
    for place in (folder, archive):
        with pytest.raises(UnknownFormat, match=r"adapter_model\.safetensors, best\.pth, theirs\.pkl"):
            open_checkpoint(place)


@pytest.mark.parametrize("beside", ["model.safetensors", "pytorch_model.bin"])
def test_a_collection_in_which_a_file_has_a_librarys_usual_name_is_no_model(tmp_path: Path, beside: str) -> None:
    folder = tmp_path / "inbox"
    folder.mkdir()
    save_file({"w": torch.ones(2)}, folder / beside)
    save_file({"w": torch.ones(2)}, folder / "model.fp16.safetensors")
    torch.save({"w": torch.ones(2)}, folder / "best.pth")
    torch.save({"w": torch.ones(2)}, folder / "last.pth")
    with pytest.raises(UnknownFormat, match="do not belong together"):
        open_checkpoint(folder)
    (folder / "last.pth").unlink()
    open_checkpoint(folder)
