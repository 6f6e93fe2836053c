"""DenseNets by torchvision's names, with other depths and growth."""

from inspector.architectures.families.entry import Family, Repeat, When
from inspector.architectures.families.rows import batch_norm, conv, linear

LAYER = "features.denseblock{d}.denselayer{l}"
END = "start[d]+layers[d]*growth"
LAST = "start[stages]+layers[stages]*growth"

FAMILY = Family(
    library="torchvision",
    name="densenet",
    title="a DenseNet",
    summary="{layers} layers per block, growth {growth}, {num_classes} classes",
    anchors=("features.denseblock1.denselayer1.conv2.weight", "features.norm5.weight", "classifier.weight"),
    source="torchvision 0.24, models/densenet.py",
    rows=(
        *conv("features.conv0", "start[1]", "in_channels", 7),
        *batch_norm("features.norm0", "start[1]"),
        Repeat(
            "d",
            "stages",
            (
                Repeat(
                    "l",
                    "layers[d]",
                    (
                        *batch_norm(f"{LAYER}.norm1", "start[d]+(l-1)*growth"),
                        *conv(f"{LAYER}.conv1", "inner", "start[d]+(l-1)*growth", 1),
                        *batch_norm(f"{LAYER}.norm2", "inner"),
                        *conv(f"{LAYER}.conv2", "growth", "inner", 3),
                    ),
                    start=1,
                ),
                When(
                    "d < stages",
                    (
                        *batch_norm("features.transition{d}.norm", END),
                        *conv("features.transition{d}.conv", "start[d+1]", END, 1),
                    ),
                ),
            ),
            start=1,
        ),
        *batch_norm("features.norm5", LAST),
        *linear("classifier", "num_classes", LAST),
    ),
    task="classification",
    builder="inspector.architectures.families.builders.torchvision_models:build_densenet",
)
