"""Factories of a person's own: good ones, and every way in which they fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from inspector.architectures.targets import parse_target
from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.architectures.user_code import ALONE, parse_factory, sizes_of_answer, target_of_code
from inspector.cli.main import run
from inspector.errors import ModelError, UsageError

MODEL = """
import sys, time, os, subprocess
import torch
from torch import nn
from helper import WIDTH

class Net(nn.Module):
    def __init__(self, num_classes=3, variant="small", depth=1):
        super().__init__()
        self.conv = nn.Conv2d(3, WIDTH, 3, bias=False)
        self.bn = nn.BatchNorm2d(WIDTH)
        self.blocks = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(depth)])
        self.fc = nn.Linear(WIDTH, num_classes)
        if variant == "large":
            self.extra = nn.Linear(2, 2)

def build(**options):
    print("building", options)
    return Net(**options)

ready = Net()
state = lambda: Net().state_dict()
number = 7
nothing = lambda: None
listed = lambda: ["weights"]
empty = lambda: nn.Identity()
lazy = lambda: nn.LazyLinear(3)
twice = type("Holder", (), {"make": staticmethod(build)})

def raises():
    print("about to fail")
    raise ValueError("no weights for you")

def hangs():
    print("going to sleep", flush=True)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open("child", "w").write(str(child.pid))
    time.sleep(600)

def leaves():
    sys.exit(3)

def dies():
    os.kill(os.getpid(), 9)

def lies():
    import json
    with open(sys.argv[2], "w") as file:
        json.dump({"kind": "Net", "tensors": [["a", [-1], "float32", False]]}, file)
    os._exit(0)

def chatters():
    print("x" * 5_000_000)
    raise ValueError("the end")
"""


# Most of it runs in forks of a Python that has torch; what is about the process itself, in new ones.
warm = pytest.mark.usefixtures("warm_python")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "helper.py").write_text("WIDTH = 5\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "nets.py").write_text("from torch import nn\ndef make(n=2): return nn.Linear(n, 1)\n")
    return tmp_path


def _shapes(target: Target) -> dict[str, tuple[int, ...] | None]:
    return {t.name: t.shape for t in target.tensors}


def test_a_factory_is_a_target(folder: Path) -> None:
    target = target_of_code("code:model.py:build?num_classes=4&depth=2", folder=folder)
    assert target.kind is TargetKind.CODE
    assert target.label == "code:model.py:build?num_classes=4&depth=2"
    assert _shapes(target) == {
        "conv.weight": (5, 3, 3, 3),
        **{f"bn.{n}": (5,) for n in ("weight", "bias", "running_mean", "running_var")},
        "bn.num_batches_tracked": (),
        **{f"blocks.{i}.{n}": s for i in (0, 1) for n, s in (("weight", (5, 5)), ("bias", (5,)))},
        "fc.weight": (4, 5),
        "fc.bias": (4,),
    }
    assert {t.name for t in target.tensors if t.is_buffer} == {
        "bn.running_mean",
        "bn.running_var",
        "bn.num_batches_tracked",
    }
    assert {t.dtype for t in target.tensors} == {"float32", "int64"}


@warm
@pytest.mark.parametrize("name", ["Net", "ready", "state", "twice.make"])
def test_classes_models_and_state_dicts_will_do(name: str, folder: Path) -> None:
    target = target_of_code(f"code:model.py:{name}", folder=folder)
    assert _shapes(target)["fc.weight"] == (3, 5)
    assert (target.tensors[0].is_buffer is None) == (name == "state")


@warm
def test_a_module_of_a_package_and_a_file_in_a_folder(folder: Path) -> None:
    assert _shapes(target_of_code("code:pack.nets:make?n=9", folder=folder))["weight"] == (1, 9)
    assert _shapes(target_of_code("code:pack/nets.py:make", folder=folder))["weight"] == (1, 2)


@warm
def test_words_and_literals_as_arguments(folder: Path) -> None:
    assert "extra.weight" in _shapes(target_of_code("code:model.py:build?variant=large", folder=folder))
    assert parse_factory("code:a.py:f?a=1&b=0.5&c=True&d=None&e=[1,2]&f='x y'&g=true&h=%5B3%5D").arguments == {
        "a": 1, "b": 0.5, "c": True, "d": None, "e": [1, 2], "f": "x y", "g": True, "h": [3],
    }  # fmt: skip


@warm
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raises", "ValueError: no weights for you"),
        ("leaves", "exit code 3"),
        ("dies", "exit code -9"),
        ("nothing", "it returned a NoneType, not a torch.nn.Module"),
        ("listed", "it returned a list"),
        ("number", "number is a int, neither a factory nor a model"),
        ("absent", "it has no absent"),
        ("empty", "without a single tensor"),
        ("lazy", "weight has no shape before the first forward pass"),
        ("lies", "no description"),
    ],
)
def test_what_goes_wrong_is_said(name: str, says: str, folder: Path) -> None:
    with pytest.raises(ModelError, match=says):
        target_of_code(f"code:model.py:{name}", folder=folder)


@warm
def test_what_it_printed_is_shown_but_not_all_of_it(folder: Path) -> None:
    with pytest.raises(ModelError, match="about to fail"):
        target_of_code("code:model.py:raises", folder=folder)
    with pytest.raises(ModelError, match="the end") as error:
        target_of_code("code:model.py:chatters", folder=folder)
    assert len(error.value.says) < 3000
    with pytest.raises(ModelError, match="unexpected keyword argument 'colour'"):
        target_of_code("code:model.py:build?colour=3", folder=folder)


@warm
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_factory_that_hangs_is_stopped_with_all_it_started(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"after 3 seconds and was stopped. It printed: going to sleep"):
        target_of_code("code:model.py:hangs", folder=folder, seconds=3)
    status = Path("/proc") / (folder / "child").read_text() / "stat"
    # Gone, or dead and not yet collected by its new parent.
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] in "ZX"


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits on address space")
def test_memory_can_be_limited(folder: Path) -> None:
    (folder / "big.py").write_text("import torch\ndef build(): return torch.nn.Linear(60000, 60000)\n")
    with pytest.raises(ModelError, match=r"code:big\.py:build"):
        target_of_code("code:big.py:build", folder=folder, memory_nbytes=8 * 1024**3)


def test_too_much_memory_at_once_is_told_with_the_limit(folder: Path) -> None:
    (folder / "huge.py").write_text("def build(): return bytearray(50_000_000_000)\n")
    with pytest.raises(ModelError, match=r"more memory than the 8\.0 GB it may have") as caught:
        target_of_code("code:huge.py:build", folder=folder, memory_nbytes=8_000_000_000)
    assert caught.value.hint == ALONE


@pytest.mark.parametrize(
    "text",
    [
        "code:", "code:model.py", "code:model.py:", "code::build", "code:a b:build", "code:model.py:bu ild",
        "code:model.py:f?x", "code:model.py:f?x=__import__('os')", "code:model.py:f?x=f()", "code:model.py:f?1x=2",
        "code:model.py:f?x=1&x=2", "code:model.py:f?x=" + "[" * 5000, "code:absent.py:build",
    ],
)  # fmt: skip
def test_text_that_names_nothing_runs_nothing(text: str, folder: Path) -> None:
    with pytest.raises(UsageError):
        target_of_code(text, folder=folder)


def test_nothing_runs_unless_the_caller_allows_it(folder: Path) -> None:
    with pytest.raises(UsageError, match="not run here"):
        parse_target("code:model.py:build")


@warm
def test_the_command_line_repairs_for_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    state = {f"module.{n}": torch.ones(s or ()) for n, s in _shapes(target_of_code("code:model.py:ready")).items()}
    torch.save(state, folder / "a.pth")
    assert run(["repair", "a.pth", "--target", "code:model.py:build", "-o", "b.pth"]) == 0
    assert set(torch.load(folder / "b.pth", weights_only=True)) == {n.removeprefix("module.") for n in state}
    assert run(["diagnose", "a.pth", "--target", "code:model.py:raises"]) == 2
    assert "no weights for you" in capsys.readouterr().err


SIZES = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, num_classes, in_chans=3):
        super().__init__()
        self.stem = nn.Conv2d(in_chans, 8, 3)
        self.body = nn.Conv2d(8, 8, 3)
        self.my_head = nn.Linear(8, num_classes)

class Tied(nn.Module):
    def __init__(self, tie=True):
        super().__init__()
        self.words = nn.Embedding(9, 4)
        self.project = nn.Linear(4, 9, bias=False)
        if tie:
            self.project.weight = self.words.weight

def quotes():
    raise KeyError("no key\\n  in the map\\n  of layers")

def nests():
    raise RuntimeError("Caught it.\\nTraceback (most recent call last):\\n  File a.py\\nValueError: 3 is not 4")
"""


@warm
def test_sizes_that_a_file_shows_are_given_to_the_factory(tmp_path: Path) -> None:
    """num_classes has no default, and the head has another name: the shapes tell both sizes."""
    (tmp_path / "sizes.py").write_text(SIZES)
    shapes = ((8, 1, 3, 3), (8,), (8, 8, 3, 3), (8,), (6, 8), (6,))
    target = target_of_code("code:sizes.py:Net", folder=tmp_path, shapes=shapes)
    assert target.label == "code:sizes.py:Net?num_classes=6&in_chans=1"
    assert _shapes(target)["my_head.weight"] == (6, 8)
    assert _shapes(target)["stem.weight"] == (8, 1, 3, 3)
    typed = target_of_code("code:sizes.py:Net?num_classes=2", folder=tmp_path, shapes=shapes)
    assert typed.label == "code:sizes.py:Net?num_classes=2&in_chans=1"


@warm
def test_without_a_word_of_the_file_a_usual_number_stands_in_the_label(tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text(SIZES)
    target = target_of_code("code:sizes.py:Net", folder=tmp_path, shapes=((99, 98),))
    assert target.label == "code:sizes.py:Net?num_classes=10"
    with pytest.raises(ModelError, match="missing 1 required positional argument: 'num_classes'"):
        target_of_code("code:sizes.py:Net", folder=tmp_path)


@warm
def test_what_is_one_parameter_under_two_names_is_told(tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text(SIZES)
    assert target_of_code("code:sizes.py:Tied", folder=tmp_path).ties == (("words.weight", "project.weight"),)
    assert target_of_code("code:sizes.py:Tied?tie=False", folder=tmp_path).ties == ()


@warm
@pytest.mark.parametrize(
    ("name", "says"),
    [("quotes", "KeyError: no key in the map of layers, in sizes.py"), ("nests", "Caught it. ValueError: 3 is not 4")],
)
def test_an_error_that_quotes_line_breaks_is_one_line(name: str, says: str, tmp_path: Path) -> None:
    """A KeyError's text is its argument's repr, with the breaks of a whole traceback escaped in it."""
    (tmp_path / "sizes.py").write_text(SIZES)
    with pytest.raises(ModelError) as error:
        target_of_code(f"code:sizes.py:{name}", folder=tmp_path)
    assert says in error.value.says
    assert "\\n" not in error.value.says


@pytest.mark.parametrize(
    "answer",
    [
        {"sizes": [["nc", 3, 4, [["b", [4, 3]]]], ["x y", 1, 2, []], 7, ["n", True, 2, []]], "filled": {}},
        {"sizes": "many", "filled": {}},
        {"sizes": [], "filled": {"a b": 3}},
    ],
)
def test_a_made_up_answer_about_sizes_changes_nothing(answer: dict[str, object]) -> None:
    target = Target(label="x", kind=TargetKind.CODE, tensors=(TargetTensor(name="a", shape=(3, 3)),))
    assert sizes_of_answer(answer, target, ((4, 3),)) == {}
