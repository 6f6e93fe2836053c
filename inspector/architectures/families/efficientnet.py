"""EfficientNets (the first version) by torchvision's names, with other widths and depths."""

from inspector.architectures.families.entry import Assume, Family, Optional, Part, Repeat, Settings, When
from inspector.architectures.families.rows import batch_norm, conv, linear

BLOCK = "features.{s}.{b}.block"
BEFORE = "width[s-1] if b == 0 else width[s]"
LAST = "features.{stages+1}"
INNER, SQUEEZED = "inner[s,b]", "squeezed[s,b]"


def strides(settings: Settings) -> tuple[int, ...]:
    """EfficientNet-B0's, table 1 of the paper; 1 for stages beyond it."""
    stages = settings.get("stages")
    usual = (1, 2, 2, 2, 1, 2, 1)
    return (usual + (1,) * 20)[: stages if isinstance(stages, int) else 7]


def _squeeze(name: str) -> tuple[Part, ...]:
    return (
        *conv(f"{name}.fc1", SQUEEZED, INNER, 1, bias=True),
        *conv(f"{name}.fc2", INNER, SQUEEZED, 1, bias=True),
    )


FAMILY = Family(
    library="torchvision",
    name="efficientnet",
    title="an EfficientNet",
    summary="{blocks} blocks per stage, widths {width}, {num_classes} classes",
    anchors=("features.1.0.block.1.fc1.weight", "features.2.0.block.3.1.running_mean", "classifier.1.weight"),
    source="torchvision 0.24, models/efficientnet.py",
    rows=(
        *conv("features.0.0", "width[0]", "in_channels", 3),
        *batch_norm("features.0.1", "width[0]"),
        Repeat(
            "s",
            "stages",
            (
                Repeat(
                    "b",
                    "blocks[s]",
                    (
                        When(
                            "expand[s]",
                            (
                                *conv(f"{BLOCK}.0.0", INNER, BEFORE, 1),
                                *batch_norm(f"{BLOCK}.0.1", INNER),
                                *conv(f"{BLOCK}.1.0", INNER, 1, "kernel[s]"),
                                *batch_norm(f"{BLOCK}.1.1", INNER),
                                *_squeeze(f"{BLOCK}.2"),
                            ),
                        ),
                        Optional(
                            "expand[s]",
                            (*conv(f"{BLOCK}.3.0", "width[s]", INNER, 1), *batch_norm(f"{BLOCK}.3.1", "width[s]")),
                        ),
                        When(
                            "not expand[s]",
                            (
                                *conv(f"{BLOCK}.0.0", INNER, 1, "kernel[s]"),
                                *batch_norm(f"{BLOCK}.0.1", INNER),
                                *_squeeze(f"{BLOCK}.1"),
                                *conv(f"{BLOCK}.2.0", "width[s]", INNER, 1),
                                *batch_norm(f"{BLOCK}.2.1", "width[s]"),
                            ),
                        ),
                    ),
                ),
            ),
            start=1,
        ),
        *conv(f"{LAST}.0", "last", "width[stages]", 1),
        *batch_norm(f"{LAST}.1", "last"),
        *linear("classifier.1", "num_classes", "last"),
    ),
    assumes=(Assume("strides", strides, "those of EfficientNet-B0", stated=("strides",)),),
    task="classification",
    builder="inspector.architectures.families.builders.mobile_models:build_efficientnet",
)
