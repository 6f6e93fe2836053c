"""The class count and the input channels that shapes show, whatever names say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inspector.architectures.following import Setting, followed
from inspector.architectures.targets import follow_shapes, parse_target

CLASSES = Setting(name="num_classes", value=10, laws=((4, 0, 1, 0), (5, 0, 1, 0)))
CHANNELS = Setting(name="in_channels", value=3, laws=((0, 1, 1, 0),))
TARGET = ((16, 3, 3, 3), (16,), (32, 16, 3, 3), (32,), (10, 32), (10,))


@pytest.mark.parametrize(
    ("ours", "found"),
    [
        (((16, 3, 3, 3), (16,), (32, 16, 3, 3), (32,), (4, 32), (4,)), {"num_classes": 4}),
        (((4,), (16,), (4, 32), (32, 16, 3, 3), (32,), (16, 1, 3, 3)), {"num_classes": 4, "in_channels": 1}),
        # Another library's axes: (in, out), (h, w, in, out).
        (((3, 3, 5, 16), (16,), (3, 3, 16, 32), (32,), (32, 7), (7,)), {"num_classes": 7, "in_channels": 5}),
        (((16, 3, 3, 3), (16,), (32, 16, 3, 3), (32,), (1, 32), (1,)), {"num_classes": 1}),
        (TARGET, {}),
    ],
)
def test_the_one_number_that_explains_what_is_left_over(ours, found):
    assert followed(TARGET, (CLASSES, CHANNELS), ours) == found


def test_two_heads_that_both_fit_say_nothing():
    ours = (*TARGET[:4], (4, 32), (4,), (7, 32), (7,))
    assert followed(TARGET, (CLASSES,), ours) == {}


def test_a_head_of_the_targets_own_size_beside_another_is_kept():
    assert followed(TARGET, (CLASSES,), (*TARGET, (4, 32), (4,))) == {}


def test_a_weight_without_its_bias_is_another_layer():
    """The prototypes of a metric loss have the width of the last layer, and no bias."""
    assert followed(TARGET, (CLASSES,), (*TARGET[:4], (9_131, 32))) == {}


def test_of_another_network_no_number_says_anything():
    assert followed(TARGET, (CLASSES,), ((4, 32), (4,), (99, 98), (97,))) == {}


def test_sizes_that_are_multiples_of_a_setting():
    """A detector's rows: 3 anchors x (classes + 5)."""
    rows = Setting(name="nc", value=80, laws=((1, 0, 3, 15), (2, 0, 3, 15)))
    target = ((32, 3, 3, 3), (255, 32, 1, 1), (255,))
    assert followed(target, (rows,), ((32, 3, 3, 3), (24, 32, 1, 1), (24,))) == {"nc": 3}
    assert followed(target, (rows,), ((32, 3, 3, 3), (25, 32, 1, 1), (25,))) == {}


@pytest.mark.parametrize("scramble", [False, True])
def test_a_known_architecture_follows_under_any_names(scramble, shapes, file_of):
    own = shapes("resnet18", num_classes=3) | {"conv1.weight": (64, 1, 7, 7)}
    renamed = {
        f"t{i}" if scramble else name.replace("fc", "my_out"): shape for i, (name, shape) in enumerate(own.items())
    }
    state = file_of(renamed).weights
    target = parse_target("torchvision/resnet18", state=state)
    assert target.label == "torchvision/resnet18?num_classes=3&in_channels=1"
    assert parse_target("torchvision/resnet18?num_classes=2", state=state).spec.num_classes == 2


def test_a_file_of_another_network_leaves_the_target_as_it_is(shapes, file_of):
    target = parse_target("torchvision/resnet18")
    assert follow_shapes(target, file_of(shapes("mobilenet_v2", num_classes=3)).weights) == target
    assert follow_shapes(replace(target, spec=None), None).spec is None
