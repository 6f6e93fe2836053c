"""VGGs by torchvision's names, with other widths and depths: a list of convolutions and three linear layers.

Where the poolings are follows from the numbering: a convolution, its norm and its activation count one each, and so
does a pooling, which has no tensors.
"""

from inspector.architectures.families.entry import Family, Optional, Repeat, Row, When
from inspector.architectures.families.rows import linear

FEATURE = "features.{i}"

FEATURES = (
    Repeat(
        "i",
        "features",
        (
            Optional("conv[i]", (Row(f"{FEATURE}.weight", ("width[i]", "in_channels if i == 0 else inner[i]", 3, 3)),)),
            Optional("norm[i]", (Row(f"{FEATURE}.weight", ("width[i]",)),)),
            When("conv[i] or norm[i]", (Row(f"{FEATURE}.bias", ("width[i]",)),)),
            When(
                "norm[i]",
                (
                    Row(f"{FEATURE}.running_mean", ("width[i]",), is_buffer=True),
                    Row(f"{FEATURE}.running_var", ("width[i]",), is_buffer=True),
                    Row(f"{FEATURE}.num_batches_tracked", (), "int64", is_buffer=True),
                ),
            ),
        ),
    ),
)

FAMILY = Family(
    library="torchvision",
    name="vgg",
    title="a VGG",
    summary="{num_classes} classes",
    anchors=("features.0.weight", "classifier.0.weight", "classifier.3.weight", "classifier.6.weight"),
    source="torchvision 0.24, models/vgg.py",
    rows=(
        *FEATURES,
        *linear("classifier.0", "hidden[0]", "flat"),
        *linear("classifier.3", "hidden[1]", "hidden[0]"),
        *linear("classifier.6", "num_classes", "hidden[1]"),
    ),
    task="classification",
    builder="inspector.architectures.families.builders.vgg:build_vgg",
)
