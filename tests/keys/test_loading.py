"""The printed lines, run: they load what was opened, be it a folder, shards, an adapter or an archive."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import shlex
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
import torchvision
from safetensors.torch import save_file
from torch import nn

from inspector.architectures.targets import parse_target
from inspector.architectures.types import Target
from inspector.cli.main import main
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import RepairPlan
from inspector.readers import open_checkpoint

State = dict[str, torch.Tensor]


def model(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def wrapped() -> State:
    return {f"module.{name}": tensor for name, tensor in model(0).state_dict().items()}


def shards(folder: Path, ending: str) -> Path:
    names = list(wrapped())
    halves = [names[:4], names[4:]]
    stem = "model" if ending == "safetensors" else "pytorch_model"
    index = {}
    for number, half in enumerate(halves, 1):
        name = f"{stem}-{number:05}-of-00002.{ending}"
        part = {n: wrapped()[n] for n in half}
        index.update(dict.fromkeys(half, name))
        save_file(part, folder / name) if ending == "safetensors" else torch.save(part, folder / name)
    file = folder / f"{stem}.{ending}.index.json"
    file.write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return file


def one(folder: Path) -> None:
    save_file(wrapped(), folder / "model.safetensors")
    (folder / "config.json").write_text("{}")


def adapter(folder: Path, ending: str) -> None:
    file = folder / f"adapter_model.{ending}"
    save_file(wrapped(), file) if ending == "safetensors" else torch.save(wrapped(), file)
    (folder / "adapter_config.json").write_text('{"peft_type": "OTHER"}')


def distributed(folder: Path) -> None:
    with contextlib.redirect_stderr(io.StringIO()):
        dcp.save({"model": wrapped(), "epoch": 3}, checkpoint_id=str(folder), no_dist=True)


FOLDERS: dict[str, Callable[[Path], object]] = {
    "one file": one,
    "one torch file": lambda folder: torch.save({"state_dict": wrapped()}, folder / "a.pth"),
    "safetensors shards": lambda folder: shards(folder, "safetensors"),
    "torch shards": lambda folder: shards(folder, "bin"),
    "adapter": lambda folder: adapter(folder, "safetensors"),
    "torch adapter": lambda folder: adapter(folder, "bin"),
    "dcp": distributed,
}


def target(folder: Path) -> Target:
    torch.save(model(0).state_dict(), folder / "target.pth")
    return parse_target(f"file:{folder / 'target.pth'}", candidate=None, open_file=open_checkpoint)


def planned(path: Path, folder: Path) -> RepairPlan:
    plan = diagnose(open_checkpoint(path), target(folder)).plan
    assert plan is not None
    assert plan.complete
    return plan


def check(code: str, folder: Path) -> None:
    """Run it where the opened thing lies; the model must hold the tensors that were saved."""
    fresh, before = model(1), Path.cwd()
    os.chdir(folder)
    try:
        exec(code, {"model": fresh})
    finally:
        os.chdir(before)
    saved = model(0).state_dict()
    assert all(torch.equal(tensor, saved[name]) for name, tensor in fresh.state_dict().items())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", FOLDERS)
def test_lines_for_a_folder_load_it(case: str, tmp_path: Path) -> None:
    folder = tmp_path / "my model's folder"
    folder.mkdir()
    FOLDERS[case](folder)
    check(python_code(planned(folder, tmp_path), file_name=folder.name), tmp_path)


def test_lines_for_an_index_load_its_shards(tmp_path: Path) -> None:
    file = shards(tmp_path, "safetensors")
    check(python_code(planned(file, tmp_path), file_name=file.name), tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_lines_for_single_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{name: tensor.numpy() for name, tensor in wrapped().items()})
    torch.jit.save(torch.jit.script(nn.Sequential(model(0))), tmp_path / "b.pt")
    one(tmp_path)
    for name in ("a.npz", "b.pt", "model.safetensors"):
        check(python_code(planned(tmp_path / name, tmp_path), file_name=name), tmp_path)


def pack_zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder.parent / "packed.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.iterdir():
            archive.write(file, f"x/{file.name}")
    return folder.parent / "packed.zip"


def pack_tar(folder: Path) -> Path:
    with tarfile.open(folder.parent / "packed.tar", "w") as archive:
        archive.add(folder, "x")
    return folder.parent / "packed.tar"


def pack_gzip(folder: Path) -> Path:
    with gzip.open(folder.parent / "model.safetensors.gz", "wb") as packed:
        packed.write((folder / "model.safetensors").read_bytes())
    return folder.parent / "model.safetensors.gz"


@pytest.mark.parametrize("pack", [pack_zip, pack_tar, pack_gzip])
def test_an_archive_is_to_be_exported_first_and_that_works(pack: Callable[[Path], Path], tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    one(folder)
    file = pack(folder)
    shutil.rmtree(folder)
    code = python_code(planned(file, tmp_path), file_name=file.name)
    assert f"python -m inspector repair {file.name} --output written.pth" in code
    assert f"# No plain loader reads {file.name!r} as it lies there." in code
    goal = f"file:{tmp_path / 'target.pth'}"
    with pytest.raises(SystemExit) as left:
        main(["repair", str(file), "--target", goal, "--output", str(tmp_path / "written.pth")])
    assert not left.value.code
    check(code, tmp_path)


def test_a_pickled_module_is_said_to_be_read_by_what_runs_its_code(tmp_path: Path) -> None:
    net = torchvision.models.squeezenet1_1(num_classes=3)
    file, goal = tmp_path / "whole.pth", tmp_path / "goal.pth"
    torch.save(net, file)
    torch.save(net.state_dict(), goal)
    plan = diagnose(open_checkpoint(file), parse_target(f"file:{goal}", open_file=open_checkpoint)).plan
    assert plan is not None
    code = python_code(plan, file_name=file.name)
    assert "No plain loader" not in code
    assert "# torch.load('whole.pth', weights_only=False) reads this file where" in code and "runs that code" in code
    assert isinstance(torch.load(file, weights_only=False), torchvision.models.SqueezeNet)
    # What the command writes is what the lines load.
    with contextlib.suppress(SystemExit):
        main(["repair", str(file), "--target", f"file:{goal}", "--output", str(tmp_path / "written.pth")])
    (line,) = [line for line in code.splitlines() if line.startswith("state = ")]
    assert "written.pth" in line
    found = torch.load(tmp_path / "written.pth", weights_only=True)
    assert all(torch.equal(found[key], tensor) for key, tensor in net.state_dict().items())


@pytest.mark.parametrize("label", ["netA", "netB"])
@pytest.mark.parametrize("asked", [False, True])
def test_the_export_takes_the_weights_that_were_chosen_on_the_page(label: str, asked: bool, tmp_path: Path) -> None:
    # The command had no --state and no --choose: it stopped at the question, or wrote the other weights.
    nets = {name: model(seed) for seed, name in enumerate(("netA", "netB"))}
    held = {name: {f"module.{key}": t for key, t in net.state_dict().items()} for name, net in nets.items()}
    file, goal = tmp_path / "two.pth", tmp_path / "goal.pth"
    torch.save({**held, "args": argparse.Namespace(lr=0.1)}, file)
    torch.save(model(0).state_dict(), goal)
    file.rename(inside := tmp_path / "two.zip")
    with zipfile.ZipFile(file, "w") as archive:  # What no plain loader reads.
        archive.write(inside, "run/two.pth")
    checkpoint, target = open_checkpoint(file), parse_target(f"file:{goal}", open_file=open_checkpoint)
    chosen = next(state for state in checkpoint.state_dicts if state.label == label)
    report = (
        diagnose(checkpoint, target, choose={"state": label}) if asked else diagnose(checkpoint, target, state=chosen)
    )
    assert report.plan is not None and report.plan.complete
    (line,) = [
        line for line in python_code(report.plan, file_name=str(file)).splitlines() if "inspector repair" in line
    ]
    words = shlex.split(line.removeprefix("#   "))[3:]
    assert ("--choose" if asked else "--state") in words
    words[words.index("written.pth")] = str(tmp_path / "written.pth")
    with contextlib.suppress(SystemExit):
        main([*words, *([] if "--target" in words else ["--target", f"file:{goal}"])])
    found = torch.load(tmp_path / "written.pth")
    assert all(torch.equal(found[key], tensor) for key, tensor in nets[label].state_dict().items())
