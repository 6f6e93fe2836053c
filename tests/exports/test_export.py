"""Real files in, repaired files out, read back by torch and safetensors on their own."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest
import safetensors
import torch
import torchvision
from safetensors.torch import load_file

from inspector.architectures.types import ArchitectureSpec, Target, TargetKind, TargetTensor
from inspector.cli.main import run
from inspector.errors import ExportError, UsageError
from inspector.exports.export import export_repaired, named_alone
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


class Net(torch.nn.Module):
    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
        self.fc = torch.nn.Linear(8, classes)


def target(module: torch.nn.Module, spec: ArchitectureSpec | None = None) -> Target:
    tensors = tuple(
        TargetTensor(name=n, shape=tuple(t.shape), dtype=str(t.dtype).removeprefix("torch."))
        for n, t in module.state_dict().items()
    )
    kind = TargetKind.ARCHITECTURE if spec else TargetKind.FILE
    return Target(label=spec.label if spec else "the model", kind=kind, tensors=tensors, spec=spec)


def wrapped(module: torch.nn.Module) -> OrderedDict[str, torch.Tensor]:
    return torch.nn.DataParallel(module).state_dict()


@pytest.fixture
def net() -> Net:
    torch.manual_seed(3)
    made = Net()
    made.features[1].running_var.uniform_(0.5, 2)
    made.features[1].num_batches_tracked.fill_(7)
    return made


@pytest.fixture
def training_file(net, tmp_path):
    """A training checkpoint: wrapped weights, an optimizer, an epoch."""
    path = tmp_path / "run.pth.tar"
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    torch.save({"epoch": 12, "state_dict": wrapped(net), "optimizer": optimizer.state_dict()}, path)
    return path


def plan_for(path, goal, **options):
    checkpoint = open_checkpoint(path)
    report = diagnose(checkpoint, goal, **options)
    return checkpoint, report.plan


@pytest.mark.parametrize("writer", ["pth", "pth-legacy"])
def test_torch_loads_the_repaired_file_bit_for_bit_with_its_versions(writer, net, training_file, tmp_path):
    checkpoint, plan = plan_for(training_file, target(net))
    out = tmp_path / "clean.pth"
    report = export_repaired(checkpoint, plan, target(net), out, writer=writer)
    again = torch.load(out, weights_only=True)
    assert list(again) == list(net.state_dict())
    for name, tensor in net.state_dict().items():
        assert again[name].dtype is tensor.dtype and torch.equal(again[name], tensor)
    assert again._metadata["features.1"]["version"] == 2
    assert "module" not in again._metadata and "" in again._metadata
    Net().load_state_dict(again, strict=True)
    assert report.nbytes == out.stat().st_size and report.tensors == len(again) == 9
    assert report.sha256 == hashlib.sha256(out.read_bytes()).hexdigest()
    assert report.verification.holds and {"reread", "library", "bytes"} <= {p.id for p in report.verification.proofs}
    with out.open("rb") as f:
        assert (f.read(2) == b"PK") == (writer == "pth")


def test_safetensors_carries_provenance_and_says_what_is_lost(net, training_file, tmp_path):
    checkpoint, plan = plan_for(training_file, target(net))
    out = tmp_path / "clean.safetensors"
    report = export_repaired(checkpoint, plan, target(net), out, writer="safetensors")
    again = load_file(out)
    assert all(torch.equal(again[n], t) for n, t in net.state_dict().items()) and len(again) == len(net.state_dict())
    with safetensors.safe_open(out, "pt") as opened:
        text = opened.metadata()
    assert text["format"] == "pt" and text["repaired_from"] == "run.pth.tar"
    assert text["repaired_by"] == 'drop the segment "module"'
    assert any("epoch" in line for line in report.lost) and any("_metadata" in line for line in report.lost)
    assert any("optimizer" in line for line in report.lost)


def test_tied_tensors_are_written_twice_in_safetensors_and_stay_one_in_pth(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(5, 3)
            self.head = torch.nn.Linear(3, 5, bias=False)
            self.head.weight = self.embed.weight

    model = Tied()
    path = tmp_path / "tied.pth"
    torch.save({f"module.{n}": t for n, t in model.state_dict().items()}, path)
    checkpoint, plan = plan_for(path, target(model))
    report = export_repaired(checkpoint, plan, target(model), tmp_path / "o.safetensors", writer="safetensors")
    assert "head.weight shares memory with embed.weight; the file holds both." in report.lost
    assert torch.equal(load_file(tmp_path / "o.safetensors")["head.weight"], model.head.weight)
    for dtype in (None, "float16"):
        export_repaired(checkpoint, plan, target(model), tmp_path / "o.pth", dtype=dtype)
        again = torch.load(tmp_path / "o.pth", weights_only=True)
        assert again["head.weight"].data_ptr() == again["embed.weight"].data_ptr()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_cast_touches_floats_only_and_is_said(dtype, net, training_file, tmp_path):
    with torch.no_grad():
        net.fc.weight[0, 0] = 1e6
    torch.save(wrapped(net), training_file)
    checkpoint, plan = plan_for(training_file, target(net))
    report = export_repaired(checkpoint, plan, target(net), tmp_path / "half.pth", dtype=dtype)
    again = torch.load(tmp_path / "half.pth", weights_only=True)
    wanted = getattr(torch, dtype)
    assert again["features.1.num_batches_tracked"] == 7 and again["features.1.num_batches_tracked"].dtype is torch.int64
    for name, tensor in net.state_dict().items():
        if tensor.is_floating_point():
            assert torch.equal(again[name], tensor.to(wanted))
    assert report.cast is not None and (report.cast.dtype, report.cast.tensors) == (dtype, 8)
    assert report.cast.overflows == (1 if dtype == "float16" else 0)
    # A cast leaves nothing behind, and after it nothing is bit for bit what it was.
    assert not any("cast" in line for line in report.lost)
    for proof in report.verification.proofs:
        assert "bit for bit" not in proof.says or proof.says.startswith(f"Before the cast to {dtype}: "), proof
    assert any(f"equal after the cast to {dtype}." in proof.says for proof in report.verification.proofs)


def test_stored_half_precision_is_kept_unless_asked_otherwise(net, tmp_path):
    path = tmp_path / "half.pth"
    torch.save({f"module.{n}": t.half() if t.is_floating_point() else t for n, t in net.state_dict().items()}, path)
    checkpoint, plan = plan_for(path, target(net))
    export_repaired(checkpoint, plan, target(net), tmp_path / "kept.pth")
    assert torch.load(tmp_path / "kept.pth", weights_only=True)["fc.weight"].dtype is torch.float16
    export_repaired(checkpoint, plan, target(net), tmp_path / "full.pth", dtype="float32")
    full = torch.load(tmp_path / "full.pth", weights_only=True)["fc.weight"]
    assert full.dtype is torch.float32 and torch.equal(full, net.fc.weight.half().float())


def files(folder):
    return sorted(p.name for p in folder.iterdir())


def test_an_open_or_lossy_or_incomplete_plan_writes_nothing(net, tmp_path):
    goal = target(net)
    own = net.state_dict()
    cases = {
        "twins": {f"{p}.{n}": t.clone() for p in ("model", "ema_model") for n, t in own.items()},
        "head": Net(classes=7).state_dict(),
        "part": {n: t for n, t in own.items() if not n.startswith("fc")},
    }
    words = {"twins": "Not decided yet", "head": "head-mismatch must be accepted", "part": "2 tensors are missing"}
    for name, state in cases.items():
        path = tmp_path / f"{name}.pth"
        torch.save(state, path)
        checkpoint, plan = plan_for(path, goal)
        before = files(tmp_path)
        with pytest.raises(ExportError, match=f"Nothing was written.*{words[name]}"):
            export_repaired(checkpoint, plan, goal, tmp_path / "out.pth")
        assert files(tmp_path) == before


def test_the_source_is_never_overwritten(net, training_file):
    checkpoint, plan = plan_for(training_file, target(net))
    before = training_file.read_bytes()
    with pytest.raises(ExportError, match="is the file that is being repaired"):
        export_repaired(checkpoint, plan, target(net), training_file)
    link = training_file.with_name("link.pth")
    link.symlink_to(training_file)
    with pytest.raises(ExportError, match="is the file that is being repaired"):
        export_repaired(checkpoint, plan, target(net), link)
    assert training_file.read_bytes() == before


def test_a_writer_that_writes_something_else_leaves_no_file(net, training_file, tmp_path):
    """The comparison after reading back is what stands between a bug here and a wrong model."""
    from dataclasses import replace

    from inspector.exports.writers import pth

    def wrong(stream, path, text, tick):
        pth.WRITER.write(stream, path, text, tick)
        changed = torch.load(path, weights_only=True)
        changed["fc.bias"] = changed["fc.bias"] + 1e-3
        torch.save(changed, path)
        return ()

    checkpoint, plan = plan_for(training_file, target(net))
    before = files(tmp_path)
    with pytest.raises(ExportError, match=r"fc.bias reads back otherwise"):
        export_repaired(
            checkpoint, plan, target(net), tmp_path / "out.pth", writers=(replace(pth.WRITER, write=wrong),)
        )
    assert files(tmp_path) == before


def test_unknown_writer_and_dtype_name_the_choices(net, training_file, tmp_path):
    checkpoint, plan = plan_for(training_file, target(net))
    with pytest.raises(UsageError, match=r"no writer .*pth, safetensors, pth-legacy"):
        export_repaired(checkpoint, plan, target(net), tmp_path / "o", writer="onnx")
    with pytest.raises(UsageError, match=r"no type to export.*float32"):
        export_repaired(checkpoint, plan, target(net), tmp_path / "o", dtype="int8")
    with pytest.raises(ExportError, match=r"folder of o.pth does not exist"):
        export_repaired(checkpoint, plan, target(net), tmp_path / "none" / "o.pth")


def test_old_torch_gets_no_type_it_lacks(tmp_path):
    path = tmp_path / "f8.pth"
    model = {"a.weight": torch.ones(2, 2).to(torch.float8_e4m3fn)}
    torch.save(model, path)
    goal = Target(label="t", kind=TargetKind.FILE, tensors=(TargetTensor(name="a.weight", shape=(2, 2)),))
    checkpoint, plan = plan_for(path, goal)
    with pytest.raises(ExportError, match=r"a.weight is float8_e4m3fn, which torch before 1.6 cannot load"):
        export_repaired(checkpoint, plan, goal, tmp_path / "o.pth", writer="pth-legacy")
    assert files(tmp_path) == ["f8.pth"]


def test_a_torchvision_model_comes_back_with_equal_logits_and_an_accepted_new_head(tmp_path):
    torch.manual_seed(0)
    old = torchvision.models.squeezenet1_1(num_classes=5).eval()
    path = tmp_path / "sq.pth"
    torch.save(torch.nn.DataParallel(old).state_dict(), path)
    spec = ArchitectureSpec(library="torchvision", name="squeezenet1_1", num_classes=5)
    goal = target(old, spec)
    checkpoint, plan = plan_for(path, goal)
    report = export_repaired(checkpoint, plan, goal, tmp_path / "o.safetensors", writer="safetensors")
    assert {p.id: p.passed for p in report.verification.proofs}["forward"] is True
    new = torchvision.models.squeezenet1_1(num_classes=5).eval()
    new.load_state_dict(load_file(tmp_path / "o.safetensors"), strict=True)
    picture = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(new(picture), old(picture))

    wider = ArchitectureSpec(library="torchvision", name="squeezenet1_1", num_classes=9)
    goal = target(torchvision.models.squeezenet1_1(num_classes=9), wider)
    checkpoint, plan = plan_for(path, goal, accept=["head-mismatch"])
    export_repaired(checkpoint, plan, goal, tmp_path / "nine.pth")
    state = torch.load(tmp_path / "nine.pth", weights_only=True)
    assert state["classifier.1.weight"].shape == (9, 512, 1, 1)
    # A head to train from: neither the old rows padded nor zeros.
    assert state["classifier.1.weight"].std() > 1e-3
    assert not torch.equal(state["classifier.1.weight"][:5], old.classifier[1].weight)
    assert torch.equal(state["features.0.weight"], old.features[0].weight)


def small_disk() -> None:
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))


@pytest.mark.parametrize("writer", ["pth", "safetensors", "pth-legacy"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, writer):
    torch.save({"module.w": torch.zeros(300, 300)}, tmp_path / "in.pth")
    (tmp_path / "keys.txt").write_text("w\n")
    out = tmp_path / "out"
    out.mkdir()
    arguments = ["repair", "in.pth", "--target", "keys:keys.txt", "--output", "out/x.pth", "--format", writer]
    done = subprocess.run(
        [sys.executable, "-m", "inspector", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        preexec_fn=small_disk,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr.startswith("Refused: x.pth c"), done.stderr
    assert "Traceback" not in done.stderr and list(out.iterdir()) == []


@pytest.mark.parametrize("name", ["/proc/x.pth", "a" * 300 + ".pth", "nul\0.pth", "in.pth/x.pth"])
def test_a_place_where_nothing_can_be_written_is_refused_in_words(tmp_path, name):
    net = Net()
    torch.save(wrapped(net), tmp_path / "in.pth")
    checkpoint = open_checkpoint(tmp_path / "in.pth")
    plan = diagnose(checkpoint, target(net)).plan
    with pytest.raises(ExportError, match=r"Nothing can be written in|is no name for a file here|does not exist"):
        export_repaired(checkpoint, plan, target(net), tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["in.pth"]


def test_a_pipe_or_a_device_is_never_replaced(tmp_path):
    torch.save({"w": torch.ones(3)}, tmp_path / "in.pth")
    pipe = tmp_path / "pipe.pth"
    os.mkfifo(pipe)
    assert run(["convert", str(tmp_path / "in.pth"), "--overwrite", "--output", str(pipe)]) == 1
    assert pipe.is_fifo() and sorted(p.name for p in tmp_path.iterdir()) == ["in.pth", "pipe.pth"]


def test_a_disk_that_finds_no_room_only_when_asked_to_keep_the_file(tmp_path, monkeypatch):
    # As network drives and quotas do: every write is taken, and the last question gets the error.
    torch.save({"w": torch.ones(3)}, tmp_path / "in.pth")

    def refuse(descriptor):
        raise OSError(122, "Disk quota exceeded")

    monkeypatch.setattr(os, "fsync", refuse)
    assert run(["convert", str(tmp_path / "in.pth"), "--output", str(tmp_path / "out.pth")]) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["in.pth"]


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("file:/home/me/secret project/other.pth", "file:other.pth"),
        ("file:C:\\Users\\me\\other.pth", "file:other.pth"),
        ("file:other.pth", "file:other.pth"),
        ("keys:../lists/keys.txt", "keys:keys.txt"),
        ("code:src/net.py:build", "code:net.py:build"),
        ("torchvision/resnet18?num_classes=4", "torchvision/resnet18?num_classes=4"),
    ],
)
def test_where_the_target_lay_is_not_written_into_the_file(typed: str, written: str) -> None:
    assert named_alone(typed) == written


def test_a_files_metadata_have_the_name_of_the_target_and_no_path(net, training_file, tmp_path):
    folder = tmp_path / "private"
    folder.mkdir()
    torch.save(net.state_dict(), folder / "own.pth")
    out = tmp_path / "o.safetensors"
    assert run(["repair", str(training_file), "--target", f"file:{folder / 'own.pth'}", "--output", str(out)]) == 0
    assert dict(open_checkpoint(out).metadata)["repaired_for"] == "file:own.pth"
    assert b"private" not in out.read_bytes()
