"""A file that is another known network, whole, loads under the target's names once enough is left out: that is said."""

from __future__ import annotations

import pytest

from inspector.architectures.targets import parse_target
from inspector.findings import Severity
from inspector.keys.diagnose import diagnose


def shapes_of(label: str) -> dict[str, tuple[int, ...]]:
    return {t.name: t.shape for t in parse_target(label).tensors}


@pytest.mark.parametrize(
    ("ours", "theirs", "count"),
    [
        ("timm/vit_base_patch16_rope_ape_224", "timm/vit_base_patch16_rope_224", "no place for 1 of its tensors"),
        ("timm/vit_base_patch16_siglip_224", "timm/vit_base_patch16_siglip_gap_224", "no place for 13 of its tensors"),
        ("torchvision/vgg13", "torchvision/vgg19", "no place for 8 of its tensors"),
    ],
)
def test_the_other_network_is_named(file_of, ours: str, theirs: str, count: str) -> None:
    report = diagnose(file_of(shapes_of(ours)), parse_target(theirs), accept=["extra-tensors"])
    found = [finding for finding in report.findings if finding.id == "other-architecture"]
    assert [f.severity for f in found] == [Severity.WARNING]
    assert ours in found[0].says and count in found[0].says
    assert found[0].remedy == f"Take {ours} as the target."


def test_what_only_has_a_loss_beside_it_is_no_other_network(file_of) -> None:
    names = shapes_of("torchvision/resnet18")
    report = diagnose(
        file_of(names | {"criterion.weight": (7, 3)}), parse_target("torchvision/resnet18"), accept=["extra-tensors"]
    )
    assert report.plan.complete
    assert not any(finding.id == "other-architecture" for finding in report.findings)
    # Nor is a twin, which has every name.
    twin = diagnose(file_of(shapes_of("torchvision/resnet50")), parse_target("timm/resnetaa50"))
    assert not any(finding.id == "other-architecture" for finding in twin.findings)
