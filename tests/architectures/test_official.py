"""Published files by digest, and digests in names."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torchvision.models import get_model_weights, list_models

from inspector.architectures.official import check_name, find_official, published_files
from inspector.architectures.recognise import recognise
from inspector.checkpoint.types import Checkpoint, Origin
from inspector.findings import Severity

Shapes = dict[str, tuple[int, ...]]
RESNET18 = "f37072fd" + "0" * 56


def origin(name: str, sha256: str | None) -> Origin:
    return Origin(name=name, nbytes=1, sha256=sha256)


def test_the_table_is_torchvisions() -> None:
    expected = {
        str(w): (w.url.rpartition("/")[2], tuple(w.meta.get("categories") or ()))
        for name in list_models()
        for w in get_model_weights(name)
    }
    assert {p.name: (p.file_name, p.categories) for p in published_files()} == expected
    assert len(expected) > 150
    digests = [p.digest for p in published_files()]
    assert all(8 <= len(digest) <= 10 for digest in digests) and len(set(digests)) == len(digests)


def test_an_official_file_is_known_by_its_content_whatever_its_name() -> None:
    found = find_official(origin("my_model.bin", RESNET18))
    assert found is not None
    assert (found.name, found.spec.label) == ("ResNet18_Weights.IMAGENET1K_V1", "torchvision/resnet18")
    assert found.file_name == "resnet18-f37072fd.pth"
    assert len(found.categories) == 1000 and found.categories[:2] == ("tench", "goldfish")
    assert find_official(origin("resnet18-f37072fd.pth", "e" * 64)) is None
    assert find_official(origin("resnet18-f37072fd.pth", None)) is None
    # Eight digits can agree by chance: names and shapes have a say.
    assert find_official(origin("x", RESNET18), ["vgg16"]) is None


def test_what_names_and_shapes_do_not_show_comes_from_the_official_file() -> None:
    def options(digest: str) -> dict[str, object]:
        found = find_official(origin("x", digest.ljust(64, "0")))
        assert found is not None
        return dict(found.spec.options)

    assert options("0cc3c7bd") == {"transform_input": True}
    assert options("258fb6c6") == {"frozen_epsilon": 0.0, "frozen_norm": True}
    assert options("80465313") == {"image_size": 518}
    assert options("1167a1af") == {"aux_loss": True}
    assert options("16fa66dd") == {"quantize": True}


def test_recognition_takes_the_official_files_word(
    checkpoint: Callable[..., Checkpoint], shapes: Callable[[str], Shapes]
) -> None:
    own = shapes("fasterrcnn_mobilenet_v3_large_320_fpn?frozen_norm=true")
    found = recognise(checkpoint(own, name="f.pth", sha256="907ea3f9" + "0" * 56))
    assert found.official is not None and found.best is not None
    # The digest tells the twins apart, and so nothing is left to say about them.
    assert found.best.spec == found.official.spec and found.best.exact
    assert found.best.spec.name == "fasterrcnn_mobilenet_v3_large_320_fpn"
    assert found.best.twins == ("torchvision/fasterrcnn_mobilenet_v3_large_fpn",)
    assert found.findings == ()
    assert found.says.startswith("This is FasterRCNN_MobileNet_V3_Large_320_FPN_Weights.COCO_V1, published by")


def test_a_name_that_agrees_is_said() -> None:
    (finding,) = check_name(origin("resnet18-f37072fd.pth", RESNET18))
    assert (finding.id, finding.severity) == ("digest-agrees", Severity.INFO)
    assert "its sha256 begins with f37072fd" in finding.says


def test_a_name_that_lies_is_a_warning() -> None:
    (finding,) = check_name(origin("resnet18-f37072fd.pth", "ab" * 32))
    assert (finding.id, finding.severity) == ("digest-differs", Severity.WARNING)
    assert "begins with f37072fd, but the file's sha256 begins with abababab" in finding.says


def test_a_digest_that_nobody_computed_is_no_failure() -> None:
    (finding,) = check_name(origin("resnet20-12fca82f.th", None))
    assert (finding.id, finding.severity) == ("digest-not-computed", Severity.INFO)


def test_digits_alone_are_a_date_unless_they_agree() -> None:
    assert check_name(origin("model-20240131.pth", RESNET18)) == ()
    assert check_name(origin("model-20240131.pth", None)) == ()
    assert [f.id for f in check_name(origin("model-20240131.pth", "20240131" + "0" * 56))] == ["digest-agrees"]
    decimal = [p.file_name for p in published_files() if p.digest.isdecimal() and f"-{p.digest}." in p.file_name]
    assert [f.id for name in decimal for f in check_name(origin(name, "ab" * 32))] == ["digest-differs"] * len(decimal)
    assert decimal


@pytest.mark.parametrize(
    "name", ["resnet18.pth", "model-final.pth", "run-20240131", "model-1234567.pth", "x-F37072FD.pth"]
)
def test_names_without_a_digest_are_left_alone(name: str) -> None:
    assert check_name(origin(name, RESNET18)) == ()
