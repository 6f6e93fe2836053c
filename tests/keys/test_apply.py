"""The plan done: every number of the file on its place, and nothing else."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
import torchvision

from inspector.architectures.types import ArchitectureSpec
from inspector.errors import KeysDoNotFit
from inspector.keys.apply import apply_plan, load_repaired
from inspector.keys.diagnose import diagnose
from tests.raw import spread_channels


def test_fingerprinted_tensors_land_on_their_own_places_and_logits_are_equal(saved, fingerprinted, architecture):
    model = torchvision.models.resnet18(num_classes=3).eval()
    own = fingerprinted(model)
    goal = architecture("resnet18", num_classes=3)
    checkpoint = saved({f"module.{n}": t for n, t in reversed(own.items())})
    report = diagnose(checkpoint, goal)
    made = apply_plan(checkpoint, report.plan)
    assert list(made) == list(own)  # the target's order, not the file's
    assert all(torch.equal(made[n], t) for n, t in own.items())
    again = load_repaired(checkpoint, report.plan, goal.spec)
    assert not again.training
    noise = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.equal(again(noise), model(noise))


def test_tied_tensors_stay_one(saved, target_of):
    shared = torch.randn(4, 3)
    checkpoint = saved({"module.embed.weight": shared, "module.head.weight": shared})
    report = diagnose(checkpoint, target_of({"embed.weight": (4, 3), "head.weight": (4, 3)}))
    made = apply_plan(checkpoint, report.plan)
    assert made["embed.weight"].data_ptr() == made["head.weight"].data_ptr()
    assert torch.equal(made["head.weight"], shared)


def test_versions_are_renamed_with_the_tensors(saved, target_of):
    model = torch.nn.Sequential(OrderedDict(bn=torch.nn.BatchNorm1d(3), act=torch.nn.ReLU()))
    plain = model.state_dict()
    wrapped = torch.nn.DataParallel(model).state_dict()
    checkpoint = saved(wrapped)
    report = diagnose(checkpoint, target_of({n: tuple(t.shape) for n, t in plain.items()}))
    made = apply_plan(checkpoint, report.plan)
    assert dict(made._metadata) == {path: dict(entry) for path, entry in plain._metadata.items()}


def test_a_file_without_batch_counters_gets_zeros_of_int64(saved, fingerprinted, architecture):
    own = fingerprinted(torchvision.models.resnet18(num_classes=2))
    checkpoint = saved({n: t for n, t in own.items() if not n.endswith("num_batches_tracked")})
    goal = architecture("resnet18", num_classes=2)
    made = apply_plan(checkpoint, diagnose(checkpoint, goal).plan)
    counter = made["bn1.num_batches_tracked"]
    assert counter.dtype is torch.int64 and counter.shape == () and int(counter) == 0
    assert list(made) == list(own)


def test_what_is_left_out_need_not_be_readable(saved, target_of):
    checkpoint = saved({"a.weight": torch.ones(2, 3), "a.total_ops": torch.zeros(1, device="cpu")})
    state = checkpoint.state_dicts[0]
    from dataclasses import replace

    gone = tuple(replace(t, storage_id=None, note="meta tensor") if "ops" in t.name else t for t in state.tensors)
    checkpoint = replace(checkpoint, state_dicts=(replace(state, tensors=gone),))
    plan = diagnose(checkpoint, target_of({"a.weight": (2, 3)})).plan
    assert list(apply_plan(checkpoint, plan)) == ["a.weight"]


def test_an_accepted_new_head_is_initialised_and_the_random_state_is_left_alone(saved, fingerprinted, architecture):
    own = fingerprinted(torchvision.models.resnet18(num_classes=5))
    checkpoint = saved(own)
    goal = architecture("resnet18", num_classes=3)
    open_plan = diagnose(checkpoint, goal).plan
    with pytest.raises(KeysDoNotFit, match="head-mismatch must be accepted"):
        apply_plan(checkpoint, open_plan, spec=goal.spec)
    plan = diagnose(checkpoint, goal, accept=["head-mismatch"]).plan
    with pytest.raises(KeysDoNotFit, match=r"keep the model's initial value \(fc.weight first\)"):
        apply_plan(checkpoint, plan)
    torch.manual_seed(11)
    expected = torch.rand(1)
    torch.manual_seed(11)
    first = apply_plan(checkpoint, plan, spec=goal.spec)
    assert torch.equal(torch.rand(1), expected)
    second = apply_plan(checkpoint, plan, spec=goal.spec)
    assert first["fc.weight"].shape == (3, 512) and torch.equal(first["fc.weight"], second["fc.weight"])
    # torch's Linear draws from +-1/sqrt(in): the standard deviation of that is 1/sqrt(3 in).
    assert first["fc.weight"].std().item() == pytest.approx((3 * 512) ** -0.5, rel=0.1)
    assert torch.equal(first["layer4.1.conv2.weight"], own["layer4.1.conv2.weight"])


def test_a_grey_picture_gets_the_same_answer_from_the_summed_filters():
    weight = torch.randn(4, 3, 3, 3, dtype=torch.float64)
    grey = torch.randn(1, 1, 8, 8, dtype=torch.float64)
    conv = torch.nn.functional.conv2d
    one = conv(grey, spread_channels(weight, 1))
    assert torch.allclose(one, conv(grey.expand(-1, 3, -1, -1), weight), atol=1e-12)
    five = conv(grey.expand(-1, 5, -1, -1), spread_channels(weight, 5))
    assert torch.allclose(five, one, atol=1e-12)
    assert spread_channels(weight.half(), 1).dtype is torch.float16


def test_a_first_convolution_is_adapted_only_when_accepted(saved, fingerprinted, architecture):
    own = fingerprinted(torchvision.models.resnet18(num_classes=2))
    checkpoint = saved(own)
    goal = architecture("resnet18", num_classes=2, in_channels=1)
    assert diagnose(checkpoint, goal).plan.needs_accept == ("first-convolution",)
    plan = diagnose(checkpoint, goal, accept=["first-convolution"]).plan
    model = load_repaired(checkpoint, plan, goal.spec)
    summed = own["conv1.weight"].double().sum(1, keepdim=True).float()
    assert torch.equal(model.conv1.weight, summed)


def test_an_incomplete_plan_is_not_applied(saved, target_of):
    checkpoint = saved({"a.weight": torch.ones(2, 3)})
    plan = diagnose(checkpoint, target_of({"a.weight": (2, 3), "a.bias": (2,)})).plan
    with pytest.raises(KeysDoNotFit, match=r"1 tensor is missing, a.bias first"):
        apply_plan(checkpoint, plan)


def test_loading_into_another_architecture_than_planned_for_is_an_error(saved, fingerprinted, architecture):
    checkpoint = saved(fingerprinted(torchvision.models.resnet18(num_classes=2)))
    plan = diagnose(checkpoint, architecture("resnet18", num_classes=2)).plan
    with pytest.raises(KeysDoNotFit, match="do not load into torchvision/vgg11"):
        load_repaired(checkpoint, plan, ArchitectureSpec(library="torchvision", name="vgg11"))
