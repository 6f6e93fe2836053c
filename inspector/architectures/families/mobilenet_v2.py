"""MobileNets v2 by torchvision's names, with other widths and depths."""

from itertools import pairwise

from inspector.architectures.families.entry import Assume, Family, Optional, Repeat, Settings, When
from inspector.architectures.families.rows import batch_norm, conv, linear

BLOCK = "features.{i}.conv"
BEFORE = "width[i-1]"
LAST = "features.{blocks+1}"


def strides(settings: Settings) -> tuple[int, ...]:
    """As in the paper's table 2: the picture is halved where the first, second, third and fifth wider stage begin."""
    widths = settings.get("width", ())
    if not isinstance(widths, tuple):
        widths = (widths,) * 2 if isinstance(widths, int) else ()
    found, stage = [], 0
    for before, after in pairwise(widths[1:]):
        stage += before != after
        found.append(2 if before != after and stage in (1, 2, 3, 5) else 1)
    return (1, *found)


FAMILY = Family(
    library="torchvision",
    name="mobilenet2",
    title="a MobileNet v2",
    summary="{blocks} blocks, widths {width}, {num_classes} classes",
    anchors=("features.1.conv.0.0.weight", "features.2.conv.3.running_mean", "classifier.1.weight"),
    source="torchvision 0.24, models/mobilenetv2.py",
    rows=(
        *conv("features.0.0", "width[0]", "in_channels", 3),
        *batch_norm("features.0.1", "width[0]"),
        Repeat(
            "i",
            "blocks",
            (
                When(
                    "expand[i]",
                    (
                        *conv(f"{BLOCK}.0.0", "inner[i]", BEFORE, 1),
                        *batch_norm(f"{BLOCK}.0.1", "inner[i]"),
                        *conv(f"{BLOCK}.1.0", "inner[i]", 1, 3),
                        *batch_norm(f"{BLOCK}.1.1", "inner[i]"),
                        *conv(f"{BLOCK}.2", "width[i]", "inner[i]", 1),
                    ),
                ),
                Optional("expand[i]", batch_norm(f"{BLOCK}.3", "width[i]")),
                When(
                    "not expand[i]",
                    (
                        *conv(f"{BLOCK}.0.0", "inner[i]", 1, 3),
                        *batch_norm(f"{BLOCK}.0.1", "inner[i]"),
                        *conv(f"{BLOCK}.1", "width[i]", "inner[i]", 1),
                        *batch_norm(f"{BLOCK}.2", "width[i]"),
                    ),
                ),
            ),
            start=1,
        ),
        *conv(f"{LAST}.0", "last", "width[blocks]", 1),
        *batch_norm(f"{LAST}.1", "last"),
        *linear("classifier.1", "num_classes", "last"),
    ),
    assumes=(Assume("strides", strides, "the paper's places of halving", stated=("strides",)),),
    task="classification",
    builder="inspector.architectures.families.builders.mobile_models:build_mobilenet_v2",
)
