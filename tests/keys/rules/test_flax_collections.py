"""Flax's params and batch_stats, and matrices and kernels whose layout only the library's name tells."""

from __future__ import annotations

import re

import pytest
import torch
from safetensors.torch import save_file

from inspector.architectures.targets import parse_target
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

WIDTH = 5
NORM = {"weight": "scale", "bias": "bias"}


def torch_side():
    torch.manual_seed(0)
    return {
        "conv.weight": torch.randn(3, 3, 3, 3),
        "bn.weight": torch.randn(3),
        "bn.bias": torch.randn(3),
        "bn.running_mean": torch.randn(3),
        "bn.running_var": torch.rand(3),
        "fc1.weight": torch.randn(WIDTH, WIDTH),
        "fc1.bias": torch.randn(WIDTH),
        "fc2.weight": torch.randn(WIDTH, WIDTH),
        "fc2.bias": torch.randn(WIDTH),
    }


def stored(tensor):
    """As Flax and Keras store a linear layer and a convolution."""
    return tensor.T.contiguous() if tensor.dim() == 2 else tensor.permute(2, 3, 1, 0).contiguous()


def repaired(tmp_path, ours, theirs, **answers):
    torch.save(ours, tmp_path / "a.pth")
    torch.save(theirs, tmp_path / "b.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    report = diagnose(checkpoint, parse_target(f"file:{tmp_path / 'b.pth'}", open_file=open_checkpoint), **answers)
    assert report.plan is not None
    return report, apply_plan(checkpoint, report.plan) if report.plan.complete else {}


def flax(truth, separator="."):
    names = {"running_mean": "mean", "running_var": "var", "weight": "kernel"}
    made = {}
    for name, tensor in truth.items():
        module, leaf = name.split(".")
        tree = "batch_stats" if leaf.startswith("running") else "params"
        leaf = NORM[leaf] if module == "bn" and leaf in NORM else names.get(leaf, leaf)
        made[separator.join((tree, module, leaf))] = stored(tensor) if leaf == "kernel" else tensor
    return made


def keras(truth):
    names = {"running_mean": "moving_mean", "running_var": "moving_variance"}
    made = {}
    for name, tensor in truth.items():
        module, leaf = name.split(".")
        if module == "bn":
            leaf = {"weight": "gamma", "bias": "beta"}.get(leaf, names.get(leaf))
        elif leaf == "weight":
            leaf, tensor = "kernel", stored(tensor)
        made[f"{module}.{leaf}"] = tensor
    return made


def paddle(truth):
    names = {"running_mean": "_mean", "running_var": "_variance"}
    made = {}
    for name, tensor in truth.items():
        module, leaf = name.split(".")
        made[f"{module}.{names.get(leaf, leaf)}"] = stored(tensor) if tensor.dim() == 2 else tensor
    return made


def with_slashes(truth):
    return flax(truth, "/")


@pytest.mark.parametrize("written", [flax, with_slashes, keras, paddle])
def test_the_library_decides_what_no_shape_tells(tmp_path, written):
    truth = torch_side()
    report, made = repaired(tmp_path, written(truth), truth)
    # Flax stores a transposed convolution flipped, and with equal channels nothing tells it from another. Paddle says
    # weight as everybody does: what lies how is asked once for all matrices, and once for all kernels.
    # Keras's transposed convolutions lie as its others do.
    answers = {"paddle": {"transposed": "transposed", "channels-last": "oihw"}, "keras": {}}
    choose = answers.get(written.__name__, {"transposed-convolution": "as-the-others"})
    assert [q.id for q in report.plan.ambiguities] == list(choose)[::-1]
    if choose:
        _, made = repaired(tmp_path, written(truth), truth, choose=choose)
    assert made.keys() == truth.keys() and all(torch.equal(made[n], t) for n, t in truth.items())


def test_without_the_library_square_matrices_stay_a_question(tmp_path):
    truth = {n: t for n, t in torch_side().items() if n.startswith("fc")} | {"out.weight": torch.randn(2, WIDTH)}
    ours = {n: t.T.contiguous() if t.dim() == 2 else t for n, t in truth.items()}
    report, _ = repaired(tmp_path, ours, truth)
    assert {q.id for q in report.plan.ambiguities} & {"transposed", "transposed-shapes"}


def test_a_file_of_torch_with_such_words_is_left_alone(tmp_path):
    truth = {f"params.{n}": t for n, t in torch_side().items()}
    report, made = repaired(tmp_path, truth, torch_side())
    assert not any(use.id == "flax-collections" for use in report.plan.rules)
    assert all(torch.equal(made[n], t) for n, t in torch_side().items())


def as_list():
    """Three blocks of a list: (file, target), where Flax calls the list's second layer layer.layer_1."""
    torch.manual_seed(0)
    truth = {f"net.layer.{n}.dense.weight": torch.randn(7, 5) for n in range(3)}
    truth |= {f"net.layer.{n}.dense.bias": torch.randn(7) for n in range(3)}
    ours = {}
    for name, tensor in truth.items():
        own = re.sub(r"layer\.([0-9])", r"layer.layer_\1", name).replace("weight", "kernel")
        ours[f"params.{own}"] = stored(tensor) if tensor.dim() == 2 else tensor
    return ours, truth


def test_a_list_that_flax_names_twice_is_the_list(tmp_path):
    ours, truth = as_list()
    assert "params.net.layer.layer_0.dense.kernel" in ours
    report, made = repaired(tmp_path, ours, truth)
    assert report.plan.complete and "flax-collections" in [use.id for use in report.plan.rules]
    assert made.keys() == truth.keys() and all(torch.equal(made[n], t) for n, t in truth.items())


def test_a_target_that_says_it_twice_as_well_keeps_it(tmp_path):
    ours, truth = as_list()
    twice = {name.replace("layer.", "layer.layer_", 1): tensor for name, tensor in truth.items()}
    _, made = repaired(tmp_path, ours, twice)
    assert made.keys() == twice.keys() and all(torch.equal(made[n], t) for n, t in twice.items())


def without_biases():
    torch.manual_seed(0)
    return {"net.q.weight": torch.randn(WIDTH, WIDTH), "net.wi.weight": torch.randn(7, WIDTH)}


@pytest.mark.parametrize(("written", "asked"), [("flax", False), ("pt", True), ("np", True)])
def test_what_the_metadata_name_as_writer_decides_where_no_bias_does(tmp_path, written, asked):
    truth = without_biases()
    ours = {name.replace("weight", "kernel"): stored(tensor) for name, tensor in truth.items()}
    save_file(ours, tmp_path / "a.safetensors", metadata={"format": written})
    torch.save(truth, tmp_path / "b.pth")
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    plan = diagnose(checkpoint, parse_target(f"file:{tmp_path / 'b.pth'}", open_file=open_checkpoint)).plan
    assert plan.complete is not asked and bool(plan.ambiguities) is asked
    if not asked:
        made = apply_plan(checkpoint, plan)
        assert made.keys() == truth.keys() and all(torch.equal(made[n], t) for n, t in truth.items())


def test_metadata_beside_names_of_torchs_norms_prove_nothing(tmp_path):
    truth = without_biases() | {"net.bn.running_mean": torch.randn(3)}
    ours = {name.replace("weight", "kernel"): stored(t) if t.dim() == 2 else t for name, t in truth.items()}
    save_file(ours, tmp_path / "a.safetensors", metadata={"format": "flax"})
    torch.save(truth, tmp_path / "b.pth")
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    plan = diagnose(checkpoint, parse_target(f"file:{tmp_path / 'b.pth'}", open_file=open_checkpoint)).plan
    assert plan.ambiguities
