"""Answers held against a reference and against a known pair; wrong places that load strictly must fail here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torchvision

from inspector.checkpoint.source import BufferSource
from inspector.errors import UsageError
from inspector.keys.diagnose import diagnose
from inspector.keys.proofs.answers import differ, pair_of, reference_of, say_equality
from inspector.keys.verify import Compared, verify_plan
from inspector.readers import open_checkpoint

NAME = "shufflenet_v2_x0_5"


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = getattr(torchvision.models, NAME)(num_classes=3).eval()
    generator = torch.Generator().manual_seed(1)
    for name, tensor in made.state_dict().items():
        if name.endswith(("running_mean", "bn.bias")):
            tensor.normal_(generator=generator).mul_(0.1)
    return made


@pytest.fixture
def case(saved, architecture, model):
    checkpoint = saved({f"module.{n}": t.clone() for n, t in model.state_dict().items()})
    goal = architecture(NAME, num_classes=3)
    return checkpoint, diagnose(checkpoint, goal).plan, goal


def _found(case, **given):
    return {p.id: p for p in verify_plan(*case, compared=Compared(**given)).proofs}


def _crossed(plan, one, other):
    """The same plan with two tensors of one shape on each other's places: it loads strictly."""
    steps = {s.target: s for s in plan.steps}
    a, b = steps[one], steps[other]
    swapped = {one: replace(a, source=b.source), other: replace(b, source=a.source)}
    return replace(plan, steps=tuple(swapped.get(s.target, s) for s in plan.steps))


WRONG = ("stage2.1.branch2.0.weight", "stage2.2.branch2.0.weight")


def test_an_equal_reference_is_proven_bit_for_bit(case, saved, model):
    reference = saved({n: t.clone() for n, t in model.state_dict().items()})
    proof = _found(case, reference=reference)["reference"]
    assert proof.passed and "bit for bit" in proof.says


def test_a_wrong_place_that_loads_strictly_fails_against_the_reference(case, saved, model):
    checkpoint, plan, goal = case
    wrong = (checkpoint, _crossed(plan, *WRONG), goal)
    assert verify_plan(*wrong).holds  # names, shapes, bytes and sanity let it pass
    reference = saved({n: t.clone() for n, t in model.state_dict().items()})
    proof = _found(wrong, reference=reference)["reference"]
    assert proof.passed is False and "largest difference is" in proof.says


def test_a_reference_that_must_be_guessed_itself_is_refused(case, saved, model, fingerprinted):
    _, _, goal = case
    nameless = saved({f"t{i:03}": t.clone() for i, t in enumerate(model.state_dict().values())}, ordered=True)
    with pytest.raises(UsageError, match="is no reference: it does not load into"):
        reference_of(nameless, goal)
    other = saved({n: t.clone() for n, t in torchvision.models.resnet18(num_classes=3).state_dict().items()})
    with pytest.raises(UsageError, match="is no reference"):
        reference_of(other, goal)


def test_without_a_model_the_tensors_themselves_are_compared(saved, target_of):
    goal = target_of({"a.weight": (2, 3), "a.num_batches_tracked": ()})
    state = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.num_batches_tracked": torch.tensor(5)}
    checkpoint = saved({f"module.{n}": t for n, t in state.items()})
    case = (checkpoint, diagnose(checkpoint, goal).plan, goal)
    same = saved(state | {"a.num_batches_tracked": torch.tensor(9)})
    proof = _found(case, reference=same)["reference"]
    assert proof.passed and "nothing was run" in proof.says
    other = saved(state | {"a.weight": torch.zeros(2, 3)})
    proof = _found(case, reference=other)["reference"]
    assert proof.passed is False and proof.says == "1 of 1 tensors differ from net.pth, a.weight first."


@pytest.fixture
def pair(model, tmp_path):
    """Written by numpy, torch and safetensors; read by our own readers."""
    from safetensors.torch import save_file

    given = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(5))
    with torch.inference_mode():
        expected = model(given).clone()

    def make(kind: str, output: torch.Tensor = expected):
        path = tmp_path / f"pair.{kind}"
        both = {"input": given, "output": output}
        if kind == "npz":
            np.savez(path, **{n: t.numpy() for n, t in both.items()})
        elif kind == "pt":
            torch.save(both, path)
        else:
            save_file(both, path)
        return open_checkpoint(BufferSource(path.read_bytes(), path.name))

    make.expected = expected
    return make


@pytest.mark.parametrize("kind", ["npz", "pt", "safetensors"])
def test_a_pair_is_answered_bit_for_bit(case, pair, kind):
    proof = _found(case, pair=pair(kind))["pair"]
    assert proof.passed and proof.says == f"Answers as pair.{kind} does, bit for bit."


def test_a_pair_within_the_tolerance_is_told_and_beyond_it_fails(case, pair):
    near = _found(case, pair=pair("pt", pair.expected * (1 + 2e-6)))["pair"]
    assert near.passed and "within 1e-05" in near.says and "bit for bit" not in near.says
    far = _found(case, pair=pair("pt", pair.expected * (1 + 1e-3)))["pair"]
    assert far.passed is False and far.says.startswith("Does not answer as pair.pt does")


def test_a_wrong_place_fails_against_a_pair(case, pair):
    checkpoint, plan, goal = case
    assert _found((checkpoint, _crossed(plan, *WRONG), goal), pair=pair("npz"))["pair"].passed is False


def test_a_pair_of_another_model_fails_in_words(case, pair):
    says = _found(case, pair=pair("pt", torch.zeros(2, 10)))["pair"]
    assert says.passed is False and says.says == "Against pair.pt: the model answers 2x3 instead of 2x10."


def test_a_file_without_input_and_output_is_no_pair(saved):
    with pytest.raises(UsageError, match=r"net.pth is no pair: it holds x, y"):
        pair_of(saved({"x": torch.ones(1), "y": torch.ones(1)}))


def test_values_that_are_not_finite_prove_nothing():
    nan = torch.tensor([1.0, float("nan")])
    proof = say_equality("pair", "p", *differ(nan, nan))
    assert proof.passed is False and "proves nothing" in proof.says


def test_the_tolerance_is_relative_to_the_largest_value():
    expected = torch.tensor([1000.0, 1e-6])
    assert say_equality("pair", "p", *differ(expected + torch.tensor([0.0, 0.005]), expected)).passed
    assert say_equality("pair", "p", *differ(expected + torch.tensor([0.0, 0.05]), expected)).passed is False
    zero = torch.zeros(3)
    assert say_equality("pair", "p", *differ(zero + 1e-9, zero)).passed is False
    assert say_equality("pair", "p", *differ(zero, zero)).passed
