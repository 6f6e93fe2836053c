"""The certificate over the trained sample: proved in place, contradicted elsewhere, open where nothing was learnt."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
import torch
import torchvision
from numpy.typing import NDArray
from safetensors.numpy import load_file

from inspector.architectures.targets import parse_spec, target_of
from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.raw_tensor import computed_tensor
from inspector.keys.certificate.numbers import certificate_of
from inspector.keys.certificate.types import Certificate, Standing
from inspector.keys.proofs.places import judge_places
from tests.house_parsed import ROOT

State = Mapping[str, NDArray[np.generic]]
KERNEL = "stage3.{}.branch2.5.weight"
NORM = "stage3.{}.branch2.{}"


@cache
def sample() -> State:
    return load_file(ROOT / "sample_models" / "weights" / "shapes.safetensors")


@cache
def by_graph() -> Target:
    return target_of(parse_spec("torchvision/shufflenet_v2_x0_5?num_classes=4"))


def by_order(state: State) -> Target:
    """The same names in the same order, and no model: what a list of keys with shapes tells."""
    tensors = tuple(TargetTensor(name=t.name, shape=state[t.name].shape) for t in by_graph().tensors)
    return Target(label="keys", kind=TargetKind.KEYS, tensors=tensors)


def certify(state: State, target: Target | None = None) -> Certificate:
    found = certificate_of(target or by_graph(), lambda name: computed_tensor(state[name]))
    assert found is not None
    return found


def standing(certificate: Certificate, name: str) -> Standing:
    return next(one.standing for one in certificate.tensors if one.name == name)


def reason(certificate: Certificate, name: str) -> str:
    return next(one.reason for one in certificate.tensors if one.name == name)


def exchanged(a: str, b: str) -> State:
    return {**sample(), a: sample()[b], b: sample()[a]}


@cache
def intact() -> Certificate:
    return certify(sample())


def test_an_intact_file_is_proved_and_nothing_speaks_against_it():
    found = intact()
    assert (found.held, found.chains) == (37, 37)
    assert found.count(Standing.PROVED) > 110 and not found.contradicts and found.certain
    assert standing(found, NORM.format(3, 1) + ".running_mean") is Standing.PROVED
    assert standing(found, KERNEL.format(4)) is Standing.PROVED
    # Where two ways of a block meet again, and where nobody reads on, nothing is known.
    assert (
        standing(found, "fc.weight") is Standing.OPEN and reason(found, "fc.weight") == "no batch norm comes behind it"
    )
    assert "its other axis is open" in reason(found, "stage3.1.branch2.0.weight")
    proof = judge_places(found)
    assert proof.passed and f"prove {found.count(Standing.PROVED)} of 282 tensors" in proof.says


def test_the_order_of_definition_does_it_too_and_needs_no_model():
    found = certify(sample(), by_order(sample()))
    assert found.count(Standing.PROVED) > 80 and not found.contradicts and not found.certain


def test_a_shuffled_file_is_contradicted():
    rng = np.random.default_rng(3)
    by_shape: dict[tuple[int, ...], list[str]] = {}
    for name, tensor in sample().items():
        by_shape.setdefault(tensor.shape, []).append(name)
    state = dict(sample())
    for names in by_shape.values():
        for name, other in zip(names, rng.permutation(len(names)), strict=True):
            state[name] = sample()[names[other]]
    found = certify(state)
    assert found.contradicts
    assert judge_places(found).passed is False
    moved = [n for n in state if not np.array_equal(state[n], sample()[n])]
    assert not [n for n in moved if standing(found, n) is Standing.PROVED]


def test_two_kernels_exchanged_are_noticed_and_neither_is_proved():
    a, b = KERNEL.format(2), KERNEL.format(5)
    found = certify(exchanged(a, b))
    assert found.contradicts
    assert standing(found, a) is not Standing.PROVED and standing(found, b) is not Standing.PROVED
    # The others keep their proofs.
    assert standing(found, KERNEL.format(4)) is Standing.PROVED


def test_the_channels_of_one_tensor_in_another_order_prove_nothing():
    order = np.random.default_rng(0).permutation(48)
    for name in (KERNEL.format(4), NORM.format(3, 1) + ".running_mean", NORM.format(4, 4) + ".bias"):
        assert standing(intact(), name) is Standing.PROVED
        found = certify({**sample(), name: sample()[name][order]})
        assert standing(found, name) is not Standing.PROVED, name
    # The kernel's other axis, which no norm behind it can see.
    found = certify({**sample(), KERNEL.format(4): sample()[KERNEL.format(4)][:, order]})
    assert standing(found, KERNEL.format(4)) is Standing.OPEN


def test_what_was_never_trained_is_left_open():
    torch.manual_seed(0)
    fresh = torchvision.models.shufflenet_v2_x0_5(num_classes=4).state_dict()
    found = certify({name: tensor.numpy() for name, tensor in fresh.items()})
    assert (found.count(Standing.PROVED), found.contradicts) == (0, False)
    assert reason(found, NORM.format(3, 1) + ".running_mean") == "its norm's statistics were never trained"
    proof = judge_places(found)
    assert proof.passed is None
    assert proof.says == "No place is proved by the numbers: the batch norms' statistics were never trained."


@pytest.mark.parametrize("dtype", ["float16"])
def test_half_precision_and_numbers_that_are_not_finite(dtype):
    half = {name: tensor.astype(dtype) if tensor.dtype == np.float32 else tensor for name, tensor in sample().items()}
    ill = NORM.format(6, 1)
    half[f"{ill}.running_mean"] = np.full(48, np.nan, dtype)
    found = certify(half)
    assert found.count(Standing.PROVED) > 100 and not found.contradicts
    assert reason(found, f"{ill}.running_mean") == "its norm has no finite numbers"


def test_a_network_without_batch_norms_has_no_certificate():
    target = target_of(parse_spec("torchvision/vit_b_32"))
    assert certificate_of(target, lambda name: None) is None
