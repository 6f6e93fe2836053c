"""U-Nets as milesial/Pytorch-UNet names them: double convolutions on the way down and up, skips between.

Upsampling is either a transposed convolution, which has tensors, or bilinear, which halves the channels in between.
"""

from inspector.architectures.families.entry import Family, Optional, Part, Preparation, Repeat, Row
from inspector.architectures.families.rows import batch_norm, bias_of, conv

# What arrives from the level below.
BELOW = "down[depth] if u == 1 else up[u-1]"


def _double(name: str, out: str, middle: str, inner: str) -> tuple[Part, ...]:
    return (
        *conv(f"{name}.0", middle, inner, 3),
        *bias_part(f"{name}.0", middle),
        *batch_norm(f"{name}.1", middle),
        *conv(f"{name}.3", out, middle, 3),
        *bias_part(f"{name}.3", out),
        *batch_norm(f"{name}.4", out),
    )


def bias_part(name: str, width: str) -> tuple[Part, ...]:
    """The biases that the first versions of the repository had."""
    return (Optional("bias", bias_of(name, width)),)


FAMILY = Family(
    library="milesial",
    name="unet",
    title="a U-Net",
    summary="widths {down}, {in_channels} input channels, {num_classes} classes",
    anchors=("inc.double_conv.0.weight", "down1.maxpool_conv.1.double_conv.0.weight", "outc.conv.weight"),
    source="milesial/Pytorch-UNet, unet/unet_parts.py",
    rows=(
        *_double("inc.double_conv", "down[0]", "down[0]", "in_channels"),
        Repeat("d", "depth", _double("down{d}.maxpool_conv.1.double_conv", "down[d]", "down[d]", "down[d-1]"), start=1),
        Repeat(
            "u",
            "depth",
            (
                Optional(
                    "transposed",
                    (
                        Row("up{u}.up.weight", (BELOW, f"({BELOW})//2", 2, 2)),
                        Row("up{u}.up.bias", (f"({BELOW})//2",)),
                    ),
                ),
                *_double("up{u}.conv.double_conv", "up[u]", "middle[u]", "joined[u]"),
            ),
            start=1,
        ),
        *conv("outc.conv", "num_classes", "up[depth]", 1),
        *bias_of("outc.conv", "num_classes"),
    ),
    task="segmentation",
    preparation=Preparation(
        mean=(0.0, 0.0, 0.0),
        std=(1.0, 1.0, 1.0),
        interpolation="bicubic",
        source="milesial/Pytorch-UNet (utils/data_loading.py: scaled to 0..1, nothing subtracted)",
    ),
    builder="inspector.architectures.families.builders.unet:build_unet",
)
