"""A file that is only near a known network: whether its costs and drawing may be that one's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn

from inspector.architectures.recognise import recognise
from inspector.checkpoint.types import Checkpoint
from inspector.cli.main import run
from inspector.inspection import Question, inspect
from inspector.keys.runnable import whose_costs, why_another
from inspector.readers import open_checkpoint


def _cifar() -> nn.Module:
    """torchvision's resnet18 as it is changed for small pictures: a stride of 1, 3x3, and no pooling."""
    made = torchvision.models.resnet18(num_classes=3)
    made.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    made.maxpool = nn.Identity()
    return made


@pytest.fixture(scope="module")
def cifar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("near") / "cifar.pth"
    torch.save(_cifar().state_dict(), path)
    return path


def _why(path: Path) -> str:
    checkpoint: Checkpoint = open_checkpoint(path)
    return why_another(checkpoint, recognise(checkpoint))


def test_another_first_convolution_is_another_network_and_the_tensor_is_named(cifar: Path) -> None:
    assert (
        _why(cifar)
        == "This file is not torchvision/resnet18?num_classes=3: its conv1.weight is 64x3x3x3, not 64x3x7x7."
    )


def test_what_is_not_known_to_it_between_its_layers_makes_it_another(tmp_path: Path) -> None:
    state = torchvision.models.resnet18().state_dict()
    state["layer1.0.se.fc.weight"] = torch.zeros(64, 64)
    for name in [n for n in state if n.startswith("layer2.0.downsample")]:
        del state[name]
    torch.save(state, tmp_path / "se.pth")
    assert "1 tensor of the file not in it" in _why(tmp_path / "se.pth")


@pytest.mark.parametrize(
    "change",
    [
        lambda state: {f"module.{name}": tensor for name, tensor in state.items()},
        lambda state: {name: tensor for name, tensor in state.items() if not name.startswith("fc.")},
        # A repair turns it back: it is that network.
        lambda state: state | {"fc.weight": state["fc.weight"][:, :, None, None]},
    ],
    ids=["wrapped", "without its head", "a head as a convolution"],
)
def test_the_network_itself_wrapped_cut_or_to_be_repaired_is_no_other(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    torch.save(change(torchvision.models.resnet18().state_dict()), tmp_path / "same.pth")
    assert _why(tmp_path / "same.pth") == ""


def test_the_inspection_says_why_it_has_no_costs(cifar: Path) -> None:
    found = inspect(open_checkpoint(cifar), [Question.COSTS])
    assert found.costs is None
    ((question, why),) = found.skipped
    assert question == "costs" and "conv1.weight is 64x3x3x3" in why


@pytest.mark.parametrize("command", ["flops", "graph"])
def test_no_command_counts_or_draws_the_stock_network_for_it(
    command: str, cifar: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, str(cifar)]) != 0
    out, err = capsys.readouterr()
    assert not out and "conv1.weight is 64x3x3x3, not 64x3x7x7" in " ".join(err.split())
    assert "code:model.py:build" in err


def _without_head(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in state.items() if not name.startswith("fc.")}


def _with_loss(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"model.{name}": tensor for name, tensor in state.items()} | {"criterion.weight": torch.ones(3)}


def _with_neck(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {**_without_head(state), "neck.weight": torch.ones(4, 512), "neck.bias": torch.ones(4)}


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (dict, ()),
        (lambda state: {f"module.{name}": tensor for name, tensor in state.items()}, ()),
        (_without_head, ("2 tensors of it (fc.weight first) are not in the file.",)),
        (_with_loss, ("1 tensor of the file (criterion.weight) takes no part in it.",)),
        (_with_neck, ("2 tensors of it (fc.weight first)", "2 tensors of the file (neck.weight first) take no part")),
    ],
)
def test_costs_of_a_part_or_of_a_whole_with_more_say_whose_they_are(change, parts: tuple[str, ...], tmp_path: Path):
    torch.save(change(torchvision.models.resnet18(num_classes=3).state_dict()), tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    says = whose_costs(checkpoint, recognise(checkpoint))
    assert bool(says) == bool(parts) and ("torchvision/resnet18" in says or not parts)
    for part in parts:
        assert part in says


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
def test_flops_says_whose_costs_stand_there(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trunk got the costs of the whole network without a word; the pages had the sentence."""
    whole = torchvision.models.resnet18(num_classes=3).state_dict()
    torch.save(_without_head(whole), tmp_path / "part.pth")
    torch.save(whole, tmp_path / "whole.pth")
    how = ["--json"] if form == "json" else ["--format", form]
    says = []
    for name in ("part.pth", "whole.pth"):
        assert run(["flops", str(tmp_path / name), "--no-thop", *how]) == 0
        out, err = capsys.readouterr()
        # A table for other programs stays one.
        assert not err or form == "csv"
        says.append(" ".join((err if form == "csv" else out).replace("\\_", "_").split()))
    assert "those of the whole torchvision/resnet18" in says[0] and "2 tensors of it (fc.weight first)" in says[0]
    assert "those of the whole" not in says[1]


@pytest.mark.parametrize("form", ["text", "json", "dot"])
def test_graph_says_whose_drawing_stands_there(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = torchvision.models.resnet18(num_classes=3).state_dict()
    torch.save(_with_loss(whole), tmp_path / "more.pth")
    torch.save(whole, tmp_path / "whole.pth")
    for name in ("more.pth", "whole.pth"):
        assert run(["graph", str(tmp_path / name), "--format", form]) == 0
        out, err = capsys.readouterr()
        says = " ".join((out if form == "text" else err).split())
        assert ("1 tensor of the file (criterion.weight) takes no part in it." in says) == (name == "more.pth")


def test_the_inspection_says_whose_costs_it_has(tmp_path: Path) -> None:
    whole = torchvision.models.resnet18(num_classes=3).state_dict()
    torch.save(_without_head(whole), tmp_path / "part.pth")
    torch.save(whole, tmp_path / "whole.pth")
    part, full = (
        inspect(open_checkpoint(tmp_path / name), [Question.COSTS]).costs for name in ("part.pth", "whole.pth")
    )
    assert part is not None and part.whose.startswith("The pass, its costs and its drawing are those of the whole")
    assert full is not None and full.whose == ""
