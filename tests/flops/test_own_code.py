"""MACs of a model that a person's own code builds, in a process of its own; and what cannot be counted, in words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.architectures.types import Given
from inspector.cli.main import run
from inspector.errors import InspectorError, ModelError, UsageError
from inspector.flops.count import count_model_costs
from inspector.flops.own_code import count_code_costs

MODEL = """
import os, sys, time
import torch
from torch import nn
from helper import WIDTH

class Net(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, WIDTH, 3), nn.Linear(WIDTH, num_classes)
    def forward(self, x):
        return self.fc(self.conv(x).mean((2, 3)))

class Error(Exception): pass

class Raising(Net):
    def forward(self, x): raise Error("mine, with\\ntwo lines")

class Leaving(Net):
    def forward(self, x): sys.exit(5)

def norm(): return nn.LayerNorm(4)
def small(): return nn.Sequential(nn.Conv2d(3, 2, 3, padding=1), nn.Flatten(), nn.Linear(2 * 32 * 32, 4))
class patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.pos_embed = nn.Conv2d(3, 8, 16, 16), nn.Parameter(torch.zeros(1, 9, 8))
    def forward(self, x): return self.patch(x).flatten(2).mT + self.pos_embed
class Two(nn.Module):
    def __init__(self): super().__init__(); self.fc = nn.Linear(4, 3)
    def forward(self, left, right): return self.fc(left) + self.fc(right)
class Branch(nn.Module):
    def __init__(self): super().__init__(); self.fc = nn.Linear(4, 3)
    def forward(self, x): return self.fc(x) if x.sum() > -1e9 else x
def recurrent(): return nn.LSTM(4, 5, batch_first=True)
def tokens(): return nn.Sequential(nn.Embedding(100, 8), nn.Linear(8, 2))
def linear(): return nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 2))
def sound(): return nn.Conv1d(4, 6, 3)
def noisy():
    print("hello"); os.write(1, b"raw\\n"); print("error", file=sys.stderr)
    return Net()
def scripted(): return torch.jit.script(Net())
def partly():
    made = Net(); made.fc = torch.jit.script(nn.Linear(WIDTH, 3)); return made
def traced(): return torch.jit.trace(Net().eval(), torch.zeros(1, 3, 8, 8))
def lazy(): return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LazyLinear(2))
def quantised():
    from torch.ao.nn.quantized.dynamic import Linear
    return nn.Sequential(Linear(3, 4))
def nothing(): return None
def pair(): return Net(), nn.Linear(2, 2)
def state(): return Net().state_dict()
def raises(): raise ValueError("no such thing")
def leaves(): sys.exit(3)
def ends(): os._exit(0)
def needs(width): return Net(width)
def hangs():
    while True: time.sleep(0.1)
def generator(): yield Net()
def locked():
    import threading
    made = Net(); made.lock = threading.Lock(); return made
def lies():
    with open(sys.argv[2], "w") as file: file.write('{"report": {"macs": "many"}}')
    os._exit(0)
"""


# Most of it runs in forks of a Python that has torch; what is about the process itself, in new ones.
warm = pytest.mark.usefixtures("warm_python")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "helper.py").write_text("WIDTH = 5\n")
    # Names that this package has too: theirs are found first, ours all the same.
    (tmp_path / "inspector_model.py").write_text("from model import Net as build\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_own_code_is_counted(folder: Path) -> None:
    report = count_code_costs("code:model.py:Net?num_classes=4", (3, 10, 12), batch=2, second_opinion=False)
    # 8 x 10 places, 5 channels of 3 x 3 x 3 each, then 4 x 5; by hand, twice.
    assert report.macs == 2 * (8 * 10 * 5 * 27 + 4 * 5)
    assert report.parameters == 5 * 27 + 5 + 4 * 5 + 4
    assert [m.path for m in report.modules] == ["", "conv", "fc"]
    assert report.input_shape == (2, 3, 10, 12) and report.input_assumed == ""
    assert report.target == "code:model.py:Net?num_classes=4"


@warm
@pytest.mark.parametrize(
    ("name", "shape", "macs"),
    [("Net", (1, 3, 224, 224), 222 * 222 * 5 * 27 + 15), ("linear", (1, 7), 45), ("noisy", (1, 3, 224, 224), None)],
)
def test_an_input_that_nobody_states_is_assumed_and_said_so(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, shape: tuple[int, ...], macs: int | None
) -> None:
    assert run(["flops", f"code:model.py:{name}", "--no-thop", "--json"]) == 0
    # What the code prints is no part of it.
    report = json.loads(capsys.readouterr().out)
    assert tuple(report["input_shape"]) == shape
    assert macs is None or report["macs"] == macs
    assert report["input_assumed"].startswith("assumed from its first layer")
    assert run(["flops", f"code:model.py:{name}", "--no-thop"]) == 0
    assert "assumed from its first layer" in capsys.readouterr().out


@warm
def test_tokens_and_other_shapes(folder: Path) -> None:
    assert count_code_costs("code:model.py:tokens", (9,), second_opinion=False).macs == 9 * 8 * 2
    assert count_code_costs("code:model.py:sound", (4, 12), second_opinion=False).macs == 6 * 10 * 12
    inferred = {"tokens": (1, 128), "sound": (1, 4, 128), "small": (1, 3, 32, 32), "patches": (1, 3, 48, 48)}
    for name, shape in inferred.items():
        found = count_code_costs(f"code:model.py:{name}", second_opinion=False)
        assert found.input_shape == shape and "assumed" in found.input_assumed, name
    assert "224x224 does not run" in count_code_costs("code:model.py:small", second_opinion=False).input_assumed
    with pytest.raises(ModelError, match=r"Nothing tells what code:model\.py:norm takes.*--input-size"):
        count_code_costs("code:model.py:norm", second_opinion=False)
    with pytest.raises(ModelError, match=r"takes several inputs \(left, right\)"):
        count_code_costs("code:model.py:Two", second_opinion=False)
    pair = (Given(name="", shape=(1, 4)), Given(name="right", shape=(1, 4)))
    assert count_code_costs("code:model.py:Two", inputs=pair, second_opinion=False).macs == 2 * 12


@warm
def test_what_depends_on_values_is_counted_with_random_ones(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"the value of a tensor is read.*--values random"):
        count_code_costs("code:model.py:Branch", (4,), second_opinion=False)
    found = count_code_costs("code:model.py:Branch", (4,), second_opinion=False, values="random")
    assert found.macs == 12 and "random" in found.values
    # Two gates more in a row of five for each of three steps, as the CPU's fused kernel runs them.
    assert count_code_costs("code:model.py:recurrent", (3, 4), values="random").macs == 3 * 4 * 5 * (4 + 5)
    assert count_code_costs("code:model.py:quantised", (3,), values="random").macs == 3 * 4


@warm
def test_the_second_opinion_comes_from_there_too(folder: Path) -> None:
    (opinion,) = count_code_costs("code:inspector_model.py:build", (3, 8, 8)).second_opinions
    assert "thop" in opinion.tool


@warm
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("scripted", r"the model itself \(RecursiveScriptModule\) is TorchScript"),
        ("partly", r"fc \(RecursiveScriptModule\) is TorchScript"),
        ("traced", "is TorchScript"),
        ("lazy", r"2 \(LazyLinear\) has no shape before the first forward pass: it is a lazy module"),
        ("quantised", r"0 \(Linear\) is quantised"),
        ("nothing", "returned a NoneType, not a torch.nn.Module"),
        ("pair", "returned several networks"),
        ("state", "returned a OrderedDict"),
        ("generator", "returned a generator"),
        ("raises", "it raised ValueError: no such thing, in model.py line"),
        ("needs", "it raised TypeError: .*missing 1 required positional argument: 'width'"),
        ("leaves", "it ended the program by itself, with exit code 3"),
        ("ends", "ended with exit code 0 and no model"),
        ("Raising", "the forward pass failed in the model itself .Raising.*: mine, with"),
        ("Leaving", "it ended the program by itself, with exit code 5"),
        ("locked", "cannot be copied"),
        ("lies", "no description"),
        ("nobody", "it has no nobody"),
    ],
)
def test_what_cannot_be_counted_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, says: str
) -> None:
    assert run(["flops", f"code:model.py:{name}", "--input-size", "3x8x8"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and len(told.err.splitlines()) == 1
    assert re.search(says, told.err), told.err
    assert "Traceback" not in told.err


@warm
def test_code_that_hangs_is_stopped(folder: Path) -> None:
    with pytest.raises(ModelError, match="still running after 2 seconds"):
        count_code_costs("code:model.py:hangs", seconds=2)


@pytest.mark.parametrize("text", ["code:", "code:none.py:build", "code:model.py", "code:model.py:f?x"])
def test_text_that_names_nothing_runs_nothing(folder: Path, text: str) -> None:
    with pytest.raises(UsageError):
        count_code_costs(text)


def test_a_target_of_names_alone_has_nothing_to_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["flops", "keys:list.txt"]) == 2
    assert "lists names without a model" in capsys.readouterr().err
    assert run(["flops", "code:model.py:Net", "--state", "ema"]) == 2
    assert "--state chooses in a file" in capsys.readouterr().err


# In hand: the same modules without another process.


class Custom(Exception):
    pass


class Raising(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise Custom("mine")


class Opening(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.load("/nonexistent")  # type: ignore[no-any-return]


class Unwritten(nn.Module):
    pass


HARD = {
    "scripted": (lambda: torch.jit.script(nn.Conv2d(3, 4, 3)), "is TorchScript"),
    "inner": (lambda: nn.Sequential(nn.ReLU(), torch.jit.script(nn.Conv2d(3, 4, 3))), "a model: 1 .*is TorchScript"),
    "lazy": (lambda: nn.Sequential(nn.LazyConv2d(4, 3)), "lazy module"),
    "lazy norm": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.LazyBatchNorm2d()), "a model: 1 .*lazy module"),
    "raising": (Raising, "mine"),
    "opening": (Opening, "No such file"),
    "unwritten": (Unwritten, 'missing the required "forward"'),
    "none": (lambda: None, "is a NoneType"),
    "function": (lambda: len, "is a builtin_function_or_method"),
    "class": (lambda: nn.Conv2d, "is a type"),
}


@pytest.mark.parametrize("what", HARD)
def test_a_module_in_hand_that_cannot_be_counted_is_a_sentence(what: str) -> None:
    make, says = HARD[what]
    with pytest.raises(InspectorError, match=says):
        count_model_costs(make(), (1, 3, 8, 8), label="a model", second_opinion=False)  # type: ignore[operator]


def test_weights_that_each_forward_computes_are_no_obstacle() -> None:
    with pytest.warns(FutureWarning):
        conv = nn.utils.weight_norm(nn.Conv2d(3, 4, 3))
    model = nn.Sequential(conv, nn.utils.spectral_norm(nn.Conv2d(4, 5, 1)))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    report = count_model_costs(model, (1, 3, 8, 8), label="a model", second_opinion=False)
    convolutions = 36 * 4 * 27 + 36 * 5 * 4
    assert {m.path: m.own_macs for m in report.modules}["0"] == 36 * 4 * 27
    assert report.macs >= convolutions
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@warm
def test_nothing_is_left_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    private = folder / "private"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    count_code_costs("code:model.py:Net", second_opinion=False)
    with pytest.raises(ModelError):
        count_code_costs("code:model.py:raises")
    assert list(private.iterdir()) == []
