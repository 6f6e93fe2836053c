"""A name that stands for another network than the weights is said; other spellings of the same network are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from inspector.architectures.recognise import recognise
from inspector.checkpoint.types import Checkpoint
from inspector.findings import Finding, Severity

Shapes = dict[str, tuple[int, ...]]
Make = Callable[..., Checkpoint]
Of = Callable[[str], Shapes]


def _misnamed(checkpoint: Checkpoint, name: str, metadata: tuple[tuple[str, str], ...] = ()) -> list[Finding]:
    named = replace(checkpoint, origin=replace(checkpoint.origin, name=name), metadata=metadata)
    return [f for f in recognise(named).findings if f.id == "named-otherwise"]


@pytest.mark.parametrize("name", ["resnet50.pth", "ResNet-50_best.safetensors", "runs/my resnet_50 v2.pt"])
def test_a_file_called_resnet50_with_another_networks_weights_is_a_warning(
    name: str, checkpoint: Make, shapes: Of
) -> None:
    (one,) = _misnamed(checkpoint(shapes("efficientnet_b0")), name)
    assert one.severity is Severity.WARNING and one.subjects == ("resnet50", "efficientnet_b0")
    assert one.says == "The file's name says resnet50, but the weights are those of torchvision's efficientnet_b0."


@pytest.mark.parametrize("key", ["arch", "model_name", "args.arch", "hyper_parameters.model_name"])
def test_an_arch_inside_that_names_another_network_is_a_warning(key: str, checkpoint: Make, shapes: Of) -> None:
    (one,) = _misnamed(checkpoint(shapes("efficientnet_b0")), "last.pth", ((key, '"resnet50"'),))
    assert one.says.startswith(f'"{key}" in the file says resnet50, but the weights are those of')


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("resnet50", "resnet50-best.pth"),
        ("resnet50", "ResNet-50.pth"),
        ("resnet50?num_classes=10&in_channels=1", "resnet50_mnist.pth"),
        ("efficientnet_b0", "myresnet50.pth"),
        ("efficientnet_b0", "efficientnet_b0_distilled_from_resnet50.pth"),
        ("efficientnet_b0", "model_best.pth"),
        ("efficientnet_b0", "tf_efficientnet_b0_ns.pth"),
        ("vit_b_16", "vit_base_patch16_224.safetensors"),
        ("mobilenet_v3_large", "mobilenetv3_large_100.pth"),
        ("fasterrcnn_resnet50_fpn", "detector-resnet50.pth"),
        ("resnet18", "quantized_resnet18.pth"),
    ],
)
def test_another_spelling_a_part_or_a_fitting_name_is_quiet(
    target: str, name: str, checkpoint: Make, shapes: Of
) -> None:
    assert _misnamed(checkpoint(shapes(target)), name) == []


@pytest.mark.parametrize("key", ["teacher.arch", "comment"])
def test_a_name_that_is_about_another_network_is_quiet(key: str, checkpoint: Make, shapes: Of) -> None:
    assert _misnamed(checkpoint(shapes("efficientnet_b0")), "last.pth", ((key, '"resnet50"'),)) == []
    assert _misnamed(checkpoint(shapes("resnet50")), "last.pth", (("arch", '"resnet50"'),)) == []


@pytest.mark.parametrize(
    "name", ["not_resnet18.pth", "best, not ResNet-50.pth", "better-than-resnet50.pth", "efficientnet vs resnet50.pth"]
)
def test_a_name_that_says_what_the_file_is_not_is_quiet(name: str, checkpoint: Make, shapes: Of) -> None:
    assert _misnamed(checkpoint(shapes("efficientnet_b0")), name) == []


def test_a_word_before_another_one_denies_only_that(checkpoint: Make, shapes: Of) -> None:
    assert len(_misnamed(checkpoint(shapes("efficientnet_b0")), "not_vit_b_16_but_resnet50.pth")) == 1
