"""The commands end to end, in this process, on files made here; exits and JSON as documented."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from PIL import Image
from safetensors.torch import load_file

from inspector.cli.main import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torchvision.models.resnet18(num_classes=4).eval()


@pytest.fixture(scope="module")
def wrapped(model: torch.nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A legacy training checkpoint of a DataParallel model."""
    path = tmp_path_factory.mktemp("cli") / "wrapped.pth.tar"
    state = {f"module.{name}": tensor for name, tensor in model.state_dict().items()}
    torch.save({"epoch": 41, "state_dict": state}, path, _use_new_zipfile_serialization=False)
    return path


def _json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_help_needs_neither_torch_nor_streamlit() -> None:
    code = (
        "import sys; from inspector.cli.main import run; run(['--help']);"
        "print([m for m in ('torch', 'streamlit', 'numpy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    for command in ("open", "identify", "diagnose", "repair", "flops", "stats", "explain", "app"):
        assert f"  {command} " in out.stdout
    assert out.stdout.strip().endswith("[]")


def test_open_needs_no_torch(wrapped: Path) -> None:
    command = ["open", str(wrapped)]
    code = f"import sys; from inspector.cli.main import run; run({command!r}); print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip().endswith("False")
    assert "state_dict" in out.stdout


def test_open_as_json_has_every_tensor(
    wrapped: Path, model: torch.nn.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["open", str(wrapped), "--json"]) == 0
    report = _json(capsys)
    expected = {f"module.{n}": list(t.shape) for n, t in model.state_dict().items()}
    assert {t["name"]: t["shape"] for t in report["state_dicts"][0]["tensors"]} == expected
    assert ["epoch", "41"] in report["metadata"]


def test_identify(wrapped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["identify", str(wrapped), "--json"]) == 0
    best = _json(capsys)["candidates"][0]
    assert best["spec"]["name"] == "resnet18"
    assert best["spec"]["num_classes"] == 4
    assert best["exact"] is True


def test_diagnose_names_the_wrapper_and_prints_lines_that_load(
    wrapped: Path, model: torch.nn.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["diagnose", str(wrapped)])
    assert '"module."' in capsys.readouterr().out
    assert run(["diagnose", str(wrapped), "--code"]) == 0
    lines = capsys.readouterr().out
    compile(lines, "lines", "exec")


@pytest.mark.parametrize("name", ["fixed.pth", "fixed.safetensors"])
def test_repair_writes_what_loads_strictly(wrapped: Path, model: torch.nn.Module, tmp_path: Path, name: str) -> None:
    output = tmp_path / name
    assert run(["repair", str(wrapped), "--target", "torchvision/resnet18", "--output", str(output)]) == 0
    state = load_file(output) if name.endswith(".safetensors") else torch.load(output, weights_only=True)
    fresh = torchvision.models.resnet18(num_classes=4)
    fresh.load_state_dict(state, strict=True)
    for (_, a), (_, b) in zip(fresh.state_dict().items(), model.state_dict().items(), strict=True):
        assert torch.equal(a, b)


def test_a_refused_repair_exits_with_1_and_writes_nothing(
    wrapped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "no.pth"
    assert run(["repair", str(wrapped), "--target", "torchvision/resnet50", "--output", str(output)]) == 1
    assert list(tmp_path.iterdir()) == []
    assert "Nothing was written" in capsys.readouterr().out


def test_a_new_head_is_lossy_and_needs_consent(
    wrapped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "head.pth"
    command = ["repair", str(wrapped), "--target", "torchvision/resnet18?num_classes=1000", "--output", str(output)]
    assert run(command) == 1
    assert not output.exists()
    report = capsys.readouterr().out
    rule = report.split("--accept ")[1].split()[0]
    assert run([*command, "--accept", rule]) == 0
    torchvision.models.resnet18(num_classes=1000).load_state_dict(torch.load(output, weights_only=True), strict=False)


def test_repair_does_not_replace_a_file_unasked(
    wrapped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "there.pth"
    output.write_bytes(b"precious")
    assert run(["repair", str(wrapped), "--output", str(output)]) == 2
    assert output.read_bytes() == b"precious"
    assert "exists already" in capsys.readouterr().err


def test_flops_of_a_target_and_of_a_file_agree(wrapped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["flops", "torchvision/resnet18?num_classes=4", "--input-size", "3x224x224", "--no-thop", "--json"]) == 0
    of_target = _json(capsys)["macs"]
    assert run(["flops", str(wrapped), "--input-size", "3x224x224", "--no-thop", "--json"]) == 0
    assert _json(capsys)["macs"] == of_target
    # Published for 1000 classes: 1.814 G; a head of 4 needs 512 x 996 fewer.
    assert of_target == 1_814_073_344 - 512 * 996


def test_stats_of_one_tensor_equal_torchs(
    wrapped: Path, model: torch.nn.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["stats", str(wrapped), "--json"]) == 0
    report = _json(capsys)
    found = {t["name"]: t for t in report["weights"]["tensors"]}["module.fc.weight"]
    weight = model.state_dict()["fc.weight"].double()
    assert found["minimum"] == weight.min().item()
    assert found["mean"] == pytest.approx(weight.mean().item(), rel=1e-9, abs=1e-12)
    assert found["std"] == pytest.approx(weight.std(unbiased=False).item(), rel=1e-9)
    assert report["parameters"]["total"]["parameters"] == sum(p.numel() for p in model.parameters())


def test_spectra_of_a_layer_are_numpys(
    wrapped: Path, model: torch.nn.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["stats", str(wrapped), "--spectra", "--json"]) == 0
    report = _json(capsys)
    found = {one["name"]: one for one in report["spectra"]["spectra"]}["module.fc.weight"]
    values = torch.linalg.svdvals(model.state_dict()["fc.weight"].double())
    assert (found["rows"], found["columns"], found["power_law"]) == (4, 512, None)
    assert found["spectral_norm"] == pytest.approx(values[0].item(), rel=1e-6)
    assert found["stable_rank"] == pytest.approx(((values**2).sum() / values[0] ** 2).item(), rel=1e-6)
    assert "values" not in found and {"findings", "not_examined"} <= set(report)
    assert run(["stats", str(wrapped), "--spectra"]) == 0
    told = capsys.readouterr().out
    assert "4x512" in told and f"{values[0].item():.4g}" in told and "contested" in told
    assert run(["stats", str(wrapped), "--json"]) == 0
    assert "spectra" not in _json(capsys)


def test_explain_writes_an_overlay_of_the_pictures_own_size(
    wrapped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "in.png"
    gradient = torch.linspace(0, 255, 300).to(torch.uint8).expand(200, 300).numpy()
    Image.fromarray(gradient).convert("RGB").save(picture)
    output = tmp_path / "out.png"
    assert (
        run(["explain", str(wrapped), str(picture), "-o", str(output), "--maps", str(tmp_path / "m.npz"), "--json"])
        == 0
    )
    report = _json(capsys)["explanation"]
    assert report["layer"]["path"] == "layer4"
    assert sum(s["probability"] for s in report["scores"]) == pytest.approx(1, abs=1e-5)
    assert Image.open(output).size == (300, 200)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<!DOCTYPE html><html><body>404</body></html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12\n", "LFS"),
    ],
)
def test_a_wrong_file_is_one_sentence_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: str
) -> None:
    path = tmp_path / "model.pth"
    path.write_bytes(content)
    assert run(["open", str(path)]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_a_missing_file_and_a_typo_are_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["open", str(tmp_path / "none.pth")]) == 2
    assert "none.pth" in capsys.readouterr().err
    assert run(["flops", "torchvision/resnet19"]) == 2
    assert "resnet18" in capsys.readouterr().err


def test_input_sizes_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["flops", "torchvision/resnet18", "--input-size", "224"]) == 2
    assert "3x224x224" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["flops"], "Missing argument"),
        (["nope"], "No such command"),
        (["open", "--nope", "x.pt"], "No such option"),
        (["scan", ".", "--jobs", "many"], "Invalid value"),
    ],
)
def test_a_wrong_command_line_is_a_sentence_and_no_traceback(arguments: list[str], says: str) -> None:
    out = subprocess.run(
        [sys.executable, "-m", "inspector", *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert out.returncode == 2
    assert says in out.stderr
    assert "Traceback" not in out.stderr
