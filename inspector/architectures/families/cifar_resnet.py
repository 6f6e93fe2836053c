"""ResNets for small pictures, as two widespread training repositories name them.

akamaster/pytorch_resnet_cifar10: three stages, shortcuts without parameters (option A) or with ("shortcut.0/1").
kuangliu/pytorch-cifar: four stages of torchvision's widths behind a 3x3 stem, plain or bottleneck.
"""

from inspector.architectures.families.entry import Family, Optional, Part, Preparation, Repeat, When
from inspector.architectures.families.rows import batch_norm, conv, linear

BUILDER = "inspector.architectures.families.builders.cifar_resnet:build_cifar_resnet"
AKAMASTER = Preparation(
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    source="akamaster/pytorch_resnet_cifar10 for CIFAR-10 (trainer.py: ImageNet's mean and deviation)",
    classes=10,
)
KUANGLIU = Preparation(
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2023, 0.1994, 0.2010),
    source="kuangliu/pytorch-cifar for CIFAR-10 (main.py: CIFAR-10's own mean)",
    classes=10,
)
BLOCK = "layer{s}.{b}"
# A block's input: the stage before's output for its first, else its own stage's.
BEFORE = "width[s-1] if b == 0 else width[s]"


def _stages(inner: tuple[Part, ...], stages: int) -> tuple[Part, ...]:
    return (
        *conv("conv1", "width[0]", "in_channels", 3),
        *batch_norm("bn1", "width[0]"),
        Repeat("s", stages, (Repeat("b", "blocks[s]", inner),), start=1),
        *linear("linear", "num_classes", f"width[{stages}]"),
    )


PLAIN: tuple[Part, ...] = (
    *conv(f"{BLOCK}.conv1", "width[s]", BEFORE, 3),
    *batch_norm(f"{BLOCK}.bn1", "width[s]"),
    *conv(f"{BLOCK}.conv2", "width[s]", "width[s]", 3),
    *batch_norm(f"{BLOCK}.bn2", "width[s]"),
)
CHANGES = "b == 0 and (s > 1 or width[s] != width[s-1])"
SHORTCUT: tuple[Part, ...] = (
    *conv(f"{BLOCK}.shortcut.0", "width[s]", BEFORE, 1),
    *batch_norm(f"{BLOCK}.shortcut.1", "width[s]"),
)

THREE_STAGES = Family(
    library="cifar",
    name="resnet",
    title="a CIFAR ResNet of three stages",
    summary="{blocks} blocks per stage, widths {width}, {num_classes} classes",
    anchors=("layer{s}.{b}.conv2.weight", "linear.weight", "conv1.weight"),
    source="akamaster/pytorch_resnet_cifar10, resnet.py",
    rows=_stages((*PLAIN, Optional("shortcut", (When(CHANGES, SHORTCUT),))), 3),
    task="classification",
    image_size=lambda s: 32,
    preparation=AKAMASTER,
    builder=BUILDER,
)

FOUR_STAGES = Family(
    library="cifar",
    name="resnet_wide",
    title="a CIFAR ResNet of four stages",
    summary="{blocks} blocks per stage, widths {width}, {num_classes} classes",
    anchors=("layer4.{b}.conv2.weight", "linear.weight", "conv1.weight"),
    source="kuangliu/pytorch-cifar, models/resnet.py",
    rows=_stages((*PLAIN, When(CHANGES, SHORTCUT)), 4),
    task="classification",
    image_size=lambda s: 32,
    preparation=KUANGLIU,
    builder=BUILDER,
)

BOTTLENECK = Family(
    library="cifar",
    name="resnet_bottleneck",
    title="a CIFAR ResNet of bottleneck blocks",
    summary="{blocks} blocks per stage, widths {width}, {num_classes} classes",
    anchors=("layer4.{b}.conv3.weight", "linear.weight", "conv1.weight"),
    source="kuangliu/pytorch-cifar, models/resnet.py",
    rows=_stages(
        (
            *conv(f"{BLOCK}.conv1", "inner[s]", BEFORE, 1),
            *batch_norm(f"{BLOCK}.bn1", "inner[s]"),
            *conv(f"{BLOCK}.conv2", "inner[s]", "inner[s]", 3),
            *batch_norm(f"{BLOCK}.bn2", "inner[s]"),
            *conv(f"{BLOCK}.conv3", "width[s]", "inner[s]", 1),
            *batch_norm(f"{BLOCK}.bn3", "width[s]"),
            When(CHANGES, SHORTCUT),
        ),
        4,
    ),
    task="classification",
    image_size=lambda s: 32,
    preparation=KUANGLIU,
    builder=BUILDER,
)
