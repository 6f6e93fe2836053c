"""Every sample file against the manifest, as the product opens it and as torch does."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torchvision.models import get_model

import sample_models
from inspector import errors
from inspector.architectures.recognise import recognise
from inspector.checkpoint.types import GlobalVerdict, StateRole
from inspector.params.count import count_parameters
from inspector.readers import open_checkpoint
from sample_models import family as family_module
from sample_models.hostile import MARKER

MANIFEST = json.loads((Path(sample_models.__file__).parent / "manifest.json").read_text(encoding="utf-8"))
ENTRIES = {entry["id"]: entry for entry in MANIFEST["files"]}
MODELS = [key for key, entry in ENTRIES.items() if "weights" in entry]
OPENED = [key for key, entry in ENTRIES.items() if "error" not in entry]
REFUSED = [key for key, entry in ENTRIES.items() if "error" in entry]


def load(path):
    """torch's own loader, on files that these tests made themselves."""
    return torch.load(path, weights_only=False, map_location="cpu")


def test_the_manifest_lists_exactly_the_derived_files(family):
    on_disk = {path.name for path in family.iterdir() if path.is_file()}
    assert on_disk == {entry["file"] for entry in MANIFEST["files"]}
    assert len(ENTRIES) == len(MANIFEST["files"])


@pytest.mark.parametrize("key", OPENED)
def test_it_opens_as_the_manifest_says(family, key):
    entry = ENTRIES[key]
    checkpoint = open_checkpoint(family / entry["file"])
    assert checkpoint.format == entry["format"]
    assert len(checkpoint.tensors) == entry["tensors"]
    assert sorted(finding.id for finding in checkpoint.findings) == sorted(entry["findings"])
    dangerous = [use.name for use in checkpoint.globals if use.verdict is GlobalVerdict.DANGEROUS]
    assert sorted(dangerous) == sorted(entry.get("dangerous_globals", []))
    of_optimizer = [s for s in checkpoint.state_dicts if s.role is StateRole.OPTIMIZER]
    assert sum(len(s.tensors) for s in of_optimizer) == entry.get("optimizer_tensors", 0)
    of_average = [s for s in checkpoint.state_dicts if s.role is StateRole.EMA]
    expected = [entry["ema"]] if "ema" in entry else []
    assert [{"path": list(s.path), "tensors": len(s.tensors)} for s in of_average] == expected
    assert (checkpoint.weights is not None) == ("weights" in entry)


@pytest.mark.parametrize("key", MODELS)
def test_its_weights_are_recognised_and_counted(family, key):
    entry, expected = ENTRIES[key], ENTRIES[key]["weights"]
    checkpoint = open_checkpoint(family / entry["file"])
    state = checkpoint.weights
    assert list(state.path) == expected["path"]
    assert len(state.tensors) == expected["tensors"]
    assert state.is_module == expected.get("is_module", False)
    recognition = recognise(checkpoint, state)
    model = MANIFEST | entry  # an entry of another model than the family's names its own figures
    assert recognition.best.spec.label == model["architecture"]
    assert recognition.best.wrapper == expected["wrapper"]
    assert len(recognition.best.matched) == model["matched"]
    report = count_parameters(checkpoint, state, recognition)
    assert report.total.parameters == model["parameters"]
    # Lightning's file has the loss's four class weights beside the model's own buffers.
    assert report.total.buffers == model["buffers"] + 4 * (expected["tensors"] - model["matched"])
    assert report.trainable == entry.get("trainable")
    if "dtypes" in entry:
        assert [name for name, _, _ in report.dtypes] == entry["dtypes"]


@pytest.mark.parametrize("key", REFUSED)
def test_a_wrong_file_is_named_for_what_it_is(family, key):
    entry = ENTRIES[key]
    with pytest.raises(getattr(errors, entry["error"]["class"]), match=entry["error"]["words"]):
        open_checkpoint(family / entry["file"])


def test_opening_the_hostile_file_runs_nothing(family, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = open_checkpoint(family / "hostile.pth")
    recognise(checkpoint)
    assert list(tmp_path.iterdir()) == []
    assert not (family / MARKER).exists()


def test_counts_are_torchs_own():
    model = get_model(family_module.ARCHITECTURE, num_classes=len(MANIFEST["classes"]))
    assert sum(p.numel() for p in model.parameters()) == MANIFEST["parameters"]
    assert sum(b.numel() for b in model.buffers()) == MANIFEST["buffers"]


def test_all_files_carry_the_same_weights(family):
    clean = load(family / "shapes.pth")
    others = {
        "module.": load(family / "shapes_dp.pth.tar")["state_dict"],
        "_orig_mod.": load(family / "shapes_compile_ema.pth")["model"],
        "model.": load(family / "shapes_lightning.ckpt")["state_dict"],
        "": load(family / "shapes_module.pth").state_dict(),
    }
    for prefix, state in others.items():
        own = {key.removeprefix(prefix): value for key, value in state.items() if not key.startswith("criterion.")}
        assert list(own) == list(clean)
        assert all(torch.equal(own[key], clean[key]) for key in clean)
    half = load(family / "shapes_fp16.pth")
    assert all(torch.equal(half[key].double(), clean[key].half().double()) for key in clean if "num_batches" not in key)
    average = load(family / "shapes_compile_ema.pth")["ema"]
    assert not torch.equal(average["fc.weight"], clean["fc.weight"])
    assert torch.allclose(average["fc.weight"], clean["fc.weight"], atol=0.05)


def test_the_optimizer_resumes(family):
    content = load(family / "shapes_dp.pth.tar")
    model = get_model(content["arch"], num_classes=4)
    model.load_state_dict({key.removeprefix("module."): value for key, value in content["state_dict"].items()})
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.load_state_dict(content["optimizer"])
    before = model.fc.weight.detach().clone()
    model.fc(torch.ones(1, 1024)).sum().backward()
    optimizer.step()
    moved = (model.fc.weight.detach() - before).abs().max()
    assert 0 < moved < 1e-3
    moments = optimizer.state[model.fc.weight]
    assert moments["exp_avg_sq"].min() >= 0 and moments["exp_avg_sq"].max() > 0


def test_the_sick_file_has_the_ailments_of_the_manifest_and_no_others(family):
    sick, clean = load(family / "shapes_sick.pth"), load(family / "shapes.pth")
    ailments = ENTRIES["sick"]["ailments"]
    keys = {ailment["key"] for ailment in ailments.values()}
    assert {key for key in clean if not torch.equal(sick[key], clean[key])} == keys
    assert int(sick[ailments["nan"]["key"]].isnan().sum()) == ailments["nan"]["count"]
    dead = (sick[ailments["dead"]["key"]].flatten(1) == 0).all(dim=1)
    assert int(dead.sum()) == ailments["dead"]["filters"]
    exploded = ailments["exploded"]
    assert torch.equal(sick[exploded["key"]], clean[exploded["key"]] * exploded["factor"])
    assert sick[ailments["constant"]["key"]].unique().tolist() == pytest.approx([ailments["constant"]["value"]])


def test_deriving_again_gives_the_same_bytes(family, tmp_path):
    # In another process, so that hash seeds and addresses differ. torch names the legacy file's storages by address,
    # and notes in a traced program where it was traced from.
    code = "import sys, pathlib; from sample_models.family import derive; p = pathlib.Path(sys.argv[1]);"
    code += "derive(p, pictures=p / 'pictures')"
    root = Path(sample_models.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, check=True)
    for path in sorted(family.rglob("*.*")):
        if path.name not in {"shapes_dp.pth.tar", "shapes_script.pt"} and path.is_file():
            assert (tmp_path / path.relative_to(family)).read_bytes() == path.read_bytes(), path.name


def test_the_header_of_the_safetensors_states_what_the_pages_need(family):
    metadata = dict(open_checkpoint(family / "shapes.safetensors").metadata)
    assert json.loads(metadata["classes"]) == MANIFEST["classes"]
    assert set(json.loads(metadata["preprocessing"])) == {"size", "mean", "std"}
    assert np.float64(metadata["accuracy"]) >= 0.97
