"""A file with several sets of weights: which one is written is said or asked, never chosen in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from inspector.cli.main import run


def converted(
    value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, str, dict[str, Tensor] | None]:
    """(exit code, everything printed in one line, the written file)."""
    source, out = tmp_path / "in.pth", tmp_path / "out.pth"
    out.unlink(missing_ok=True)
    torch.save(value, source)
    code = run(["convert", str(source), "-o", str(out), *options])
    said = capsys.readouterr()
    return code, " ".join((said.out + said.err).split()), torch.load(out) if out.exists() else None


def weights(value: float) -> dict[str, Tensor]:
    return {name: torch.full_like(tensor, value) for name, tensor in nn.Linear(3, 2).state_dict().items()}


def nested(value: float) -> dict[str, Tensor]:
    return {f"body.0.{name}": tensor for name, tensor in weights(value).items()}


@pytest.mark.parametrize("names", [("generator", "discriminator"), ("netG", "netD"), ("a", "b")])
def test_convert_of_two_networks_asks_which(
    names: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {names[0]: nested(1.0), names[1]: nested(2.0)}
    code, said, written = converted(value, tmp_path, capsys)
    assert (code, written) == (1, None)
    assert f'holds 2 sets of weights, "{names[0]}", "{names[1]}"' in said and "--state" in said
    code, said, written = converted(value, tmp_path, capsys, "--state", names[1])
    assert code == 0 and written is not None and float(written["body.0.bias"][0]) == 2.0
    assert f"Taken {names[1]}" in said and f"{names[0]}: state dict of 2 tensors" in said


def test_convert_of_two_modules_asks_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = {"generator": nn.Sequential(nn.Linear(3, 2)), "discriminator": nn.Sequential(nn.Linear(3, 2))}
    code, said, written = converted(value, tmp_path, capsys)
    assert (code, written) == (1, None) and "holds 2 sets of weights" in said


def test_convert_of_a_network_in_dicts_of_dicts_is_not_half_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, written = converted({"stem": weights(1.0), "head": weights(2.0)}, tmp_path, capsys)
    assert (code, written) == (1, None) and '"stem", "head"' in said


def test_convert_says_which_it_took_beside_averaged_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = {"model": nested(1.0), "ema": nested(2.0)}
    code, said, written = converted(value, tmp_path, capsys)
    assert code == 0 and written is not None and float(written["body.0.bias"][0]) == 1.0
    assert "Taken model" in said and "ema: averaged weights of 2 tensors" in said
    _, said, written = converted(value, tmp_path, capsys, "--ema", "--json")
    assert written is not None and float(written["body.0.bias"][0]) == 2.0
    assert json.loads(said)["export"]["state"] == "ema"


def test_one_network_is_converted_without_a_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = nested(1.0)
    for value in (same, {"model": same, "state_dict": same}, {"model": same, "optimizer": {"state": {}}, "epoch": 3}):
        code, said, written = converted(value, tmp_path, capsys)
        assert code == 0 and written is not None, said


def test_merge_asks_which_of_two_networks_is_the_base(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"netG": nested(1.0), "netD": nested(2.0)}, tmp_path / "base.pth")
    folder = tmp_path / "adapter"
    folder.mkdir()
    pair = {
        "base_model.model.body.0.lora_A.weight": torch.ones(1, 3),
        "base_model.model.body.0.lora_B.weight": torch.ones(2, 1),
    }
    save_file(pair, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["0"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    command = ["merge", str(tmp_path / "base.pth"), str(folder), "-o", str(tmp_path / "out.pth")]
    assert run(command) == 1
    assert 'holds 2 sets of weights, "netG", "netD"' in " ".join(capsys.readouterr().err.split())
    assert run([*command, "--state", "netD"]) == 0
    assert float(torch.load(tmp_path / "out.pth")["body.0.weight"][0, 0]) == 3.0
