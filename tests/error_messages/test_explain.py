"""The cause, its steps and its lines: they are run against the model that refused, and put every number right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.error_messages.explain import explain_error
from inspector.error_messages.report import PastedError
from inspector.readers import open_checkpoint

Build = Callable[..., nn.Module]
Refusal = Callable[[nn.Module, Mapping[str, Any]], str]


def _only(text: str) -> PastedError:
    (error,) = explain_error(text).errors
    return error


def _prefixed(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in state.items()}


def _numbered(module: nn.Module) -> dict[str, Tensor]:
    """A state dict with another number in every tensor, so that a wrong place shows."""
    return {
        name: torch.full_like(tensor, i + 1) if tensor.dtype.is_floating_point else tensor + i
        for i, (name, tensor) in enumerate(module.state_dict().items())
    }


def _run(patch: str, module: nn.Module, state: Mapping[str, Tensor]) -> None:
    exec(patch, {"torch": torch, "model": module, "state": dict(state)})


PREFIXES = ["module.", "model.", "_orig_mod.", "_orig_mod.module.", "module.module.", "net.enc."]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_of_the_file_is_dropped(prefix: str, model: Build, refusal: Refusal) -> None:
    net = model("resnet18", num_classes=7)
    own = _numbered(net)
    state = _prefixed(own, prefix)
    error = _only(refusal(net, state))
    assert error.kind == "keys-renamed"
    assert error.keys is not None
    assert error.keys.explained == 102  # 122 tensors, of which 20 are batch counters that torch fills in itself
    assert error.keys.left_missing == error.keys.left_unexpected == ()
    _run(error.patch, net, state)
    assert all(torch.equal(tensor, own[name]) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize("wrap", [nn.DataParallel, torch.compile, lambda m: nn.ModuleDict({"net": m})])
def test_a_prefix_of_the_model_is_added(wrap: Callable[[nn.Module], nn.Module], model: Build, refusal: Refusal) -> None:
    net = model("resnet18", num_classes=7)
    own = _numbered(net)
    error = _only(refusal(wrap(net), own))
    assert error.kind == "keys-renamed"
    _run(error.patch, wrap(net), own)
    assert all(torch.equal(tensor, own[name]) for name, tensor in net.state_dict().items())


def test_dataparallel_is_named(model: Build, refusal: Refusal) -> None:
    net = model("resnet18")
    assert "saved from a DataParallel" in _only(refusal(net, _prefixed(net.state_dict(), "module."))).why
    assert "model is inside a DataParallel" in _only(refusal(nn.DataParallel(net), net.state_dict())).why


def test_encoder_and_decoder_are_not_exchanged(refusal: Refusal) -> None:
    layers = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3))
    error = _only(refusal(nn.ModuleDict({"decoder": layers}), nn.ModuleDict({"encoder": layers}).state_dict()))
    assert error.patch == ""
    # One part of a system is not taken for another by its layers.
    assert "under another name" not in error.says and "Bring the file" in error.steps[0]


def test_a_shifted_numbering_gets_no_lines(refusal: Refusal) -> None:
    # Names in between agree, so a load that looks nearly right would put every layer one off.
    layers = nn.Sequential(*[nn.Linear(3, 3) for _ in range(6)])
    shifted = {f"{int(k[0]) + 1}{k[1:]}": v for k, v in layers.state_dict().items()}
    error = _only(refusal(layers, shifted))
    assert error.kind == "renumbered"
    assert error.patch == ""


def test_two_networks_in_one_file_are_not_chosen_from(model: Build, refusal: Refusal) -> None:
    net = model("resnet18")
    both = {**_prefixed(net.state_dict(), "netG."), **_prefixed(net.state_dict(), "netD.")}
    error = _only(refusal(net, both))
    assert error.kind == "several-networks"
    assert error.patch == ""


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("resnet18", "resnet50"),
        ("resnet50", "resnet18"),
        ("resnet50", "resnet101"),
        ("vgg16", "vgg16_bn"),
        ("resnet50", "wide_resnet50_2"),
    ],
)
def test_another_architecture_is_named(ours: str, theirs: str, prefix: str, model: Build, refusal: Refusal) -> None:
    error = _only(refusal(model(theirs), _prefixed(model(ours).state_dict(), prefix)))
    assert error.patch == "" or prefix
    if prefix and "wide" in theirs:
        return  # names alone cannot tell these two apart, and torch compares no shapes then
    assert error.kind == "other-architecture"
    assert error.keys is not None
    assert f"torchvision/{theirs}" in error.keys.model_is
    assert f"torchvision/{ours}" in error.keys.file_is
    if not prefix:
        # Others may differ from one another just as these do: wide ones, those of another library.
        assert error.keys.model_is[0] == f"torchvision/{theirs}"


def test_another_head(model: Build, refusal: Refusal) -> None:
    net = model("resnet18", num_classes=7)
    state = model("resnet18").state_dict()
    before = net.fc.weight.clone()
    error = _only(refusal(net, state))
    assert error.kind == "head-size"
    assert "1,000 outputs in the file and 7 in the model" in error.says
    assert error.keys is not None
    assert error.keys.model_is == ()  # a head alone says nothing about the network
    _run(error.patch, net, state)
    assert torch.equal(net.fc.weight, before)
    assert torch.equal(net.conv1.weight, state["conv1.weight"])


def test_the_lines_for_a_head_refuse_another_file(model: Build, refusal: Refusal) -> None:
    net = model("resnet18", num_classes=7)
    error = _only(refusal(net, model("resnet18").state_dict()))
    wrong = dict(model("resnet18").state_dict())
    del wrong["layer1.0.conv1.weight"]
    with pytest.raises(AssertionError):
        _run(error.patch, net, wrong)


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        ("input-channels", {"conv1.weight": (64, 1, 7, 7)}, {"conv1.weight": (64, 3, 7, 7)}),
        ("transposed", {"a.weight": (3, 5)}, {"a.weight": (5, 3)}),
        ("position-embedding", {"pos_embed": (1, 197, 8)}, {"pos_embed": (1, 577, 8)}),
        ("vocabulary", {"embed_tokens.weight": (100, 8)}, {"embed_tokens.weight": (103, 8)}),
        ("scalar-shape", {"logit_scale": ()}, {"logit_scale": (1,)}),
        ("layout", {"head.weight": (7, 8, 1, 1)}, {"head.weight": (7, 8)}),
        ("other-size", {"a.weight": (8, 8), "b.weight": (8, 8)}, {"a.weight": (16, 16), "b.weight": (16, 16)}),
    ],
)
def test_shapes_tell_the_cause(kind: str, ours: dict[str, tuple[int, ...]], theirs: dict[str, tuple[int, ...]]) -> None:
    lines = [
        f"size mismatch for {n}: copying a param with shape torch.Size({list(s)}) from checkpoint, "
        f"the shape in current model is torch.Size({list(theirs[n])})."
        for n, s in ours.items()
    ]
    error = _only("Error(s) in loading state_dict for Net:\n\t" + "\n\t".join(lines))
    assert error.kind == kind
    assert error.patch == ""


def test_a_whole_checkpoint_was_loaded(model: Build, refusal: Refusal, tmp_path: Path) -> None:
    net = model("resnet18")
    checkpoint = {"epoch": 3, "state_dict": net.state_dict(), "optimizer": {}}
    error = _only(refusal(net, checkpoint))
    assert error.kind == "whole-checkpoint"
    torch.save(checkpoint, tmp_path / "a.pth")
    exec(error.patch, {"torch": torch, "model": net, "path": tmp_path / "a.pth"})


def test_missing_extra_and_counters(model: Build, refusal: Refusal) -> None:
    net = model("resnet18")
    state = net.state_dict()
    partial = {k: v for k, v in state.items() if not k.startswith("fc.")}
    error = _only(refusal(net, partial))
    assert (error.kind, error.keys and error.keys.left_missing) == ("partial-file", ("fc.weight", "fc.bias"))
    _run(error.patch, net, partial)
    with pytest.raises(AssertionError):
        _run(error.patch, net, {k: v for k, v in partial.items() if k != "conv1.weight"})
    assert _only(refusal(net, {**state, "aux.weight": torch.ones(1)})).kind == "extra-tensors"
    counted = {**state, "total_ops": torch.ones(1), "layer1.total_params": torch.ones(1)}
    error = _only(refusal(net, counted))
    assert error.kind == "bookkeeping-only"
    _run(error.patch, net, counted)


def test_depth(refusal: Refusal) -> None:
    deep, shallow = (nn.ModuleDict({"layer": nn.Sequential(*[nn.Linear(3, 3) for _ in range(n)])}) for n in (5, 3))
    error = _only(refusal(deep, shallow.state_dict()))
    assert error.kind == "other-depth"
    assert "2 blocks more than the file: layer.3 to layer.4" in error.says
    assert "The file has 2 blocks more" in _only(refusal(shallow, deep.state_dict())).says


def test_a_list_that_breaks_off_is_said_and_gets_no_certainty(model: Build, refusal: Refusal) -> None:
    text = refusal(model("resnet50"), model("resnet18").state_dict())
    error = _only(text[: len(text) // 3] + "...")
    assert any("breaks off" in step for step in error.steps)
    head = refusal(model("resnet18", num_classes=7), model("resnet18").state_dict())
    cut = _only(head + "\n\tsize mismatch for layer1...")
    assert cut.patch == ""


def test_several_errors_in_one_text(model: Build, refusal: Refusal) -> None:
    net = model("resnet18")
    text = (
        "_pickle.UnpicklingError: Weights only load failed. WeightsUnpickler error: Unsupported global: GLOBAL "
        "numpy.core.multiarray.scalar was not an allowed global by default.\n\nDuring handling of the above:\n"
        + refusal(net, _prefixed(net.state_dict(), "module."))
    )
    report = explain_error(text)
    assert [e.kind for e in report.errors] == ["unsupported-global", "keys-renamed"]
    assert "1 further error" in report.says


def test_nothing_known_is_an_answer() -> None:
    assert explain_error("it does not work").errors == ()
    assert "No loading error" in explain_error("it does not work").says
    assert "no text" in explain_error(" \n ").says
    assert "no error" in explain_error("<All keys matched successfully>").says


def test_with_the_file_beside_it(model: Build, refusal: Refusal, tmp_path: Path) -> None:
    net = model("resnet18", num_classes=7)
    own = _numbered(net)
    state = _prefixed(own, "module.")
    torch.save({"state_dict": state}, tmp_path / "a.pth")
    report = explain_error(refusal(net, state), checkpoint=open_checkpoint(tmp_path / "a.pth"))
    assert "torchvision's resnet18 with 7 classes" in report.file[0]
    assert "agree with this file" in report.file[1]
    exec(report.code.replace("'a.pth'", repr(str(tmp_path / "a.pth"))), {"model": net})
    assert all(torch.equal(tensor, own[name]) for name, tensor in net.state_dict().items())


def test_with_another_file_beside_it(model: Build, refusal: Refusal, tmp_path: Path) -> None:
    net = model("resnet18", num_classes=7)
    torch.save(net.state_dict(), tmp_path / "a.pth")
    report = explain_error(
        refusal(net, _prefixed(net.state_dict(), "module.")), checkpoint=open_checkpoint(tmp_path / "a.pth")
    )
    assert "not about this file" in report.file[1]
    assert report.code == ""


HOSTILE = {
    "cut mismatches": "size mismatch for " * 60_000,
    "open quotes": 'Missing key(s) in state_dict: "' * 35_000,
    "lists inside lists": 'Missing key(s) in state_dict: ", ' * 35_000,
    "one name": "Unexpected key(s) in state_dict: " + '"a.b", ' * 140_000,
    "escapes": "\x1b]" * 500_000,
    "blanks": " " * 1_000_000,
    "line ends": "\n" * 1_000_000,
    "dots": 'Missing key(s) in state_dict: "a", ' + "..." * 320_000,
    "prefixes": "[rank0]: " * 110_000,
    "deep": 'Missing key(s) in state_dict: "'
    + "a." * 250
    + '", "'
    + "1." * 250
    + '". Unexpected key(s) in state_dict: "b". ',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_hostile_text_is_read_once(name: str) -> None:
    # A quadratic reading would take hours, and not end within the suite's own limit.
    assert explain_error(HOSTILE[name]).says


def test_a_text_that_is_too_long_is_read_at_both_ends() -> None:
    text = "KeyError: 'state_dict'\n" + "x" * 3_000_000 + "\nEOFError: Ran out of input"
    report = explain_error(text)
    assert [e.kind for e in report.errors] == ["no-such-entry", "cut-pickle"]
    assert "characters in the middle" in report.skipped[0]


def test_values_stay_values() -> None:
    # Braces and quotes of the text are neither formatted nor run.
    error = _only("'DataParallel' object has no attribute 'fc' {0.__class__} {name}")
    assert "{" not in error.says
    names = 'Missing key(s) in state_dict: "a\'); import os; os.abort() #", "b". '
    patch = _only(names).patch
    compile(patch, "patch", "exec")
    assert 'os.abort() #"' in patch or "os.abort() #'" in patch
