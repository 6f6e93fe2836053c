"""ConvNeXts with other depths and widths, by torchvision's names and by those of the original repository."""

from inspector.architectures.families.entry import Family, Repeat, Row, When
from inspector.architectures.families.rows import conv, linear, norm

OWN = "features.{2*s-1}.{b}"
BLOCK = "stages.{s}.{b}"
SUMMARY = "{blocks} blocks per stage, widths {width}, {num_classes} classes"

TORCHVISION = Family(
    library="torchvision",
    name="convnext",
    title="a ConvNeXt",
    summary=SUMMARY,
    anchors=("features.1.0.layer_scale", "features.1.0.block.5.weight", "classifier.2.weight"),
    source="torchvision 0.24, models/convnext.py",
    rows=(
        *conv("features.0.0", "width[1]", "in_channels", 4, bias=True),
        *norm("features.0.1", "width[1]"),
        Repeat(
            "s",
            "stages",
            (
                Repeat(
                    "b",
                    "blocks[s]",
                    (
                        Row(f"{OWN}.layer_scale", ("width[s]", 1, 1)),
                        *conv(f"{OWN}.block.0", "width[s]", 1, 7, bias=True),
                        *norm(f"{OWN}.block.2", "width[s]"),
                        *linear(f"{OWN}.block.3", "4*width[s]", "width[s]"),
                        *linear(f"{OWN}.block.5", "width[s]", "4*width[s]"),
                    ),
                ),
                When(
                    "s < stages",
                    (
                        *norm("features.{2*s}.0", "width[s]"),
                        *conv("features.{2*s}.1", "width[s+1]", "width[s]", 2, bias=True),
                    ),
                ),
            ),
            start=1,
        ),
        *norm("classifier.0", "width[stages]"),
        *linear("classifier.2", "num_classes", "width[stages]"),
    ),
    task="classification",
    builder="inspector.architectures.families.builders.torchvision_models:build_convnext",
)

ORIGINAL = Family(
    library="facebook",
    name="convnext",
    title="a ConvNeXt",
    summary=SUMMARY,
    anchors=("downsample_layers.0.0.weight", "stages.{s}.{b}.dwconv.weight", "stages.{s}.{b}.pwconv2.weight"),
    source="facebookresearch/ConvNeXt, models/convnext.py",
    rows=(
        *conv("downsample_layers.0.0", "width[0]", "in_channels", "patch", bias=True),
        *norm("downsample_layers.0.1", "width[0]"),
        Repeat(
            "d",
            "stages-1",
            (
                *norm("downsample_layers.{d}.0", "width[d-1]"),
                *conv("downsample_layers.{d}.1", "width[d]", "width[d-1]", 2, bias=True),
            ),
            start=1,
        ),
        Repeat(
            "s",
            "stages",
            (
                Repeat(
                    "b",
                    "blocks[s]",
                    (
                        Row(f"{BLOCK}.gamma", ("width[s]",)),
                        *conv(f"{BLOCK}.dwconv", "width[s]", 1, 7, bias=True),
                        *norm(f"{BLOCK}.norm", "width[s]"),
                        *linear(f"{BLOCK}.pwconv1", "4*width[s]", "width[s]"),
                        *linear(f"{BLOCK}.pwconv2", "width[s]", "4*width[s]"),
                    ),
                ),
            ),
        ),
        *norm("norm", "width[stages-1]"),
        *linear("head", "num_classes", "width[stages-1]"),
    ),
    task="classification",
)
