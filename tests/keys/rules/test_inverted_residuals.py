"""EfficientNets and MobileNets between torchvision and timm: counted off block by block, or nothing is said."""

from __future__ import annotations

import random

import pytest

from inspector.architectures.targets import target_of
from inspector.architectures.types import ArchitectureSpec
from inspector.keys.diagnose import diagnose
from inspector.keys.rules.inverted_residuals import counterparts

PAIRS = (
    ("mobilenet_v2", "mobilenetv2_100"),
    ("mobilenet_v3_large", "mobilenetv3_large_100"),
    ("mobilenet_v3_small", "mobilenetv3_small_100"),
    ("efficientnet_b0", "efficientnet_b0"),
    ("efficientnet_v2_s", "tf_efficientnetv2_s"),
)
# By hand, from both libraries' builders.
TRUTH = {
    "features.0.0.weight": "conv_stem.weight",
    "features.0.1.running_var": "bn1.running_var",
    "features.1.block.0.0.weight": "blocks.0.0.conv_dw.weight",
    "features.1.block.1.fc1.bias": "blocks.0.0.se.conv_reduce.bias",
    "features.1.block.2.1.bias": "blocks.0.0.bn2.bias",
    "features.3.block.0.0.weight": "blocks.1.1.conv_pw.weight",
    "features.5.block.2.fc2.weight": "blocks.2.1.se.conv_expand.weight",
    "features.11.block.3.0.weight": "blocks.4.2.conv_pwl.weight",
    "features.12.0.weight": "blocks.5.0.conv.weight",
    "classifier.0.weight": "conv_head.weight",
    "classifier.3.bias": "classifier.bias",
}


def target(library, name, **more):
    return target_of(ArchitectureSpec(library=library, name=name, **more))


def shapes_of(library, name, **more):
    return {tensor.name: tensor.shape for tensor in target(library, name, **more).tensors}


def used(report):
    return {use.id for use in report.plan.rules} if report.plan is not None else set()


def mixed(shapes, before=""):
    names = list(shapes)
    random.Random(3).shuffle(names)
    return {before + name: shapes[name] for name in names}


@pytest.mark.parametrize("names", PAIRS)
@pytest.mark.parametrize("to_timm", [True, False])
def test_each_library_reads_the_others_file_in_any_order(names, to_timm, file_of, placed_as):
    (ours, theirs), libraries = (names, ("torchvision", "timm")) if to_timm else (names[::-1], ("timm", "torchvision"))
    goal = target(libraries[1], theirs)
    report = diagnose(file_of(mixed(shapes_of(libraries[0], ours), "module."), ordered=False), goal)
    assert report.plan.complete and not report.plan.needs_accept
    assert {"inverted-residuals", "wrapper-segment"} <= used(report)
    assert len(set(placed_as(report).values())) == len(goal.tensors)


def test_the_table_by_hand(file_of, placed_as):
    ours = shapes_of("torchvision", "mobilenet_v3_small")
    report = diagnose(file_of(mixed(ours), ordered=False), target("timm", "mobilenetv3_small_100"))
    there = {source: place for place, source in placed_as(report).items()}
    assert {name: there[name] for name in TRUTH} == TRUTH


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_no_two_modules_have_one_counterpart_and_norms_are_norms(ours, theirs):
    here = shapes_of("torchvision", ours)
    made = counterparts(here, shapes_of("timm", theirs))
    assert made and len(set(made.values())) == len(made)
    assert all(there.endswith(("bn1", "bn2", "bn3")) is (f"{own}.running_mean" in here) for own, there in made.items())


def test_another_class_count_is_a_head_of_another_size(file_of):
    ours = shapes_of("torchvision", "efficientnet_b0", num_classes=7)
    report = diagnose(file_of(mixed(ours)), target("timm", "efficientnet_b0"))
    assert report.plan.needs_accept == ("head-mismatch",)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("efficientnet_v2_s", "efficientnetv2_rw_s"),  # another first stage
        ("mobilenet_v3_large", "mobilenetv3_small_100"),  # another depth
        ("efficientnet_b0", "efficientnet_b3"),
    ],
)
def test_other_networks_of_the_family_are_not_counted_off(ours, theirs, file_of):
    report = diagnose(file_of(mixed(shapes_of("torchvision", ours))), target("timm", theirs))
    assert "inverted-residuals" not in used(report) and not (report.plan and report.plan.complete)


@pytest.mark.parametrize("change", ["a block less", "a norm less", "excitation elsewhere", "another width"])
def test_one_block_that_differs_and_nothing_is_said(change, file_of):
    ours = shapes_of("torchvision", "mobilenet_v3_small")
    if change == "a block less":
        ours = {name: shape for name, shape in ours.items() if not name.startswith("features.6.")}
    elif change == "a norm less":
        ours = {name: shape for name, shape in ours.items() if not name.startswith("features.6.block.1.1.")}
    elif change == "excitation elsewhere":
        ours = {name.replace("features.2.block.2.", "features.2.block.3."): shape for name, shape in ours.items()}
        ours["features.2.block.2.fc1.weight"] = (24, 72, 1, 1)
    else:
        ours["features.6.block.1.0.weight"] = (240, 1, 3, 3)
    report = diagnose(file_of(mixed(ours)), target("timm", "mobilenetv3_small_100"))
    assert "inverted-residuals" not in used(report) and not (report.plan and report.plan.complete)
