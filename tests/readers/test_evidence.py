"""Files beside a checkpoint: read as evidence under their names, harmless whatever is in them, never the file's own."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.cam.inputs.classes import class_names
from inspector.cam.inputs.preprocess import infer_preprocessing
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import CorruptFile, LimitExceeded, UnknownFormat
from inspector.exports.export import export_repaired
from inspector.keys.diagnose import diagnose
from inspector.limits import DEFAULT_LIMITS
from inspector.readers import open_checkpoint
from inspector.readers.folder import DirectoryFolder
from inspector.readers.plain_json import parse_json
from inspector.readers.plain_yaml import read_yaml
from inspector.readers.sidecars import FILES, add_evidence


def opened(folder: Path, **files: str | bytes) -> Checkpoint:
    """model.pt in a folder with these files: "config_json" is config.json."""
    torch.save({"w": torch.ones(2, 3)}, folder / "model.pt")
    for name, content in files.items():
        place = folder / ".".join(name.rsplit("_", 1))
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_checkpoint(folder / "model.pt")


def test_what_a_config_says_is_shown_with_its_name(tmp_path: Path) -> None:
    config = {
        "hidden_size": 768,
        "architectures": ["ViTForImageClassification"],
        "vision": {"depth": 12, "mlp": {"ratio": 4.0, "act": {"deep": {"deeper": 1}}}},
        "tie": True,
        "none": None,
        "long": list(range(100)),
        "mixed": [{"a": 1}],
    }
    checkpoint = opened(tmp_path, config_json=json.dumps(config))
    assert checkpoint.metadata == (
        ("config.json: hidden_size", "768"),
        ("config.json: architectures", '["ViTForImageClassification"]'),
        ("config.json: vision.depth", "12"),
        ("config.json: vision.mlp.ratio", "4.0"),
        ("config.json: vision.mlp.act.deep", "(1 entry not shown)"),
        ("config.json: tie", "true"),
        ("config.json: none", "null"),
        ("config.json: long", "(a list of 100 items)"),
        ("config.json: mixed", "(a list of 1 item)"),
    )
    assert [(p.name, p.says) for p in checkpoint.parts] == [("config.json", "read as evidence, 9 entries")]
    assert checkpoint.findings == ()
    assert checkpoint.own_metadata == ()


def test_nothing_is_looked_at_where_the_file_came_alone(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path, config_json='{"a": 1}')
    assert checkpoint.parts
    alone = open_checkpoint((tmp_path / "model.pt").read_bytes())
    assert (alone.parts, alone.metadata) == ((), ())
    assert alone.tensors == checkpoint.tensors


def test_every_name_is_read_and_a_pickle_is_not(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).write_text('{"lr": 0.5}' if name.endswith(".json") else "lr: 0.5\n")
    marker = tmp_path / "marker"
    (tmp_path / "training_args.bin").write_bytes(b"cos\nsystem\n(S'touch " + os.fsencode(marker) + b"'\ntR.")
    (tmp_path / "unrelated.json").write_text('{"lr": 9}')
    checkpoint = opened(tmp_path)
    names = {name for name in FILES if name.startswith(("class", "labels"))}  # what is in these are names of classes
    expected = {name: ("classes", '{"lr": 0.5}' if name.endswith(".json") else '["lr: 0.5"]') for name in names}
    pairs = [(name, *expected.get(name, ("lr", "0.5"))) for name in FILES]
    assert checkpoint.metadata == tuple((f"{name}: {key}", text) for name, key, text in pairs)
    assert [p.name for p in checkpoint.parts] == [*(name for name in FILES), "training_args.bin"]
    assert checkpoint.parts[-1].says == "a pickle, not read; open it by itself"
    assert not marker.exists()


def test_the_files_own_metadata_stay_its_own(tmp_path: Path) -> None:
    save_file({"w": torch.ones(1)}, tmp_path / "m.safetensors", metadata={"format": "pt", "lr": "1"})
    (tmp_path / "config.json").write_text('{"lr": 2}')
    checkpoint = open_checkpoint(tmp_path / "m.safetensors")
    assert sorted(checkpoint.own_metadata) == [("format", "pt"), ("lr", "1")]
    assert checkpoint.metadata[-1] == ("config.json: lr", "2")


def test_a_file_is_no_evidence_for_itself(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"lr": 2}')
    with pytest.raises(UnknownFormat, match="JSON text"):
        open_checkpoint(tmp_path / "config.json")
    checkpoint = opened(tmp_path)
    again = add_evidence(checkpoint, DirectoryFolder(tmp_path, DEFAULT_LIMITS), DEFAULT_LIMITS)
    assert again == checkpoint


def test_a_folder_with_one_checkpoint_has_the_evidence_of_both_levels(tmp_path: Path) -> None:
    """A Lightning run: hparams.yaml above, checkpoints/last.ckpt below."""
    (tmp_path / "checkpoints").mkdir()
    torch.save({"state_dict": {"w": torch.ones(1)}, "epoch": 2}, tmp_path / "checkpoints" / "last.ckpt")
    (tmp_path / "hparams.yaml").write_text("lr: 0.1\n")
    (tmp_path / "checkpoints" / "config.json").write_text('{"a": 1}')
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.metadata == (("epoch", "2"), ("checkpoints/config.json: a", "1"), ("hparams.yaml: lr", "0.1"))
    assert [p.name for p in checkpoint.parts] == ["checkpoints/last.ckpt", "checkpoints/config.json", "hparams.yaml"]


# -- hostile ------------------------------------------------------------------------------------------------------

HOSTILE_JSON = [
    b"",
    b"null",
    b"[]",
    b"{",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"a": NaN, "b": Infinity, "c": 1e999, "d": ' + b"9" * 10_000 + b"}",
    b'{"a": 1, "a": 2}',
    b'{"\\ud800": "\\udfff\\u0000"}',
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf{}",
    b"[" + b"1," * 60_000 + b"1]",
    b'{"id2label": {"0": ["x"], "1": {}}}',
    b'{"id2label": {"0": "' + b"x" * 900_000 + b'"}}',
    b"x" * 1_000_001,
    json.dumps({f"k{n}": n for n in range(5000)}).encode(),
]


@pytest.mark.parametrize("content", HOSTILE_JSON, ids=lambda c: ascii(c[:24]))
def test_hostile_json_never_fails_the_opening(content: bytes, tmp_path: Path) -> None:
    checkpoint = opened(tmp_path, config_json=content)
    assert [t.name for t in checkpoint.tensors] == ["w"]
    assert [p.name for p in checkpoint.parts] == ["config.json"]
    assert len(checkpoint.metadata) <= 200
    for key, text in checkpoint.metadata:
        (key + text).encode("utf-8")
        assert len(key) < 300
    assert class_names(None, checkpoint) is not None


def test_what_was_not_read_says_why(tmp_path: Path) -> None:
    for content, says in (
        (b"{", "not read: config.json is no valid JSON"),
        (b"x" * 1_000_001, "not read: 1,000,001 bytes, evidence is read up to 1,000,000"),
        (b"[" + b"1," * 60_000 + b"1]", "not read: config.json holds about 60,001 JSON values"),
        (json.dumps(dict.fromkeys(map(str, range(900)), 1)).encode(), "read as evidence, the first 200 entries"),
    ):
        assert opened(tmp_path, config_json=content).parts[0].says.startswith(says)


def test_json_values_of_odd_kinds() -> None:
    digits = "1234567890" * 4 + "12"
    data = f'{{"a": NaN, "b": -Infinity, "c": {digits}, "a": 1}}'.encode()
    value, twice = parse_json(data, "x", most_values=10)
    assert value == {"a": 1, "b": "-Infinity", "c": "1234567890" * 4 + "…"}
    assert twice == ("a",)
    assert parse_json(b"1e400", "x", most_values=1)[0] == math.inf
    with pytest.raises(LimitExceeded, match="3 JSON values; the limit is 2"):
        parse_json(b"[1,2,3]", "x", most_values=2)
    for bad in (b"", b"{1}", b"\xff", b"[" * 100_000):
        with pytest.raises(CorruptFile, match="no valid JSON"):
            parse_json(bad, "x", most_values=1_000_000)


HOSTILE_YAML = [
    b"",
    b"a: [",
    b"[" * 50_000,
    b"a:\n" + b"".join(b" " * n + b"a:\n" for n in range(1, 300)),
    b"!!python/object/apply:os.system ['touch MARKER']\n",
    b"a: !!python/object/new:subprocess.Popen\n  args: [touch, MARKER]\n",
    b"a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]\n",
    b"a: &a {b: *a}\n",
    b"? [1, 2]\n: 3\n? {a: b}\n: c\n",
    b"*nothing\n",
    b"\xff\xfe",
    b"\x00",
    b"%YAML 9.9\n---\na: 1\n",
    b"--- 1\n--- 2\n",
    b"a: 'unclosed",
    b"x" * 128_001,
    b"".join(b"k%d: %d\n" % (n, n) for n in range(9000)),
]


@pytest.mark.parametrize("content", HOSTILE_YAML, ids=lambda c: ascii(c[:24]))
def test_hostile_yaml_never_fails_the_opening(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint = opened(tmp_path, hparams_yaml=content)
    assert [t.name for t in checkpoint.tensors] == ["w"]
    assert len(checkpoint.metadata) <= 200
    assert sum(len(k) + len(v) for k, v in checkpoint.metadata) < 300_000
    assert not (tmp_path / "MARKER").exists()


def test_yaml_is_followed_to_a_depth() -> None:
    for depth, whole in ((20, True), (30, False)):
        text = "".join("  " * n + f"k{n}:\n" for n in range(depth)) + "  " * depth + "end: 1\n"
        pairs, cut = read_yaml(b"first: 0\n" + text.encode(), "x")
        assert pairs[0] == ("first", "0")
        assert (cut, len(pairs)) == (not whole, 2 if whole else 1)


def test_yaml_as_argparse_and_lightning_write_it() -> None:
    text = b"""!!python/object:argparse.Namespace
lr: 0.001
betas: [0.9, 0.999]
name: 'yes'
opt: &o
  kind: adam
  decay: 1e-4
again: *o
model: !!python/name:timm.models.resnet18
layers:
- width: 3
- width: 4
"""
    pairs, cut = read_yaml(text, "hparams.yaml")
    assert not cut
    assert pairs == (
        ("(type)", "tag:yaml.org,2002:python/object:argparse.Namespace"),
        ("lr", "0.001"),
        ("betas", "[0.9, 0.999]"),
        ("name", "yes"),
        ("opt.kind", "adam"),
        ("opt.decay", "1e-4"),
        ("again", "(as at &o above)"),
        ("model", "tag:yaml.org,2002:python/name:timm.models.resnet18"),
        ("layers.0.width", "3"),
        ("layers.1.width", "4"),
    )


def test_plain_text_arguments(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path, args_txt="lr: 0.1\n--epochs = 90\n\nname: a b\n")
    assert checkpoint.metadata == (("args.txt: lr", "0.1"), ("args.txt: epochs", "90"), ("args.txt: name", "a b"))
    checkpoint = opened(tmp_path, args_txt="Namespace(lr=0.1, epochs=90)")
    assert checkpoint.metadata == (("args.txt: (text)", "Namespace(lr=0.1, epochs=90)"),)


@settings(deadline=None)
@given(st.sampled_from(FILES), st.binary(max_size=200))
def test_any_bytes_are_harmless(name: str, content: bytes) -> None:
    class One:
        name, kind = "folder", "folder"

        def files(self) -> dict[str, int]:
            return {name: len(content)}

        top = files

        def size_of(self, path: str) -> int | None:
            return len(content) if path == name else None

        def open(self, path: str) -> BufferSource:
            return BufferSource(content, path)

    empty = open_checkpoint(b"\x80\x02}q\x00.")
    found = add_evidence(empty, One(), DEFAULT_LIMITS)
    assert len(found.parts) == 1
    "".join(k + v for k, v in found.metadata).encode("utf-8")


# -- who uses it --------------------------------------------------------------------------------------------------


def test_labels_from_a_config_beside(tmp_path: Path) -> None:
    labels = {str(n): f"class {n}" for n in range(1000)}
    checkpoint = opened(tmp_path, config_json=json.dumps({"id2label": labels}))
    assert class_names(None, checkpoint) == tuple(labels.values())
    torch.save({"w": torch.ones(1), "classes": ["a", "b"]}, tmp_path / "model.pt")
    assert class_names(None, open_checkpoint(tmp_path / "model.pt")) == ("a", "b")


def test_preprocessing_from_the_file_beside(tmp_path: Path) -> None:
    config = {
        "do_center_crop": True,
        "crop_size": {"height": 224, "width": 224},
        "size": {"shortest_edge": 256},
        "image_mean": [0.5, 0.4, 0.3],
        "image_std": [0.1, 0.2, 0.3],
        "resample": 3,
        "rescale_factor": 1 / 255,
    }
    found = infer_preprocessing(None, opened(tmp_path, preprocessor_config_json=json.dumps(config)))
    assert (found.resize, found.crop, found.interpolation) == (256, (224, 224), "bicubic")
    assert (found.mean, found.std, found.assumed) == ((0.5, 0.4, 0.3), (0.1, 0.2, 0.3), False)
    assert found.source == "stated by preprocessor_config.json beside the file"
    plain = {"size": 224, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_resize": True}
    found = infer_preprocessing(None, opened(tmp_path, preprocessor_config_json=json.dumps(plain)))
    assert (found.resize, found.crop) == ((224, 224), None)
    for odd in ({"image_std": [0.0] * 3}, {"rescale_factor": 1 / 127.5}, {"do_normalize": False}, {"image_mean": 7}):
        found = infer_preprocessing(None, opened(tmp_path, preprocessor_config_json=json.dumps({**plain, **odd})))
        assert found.assumed, odd


def test_an_export_carries_the_files_own_metadata_and_not_those_beside(tmp_path: Path) -> None:
    save_file({"w": torch.ones(1)}, tmp_path / "m.safetensors", metadata={"format": "pt", "lr": "1"})
    (tmp_path / "config.json").write_text('{"hidden_size": 2}')
    checkpoint = open_checkpoint(tmp_path / "m.safetensors")
    assert dict(checkpoint.metadata)["config.json: hidden_size"] == "2"
    goal = Target(
        label="the model",
        kind=TargetKind.FILE,
        tensors=(TargetTensor(name="w", shape=(1,), dtype="float32"),),
        spec=None,
    )
    out = tmp_path / "out.safetensors"
    report = export_repaired(checkpoint, diagnose(checkpoint, goal).plan, goal, out, writer="safetensors")
    with safe_open(out, "pt") as written:
        text = written.metadata()
    assert text["lr"] == "1"
    assert not any("config.json" in key for key in text)
    assert not any("config.json" in line for line in report.lost)
