"""Numbers that cannot stand where they stand, and healthy ones that must pass in silence."""

from __future__ import annotations

import pytest
import torch
import torchvision

from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.verify import verify_plan
from tests.raw import prove_values

HEALTHY = ("resnet18", "mobilenet_v3_small", "vit_b_32", "convnext_tiny", "swin_t", "densenet121")


def _step(name: str, evidence: Evidence) -> Step:
    return Step(
        kind=StepKind.RENAME,
        source=f"old.{name}",
        target=name,
        rule="same-order",
        reason="",
        cost=Cost.LOSSLESS,
        evidence=evidence,
    )


@pytest.mark.parametrize("name", HEALTHY)
def test_freshly_built_models_are_healthy(name):
    state = getattr(torchvision.models, name)().state_dict()
    proof = prove_values(state)
    assert proof.passed
    assert "norm" not in proof.says and "exchanged" not in proof.says


def test_exchanged_weights_and_biases_of_norms_fail():
    state = torchvision.models.resnet18().state_dict()
    norms = [n.removesuffix(".running_var") for n in state if n.endswith("running_var")]
    swapped = dict(state)
    for norm in norms:
        swapped[f"{norm}.weight"], swapped[f"{norm}.bias"] = state[f"{norm}.bias"], state[f"{norm}.weight"]
    proof = prove_values(swapped)
    assert proof.passed is False
    assert proof.says.startswith("bn1 has weights about 0 and biases about 1")
    assert "In 20 of 20 norms" in proof.says


def test_one_exchanged_norm_fails_only_where_somebody_placed_it():
    state = {n: torch.ones(8) if n.endswith("weight") else torch.zeros(8) for n in _names(4)}
    state["n2.weight"], state["n2.bias"] = state["n2.bias"], state["n2.weight"]
    # By its own name: an odd layer of the file.
    named = prove_values(state)
    assert named.passed and "n2 has weights about 0" in named.says
    for evidence in (Evidence.ORDER_ONLY, Evidence.CHOSEN, Evidence.SYMMETRIC, Evidence.UNIQUE_TOKEN):
        assert prove_values(state, [_step("n2.weight", evidence)]).passed is False
    for evidence in (Evidence.EXACT_NAME, Evidence.RULE):
        assert prove_values(state, [_step("n2.weight", evidence)]).passed
    # Placed, and right: nothing to say.
    assert "exchanged" not in prove_values(state | {"n2.weight": torch.ones(8), "n2.bias": torch.zeros(8)}).says


def _names(count: int) -> list[str]:
    return [f"n{i}.{leaf}" for i in range(count) for leaf in ("weight", "bias")]


def test_norms_that_start_at_zero_are_no_exchange():
    # zero_init_residual: weight zero, bias zero.
    state = torchvision.models.resnet18(zero_init_residual=True).state_dict()
    assert "exchanged" not in prove_values(state).says
    assert prove_values({"a.weight": torch.zeros(64), "a.bias": torch.zeros(64)}).says.endswith("counter.")


def test_a_wrong_placing_by_order_is_caught_by_its_values(saved, architecture):
    from inspector.keys.diagnose import diagnose

    own = torchvision.models.resnet18(num_classes=3).state_dict()
    goal = architecture("resnet18", num_classes=3)
    names = list(own)
    # Names that say nothing, weight and bias of every norm exchanged in order; shapes cannot tell.
    order = [_exchange(n) if n.rpartition(".")[0] + ".running_var" in own else n for n in names]
    checkpoint = saved({f"t{i:03}": own[n] for i, n in enumerate(order)}, ordered=True)
    report = diagnose(checkpoint, goal, accept=("same-order",))
    if report.plan is not None and report.plan.complete:
        assert not verify_plan(checkpoint, report.plan, goal).holds
    else:
        pytest.skip("the diagnosis asks or refuses by itself")


def _exchange(name: str) -> str:
    module, _, leaf = name.rpartition(".")
    return f"{module}.{ {'weight': 'bias', 'bias': 'weight'}.get(leaf, leaf) }"


def test_counters_are_whole_and_told_when_they_differ():
    counter = "num_batches_tracked"
    same = {f"a.{counter}": torch.tensor(7), f"b.{counter}": torch.tensor(7)}
    assert prove_values(same).says.endswith("no negative variance or counter.")
    differing = prove_values(same | {f"c.{counter}": torch.tensor(1200)})
    assert differing.passed and "counters of batches differ, 7 to 1,200" in differing.says
    floating = prove_values({f"a.{counter}": torch.tensor(7.0)})
    assert floating.passed and "1 counter of batches not stored as a whole number" in floating.says
    assert prove_values({f"a.{counter}": torch.tensor(7.5)}).passed is False
    assert prove_values({f"a.{counter}": torch.tensor(float("nan"))}).passed is False
    assert prove_values({f"a.{counter}": torch.tensor(-1)}).passed is False


@pytest.mark.parametrize("filling", [float("-inf"), torch.finfo(torch.float32).min, -65504.0])
def test_a_mask_of_minus_infinity_is_meant_so(filling):
    hidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
    mask = torch.zeros(6, 6).masked_fill(hidden, filling)
    proof = prove_values({"fc.weight": torch.randn(3, 3), "attn.hides": mask})
    assert proof.passed is True and "NaN" not in proof.says
    assert ("-inf of attn.hides, a mask's" in proof.says) == (filling == float("-inf"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("attn.mask", [0.0, float("-inf"), float("nan")]),
        ("attn.mask", [0.0, float("inf"), float("-inf")]),
        ("attn.mask", [0.0, float("-inf"), 0.5]),
        ("attn.mask", [float("-inf"), float("-inf"), float("-inf")]),
        ("fc.weight", [0.0, float("-inf"), 0.0]),
    ],
)
def test_what_is_no_mask_by_its_numbers_stays_broken(name, values):
    proof = prove_values({name: torch.tensor(values)})
    assert proof.passed is None and name in proof.says


def test_beside_a_mask_what_is_broken_is_counted_alone():
    mask = torch.tensor([[0.0, float("-inf")], [0.0, 0.0]])
    proof = prove_values({"attn.mask": mask, "fc.weight": torch.tensor([1.0, float("nan")])})
    assert proof.passed is None
    assert proof.says.startswith("1 of 6 floating-point values are NaN or infinite: fc.weight; beside the -inf of")
