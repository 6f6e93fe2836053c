"""YOLO detectors by ultralytics' names ("model.{i}.cv1.conv"): what kind every module is shows in its tensors.

One numbered list holds backbone, neck and head. Modules without tensors (upsampling, joining) leave gaps.
"""

from inspector.architectures.families.entry import Family, Optional, Part, Repeat, Row
from inspector.architectures.families.rows import batch_norm

MODULE = "model.{i}"


def _unit(name: str, out: str, inner: str, kernel: str) -> tuple[Part, ...]:
    """A convolution and its norm. Sizes are named by the place: no wiring is known from the names."""
    return (Row(f"{name}.conv.weight", (out, inner, kernel, kernel)), *batch_norm(f"{name}.bn", out))


def _side(name: str) -> Optional:
    return Optional(f"{name}[i]", _unit(f"{MODULE}.{name}", f"{name}_out[i]", f"{name}_in[i]", f"{name}_kernel[i]"))


BRANCHES = tuple(
    Optional(
        f"{name}_head[i]",
        (
            Repeat(
                "k",
                "levels",
                (
                    *_unit(f"{MODULE}.{name}.{{k}}.0", f"{name}_mid", f"{name}_level[k]", f"{name}_first"),
                    *_unit(f"{MODULE}.{name}.{{k}}.1", f"{name}_mid", f"{name}_mid", f"{name}_second"),
                    Row(f"{MODULE}.{name}.{{k}}.2.weight", (size, f"{name}_mid", 1, 1)),
                    Row(f"{MODULE}.{name}.{{k}}.2.bias", (size,)),
                ),
            ),
        ),
    )
    for name, size in (("cv2", "boxes"), ("cv3", "num_classes"))
)

FAMILY = Family(
    library="ultralytics",
    name="yolo",
    title="a YOLO detector",
    summary="{modules} modules, {num_classes} classes",
    anchors=("model.0.conv.weight", "model.{i}.cv1.conv.weight", "model.{i}.m.{j}.cv1.conv.weight"),
    source="ultralytics/yolov5 and ultralytics, nn/modules",
    rows=(
        Repeat(
            "i",
            "modules",
            (
                Optional("conv[i]", _unit(MODULE, "width[i]", "in_channels if i == 0 else inner[i]", "kernel[i]")),
                _side("cv1"),
                _side("cv2"),
                _side("cv3"),
                Repeat(
                    "j",
                    "repeats[i]",
                    (
                        *_unit(f"{MODULE}.m.{{j}}.cv1", "mid[i]", "path[i]", "first[i]"),
                        *_unit(f"{MODULE}.m.{{j}}.cv2", "path[i]", "mid[i]", "second[i]"),
                    ),
                ),
                *BRANCHES,
                Optional("dfl[i]", (Row(f"{MODULE}.dfl.conv.weight", (1, "bins", 1, 1)),)),
                Optional(
                    "anchors[i]",
                    (
                        Row(f"{MODULE}.anchors", ("levels", "shapes", 2), is_buffer=True),
                        Repeat(
                            "k",
                            "levels",
                            (
                                Row(f"{MODULE}.m.{{k}}.weight", ("shapes*(num_classes+5)", "level[k]", 1, 1)),
                                Row(f"{MODULE}.m.{{k}}.bias", ("shapes*(num_classes+5)",)),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
    task="detection",
)
