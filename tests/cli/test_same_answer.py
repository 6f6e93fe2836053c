"""With --json and without it a command decides alike: what is shown is decided before it is drawn."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from inspector.cli.main import run

CLI = Path(__file__).resolve().parents[2] / "inspector" / "cli"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("same")
    torch.manual_seed(0)
    state = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).state_dict()
    torch.save({f"net.{name}": tensor for name, tensor in state.items()}, made / "own.pth")
    torch.save(state, made / "fits.pth")
    save_file(state, made / "fits.safetensors")
    (made / "keys.txt").write_text("\n".join(state))
    (made / "words.txt").write_text("hello")
    (made / "error.txt").write_text('Unexpected key(s) in state_dict: "a"')
    (made / "model.py").write_text("def none(): return None\ndef raises(): raise ValueError('no')\n")
    (made / "some").mkdir()
    Image.new("RGB", (8, 8)).save(made / "p.png")
    return made


CASES = [
    "open own.pth",
    "diff own.pth own.pth",
    "diff own.pth own.pth --stat",
    "diff own.pth own.pth --state nonsense",
    "diff own.pth words.txt",
    "open own.pth --tree --tensors --code",
    "open own.pth --state nonsense",
    "open own.pth --state nonsense --tensors",
    "open none.pth",
    "open words.txt",
    "identify own.pth",
    "identify own.pth --state nonsense",
    "stats own.pth",
    "stats own.pth --state nonsense",
    "stats own.pth --spectra",
    "scan some",
    "scan own.pth",
    "scan none",
    "check own.pth words.txt some",
    "check own.pth --fail-on info",
    "check own.pth --headers",
    "check own.pth --spectra",
    "check own.pth --spectra --headers",
    "check none",
    "check own.pth --select nonsense",
    "check own.pth --weights-up-to nonsense",
    "check own.pth --config none",
    "check own.pth --baseline none",
    "check own.pth --baseline words.txt",
    "check own.pth --output own.pth",
    "diagnose own.pth --target keys:keys.txt",
    "diagnose own.pth --target keys:keys.txt --code",
    "diagnose own.pth --target keys:words.txt",
    "diagnose own.pth --target keys:words.txt --code",
    "diagnose own.pth --target keys:none.txt",
    "diagnose own.pth --target file:fits.pth --state nonsense",
    "diagnose own.pth --target file:none.pth",
    "diagnose own.pth --target nonsense",
    "diagnose own.pth --target torchvision/resnet18?colour=1",
    "diagnose own.pth --target keys:keys.txt --choose nonsense",
    "diagnose own.pth --target keys:keys.txt --choose nonsense=1",
    "diagnose own.pth --target keys:keys.txt --accept nonsense",
    "diagnose own.pth --target code:model.py:none",
    "diagnose own.pth --target code:none.py:build",
    "diagnose own.pth",
    "repair own.pth --target file:fits.pth --output OUT.pth",
    "repair own.pth --target keys:words.txt --output OUT.pth",
    "repair own.pth --target file:fits.pth --output OUT.pth --reference none.pth",
    "repair own.pth --target file:fits.pth --output OUT.pth --reference own.pth",
    "repair own.pth --target file:fits.pth --output OUT.pth --input-shape nonsense",
    "repair own.pth --target file:fits.pth --output OUT.pth --dtype nonsense",
    "repair own.pth --target file:fits.pth --output OUT.pth --format nonsense",
    "repair own.pth --target file:fits.pth --output OUT.pth --shard-size nonsense",
    "repair own.pth --target file:fits.pth --output OUT.pth --ema",
    "repair own.pth --target file:fits.pth --output OUT.pth --with-optimizer",
    "repair own.pth --target file:fits.pth --output OUT.nonsense",
    "repair own.pth --target file:fits.pth",
    "convert own.pth --output OUT.pth",
    "convert own.pth --output OUT.pth --state nonsense",
    "convert own.pth --output OUT.pth --dtype nonsense",
    "convert own.pth --output OUT --shard-size 1",
    "convert own.pth --output OUT.pth --ema",
    "convert own.pth --output own.pth",
    "convert own.pth",
    "merge fits.safetensors fits.safetensors --output OUT.pth",
    "merge fits.safetensors none --output OUT.pth",
    "explain-error error.txt",
    "explain-error words.txt",
    "explain-error none.txt",
    "explain-error own.pth",
    "explain-error error.txt own.pth",
    "explain-error",
    "flops torchvision/squeezenet1_1 --no-thop --input-size 3x64x64",
    "flops torchvision/squeezenet1_1 --state nonsense",
    "flops torchvision/resnet19",
    "flops torchvision/squeezenet1_1 --no-thop --input-size 3x1x1",
    "flops torchvision/squeezenet1_1 --input-size nonsense",
    "flops keys:keys.txt",
    "flops file:own.pth",
    "flops own.pth",
    "flops code:model.py:none",
    "flops code:none.py:build",
    "explain --list-methods",
    "explain",
    "explain own.pth",
    "explain own.pth p.png",
    "explain own.pth none.png",
    "explain own.pth p.png --state nonsense",
    "explain own.pth p.png --target keys:keys.txt",
    "explain own.pth p.png --target code:model.py:raises",
    "explain own.pth p.png --colour-map nonsense",
    "explain own.pth p.png --box nonsense",
]


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("line", CASES)
def test_the_exit_code_is_the_same_and_what_is_printed_is_json(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    monkeypatch.chdir(folder)
    codes = []
    for number, more in enumerate(([], ["--json"])):
        codes.append(run([*line.replace("OUT", f"out{number}").split(), *more]))
        told = capsys.readouterr()
        for made in folder.glob("out*"):
            made.unlink()
        if codes[-1] == 2:
            assert told.out == "" and told.err.strip()
        elif more:
            json.loads(told.out, parse_constant=pytest.fail)
        else:
            assert told.out.strip() or told.err.startswith("Refused: ")
    assert codes[0] == codes[1]


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda p: p.name)
def test_what_draws_decides_nothing(path: Path) -> None:
    """Functions inside of commands are called for text alone, so they may call nothing but what draws."""
    drawing = {"Group", "safe", "len", "append", "str", "map", "tuple", "zip", "enumerate"}
    for command in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(command, ast.FunctionDef):
            continue
        for inner in command.body:
            if not isinstance(inner, ast.FunctionDef) or inner.name not in ("text", "shown"):
                continue
            allowed = set(drawing)
            for node in ast.walk(inner):
                if isinstance(node, ast.ImportFrom):
                    assert (node.module or "").startswith(("rich", "inspector.render")), node.module
                    allowed |= {alias.asname or alias.name for alias in node.names}
            # Drawing functions that the command imported itself.
            for node in ast.walk(command):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("inspector.render"):
                    allowed |= {alias.asname or alias.name for alias in node.names}
            for node in ast.walk(inner):
                assert not isinstance(node, ast.Raise)
                if isinstance(node, ast.Call):
                    call = node.func
                    name = call.id if isinstance(call, ast.Name) else getattr(call, "attr", "")
                    assert name in allowed, f"{path.name}:{node.lineno} calls {name} while it draws"
