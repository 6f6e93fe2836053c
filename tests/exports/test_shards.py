"""Shards as huggingface_hub lays them out, joined again bit for bit; averaged weights picked by name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.cli.main import run
from inspector.errors import ExportError, UsageError
from inspector.exports.averaged import find_averaged
from inspector.exports.convert import export_as_is
from inspector.exports.writers import safetensors_file
from inspector.readers import open_checkpoint
from inspector.units import parse_size


def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    made = {f"layer{n}.weight": torch.randn(20, 10) for n in range(5)}  # 800 bytes each
    made["embed.weight"] = torch.randn(50, 10)  # 2,000: larger than a shard
    made["head.weight"] = made["embed.weight"].detach()
    return made


def write(tmp_path, writer="safetensors", **options):
    torch.save(state(), tmp_path / "in.pth")
    checkpoint = open_checkpoint(tmp_path / "in.pth")
    out = tmp_path / "out"
    return out, export_as_is(checkpoint, checkpoint.weights, out, writer=writer, shard_nbytes=1_700, **options)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_shards_and_index_are_what_hugging_face_writes(tmp_path):
    out, report = write(tmp_path)
    files = [f"model-0000{n}-of-00004.safetensors" for n in (1, 2, 3, 4)]
    assert names(out) == [*files, "model.safetensors.index.json"]
    index = json.loads((out / "model.safetensors.index.json").read_text())
    # Five of 800 bytes, two to a shard; the tied pair, written twice in safetensors, has the last one to itself.
    assert index["metadata"] == {"total_size": 5 * 800 + 2 * 2_000}
    places = [f"layer{n}.weight" for n in range(5)]
    assert [index["weight_map"][n] for n in places] == [files[0], files[0], files[1], files[1], files[2]]
    assert index["weight_map"]["embed.weight"] == index["weight_map"]["head.weight"] == files[3]
    for file in files:
        for name, tensor in load_file(out / file).items():
            assert index["weight_map"].pop(name) == file and torch.equal(tensor, state()[name])
    assert index["weight_map"] == {}
    assert [f.name for f in report.files] == names(out) and report.sha256 == ""
    assert report.nbytes == sum(p.stat().st_size for p in out.iterdir())
    assert oct(out.stat().st_mode)[-3:] == oct((tmp_path / "in.pth").stat().st_mode | 0o111)[-3:]


@pytest.mark.parametrize("writer", ["pth", "pth-legacy"])
def test_shards_of_torch_files_keep_ties_and_load_one_by_one(writer, tmp_path):
    out, _ = write(tmp_path, writer=writer)
    shards = [n for n in names(out) if n.endswith(".bin")]
    assert len(shards) == 4 and "pytorch_model.bin.index.json" in names(out)
    merged = {}
    for name in shards:
        merged.update(torch.load(out / name, weights_only=True))
    assert all(torch.equal(merged[n], t) for n, t in state().items()) and len(merged) == 7
    assert merged["head.weight"].data_ptr() == merged["embed.weight"].data_ptr()


def test_one_shard_is_one_file_without_an_index(tmp_path):
    torch.save({"w": torch.ones(3)}, tmp_path / "in.pth")
    checkpoint = open_checkpoint(tmp_path / "in.pth")
    report = export_as_is(checkpoint, checkpoint.weights, tmp_path / "out", writer="safetensors", shard_nbytes=10_000)
    assert names(tmp_path / "out") == ["model.safetensors"] and len(report.files) == 1


@pytest.mark.parametrize("writer", ["safetensors", "pth"])
def test_shards_join_again_into_one_file_by_the_command_line(writer, tmp_path, capsys):
    torch.save(state(), tmp_path / "in.pth")
    folder, one = tmp_path / "shards", tmp_path / "one.safetensors"
    sizes = ["--shard-size", "1.7kB", "--format", writer]
    assert run(["convert", str(tmp_path / "in.pth"), "-o", str(folder), *sizes]) == 0
    capsys.readouterr()
    assert run(["convert", str(folder), "-o", str(one), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["export"]["tensors"] == 7
    again = load_file(one)
    assert set(again) == set(state()) and all(torch.equal(again[n], t) for n, t in state().items())
    # And under other names, by a repair.
    (tmp_path / "keys.txt").write_text("\n".join(f"module.{n}" for n in state()) + "\n")
    two = tmp_path / "two.safetensors"
    assert run(["repair", str(folder), "--target", f"keys:{tmp_path / 'keys.txt'}", "-o", str(two)]) == 0
    assert all(torch.equal(load_file(two)[f"module.{n}"], t) for n, t in state().items())


def test_a_wrong_shard_leaves_no_folder(tmp_path):
    def wrong(stream, path, text, tick):
        safetensors_file.WRITER.write(stream, path, text, tick)
        if "00002" in path.name:
            held = load_file(path)
            held["layer3.weight"][0, 0] += 1
            save_file(held, path)
        return ()

    with pytest.raises(ExportError, match=r"layer3.weight reads back otherwise"):
        write(tmp_path, writers=(replace(safetensors_file.WRITER, write=wrong),))
    assert names(tmp_path) == ["in.pth"]


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model-00001-of-00009.safetensors").write_text("theirs")
    with pytest.raises(ExportError, match="out is there already and no empty folder"):
        write(tmp_path)
    assert names(tmp_path / "out") == ["model-00001-of-00009.safetensors"]
    source, file = str(tmp_path / "in.pth"), str(tmp_path / "x.safetensors")
    assert run(["convert", source, "-o", file, "--shard-size", "2GB"]) == 2
    assert "--output x and --format safetensors" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "nbytes"), [("2GB", 2_000_000_000), ("500 MB", 500_000_000), ("1.5kb", 1_500), ("4096", 4_096)]
)
def test_sizes(text, nbytes):
    assert parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "two", "2 XB", "-1GB", "0", "1e9", "9" * 400, "²GB", "inf", "nanGB"])
def test_what_is_no_size(text):
    with pytest.raises(UsageError, match="is no size"):
        parse_size(text)


def weights(value: float) -> dict[str, torch.Tensor]:
    return {"a.weight": torch.full((3, 2), value), "a.bias": torch.full((3,), value)}


FILES = {
    "beside": {"state_dict": weights(1), "state_dict_ema": weights(2)},
    "twin": {f"{p}.{n}": t for p, v in (("model", 1), ("model_ema", 2)) for n, t in weights(v).items()},
    "swa": {"model": weights(1), "ema": {"n": torch.tensor(3), **weights(2)}},
}


@pytest.mark.parametrize("kind", FILES)
def test_the_averaged_weights_are_picked(kind, tmp_path):
    torch.save(FILES[kind], tmp_path / "in.pth")
    out = tmp_path / "out.safetensors"
    assert run(["convert", str(tmp_path / "in.pth"), "--ema", "-o", str(out)]) == 0
    again = load_file(out)
    assert torch.equal(again["a.weight"], weights(2)["a.weight"]) and torch.equal(again["a.bias"], weights(2)["a.bias"])


def test_a_repair_takes_the_averaged_twin_when_asked(tmp_path):
    torch.save(FILES["twin"], tmp_path / "in.pth")
    (tmp_path / "keys.txt").write_text("a.weight\na.bias\n")
    arguments = ["repair", str(tmp_path / "in.pth"), "--target", f"keys:{tmp_path / 'keys.txt'}", "--ema"]
    out = tmp_path / "o.pth"
    assert run([*arguments, "-o", str(out)]) == 0
    assert torch.equal(torch.load(out, weights_only=True)["a.weight"], weights(2)["a.weight"])


@pytest.mark.parametrize(
    "held",
    [
        weights(1),
        {"teacher_forcing": torch.ones(2), **weights(1)},
        {f"{p}.{n}": t for p in ("model", "model_old") for n, t in weights(1).items()},
        # An average of another network is no twin: its names do not say whose it is.
        {
            **{f"model.{n}": t for n, t in weights(1).items()},
            "model_ema.b.weight": torch.ones(9),
            "model_ema.c": torch.ones(1),
        },
    ],
)
def test_a_file_without_averaged_weights_says_so(held, tmp_path, capsys):
    torch.save(held, tmp_path / "in.pth")
    with pytest.raises(UsageError, match="holds no averaged weights"):
        find_averaged(open_checkpoint(tmp_path / "in.pth"))
    assert run(["convert", str(tmp_path / "in.pth"), "--ema", "-o", str(tmp_path / "o.pth")]) == 2
    assert not (tmp_path / "o.pth").exists()


def test_two_averages_are_asked_about(tmp_path):
    torch.save({"model": weights(1), "ema": weights(2), "swa": weights(3)}, tmp_path / "in.pth")
    with pytest.raises(UsageError, match="2 sets of averaged weights: ema, swa"):
        find_averaged(open_checkpoint(tmp_path / "in.pth"))
