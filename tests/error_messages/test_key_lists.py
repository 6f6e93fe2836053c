"""Lists are read back as torch wrote them, whatever happened to the text on its way."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable

import pytest
import torch
from torch import nn

from inspector.error_messages.clean import clean
from inspector.error_messages.explain import explain_error
from inspector.error_messages.key_lists import read_key_lists
from inspector.error_messages.report import KeyLists

Refusal = Callable[..., str]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        self.fc = nn.Linear(4, 10)


def _state() -> dict[str, torch.Tensor]:
    state = dict(Net().state_dict())
    state["fc.weight"], state["fc.bias"] = torch.ones(1000, 4), torch.ones(1000)
    state["old.weight"] = state.pop("conv.weight")
    state["old.bias"] = state.pop("conv.bias")
    return state


EXPECTED = KeyLists(
    model="Net",
    missing=("conv.weight", "conv.bias"),
    unexpected=("old.weight", "old.bias"),
    reshaped=(("fc.weight", (1000, 4), (10, 4)), ("fc.bias", (1000,), (10,))),
)


def _read(text: str) -> KeyLists:
    ((_, lists),) = read_key_lists(clean(text).lines)
    return lists


WAYS: dict[str, Callable[[str], str]] = {
    "alone": lambda t: t,
    "in a traceback": lambda t: (
        f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nRuntimeError: {t}\n'
    ),
    "from pytest": lambda t: "\n".join(f"E       {line}" for line in t.splitlines()),
    "under torchrun": lambda t: "\n".join(f"[rank0]: {line}" for line in t.splitlines()),
    "in a log": lambda t: "\n".join(f"2024-05-01 10:11:12,345 ERROR: {line}" for line in t.splitlines()),
    "from Ray": lambda t: "\n".join(f"(train pid=123, ip=10.0.0.1) {line}" for line in t.splitlines()),
    "quoted in a mail": lambda t: "\n".join(f"> > {line}" for line in t.splitlines()),
    "in a frame": lambda t: "\n".join(f"│ {line} │" for line in t.splitlines()),
    "in colours": lambda t: "\x1b[31m" + t.replace("Missing", "\x1b[1;33mMissing\x1b[0m"),
    "with Windows line ends": lambda t: t.replace("\n", "\r\n"),
    "in one line": lambda t: " ".join(t.split()),
    "as JSON": json.dumps,
    "as a repr": lambda t: repr(RuntimeError(t)),
    "with typographic quotes": lambda t: t.replace(' "', " “").replace('"', "”"),
    "as HTML": lambda t: t.replace('"', "&quot;"),
    "wrapped at words": lambda t: "\n".join(textwrap.fill(line, 40, break_long_words=False) for line in t.splitlines()),
    "wrapped by a terminal": lambda t: "\n".join(
        x for line in t.splitlines() for x in textwrap.wrap(line, 37, drop_whitespace=False)
    ),
    "twice, as chained exceptions print it": lambda t: (
        f"RuntimeError: {t}\n\nDuring handling of the above exception\n\nRuntimeError: {t}"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_lists_come_back(way: str, refusal: Refusal) -> None:
    assert _read(WAYS[way](refusal(Net(), _state()))) == EXPECTED


def test_a_name_broken_by_a_terminal_is_one_name() -> None:
    text = 'Missing key(s) in state_dict: "layer1.0.con\nv1.weight", "layer1.0.\n    bn1.weight". '
    assert _read(text).missing == ("layer1.0.conv1.weight", "layer1.0.bn1.weight")


@pytest.mark.parametrize(
    "text",
    [
        'Missing key(s) in state_dict: "a.weight", "a.bias", ...',
        'Missing key(s) in state_dict: "a.weight", "a.bias", "b.we',
        'Missing key(s) in state_dict: "a.weight", "a.bias",',
        'Missing key(s) in state_dict: "a.weight", "a.bias"',
        'Missing key(s) in state_dict: "a.weight", "a.bias"... \n\tUnexpected key(s) in state_dict: "c". ',
        'Missing key(s) in state_dict: "a.weight", ..., "a.bias". ',
        'Missing key(s) in state_dict: "a.weight", "a.bias", [... 120 more]',
    ],
)
def test_a_list_that_breaks_off_says_so(text: str) -> None:
    lists = _read(text)
    assert lists.missing == ("a.weight", "a.bias")
    assert lists.cut == ("missing",)


def test_a_whole_list_does_not() -> None:
    assert _read('Missing key(s) in state_dict: "a.weight", "a.bias". ').cut == ()


def test_other_wordings() -> None:
    swapped = (
        "size mismatch for fc.weight: copying a param of torch.Size([10, 4]) from checkpoint, "
        "where the shape is torch.Size([1000, 4]) in current model."
    )
    assert _read(swapped).reshaped == (("fc.weight", (1000, 4), (10, 4)),)
    oldest = (
        "While copying the parameter named fc.weight, whose dimensions in the model are "
        "torch.Size([10, 4]) and whose dimensions in the checkpoint are torch.Size([1000, 4])."
    )
    assert _read(oldest).reshaped == (("fc.weight", (1000, 4), (10, 4)),)
    scalar = (
        "size mismatch for s: copying a param with shape torch.Size([]) from checkpoint, the "
        "shape in current model is torch.Size([1])."
    )
    assert _read(scalar).reshaped == (("s", (), (1,)),)
    assert _read("KeyError: 'unexpected key \"module.conv.weight\" in state_dict'") == KeyLists(
        unexpected=("module.conv.weight",), cut=("unexpected",)
    )
    assert _read("KeyError: 'missing keys in state_dict: \"{'a.weight', 'b.bias'}\"'").missing == ("a.weight", "b.bias")
    assert _read(
        "unexpected key in source state_dict: a.weight, a.bias\n\nmissing keys in source state_dict: b.weight\n"
    ) == KeyLists(missing=("b.weight",), unexpected=("a.weight", "a.bias"))
    hf = (
        "Some weights of the model checkpoint at x were not used when initializing BertModel: "
        "['cls.weight', 'cls.bias']\n"
        "Some weights of BertModel were not initialized from the model checkpoint at x and are newly "
        "initialized: ['pooler.weight']"
    )
    assert _read(hf) == KeyLists(missing=("pooler.weight",), unexpected=("cls.weight", "cls.bias"))


def test_what_strict_false_returns() -> None:
    answer = str(Net().load_state_dict({"x.y": torch.ones(1)}, strict=False))
    assert _read(answer).unexpected == ("x.y",)
    assert _read(answer).missing == tuple(Net().state_dict())


def test_two_errors_stay_two() -> None:
    text = (
        'Error(s) in loading state_dict for A:\n\tMissing key(s) in state_dict: "a". \nError(s) '
        'in loading state_dict for B:\n\tMissing key(s) in state_dict: "b". '
    )
    found = [lists for _, lists in read_key_lists(text)]
    assert found == [KeyLists(model="A", missing=("a",)), KeyLists(model="B", missing=("b",))]


def test_text_without_lists_has_none() -> None:
    assert read_key_lists("All keys are fine. 'quoted', \"twice\"") == ()
    assert read_key_lists("") == ()


_MMCV = (
    "unexpected key in source state_dict: fc.weight, fc.bias, head.bias\n\n"
    "missing keys in source state_dict: neck.convs.0.conv.weight, neck.convs.0.conv.bias, rpn.scales.0.scale, "
    "rpn.cls_token.weight"
)


@pytest.mark.parametrize("width", [500, *range(30, 90, 5)])
def test_names_without_quotes_keep_their_last_and_no_fragments(width: int) -> None:
    lines = [line[i : i + width] for line in _MMCV.split("\n") for i in range(0, max(1, len(line)), width)]
    (error,) = explain_error("\n".join(lines)).errors
    assert error.keys is not None
    lists = error.keys.lists
    whole = {*_MMCV.replace(",", " ").split()}
    assert {*lists.missing, *lists.unexpected} <= whole
    assert lists.missing[-1] == "rpn.cls_token.weight"
    assert "missing" not in lists.cut


def test_a_word_on_the_next_line_is_no_part_of_a_name() -> None:
    ((_, lists),) = read_key_lists("missing keys in source state_dict: a.weight, b.bias\nthanks\n")
    assert lists.missing == ("a.weight", "b.bias")
    ((_, lists),) = read_key_lists("missing keys in source state_dict: a.weight, b.cls_tok\nen\n")
    assert (lists.missing, lists.cut) == (("a.weight",), ("missing",))


def test_heads_in_several_modules_are_named_by_what_they_share() -> None:
    text = (
        "were not used when initializing BertModel: ['cls.predictions.bias', 'cls.seq_relationship.weight']\n"
        "and are newly initialized: ['classifier.weight', 'classifier.bias']"
    )
    assert 'the file has "cls" (2 tensors), the model "classifier" (2)' in explain_error(text).says
