"""VGGs for pictures of 32 pixels, as kuangliu/pytorch-cifar names them: one linear layer behind the convolutions."""

from inspector.architectures.families.cifar_resnet import KUANGLIU
from inspector.architectures.families.entry import Family
from inspector.architectures.families.rows import linear
from inspector.architectures.families.vgg import FEATURES

FAMILY = Family(
    library="cifar",
    name="vgg",
    title="a CIFAR VGG",
    summary="{num_classes} classes",
    anchors=("features.0.weight", "features.1.running_mean", "classifier.weight"),
    source="kuangliu/pytorch-cifar, models/vgg.py",
    rows=(*FEATURES, *linear("classifier", "num_classes", "last")),
    task="classification",
    image_size=lambda s: 32,
    preparation=KUANGLIU,
    builder="inspector.architectures.families.builders.vgg:build_cifar_vgg",
)
