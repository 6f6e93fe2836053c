"""Half a message never claims what the other half would have to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from inspector.error_messages.explain import explain_error
from inspector.error_messages.report import PastedError
from inspector.readers import open_checkpoint

Refusal = Callable[[nn.Module, Mapping[str, Any]], str]


def _only(text: str) -> PastedError:
    (error,) = explain_error(text).errors
    return error


def _causes(text: str) -> list[str]:
    return [cause.kind for cause in _only(text).causes]


def _net() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 2))


def _run(patch: str, module: nn.Module, state: Mapping[str, Any]) -> None:
    exec(patch, {"torch": torch, "model": module, "state": dict(state)})


HALF = 'Unexpected key(s) in state_dict: "module.conv1.weight", "module.bn1.weight", "module.bn1.bias"'
ONE_SIDED = (
    HALF,
    f"Error(s) in loading state_dict for ResNet:\n\t{HALF}. ",
    'Unexpected key(s) in state_dict: "fc.weight", "fc.bias".',
    'Unexpected key(s) in state_dict: "layer3.0.weight", "layer3.0.bias", "layer4.0.weight", "layer4.0.bias".',
    "KeyError: 'unexpected key \"encoder.weight\" in state_dict'",
    "unexpected key in source state_dict: fc.weight, fc.bias",
    'Missing key(s) in state_dict: "conv1.weight", "bn1.weight", "bn1.bias".',
    'Error(s) in loading state_dict for DataParallel:\n\tMissing key(s) in state_dict: "module.fc.weight". ',
    'Missing key(s) in state_dict: "layer3.0.weight", "layer3.0.bias", "layer4.0.weight", "layer4.0.bias".',
)


@pytest.mark.parametrize("text", ONE_SIDED)
def test_one_list_names_two_causes_and_claims_nothing_of_the_other(text: str) -> None:
    report = explain_error(text)
    (error,) = report.errors
    assert len(error.causes) == 2
    assert all(cause.says and cause.sign for cause in error.causes)
    said = " ".join((report.says, error.says, error.why, *error.steps))
    for claim in (
        "nothing of the model is missing",
        "everything in the file has a place",
        "a larger model",
        "No weight",
    ):
        assert claim not in said


def test_a_prefix_in_the_unexpected_half_is_the_wrappers() -> None:
    error = _only(HALF)
    assert error.kind == "keys-renamed"
    assert "DataParallel" in error.says
    assert [cause.kind for cause in error.causes] == ["keys-renamed", "not-in-model"]
    assert '"conv1.weight" is missing' in error.causes[0].sign


def test_the_lines_for_a_half_refuse_what_is_not_so(refusal: Refusal) -> None:
    net = _net()
    wrapped = {f"module.{name}": tensor for name, tensor in net.state_dict().items()}
    text = refusal(net, wrapped)
    patch = _only(text[text.index("Unexpected") :]).patch
    _run(patch, net, wrapped)
    # The same words of a wrapped model that lacks a layer.
    with pytest.raises(RuntimeError):
        _run(patch, nn.DataParallel(net[:3]), wrapped)


def test_a_wrapped_class_has_its_prefix_by_itself() -> None:
    text = f"Error(s) in loading state_dict for DataParallel:\n\t{HALF}. "
    assert "keys-renamed" not in _causes(text)


def test_both_lists_given_and_one_empty_is_no_half() -> None:
    error = _only("_IncompatibleKeys(missing_keys=[], unexpected_keys=['aux.weight', 'aux.bias'])")
    assert error.causes == ()
    assert "nothing of the model is missing" in error.says


@pytest.mark.parametrize(
    "text",
    [
        'Unexpected key(s) in state_dict: "module.features. ..."., Expected ".features...."',
        '"module.features. ..."., Expected ".features...."',
        'Unexpected key(s) in state_dict: "module.features.0.weight" ..., expected "features.0.weight" ...',
    ],
)
def test_an_author_who_shortened_the_names_is_understood(text: str) -> None:
    error = _only(text)
    assert error.kind == "keys-renamed"
    assert error.causes == ()
    assert "saved from a DataParallel" in error.why
    assert any("breaks off" in step for step in error.steps)


def test_names_before_the_word_unexpected_are_the_missing_ones() -> None:
    text = '0.weight", "module.a.bias", "module.b.weight".\n\tUnexpected key(s) in state_dict: "a.bias", "b.weight". '
    error = _only(text)
    assert error.keys is not None
    assert error.keys.lists.missing == ("module.a.bias", "module.b.weight")
    assert error.kind == "keys-renamed"


def test_names_without_any_words_are_asked_about() -> None:
    error = _only('ean", "layer6.0.1.weight", "layer6.0.1.bias", "layer6.1.0.weight", "layer6.1.0.bias", "lay')
    assert error.asks
    assert error.kind == "list-without-words"


def test_lists_that_were_emptied_say_nothing() -> None:
    text = "Error(s) in loading state_dict for ResNet:\nMissing key(s) in state_dict:\n"
    text += "Unexpected key(s) in state_dict:\nHelp"
    assert explain_error(text).errors == ()


@pytest.mark.parametrize(
    ("text", "container"),
    [
        ('Unexpected key(s) in state_dict: "epoch", "optimizer", "state_dict".', "state_dict"),
        ("Unexpected key(s) in state_dict: 'epoch', 'netG_state_dict', 'optimizer_state_dict'.", "netG_state_dict"),
        ("KeyError: 'unexpected key \"state_dict\" in state_dict'", "state_dict"),
        ("KeyError: 'unexpected key \"epoch\" in state_dict'", ""),
    ],
)
def test_half_a_message_is_enough_for_a_training_checkpoint(text: str, container: str) -> None:
    error = _only(text)
    assert error.kind == "whole-checkpoint"
    assert (f'checkpoint["{container}"]' in error.steps[0]) is bool(container)
    compile(error.patch, "patch", "exec")


def test_a_whole_checkpoint_by_its_half_is_loaded_by_the_lines(refusal: Refusal, tmp_path: Path) -> None:
    net = _net()
    checkpoint = {"epoch": 3, "my_state_dict": net.state_dict(), "optimizer_state_dict": {}}
    text = refusal(net, checkpoint)
    error = _only(text[text.index("Unexpected") :])
    assert error.patch
    torch.save(checkpoint, tmp_path / "a.pth")
    exec(error.patch, {"torch": torch, "model": net, "path": tmp_path / "a.pth"})


def test_an_optimizers_state_is_no_model(refusal: Refusal) -> None:
    net = _net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    assert _only(refusal(net, optimizer.state_dict())).kind == "optimizer-file"


@pytest.mark.parametrize("part", ["whole", "unexpected"])
def test_names_that_the_code_itself_cut(part: str, refusal: Refusal) -> None:
    net = nn.ModuleDict({"backbone": nn.Linear(3, 3), "classifier": nn.Linear(3, 2), "scale": nn.BatchNorm1d(3)})
    state = net.state_dict()
    text = refusal(net, {name[7:]: tensor for name, tensor in state.items()})
    error = _only(text if part == "whole" else text[text.index("Unexpected") :])
    if part == "whole":
        assert error.kind == "names-cut"
        assert "cuts 7 letters off" in error.says
        _run(error.patch, net, state)
    else:
        assert error.kind == "names-cut" or len(error.causes) == 2


def test_pieces_of_words_are_names_that_were_cut() -> None:
    text = 'Unexpected key(s) in state_dict: "eight", "ght", "s", "ning_mean", "0.conv1.weight". '
    assert _only(text).kind == "names-cut"
    # A prefix that was taken off whole is something else.
    text = 'Missing key(s) in state_dict: "head_a.weight", "head_a.bias". '
    text += 'Unexpected key(s) in state_dict: "a.weight", "a.bias". '
    assert _only(text).kind != "names-cut"


def test_constants_that_a_library_no_longer_stores(refusal: Refusal) -> None:
    net = _net()
    state = net.state_dict()
    old = {**state, "embeddings.position_ids": torch.arange(3).expand(1, -1)}
    error = _only(refusal(net, old))
    assert error.kind == "constant-buffers"
    _run(error.patch, net, old)
    with pytest.raises(AssertionError):
        _run(error.patch, net, {**old, "head.weight": torch.ones(2)})


def test_another_head_is_new_or_renamed(refusal: Refusal) -> None:
    net = nn.ModuleDict({"body": nn.Linear(3, 3), "classifier": nn.Linear(3, 2)})
    old = nn.ModuleDict({"body": nn.Linear(3, 3), "cls": nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 9)})})
    error = _only(refusal(net, old.state_dict()))
    assert [cause.kind for cause in error.causes] == ["other-head", "keys-renamed"]
    assert '"cls"' in error.says
    _run(error.patch, net, old.state_dict())
    same = nn.ModuleDict({"body": nn.Linear(3, 3), "cls": nn.Linear(3, 2)})
    error = _only(refusal(net, same.state_dict()))
    assert error.kind == "keys-renamed"
    # A layer in the middle is no head.
    error = _only(
        refusal(
            nn.ModuleDict({"a": nn.Linear(2, 2)}), nn.ModuleDict({"b": nn.Conv1d(2, 2, 1, bias=False)}).state_dict()
        )
    )
    assert error.kind == "keys-unexplained"


def test_a_depth_from_one_list_is_no_certainty() -> None:
    names = [f'"layer.{n}.{part}"' for n in (12, 13) for part in ("a.weight", "a.bias", "b.weight", "b.bias")]
    error = _only(f"Missing key(s) in state_dict: {', '.join(names)}. ")
    assert error.kind == "other-depth"
    assert [cause.kind for cause in error.causes] == ["other-depth", "other-names"]


def test_a_shape_that_is_cut_off_is_asked_for() -> None:
    error = _only("size mismatch for fc.weight: copying a param with shape torch.Size([1000, 512]) from checkpoint,")
    assert (error.kind, error.asks) == ("shapes-cut", True)
    assert "fc.weight" in error.says


def test_a_number_broken_by_a_terminal_is_one_number() -> None:
    text = (
        "size mismatch for pos_embed: copying a param with shape torch.Size([1, 6\n4, 384]) from checkpoint, "
        "the shape in current model is torch.Size([1, 256, 3\n84])."
    )
    error = _only(text)
    assert error.keys is not None
    assert error.keys.lists.reshaped == (("pos_embed", (1, 64, 384), (1, 256, 384)),)
    assert error.kind == "position-embedding"


def test_shapes_broken_within_words_by_a_terminal() -> None:
    text = _mismatch(("fc.weight", (1000, 512), (7, 512)), ("fc.bias", (1000,), (7,)))
    error = _only("\n".join(text[i : i + 61] for i in range(0, len(text), 61)))
    assert error.kind == "head-size"
    assert error.keys is not None
    assert error.keys.lists.reshaped == (("fc.weight", (1000, 512), (7, 512)), ("fc.bias", (1000,), (7,)))


def _mismatch(*shapes: tuple[str, tuple[int, ...], tuple[int, ...]]) -> str:
    return "\n".join(
        f"size mismatch for {name}: copying a param with shape torch.Size({list(ours)}) from checkpoint, the shape in "
        f"current model is torch.Size({list(theirs)})."
        for name, ours, theirs in shapes
    )


@pytest.mark.parametrize(
    ("kinds", "shapes"),
    [
        # A table of words is no last layer, whatever it is called.
        (["vocabulary"], [("embedding.weight", (20572, 300), (14613, 300))]),
        (["vocabulary"], [("d.embed_tokens.weight", (104, 8), (100, 8)), ("d.output.weight", (104, 8), (100, 8))]),
        # A wider network is no other picture.
        (["other-size"], [("pos_embed", (1, 14, 14, 768), (1, 14, 14, 512)), ("norm.weight", (768,), (512,))]),
        # A convolution in the middle is no last layer.
        (
            ["other-size"],
            [("conv1.0.weight", (64, 3, 3, 3), (32, 3, 3, 3)), ("conv1.1.running_mean", (64,), (32,))],
        ),
        # One layer with other outputs may be either.
        (["other-size", "head-size"], [("layer1.0.se.fc.0.weight", (16, 64), (4, 64))]),
        (["vocabulary", "head-size"], [("decoder.projection.weight", (50304, 64), (50257, 64))]),
    ],
)
def test_sizes_that_look_like_another_number_of_classes(
    kinds: list[str], shapes: list[tuple[str, tuple[int, ...], tuple[int, ...]]]
) -> None:
    error = _only(_mismatch(*shapes))
    assert ([cause.kind for cause in error.causes] or [error.kind]) == kinds


@pytest.mark.parametrize("arrow", ["-->", "->", "❱"])
def test_lines_of_code_around_the_error_are_not_the_error(arrow: str) -> None:
    text = (
        '    775             "functionality.")\n    776 \n'
        f"{arrow} 777     magic_number = pickle_module.load(f, **pickle_load_args)\n"
        "    778     if magic_number != MAGIC_NUMBER:\n"
        '    779         raise RuntimeError("Invalid magic number; corrupt file?")\n\nEOFError: Ran out of input'
    )
    assert _only(text).kind == "cut-pickle"
    assert _only(" ".join(text.split())).kind == "cut-pickle"


def test_a_line_of_code_alone_is_explained() -> None:
    text = 'raise RuntimeError("{} is a zip archive (did you mean to use torch.jit.load()?)".format(f.name))'
    assert _only(text).kind == "newer-archive"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "RuntimeError： Attempting todeserialize object on a CUDA device but torch。cuda.is_available() is False。",
            "no-such-device",
        ),
        ("xxx is a zip archive(did you mean to use torch.jit.load()?)", "newer-archive"),
        ("nvalid load key, 'v'.", "not-a-pickle"),
        ("KeyError：‘model’", "no-such-entry"),
        ("ModuleNotFoundError: No module named models\n", "missing-module"),
        ("AttributeError: Can’t get attribute ‘Net’ on <module ‘__main__’ from ‘a.py’>", "missing-class"),
        ("'OrderedDict' object has no attribute `eval`", "state-dict-as-model"),
        (
            "please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU.",
            "no-such-device",
        ),
        ("Unsupported global: GLOBAL numpy._core.multiar\nray.scalar was not an allowed global", "unsupported-global"),
    ],
)
def test_lost_spaces_quotes_and_other_punctuation(text: str, kind: str) -> None:
    assert _only(text).kind == kind


def test_a_name_broken_by_a_terminal_comes_back() -> None:
    error = _only("Unsupported global: GLOBAL numpy._core.multiar\nray.scalar was not an allowed global by default.")
    assert "numpy._core.multiarray.scalar" in error.says


def test_arguments_that_lightning_did_not_store() -> None:
    error = "TypeError: __init__() missing 2 required positional arguments: 'a' and 'b'"
    assert _only(f"in load_from_checkpoint\n    model = cls(**kwargs)\n{error}").kind == "lightning-arguments"
    # Anybody's function may miss an argument.
    assert explain_error(error).errors == ()


def test_with_the_file_beside_half_a_message(tmp_path: Path, refusal: Refusal) -> None:
    import torchvision

    net = torchvision.models.squeezenet1_1(num_classes=3)
    state = {f"module.{name}": tensor for name, tensor in net.state_dict().items()}
    torch.save(state, tmp_path / "a.pth")
    text = refusal(net, state)
    report = explain_error(text[text.index("Unexpected") :], checkpoint=open_checkpoint(tmp_path / "a.pth"))
    assert "its own architecture, torchvision/squeezenet1_1" in report.file[1]
    exec(report.code.replace("'a.pth'", repr(str(tmp_path / "a.pth"))), {"model": net})
