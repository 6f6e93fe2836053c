"""Nets of Flax, Keras, Haiku and TF-slim whose layers nobody named, put into torch's: every number is right."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torchvision.models import resnet18

from inspector.architectures import targets
from inspector.architectures.types import ArchitectureSpec
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.keys.placing.words import CONTRADICTION, read, relation

STATS = {"running_mean": "mean", "running_var": "var"}


def _module(*, norms: bool, bias: bool = True, **names: str) -> nn.ModuleDict:
    made = {
        names["first"]: nn.Conv2d(3, 8, 3, bias=bias),
        names["second"]: nn.Conv2d(8, 16, 3, bias=bias),
        names["head"]: nn.Linear(16, 5),
    }
    if norms:
        made |= {names["norm1"]: nn.BatchNorm2d(8), names["norm2"]: nn.BatchNorm2d(16)}
    return nn.ModuleDict(made)


def _values(module: nn.Module) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    held = {n: x for n, x in module.state_dict().items() if x.dim()}
    return {n: torch.rand(x.shape) + (0.5 if x.dim() == 1 else -0.5) for n, x in held.items()}


def _elsewhere(value: torch.Tensor) -> torch.Tensor:
    """(h, w, in, out) and (in, out)."""
    return (value.permute(2, 3, 1, 0) if value.dim() == 4 else value.t() if value.dim() == 2 else value).contiguous()


def _flax(values, names):
    made = {}
    for name, value in values.items():
        module, _, last = name.rpartition(".")
        last = STATS.get(last, last)
        own = last if last != "weight" else "scale" if value.dim() == 1 else "kernel"
        made[f"{'batch_stats' if last in ('mean', 'var') else 'params'}/{names[module]}/{own}"] = _elsewhere(value)
    return dict(sorted(made.items()))


TORCH = {"first": "conv1", "second": "conv2", "head": "fc", "norm1": "bn1", "norm2": "bn2"}
FLAX = ("Conv_0", "Conv_1", "Dense_0", "BatchNorm_0", "BatchNorm_1")
LATER = {"first": "conv_0", "second": "conv_1", "head": "dense_0", "norm1": "bn_0", "norm2": "bn_1"}


@pytest.mark.parametrize("names", [TORCH, LATER], ids=["from-one", "from-zero"])
@pytest.mark.parametrize(("norms", "bias"), [(False, True), (True, True), (True, False)])
def test_flaxs_classes_are_counted_as_the_targets_layers_are(names, norms, bias, saved, target_of):
    values = _values(_module(norms=norms, bias=bias, **names))
    file = _flax(values, dict(zip(names.values(), FLAX, strict=True)))
    checkpoint = saved(file, ordered=False)
    report = diagnose(checkpoint, target_of({n: tuple(x.shape) for n, x in values.items()}))
    assert report.plan.complete and not report.plan.needs_accept
    made = apply_plan(checkpoint, report.plan)
    assert all(torch.equal(made[n], x) for n, x in values.items())


@pytest.mark.parametrize(
    "names",
    [
        ("conv2d", "conv2d_1", "dense"),
        ("Conv_0", "Conv_1", "Dense_0"),
        ("params/Conv_0", "params/Conv_1", "params/Dense_0"),
    ],
)
def test_kernels_of_layers_that_nobody_named_find_their_place(names, saved, target_of):
    values = _values(_module(norms=False, **TORCH))
    table = dict(zip(("conv1", "conv2", "fc"), names, strict=True))
    own = {"weight": "kernel", "bias": "bias"}
    file = {
        f"{table[module]}/{own[last]}": _elsewhere(x)
        for n, x in values.items()
        for module, _, last in [n.rpartition(".")]
    }
    checkpoint = saved(file, ordered=False)
    report = diagnose(checkpoint, target_of({n: tuple(x.shape) for n, x in values.items()}))
    assert report.plan.complete
    made = apply_plan(checkpoint, report.plan)
    assert all(torch.equal(made[n], x) for n, x in values.items())


def test_tf_slims_weights_and_biases_are_a_layers(saved, target_of):
    values = _values(_module(norms=False, **TORCH))
    file = {
        f"net/{n.replace('.weight', '/weights').replace('.bias', '/biases')}:0": _elsewhere(x)
        for n, x in values.items()
    }
    checkpoint = saved(file)
    goal = target_of({n: tuple(x.shape) for n, x in values.items()})
    asked = diagnose(checkpoint, goal)
    assert [q.id for q in asked.plan.ambiguities] in ([], ["channels-last"])
    made = apply_plan(
        checkpoint, diagnose(checkpoint, goal, choose={q.id: "hwio" for q in asked.plan.ambiguities}).plan
    )
    assert all(torch.equal(made[n], x) for n, x in values.items())


def test_haikus_layers_are_counted_from_zero(saved, target_of):
    sizes = {"fc1": (8, 6), "fc2": (8, 8), "fc3": (3, 8)}
    values = {f"{n}.weight": torch.rand(s) for n, s in sizes.items()} | {
        f"{n}.bias": torch.rand(s[0]) for n, s in sizes.items()
    }
    own = {"weight": "w", "bias": "b"}
    file = {f"mlp/~/linear_{int(n[2]) - 1}/{own[n.rpartition('.')[2]]}": _elsewhere(x) for n, x in values.items()}
    checkpoint = saved(file, ordered=False)
    report = diagnose(checkpoint, target_of({n: tuple(x.shape) for n, x in values.items()}))
    assert report.plan.complete
    made = apply_plan(checkpoint, report.plan)
    assert all(torch.equal(made[n], x) for n, x in values.items())


def test_a_row_with_a_gap_is_no_count_from_zero():
    from inspector.keys.placing.hidden_words import unhidden
    from inspector.keys.placing.tree import Leaf

    ours = [Leaf(f"Conv_{n}.weight", (4, 4, 3, 3)) for n in (0, 2)]
    theirs = [Leaf(f"conv{n}.weight", (4, 4, 3, 3)) for n in (1, 2)]
    assert unhidden(ours, theirs, ordered=True)[0] is None
    whole = [Leaf(f"Conv_{n}.weight", (4, 4, 3, 3)) for n in (0, 1)]
    assert [x.name for x in unhidden(whole, theirs, ordered=True)[0]] == ["Conv_1.weight", "Conv_2.weight"]


def _resnet_of_the_flax_examples() -> dict[str, str]:
    """torch's module -> Flax's, in flax/examples/imagenet: only the first layer and the shortcuts are named."""
    names = {"conv1": "conv_init", "bn1": "bn_init", "fc": "Dense_0"}
    for number, (stage, block) in enumerate((stage, block) for stage in (1, 2, 3, 4) for block in (0, 1)):
        ours, theirs = f"layer{stage}.{block}", f"ResNetBlock_{number}"
        for one in (1, 2):
            names |= {
                f"{ours}.conv{one}": f"{theirs}/Conv_{one - 1}",
                f"{ours}.bn{one}": f"{theirs}/BatchNorm_{one - 1}",
            }
        names |= {f"{ours}.downsample.0": f"{theirs}/conv_proj", f"{ours}.downsample.1": f"{theirs}/norm_proj"}
    return names


def test_the_flax_examples_resnet_is_torchvisions(saved):
    values = _values(resnet18())
    checkpoint = saved(_flax(values, _resnet_of_the_flax_examples()), ordered=False)
    report = diagnose(checkpoint, targets.target_of(ArchitectureSpec(library="torchvision", name="resnet18")))
    assert report.plan.complete and not report.plan.needs_accept
    made = apply_plan(checkpoint, report.plan)
    assert all(torch.equal(made[n], x) for n, x in values.items())


@pytest.mark.parametrize(("file", "places"), [("fc1_init", "fc1"), ("conv1_init", "conv1"), ("conv2_init", "conv1")])
def test_a_counted_layers_first_values_are_not_its_weights(file, places):
    one, other = (read((name,), 0) for name in (file, places))
    assert relation(one, other) == CONTRADICTION
