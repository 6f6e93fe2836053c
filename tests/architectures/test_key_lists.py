"""Lists of keys as people paste them: each way says the same names, and the same shapes where it has any."""

from __future__ import annotations

import json
from collections import OrderedDict

import pytest
import torch

from inspector.architectures.key_lists import target_of_list
from inspector.errors import UsageError

SHAPES = {"enc.0.weight": (8, 3, 3, 3), "enc.0.bias": (8,), "enc.1.num_batches_tracked": (), "head/kernel:0": (4, 8)}
STATE = OrderedDict((name, torch.zeros(shape)) for name, shape in SHAPES.items())
NAMES = {
    "a line each": "\n".join(STATE),
    "lines of Windows, blank ones and remarks": "# mine\r\n\r\n" + "\r\n".join(STATE),
    "keys()": str(STATE.keys()),
    "dict_keys": str(dict(STATE).keys()),
    "a list": str(list(STATE)),
    "a pretty list": json.dumps(list(STATE), indent=1),
    "quoted lines": "\n".join(f'"{name}",' for name in STATE),
}
SIDE_BY_SIDE = {"print(*state)": " ".join(SHAPES), "commas": ", ".join(SHAPES)}
SHAPED = {
    "JSON": json.dumps(SHAPES),
    "pretty JSON": json.dumps(SHAPES, indent=2),
    "a dict of sizes": str({name: tensor.shape for name, tensor in STATE.items()}),
    "items": str([(name, tensor.shape) for name, tensor in STATE.items()]),
    "an OrderedDict": str(OrderedDict((name, tuple(tensor.shape)) for name, tensor in STATE.items())),
    "name: size": "\n".join(f"{name}: {tensor.shape}" for name, tensor in STATE.items()),
    "name size": "\n".join(f"{name} {tensor.shape}" for name, tensor in STATE.items()),
    "name tuple": "\n".join(f"{name} {tuple(tensor.shape)}" for name, tensor in STATE.items()),
    "name\tlist": "\n".join(f"{name}\t{list(tensor.shape)}" for name, tensor in STATE.items()),
}


def _read(text: str) -> dict[str, object]:
    return {tensor.name: tensor.shape for tensor in target_of_list(text, "the list").tensors}


@pytest.mark.parametrize("way", NAMES)
def test_names_alone(way: str) -> None:
    assert _read(NAMES[way]) == dict.fromkeys(SHAPES)


@pytest.mark.parametrize("way", SIDE_BY_SIDE)
def test_names_side_by_side(way: str) -> None:
    assert _read(SIDE_BY_SIDE[way]) == dict.fromkeys(SHAPES)


@pytest.mark.parametrize("way", SHAPED)
def test_names_with_shapes(way: str) -> None:
    assert _read(SHAPED[way]) == SHAPES


def test_shapes_of_some_are_left_alone() -> None:
    assert _read("a.weight (3, 4)\nb.weight") == {"a.weight": None, "b.weight": None}


@pytest.mark.parametrize("line", ["my layer.weight", "conv (old).weight", "a b", "x", "head[0]", "[0]"])
def test_an_odd_name_stays_whole(line: str) -> None:
    assert list(_read(f"fc.weight\n{line}")) == ["fc.weight", line]


@pytest.mark.parametrize("text", ["", " \n# nothing\n", "a\nb\na", '["a", "a"]', "Missing key(s) in state_dict: 'a'."])
def test_what_is_no_list_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        target_of_list(text, "the list")
