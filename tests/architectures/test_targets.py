"""Targets as people write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.architectures.key_lists import target_of_list
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import (
    is_architecture,
    parse_spec,
    parse_target,
    target_of,
    target_of_candidate,
)
from inspector.architectures.types import TargetKind
from inspector.checkpoint.types import Checkpoint
from inspector.errors import ReadError, UnknownArchitecture, UsageError

Shapes = dict[str, tuple[int, ...]]


def test_a_target_has_the_models_tensors_heads_and_first_convolutions() -> None:
    target = parse_target("torchvision/resnet18?num_classes=10&in_channels=1")
    by_name = {t.name: t for t in target.tensors}
    assert target.kind is TargetKind.ARCHITECTURE and len(target.tensors) == 122
    assert by_name["fc.weight"].shape == (10, 512) and by_name["conv1.weight"].shape == (64, 1, 7, 7)
    assert by_name["bn1.running_mean"].is_buffer is True and by_name["conv1.weight"].is_buffer is False
    assert by_name["bn1.num_batches_tracked"].dtype == "int64"
    assert target.heads == ("fc.weight", "fc.bias") and target.first_convolutions == ("conv1.weight",)
    assert target.label == "torchvision/resnet18?num_classes=10&in_channels=1"
    assert target.spec is not None and target.spec.num_classes == 10


def test_what_is_left_open_follows_the_file(
    checkpoint: Callable[..., Checkpoint], shapes: Callable[[str], Shapes]
) -> None:
    best = recognise(checkpoint(shapes("fcn_resnet50?num_classes=3&in_channels=1&aux_loss=true"))).best
    assert best is not None
    followed = parse_target("torchvision/fcn_resnet50", candidate=best)
    assert followed.tensors == target_of_candidate(best).tensors
    assert followed.label == "torchvision/fcn_resnet50?num_classes=3&in_channels=1&aux_loss=True"
    fixed = parse_target("torchvision/fcn_resnet50?num_classes=21&aux_loss=false", candidate=best)
    assert fixed.label == "torchvision/fcn_resnet50?num_classes=21&in_channels=1&aux_loss=False"
    assert not any(t.name.startswith("aux_classifier") for t in fixed.tensors)
    other = parse_target("torchvision/fcn_resnet101", candidate=best)
    assert other.label == "torchvision/fcn_resnet101"


def test_classes_follow_a_twin_too(checkpoint: Callable[..., Checkpoint], shapes: Callable[[str], Shapes]) -> None:
    best = recognise(checkpoint(shapes("fasterrcnn_mobilenet_v3_large_fpn?num_classes=4"))).best
    assert best is not None
    target = parse_target("fasterrcnn_mobilenet_v3_large_320_fpn", candidate=best)
    assert target.spec is not None and target.spec.num_classes == 4


def test_another_file_is_a_target(checkpoint: Callable[..., Checkpoint]) -> None:
    opened: list[str] = []

    def open_file(path: str) -> Checkpoint:
        opened.append(path)
        return checkpoint({"a.weight": (3, 4), "a.bias": (3,)}, name="other.pth")

    target = parse_target("file:some/other.pth", open_file=open_file)
    assert opened == ["some/other.pth"] and target.kind is TargetKind.FILE and target.spec is None
    assert [(t.name, t.shape, t.dtype) for t in target.tensors] == [
        ("a.weight", (3, 4), "float32"),
        ("a.bias", (3,), "float32"),
    ]
    with pytest.raises(UsageError, match=r"empty.pth holds no state dict"):
        parse_target("file:x", open_file=lambda path: checkpoint({}, name="empty.pth"))


def test_a_list_of_keys_is_a_target(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_text("# from the model\nconv1.weight\n\n  fc.bias \n")
    target = parse_target(f"keys:{file}")
    assert target.kind is TargetKind.KEYS
    assert [(t.name, t.shape, t.dtype) for t in target.tensors] == [
        ("conv1.weight", None, None),
        ("fc.bias", None, None),
    ]


def test_bad_lists_of_keys_are_said(tmp_path: Path) -> None:
    empty, twice, binary = tmp_path / "empty.txt", tmp_path / "twice.txt", tmp_path / "binary.txt"
    empty.write_text("\n# nothing\n")
    twice.write_text("a\nb\na\n")
    binary.write_bytes(b"\x80\x02}\xff")
    with pytest.raises(UsageError, match=r"empty\.txt lists no keys"):
        parse_target(f"keys:{empty}")
    with pytest.raises(UsageError, match=r'twice\.txt lists "a" more than once'):
        parse_target(f"keys:{twice}")
    with pytest.raises(ReadError, match=r"binary\.txt is no text file"):
        parse_target(f"keys:{binary}")
    with pytest.raises(ReadError, match=r"There is no file absent.txt"):
        parse_target(f"keys:{tmp_path / 'absent.txt'}")


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("torchvision/resnet17", UnknownArchitecture, r'no architecture "resnet17".*Did you mean .*resnet18'),
        ("ResNet-18", UnknownArchitecture, "Did you mean resnet18"),
        ("torchvision/other.pth", UnknownArchitecture, "A file as the target is written file:other.pth"),
        ("keras/resnet18", UnknownArchitecture, 'No architectures of "keras" are known, only torchvision\'s and timm'),
        ("timm/resnet17", UnknownArchitecture, r'timm has no architecture "resnet17".*Did you mean'),
        ("tresnet_mm", UnknownArchitecture, "Did you mean tresnet_m"),
        ("torchvision/resnetaa50", UnknownArchitecture, "timm has one: timm/resnetaa50"),
        ("", UsageError, "names no target"),
        ("torchvision/", UsageError, "names no target"),
        ("resnet18?num_classes=ten", UsageError, 'num_classes must be a positive whole number, not "ten"'),
        ("resnet18?num_classes=0", UsageError, "positive whole number"),
        ("resnet18?in_channels=99999999999999999999", UsageError, "positive whole number"),
        ("resnet18?numclasses=3", UsageError, 'no setting "numclasses".*Did you mean num_classes'),
        ("fcn_resnet50?aux_loss=perhaps", UsageError, 'aux_loss is true or false, not "perhaps"'),
        ("retinanet_resnet50_fpn?frozen_epsilon=2", UsageError, "number from 0 to 1"),
        ("file:x", UsageError, "cannot be used as the target here"),
    ],
)
def test_text_that_means_nothing_is_said(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        parse_target(text)


def test_labels_are_read_back() -> None:
    for text in (
        "torchvision/resnet18",
        "torchvision/vit_b_16?num_classes=4&in_channels=1&image_size=384",
        "torchvision/fasterrcnn_resnet50_fpn?frozen_epsilon=0.0&frozen_norm=True",
        "timm/vit_base_patch16_224?num_classes=4&image_size=384",
    ):
        assert parse_spec(text).label == text
        assert target_of(parse_spec(text)).label == text


def test_architectures_are_told_from_files() -> None:
    assert is_architecture("torchvision/resnet18?num_classes=3") and is_architecture("vgg16")
    assert is_architecture("torchvision/resnet17")
    assert is_architecture("timm/resnet18") and is_architecture("resnetaa50")
    assert not is_architecture("resnet18.pth") and not is_architecture("models/vgg16")


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: Error(s) in loading state_dict for ResNet:",
        'Missing key(s) in state_dict: "conv1.weight", "bn1.weight".',
        "size mismatch for fc.weight: copying a param with shape torch.Size([4, 512]) from checkpoint",
    ],
)
def test_a_loading_error_is_not_taken_for_a_list_of_keys(line: str) -> None:
    with pytest.raises(UsageError, match="an error message, not a list of keys"):
        target_of_list("\n".join(["conv1.weight", line]), "the pasted list")
