"""Heat maps of a network that only its owner's code knows: `explain --target code:FILE.py:FACTORY`."""

import json
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from inspector.architectures.own_model import model_of_code
from inspector.cli.main import run
from inspector.errors import ModelError, UsageError

PARTS = """
from torch import nn
def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
"""
NET = """
import torch
from torch import nn
from {parts} import block

class Net(nn.Module):
    def __init__(self, num_classes=4, channels=3):
        super().__init__()
        self.stem = block(channels, 8)
        self.deep = block(8, 16)
        self.fc = nn.Linear(16, num_classes)

    def forward(self, x):
        return self.fc(self.deep(self.stem(x)).mean((2, 3)))

number = 3
ready = Net()

def raises():
    raise ValueError("no weights for you")
"""
STEPS = '{"size": 32, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}'


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with code, a DataParallel checkpoint of it, and a picture; (folder, the clean model)."""
    before, known = list(sys.path), set(sys.modules)
    (tmp_path / "own_parts.py").write_text(PARTS)
    (tmp_path / "own_net.py").write_text(NET.format(parts="own_parts"))
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    model = model_of_code("code:own_net.py:Net").eval()
    torch.save({f"module.{name}": tensor for name, tensor in model.state_dict().items()}, tmp_path / "own.pth")
    pixels = np.random.default_rng(0).integers(0, 256, (40, 48, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    yield tmp_path, model
    sys.path[:] = before
    for name in set(sys.modules) - known:
        if "own" in name:
            del sys.modules[name]


def test_the_map_is_that_of_the_owners_network_with_the_files_weights(own, capsys):
    folder, model = own
    arguments = ["explain", "own.pth", "picture.png", "--target", "code:own_net.py:Net", "--preprocessing", STEPS]
    assert run([*arguments, "--json", "--export", "out"]) == 0
    told = json.loads(capsys.readouterr().out)["explanation"]
    assert told["layer"]["path"] == "deep"
    picture = Image.open(folder / "picture.png").convert("RGB")
    scale = 32 / 40
    small = np.asarray(picture.resize((round(48 * scale), 32), Image.Resampling.BILINEAR), dtype=np.float32) / 255
    left = (small.shape[1] - 32) // 2
    batch = torch.from_numpy((small[:, left : left + 32] - 0.5) / 0.5).permute(2, 0, 1)[None]
    deep = model.deep(model.stem(batch)).detach().requires_grad_()
    logits = model.fc(deep.mean((2, 3)))[0]
    best = int(logits.argmax())
    assert told["target"]["index"] == best
    gradient = torch.autograd.grad(logits[best], deep)[0]
    expected = (deep * gradient.mean((2, 3), keepdim=True)).sum(1)[0].detach().numpy()
    with np.load(folder / "out" / "maps.npz") as arrays:
        (raw,) = [arrays[name] for name in arrays.files if name.endswith("raw")]
    np.testing.assert_allclose(raw, expected, atol=2e-5 * np.abs(expected).max() + 1e-9)
    assert "--target code:own_net.py:Net" in json.loads((folder / "out" / "manifest.json").read_text())["command"]


def test_weights_that_do_not_fit_the_code_are_refused(own, capsys):
    assert run(["explain", "own.pth", "picture.png", "--target", "code:own_net.py:Net?num_classes=7"]) != 0
    assert "stays untrained" in capsys.readouterr().err


def test_without_code_the_message_names_that_way(own, capsys):
    assert run(["explain", "own.pth", "picture.png"]) == 2
    assert "code:net.py:make" in capsys.readouterr().err


def test_a_list_of_keys_cannot_be_run_and_the_message_names_code(own, capsys):
    folder, model = own
    (folder / "keys.txt").write_text("\n".join(f"{n} {tuple(t.shape)}" for n, t in model.state_dict().items()))
    assert run(["explain", "own.pth", "picture.png", "--target", "file:own.pth"]) == 2
    assert "code:model.py:build" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing_here", "has no nothing_here"),
        ("number", "neither a factory nor a model"),
        ("raises", "no weights for you"),
    ],
)
def test_what_gives_no_model_is_said(own, name, says):
    with pytest.raises(ModelError, match=says):
        model_of_code(f"code:own_net.py:{name}")


def test_a_missing_file_is_said(own):
    with pytest.raises(UsageError, match=r"no file other\.py"):
        model_of_code("code:other.py:Net")


def test_arguments_reach_the_factory_and_a_model_that_is_ready_is_taken(own):
    assert model_of_code("code:own_net.py:Net?num_classes=9").fc.out_features == 9
    assert model_of_code("code:own_net.py:ready").fc.out_features == 4


def test_a_file_named_like_a_module_in_use_replaces_nothing(own):
    folder, _ = own
    (folder / "argparse.py").write_text(NET.format(parts="own_parts"))
    before = sys.modules["argparse"]
    assert model_of_code("code:argparse.py:Net").fc.out_features == 4
    assert sys.modules["argparse"] is before


def test_their_folder_comes_last_afterwards(own):
    folder, _ = own
    place = str(folder)
    assert place in sys.path
    assert sys.path.index(place) > max(i for i, one in enumerate(sys.path) if one.endswith("site-packages"))
