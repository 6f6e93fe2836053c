"""A merged model must answer as base and adapter did together; an adapter without a certain place is refused."""

from __future__ import annotations

import json
import math
import tarfile
import zipfile

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.functional import conv2d, linear

from inspector.cli.main import run
from inspector.errors import ExportError
from inspector.exports.adapter import config_of_alpha, read_adapter_config
from inspector.exports.merge import merge_adapter
from inspector.readers import open_checkpoint

PLAIN = {"peft_type": "LORA", "r": 2, "lora_alpha": 6, "target_modules": ["up", "down"], "bias": "none"}


def base_state() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {
        "block.up.weight": torch.randn(8, 4),
        "block.up.bias": torch.randn(8),
        "block.down.weight": torch.randn(4, 8),
        "block.square.weight": torch.randn(4, 4),
        "conv.weight": torch.randn(5, 3, 3, 3),
        "embed.weight": torch.randn(10, 4),
        "step": torch.tensor(3),
    }


def pair(layer: str, out: int, inner: int, rank: int = 2) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(len(layer))
    return {
        f"base_model.model.{layer}.lora_A.weight": torch.randn(rank, inner, generator=generator),
        f"base_model.model.{layer}.lora_B.weight": torch.randn(out, rank, generator=generator),
    }


def both() -> dict[str, torch.Tensor]:
    return {**pair("block.up", 8, 4), **pair("block.down", 4, 8)}


def merge(tmp_path, base, adapter, config=PLAIN, **options):
    torch.save(base, tmp_path / "base.pth")
    folder = tmp_path / "adapter"
    folder.mkdir(exist_ok=True)
    save_file(adapter, folder / "adapter_model.safetensors")
    if config is not None:
        (folder / "adapter_config.json").write_text(json.dumps(config))
    out = tmp_path / "out.safetensors"
    checkpoints = open_checkpoint(tmp_path / "base.pth"), open_checkpoint(folder)
    report = merge_adapter(*checkpoints, read_adapter_config(folder), out, **options)
    return load_file(out), report


def refused(tmp_path, base, adapter, config, words):
    with pytest.raises(ExportError, match=words):
        merge(tmp_path, base, adapter, config)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["adapter", "base.pth"]


def test_a_merge_by_hand(tmp_path):
    base = {"l.weight": torch.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]), "l.bias": torch.zeros(3)}
    adapter = {
        "base_model.model.l.lora_A.weight": torch.tensor([[1.0, -1.0]]),
        "base_model.model.l.lora_B.weight": torch.tensor([[2.0], [0.0], [5.0]]),
    }
    # alpha 3 over rank 1: three times [[2, -2], [0, 0], [5, -5]].
    made, report = merge(tmp_path, base, adapter, {**PLAIN, "r": 1, "lora_alpha": 3})
    assert made["l.weight"].tolist() == [[7.0, -4.0], [3.0, 4.0], [15.0, -15.0]]
    assert made["l.bias"].tolist() == [0.0, 0.0, 0.0]
    assert report.verification.holds and report.notes[0].startswith("1 tensor rounded to float32")
    # |[[6, -6], [0, 0], [15, -15]]| over |[[1, 2], [3, 4], [0, 0]]|: 22.8 over 5.48.
    assert "changed by their own pair, by 4.171 of their norm" in report.verification.proofs[0].says


def test_the_merged_layers_answer_as_base_plus_adapter(tmp_path):
    """The independent way: the adapter's own forward in float64, x W' + s B(A(x)), beside the merged weights."""
    base = base_state()
    conv = {
        "base_model.model.conv.lora_A.weight": torch.randn(2, 3, 3, 3),
        "base_model.model.conv.lora_B.weight": torch.randn(5, 2, 1, 1),
    }
    words = {
        "base_model.model.embed.lora_embedding_A": torch.randn(2, 10),
        "base_model.model.embed.lora_embedding_B": torch.randn(4, 2),
    }
    adapter = {**both(), **conv, **words}
    made, _ = merge(tmp_path, base, adapter)
    held = {n.removeprefix("base_model.model."): t.double() for n, t in adapter.items()}
    x = torch.randn(6, 4).double()
    own = linear(x, base["block.up.weight"].double()) + 3 * linear(
        linear(x, held["block.up.lora_A.weight"]), held["block.up.lora_B.weight"]
    )
    assert torch.allclose(linear(x, made["block.up.weight"].double()), own, atol=1e-5)
    picture = torch.randn(1, 3, 6, 6).double()
    own = conv2d(picture, base["conv.weight"].double()) + 3 * conv2d(
        conv2d(picture, held["conv.lora_A.weight"]), held["conv.lora_B.weight"]
    )
    assert torch.allclose(conv2d(picture, made["conv.weight"].double()), own, atol=1e-4)
    token = held["embed.lora_embedding_A"].t()[7] @ held["embed.lora_embedding_B"].t()
    assert torch.allclose(made["embed.weight"][7].double(), base["embed.weight"][7].double() + 3 * token, atol=1e-5)
    # The quiet twins: what no pair names is the base's, bit for bit.
    for name in ("block.up.bias", "block.square.weight", "step"):
        assert torch.equal(made[name], base[name]) and made[name].dtype is base[name].dtype


def test_scales_by_pattern_and_by_root(tmp_path):
    adapter = {**pair("block.up", 8, 4), **pair("block.down", 4, 8, rank=4)}
    config = {**PLAIN, "use_rslora": True, "rank_pattern": {"down": 4}, "alpha_pattern": {"block.up": 10}}
    made, _ = merge(tmp_path, base_state(), adapter, config)
    for layer, scale in (("block.up", 10 / math.sqrt(2)), ("block.down", 6 / math.sqrt(4))):
        a, b = (adapter[f"base_model.model.{layer}.lora_{side}.weight"].double() for side in "AB")
        own = base_state()[f"{layer}.weight"].double() + scale * b @ a
        assert torch.allclose(made[f"{layer}.weight"].double(), own, atol=1e-5)


def test_half_precision_is_computed_in_float32_and_rounded_once(tmp_path):
    base = {n: t.bfloat16() if t.is_floating_point() else t for n, t in base_state().items()}
    made, report = merge(tmp_path, base, both())
    a, b = (both()[f"base_model.model.block.up.lora_{side}.weight"] for side in "AB")
    assert torch.equal(made["block.up.weight"], (base["block.up.weight"].float() + (b @ a) * 3).bfloat16())
    assert "2 tensors rounded to bfloat16" in report.notes[0]


@pytest.mark.parametrize(("ours", "theirs"), [("", "model."), ("model.", ""), ("bert.", "bert.")])
def test_one_change_of_prefix_places_all_layers(ours, theirs, tmp_path):
    adapter = {n.replace("base_model.model.", f"base_model.model.{theirs}"): t for n, t in both().items()}
    made, _ = merge(tmp_path, {f"{ours}{n}": t for n, t in base_state().items()}, adapter)
    assert not torch.equal(made[f"{ours}block.up.weight"], base_state()["block.up.weight"])


def test_two_towers_are_not_guessed_between(tmp_path):
    base = {f"{p}.{n}": t for p in ("encoder", "decoder") for n, t in base_state().items()}
    refused(tmp_path, base, both(), PLAIN, r"of the adapter could be decoder.block.\w+ or encoder.block")


@pytest.mark.parametrize("turned", [False, True])
def test_square_matrices_follow_what_the_others_show(turned, tmp_path):
    """Conv1D stores inputs first; a bias beside a matrix shows it, and a config that says otherwise is not believed."""
    base = base_state()
    if turned:
        base = {n: t.t().contiguous() if n.startswith("block") and t.dim() == 2 else t for n, t in base.items()}
    adapter = pair("block.square", 4, 4)
    config = {**PLAIN, "fan_in_fan_out": turned}
    made, _ = merge(tmp_path, base, adapter, config)
    a, b = (adapter[f"base_model.model.block.square.lora_{side}.weight"] for side in "AB")
    own = base["block.square.weight"] + ((b @ a).t() if turned else b @ a) * 3
    assert torch.allclose(made["block.square.weight"], own, atol=1e-5)
    (tmp_path / "out.safetensors").unlink()
    refused(
        tmp_path, base, adapter, {**config, "fan_in_fan_out": not turned}, "which way square ones do is not certain"
    )


def test_layers_saved_whole_and_trained_biases_take_their_places(tmp_path):
    adapter = {
        **both(),
        "base_model.model.block.up.base_layer.bias": torch.full((8,), 9.0),
        "base_model.model.classifier.weight": torch.ones(2, 4),
        "base_model.model.embed.modules_to_save.default.weight": torch.ones(12, 4),
    }
    config = {**PLAIN, "bias": "lora_only", "modules_to_save": ["classifier", "embed"]}
    made, report = merge(tmp_path, base_state(), adapter, config)
    assert made["block.up.bias"].tolist() == [9.0] * 8 and torch.equal(made["classifier.weight"], torch.ones(2, 4))
    assert made["embed.weight"].shape == (12, 4) and len(made) == len(base_state()) + 1
    assert any(line.startswith("classifier.weight: new") for line in report.notes)
    assert any(line.startswith("embed.weight: of another shape") for line in report.notes)


WRONG = {
    "no such layer": ({**both(), **pair("block.other", 4, 4)}, {}, "block.other of the adapter is not in the base"),
    "another shape": (pair("block.up", 9, 4), {}, "block.up.weight is 8x4 in the base"),
    "half a pair": (dict(list(both().items())[:3]), {}, "has no other half"),
    "DoRA": ({**both(), "base_model.model.block.up.lora_magnitude_vector": torch.ones(8)}, {}, "no part of plain LoRA"),
    "a bias of B": ({**both(), "base_model.model.block.up.lora_B.bias": torch.ones(8)}, {}, "no part of plain LoRA"),
    "a bias that the config does not train": (
        {**both(), "base_model.model.block.up.base_layer.bias": torch.ones(8)},
        {},
        "no part of plain LoRA",
    ),
    "DoRA in the config": (both(), {"use_dora": True}, "says use_dora = True"),
    "a setting of tomorrow": (both(), {"use_quantum": {"x": 1}}, "says use_quantum"),
    "a changed base": (both(), {"init_lora_weights": "pissa"}, "init_lora_weights = pissa, which changed the base"),
    "another rank": (both(), {"r": 4}, "has rank 2, and adapter_config.json says 4"),
    "a pattern that is an expression": (both(), {"alpha_pattern": {"(a+)+b": 3}}, "which is no plain name"),
    "IA3": (both(), {"peft_type": "IA3"}, "of type IA3"),
    "no alpha": (both(), {"lora_alpha": "NaN"}, "which is no number"),
    "a tensor without a place": (
        {**both(), "base_model.model.x.weight": torch.ones(2)},
        {},
        "has no place in the base",
    ),
    "a whole layer of another shape": (
        {**both(), "base_model.model.block.square.weight": torch.ones(5, 5)},
        {},
        "square.weight is 5x5, and 4x4 in the base",
    ),
    "two adapters": (
        {
            n.replace(".weight", f".{k}.weight"): t
            for k in ("a", "b")
            for n, t in pair(
                f"block.{'up' if k == 'a' else 'down'}", 8 if k == "a" else 4, 4 if k == "a" else 8
            ).items()
        },
        {},
        "several adapters: a, b",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_certain_is_refused(case, tmp_path):
    adapter, more, words = WRONG[case]
    refused(tmp_path, base_state(), adapter, {**PLAIN, **more}, words)


def test_without_a_config_there_is_no_scale(tmp_path):
    refused(tmp_path, base_state(), both(), None, "no adapter_config.json in or beside the adapter")


def test_tied_weights_are_not_parted(tmp_path):
    base = base_state()
    base["head.weight"] = base["block.up.weight"].detach()
    refused(tmp_path, base, both(), PLAIN, "block.up.weight and head.weight are one memory")


def test_a_quantised_base_and_an_overflow_are_refused(tmp_path):
    base = {**base_state(), "block.up.weight": torch.ones(8, 4, dtype=torch.int8)}
    refused(tmp_path, base, both(), PLAIN, "block.up.weight is int8, to which nothing can be added")
    small = {n: t.half() if t.is_floating_point() else t for n, t in base_state().items()}
    refused(tmp_path, small, both(), {**PLAIN, "lora_alpha": 1e9}, "block.* would no longer be finite")


def test_kohya_names_with_their_own_alpha(tmp_path):
    base = {n: t for n, t in base_state().items() if not n.startswith("block.up")}
    a, b = torch.randn(2, 8), torch.randn(4, 2)
    adapter = {
        "lora_unet_block_down.lora_down.weight": a,
        "lora_unet_block_down.lora_up.weight": b,
        "lora_unet_block_down.alpha": torch.tensor(1.0),
    }
    made, _ = merge(tmp_path, base, adapter, None)
    assert torch.allclose(made["block.down.weight"], base["block.down.weight"] + 0.5 * b @ a, atol=1e-6)
    (tmp_path / "out.safetensors").unlink()
    base["block_down.weight"] = torch.randn(4, 8)
    refused(tmp_path, base, adapter, None, "lora_unet_block_down of the adapter could be")


def test_the_command_merges_and_refuses(tmp_path, capsys):
    merge(tmp_path, base_state(), both())
    paths = [str(tmp_path / "base.pth"), str(tmp_path / "adapter")]
    out = tmp_path / "shards"
    assert run(["merge", *paths, "-o", str(out), "--shard-size", "1kB", "--dtype", "float32", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["export"]
    assert report["tensors"] == 7 and (out / "model.safetensors.index.json").exists()
    assert run(["merge", paths[0], paths[0], "-o", str(tmp_path / "x.pth")]) == 1
    assert "Refused: The adapter holds no pair" in capsys.readouterr().err


def test_peft_merges_the_same_bits(tmp_path):
    peft = pytest.importorskip("peft")
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 8), nn.Embedding(5, 4))
    torch.save(model.state_dict(), tmp_path / "base.pth")
    config = peft.LoraConfig(r=3, lora_alpha=5, target_modules=["0", "1", "2"], use_rslora=True)
    adapted = peft.get_peft_model(model, config)
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            parameter.data.normal_()
    adapted.save_pretrained(tmp_path / "adapter")
    wanted = adapted.merge_and_unload().state_dict()
    paths = [str(tmp_path / "base.pth"), str(tmp_path / "adapter")]
    assert run(["merge", *paths, "-o", str(tmp_path / "out.safetensors")]) == 0
    made = load_file(tmp_path / "out.safetensors")
    assert all(torch.equal(made[n], t) for n, t in wanted.items())


def test_the_config_is_found_in_an_archive_of_the_folder(tmp_path):
    for name, opened in (("a.zip", zipfile.ZipFile), ("a.tar.gz", tarfile.open)):
        folder = tmp_path / "lora"
        folder.mkdir(exist_ok=True)
        save_file(both(), folder / "adapter_model.safetensors")
        (folder / "adapter_config.json").write_text(json.dumps(PLAIN))
        with opened(tmp_path / name, "w" if name.endswith("zip") else "w:gz") as archive:
            add = archive.write if name.endswith("zip") else archive.add
            for file in sorted(folder.iterdir()):
                add(file, f"lora/{file.name}")
        assert read_adapter_config(tmp_path / name) == PLAIN
    save_file(both(), tmp_path / "alone.safetensors")
    assert read_adapter_config(tmp_path / "alone.safetensors") == {}


def test_alpha_alone_scales_each_pair_by_its_own_rank(tmp_path):
    adapter = {**pair("block.up", 8, 4, rank=2), **pair("block.down", 4, 8, rank=1)}
    save_file(adapter, tmp_path / "a.safetensors")
    tensors = open_checkpoint(tmp_path / "a.safetensors").weights.tensors
    made, _ = merge(tmp_path, base_state(), adapter, config_of_alpha(tensors, 6.0))
    base = base_state()
    for layer, rank in (("block.up", 2), ("block.down", 1)):
        a, b = (adapter[f"base_model.model.{layer}.lora_{side}.weight"] for side in "AB")
        torch.testing.assert_close(made[f"{layer}.weight"], base[f"{layer}.weight"] + 6 / rank * b @ a)
    with pytest.raises(ExportError, match="nothing to merge"):
        config_of_alpha((), 6.0)
