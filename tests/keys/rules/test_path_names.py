"""Slashes for dots: what Keras, Flax and Haiku call their tensors where NumPy keeps them."""

from __future__ import annotations

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint
from tests.keys.conftest import saved_checkpoint

SHAPES = {
    "vit.embeddings.cls_token": (1, 1, 6),
    "vit.layer.0.attention.query.weight": (6, 6),
    "vit.layer.0.attention.query.bias": (6,),
    "vit.layer.0.norm_before.weight": (6,),
    "vit.layer.0.norm_before.bias": (6,),
    "vit.layer.0.dense.weight": (8, 6),
    "vit.layer.0.dense.bias": (8,),
    "classifier.weight": (3, 6),
    "classifier.bias": (3,),
}


def truth():
    torch.manual_seed(0)
    return {name: torch.randn(shape) for name, shape in SHAPES.items()}


def flax(state, *, end=""):
    """As Flax has it: matrices (in, out) called kernel, a norm's weight called scale."""
    made = {}
    for name, tensor in state.items():
        if name.endswith(".weight"):
            name = name.replace("weight", "scale" if "norm" in name else "kernel")
        made[name.replace(".", "/") + end] = tensor.T.contiguous() if tensor.ndim == 2 else tensor
    return made


@pytest.mark.parametrize("end", ["", ":0"])
def test_a_file_of_paths_is_read_as_one_of_dots(end, target_of):
    own = truth()
    checkpoint = saved_checkpoint(flax(own, end=end))
    plan = diagnose(checkpoint, target_of(SHAPES)).plan
    assert plan is not None and plan.complete and not plan.ambiguities
    assert plan.rules[0].id == "path-names"
    made = apply_plan(checkpoint, plan)
    assert made.keys() == own.keys() and all(torch.equal(made[name], tensor) for name, tensor in own.items())


def test_its_lines_do_the_same(tmp_path, monkeypatch, target_of):
    own = truth()
    torch.save(flax(own), tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    code = python_code(diagnose(checkpoint, target_of(SHAPES)).plan, file_name="a.pth")

    class Loaded:
        def load_state_dict(self, state, strict):
            self.held = state

    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(code, {"model": model})
    assert model.held.keys() == own.keys() and all(torch.equal(model.held[n], t) for n, t in own.items())


@pytest.mark.parametrize(
    "change",
    [
        lambda names: {**names, "a.b": (2,)},  # a dot somewhere: slashes are not all that separates
        lambda names: {name.replace("/", "_", 9): shape for name, shape in names.items()} | {"a/b": (2,)},
        lambda names: {**names, "vit//x": (2,)},  # a path with nothing between two slashes
    ],
)
def test_slashes_that_are_no_paths_are_left_alone(change, file_of, target_of):
    names = {name: tuple(tensor.shape) for name, tensor in flax(truth()).items()}
    plan = diagnose(file_of(change(names)), target_of(SHAPES)).plan
    assert plan is None or "path-names" not in [use.id for use in plan.rules]


def test_a_target_with_slashes_of_its_own_keeps_them(file_of, target_of):
    names = {name: tuple(tensor.shape) for name, tensor in flax(truth()).items()}
    theirs = {name.replace("vit/", "net/"): shape for name, shape in names.items()}
    plan = diagnose(file_of(names), target_of(theirs)).plan
    assert plan is None or "path-names" not in [use.id for use in plan.rules]
