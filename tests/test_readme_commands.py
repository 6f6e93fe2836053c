"""Every repair, convert, merge and surgery line of docs/commands.md is run, on small files made to fit it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from inspector.cli.main import run

COMMANDS = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
START = "python -m inspector "
MODEL = "from torch import nn\n\ndef build():\n    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))\n"


def lines() -> list[str]:
    found = [line.removeprefix(START) for line in COMMANDS.read_text().splitlines() if line.startswith(START)]
    return [line for line in found if line.split()[0] in ("repair", "convert", "merge", "surgery")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from torchvision.models import squeezenet1_1

    where = tmp_path_factory.mktemp("readme")
    torch.manual_seed(0)
    model = squeezenet1_1(num_classes=3).eval()
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    state = model.state_dict()
    wrapped = {f"module.{name}": tensor for name, tensor in state.items()}
    torch.save({"state_dict": wrapped, "epoch": 3}, where / "model.pth.tar")
    torch.save(state, where / "good.pth")
    given = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        np.savez(where / "pair.npz", input=given.numpy(), output=model(given).numpy())
    backbone = {name: tensor for name, tensor in state.items() if not name.startswith("classifier")}
    torch.save(backbone, where / "backbone.pth")
    averaged = {name: tensor.clone() for name, tensor in state.items()}
    training = {"state_dict": wrapped, "state_dict_ema": averaged, "optimizer": optimizer.state_dict(), "epoch": 3}
    torch.save(training, where / "run.pth")
    save_file(state, where / "big.safetensors")
    whole = (where / "good.pth").read_bytes()
    (where / "half.pth").write_bytes(whole[: len(whole) // 2])
    save_file({"fc.weight": torch.randn(4, 3)}, where / "base.safetensors")
    (where / "lora_folder").mkdir()
    pair = {"A": torch.randn(2, 3), "B": torch.randn(4, 2)}
    adapter = {f"base_model.model.fc.lora_{side}.weight": matrix for side, matrix in pair.items()}
    save_file(adapter, where / "lora_folder" / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["fc"]}
    (where / "lora_folder" / "adapter_config.json").write_text(json.dumps(config))
    (where / "model.py").write_text(MODEL)
    own = {"0.weight": (4, 3), "0.bias": (4,), "2.weight": (2, 4), "2.bias": (2,)}
    torch.save({f"net.{name}": torch.randn(shape) for name, shape in own.items()}, where / "own.pth")
    return where


def test_the_page_tells_of_each_way_to_write() -> None:
    told = " ".join(lines())
    for word in (
        "--partial",
        "--with-optimizer",
        "--ema",
        "--shard-size",
        "--reference",
        "--pair",
        "--salvage",
        "--extract",
        "--freeze",
        "code:",
    ):
        assert word in told


@pytest.mark.parametrize("line", lines())
def test_a_line_of_the_page_does_what_it_says(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    arguments = shlex.split(line, comments=True)
    assert run(arguments) == 0, capsys.readouterr()
    assert "--output" in arguments or arguments[0] == "surgery"
    assert "--output" not in arguments or Path(arguments[arguments.index("--output") + 1]).exists()
