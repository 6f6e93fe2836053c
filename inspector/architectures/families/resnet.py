"""ResNets by torchvision's names with other depths, widths and groups: plain blocks, and bottlenecks."""

from inspector.architectures.families.cifar_resnet import BEFORE, BLOCK, CHANGES
from inspector.architectures.families.entry import Family, Part, Repeat, When
from inspector.architectures.families.rows import batch_norm, conv, linear

BUILDER = "inspector.architectures.families.builders.resnet:build_resnet"
SOURCE = "torchvision 0.24, models/resnet.py"
DOWNSAMPLE: tuple[Part, ...] = (
    *conv(f"{BLOCK}.downsample.0", "width[s]", BEFORE, 1),
    *batch_norm(f"{BLOCK}.downsample.1", "width[s]"),
)


def _network(inner: tuple[Part, ...]) -> tuple[Part, ...]:
    return (
        *conv("conv1", "width[0]", "in_channels", 7),
        *batch_norm("bn1", "width[0]"),
        Repeat("s", 4, (Repeat("b", "blocks[s]", (*inner, When(CHANGES, DOWNSAMPLE))),), start=1),
        *linear("fc", "num_classes", "width[4]"),
    )


PLAIN = Family(
    library="torchvision",
    name="resnet",
    title="a ResNet",
    summary="{blocks} blocks per stage, widths {width}, {num_classes} classes",
    anchors=("layer1.{b}.conv2.weight", "layer4.{b}.bn2.running_mean", "fc.weight", "conv1.weight"),
    source=SOURCE,
    rows=_network(
        (
            *conv(f"{BLOCK}.conv1", "width[s]", BEFORE, 3),
            *batch_norm(f"{BLOCK}.bn1", "width[s]"),
            *conv(f"{BLOCK}.conv2", "width[s]", "width[s]", 3),
            *batch_norm(f"{BLOCK}.bn2", "width[s]"),
        )
    ),
    task="classification",
    builder=BUILDER,
)

BOTTLENECK = Family(
    library="torchvision",
    name="resnet_bottleneck",
    title="a ResNet of bottleneck blocks",
    summary="{blocks} blocks per stage, widths {width}, {inner} inside, {num_classes} classes",
    anchors=("layer1.{b}.conv3.weight", "layer4.{b}.bn3.running_mean", "fc.weight", "conv1.weight"),
    source=SOURCE,
    rows=_network(
        (
            *conv(f"{BLOCK}.conv1", "inner[s]", BEFORE, 1),
            *batch_norm(f"{BLOCK}.bn1", "inner[s]"),
            *conv(f"{BLOCK}.conv2", "inner[s]", "per_group[s]", 3),
            *batch_norm(f"{BLOCK}.bn2", "inner[s]"),
            *conv(f"{BLOCK}.conv3", "width[s]", "inner[s]", 1),
            *batch_norm(f"{BLOCK}.bn3", "width[s]"),
        )
    ),
    task="classification",
    builder=BUILDER,
)
