"""What is published about an architecture besides its names and shapes: input size, preprocessing, class names.

From torchvision's weights enums and timm's default_cfg, shipped as data, without importing torch or either of them.
For a spec that is no official file these are assumptions, which callers have to say: a checkpoint does not hold them.
"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.architectures.families import find_family
from inspector.architectures.families.entry import Family
from inspector.architectures.families.specs import PICTURE_TASKS, input_of, inputs_of
from inspector.architectures.index import Entry, load_index
from inspector.architectures.official import Published, published_files
from inspector.architectures.types import ArchitectureSpec, Given, OfficialFile

# Detectors resize by themselves; these are the sizes they resize to (torchvision's `min_size` or `size` arguments).
_DETECTOR_SIDE = {
    "ssd300_vgg16": 300,
    "ssdlite320_mobilenet_v3_large": 320,
    "fasterrcnn_mobilenet_v3_large_320_fpn": 320,
}
_DETECTOR_DEFAULT = 800
_FLOW_SIZE = (520, 960)  # height and width in torchvision's optical flow presets' own measurements
_USUAL = 224
_USUAL_SHARE = 0.875  # of the shorter side that the crop keeps: 224 of 256, timm's default too
_CLIP = 16  # frames; the clip length of torchvision's video training recipes, swin3d's and s3d's are longer


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformFacts:
    """The published preprocessing of one weights file, or of a family.

    resize: the shorter side, or (height, width), in pixels; None where nothing is resized. crop: (height, width) of
    the centre crop, None where nothing is cropped. mean, std: per channel after scaling to 0..1; () where the model
    normalises by itself. interpolation: "bilinear", "bicubic", "" where nothing is resized.
    kind: torchvision's preset ("ImageClassification"), whose steps timm's and families' are too. source: the enum
    ("ResNet18_Weights.IMAGENET1K_V1"), "timm's default_cfg of resnet18 (a1_in1k)", or a family's repository.
    """

    kind: str
    resize: int | tuple[int, int] | None
    crop: tuple[int, int] | None
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str
    source: str


def default_input(spec: ArchitectureSpec) -> tuple[int, int, int]:
    """(channels, height, width) at which this architecture is usually run: its published crop.

    A picture size in the spec comes first (`image_size`, which ViTs accept no other than); a spec without one means
    the builder's own. Architectures that nobody published a size for get 224 x 224.
    """
    family = find_family(spec.library, spec.name)
    if family is not None:
        return input_of(family, spec)
    channels = spec.in_channels or 3
    entry = load_index().of(spec)
    size = spec.image_size or (entry.image_size if entry else None)
    if size is not None:
        return channels, size, size
    if entry is not None and "input_size" in entry.facts:
        _, height, width = entry.facts["input_size"]
        return channels, int(height), int(width)
    task = entry.task if entry else ""
    if task == "detection":
        side = _DETECTOR_SIDE.get(spec.name, _DETECTOR_DEFAULT)
        return channels, side, side
    if task == "optical_flow":
        return channels, *_FLOW_SIZE
    facts = transforms(spec)
    if facts is None:
        return channels, _USUAL, _USUAL
    if facts.crop is not None:
        return channels, *facts.crop
    if isinstance(facts.resize, tuple):
        return channels, *facts.resize
    side = facts.resize or _USUAL
    return channels, side, side


def usual_inputs(spec: ArchitectureSpec) -> tuple[Given, ...]:
    """What one forward pass takes, argument by argument: one picture, or token ids, sound, latents.

    () for what takes something else or answers with something else than tensors (detection, clips of frames).
    """
    family = find_family(spec.library, spec.name)
    if family is not None:
        return inputs_of(family, spec)
    return (Given(name="", shape=(1, *default_input(spec))),) if task_of(spec) in PICTURE_TASKS else ()


def takes_pictures(spec: ArchitectureSpec) -> bool:
    """Whether a picture is all that a forward pass takes, as far as anybody knows."""
    return all(given.is_picture for given in usual_inputs(spec))


def task_of(spec: ArchitectureSpec) -> str:
    """What the architecture is for ("classification", "detection"), "" for an unknown one."""
    family = find_family(spec.library, spec.name)
    if family is not None:
        return family.task
    entry = load_index().of(spec)
    return entry.task if entry is not None else ""


def smallest_input(spec: ArchitectureSpec) -> tuple[int, int] | None:
    """(height, width) below which the architecture does not run, as published; None where nobody says."""
    entry = load_index().of(spec)
    if entry is not None and entry.library == "timm":
        smallest = entry.facts.get("min_input_size") or (entry.facts["input_size"] if _is_fixed(entry) else None)
        return (int(smallest[1]), int(smallest[2])) if smallest else None
    published = _published_for(spec)
    return published.min_size if published else None


def default_frames(spec: ArchitectureSpec) -> int | None:
    """Frames per clip for video architectures (at least 16), None for those that see single pictures."""
    entry = load_index().of(spec)
    if entry is None or entry.task != "video":
        return None
    published = _published_for(spec)
    return max(_CLIP, int(published.transforms.get("frames", 0)) if published else 0)


def transforms(of: ArchitectureSpec | OfficialFile) -> TransformFacts | None:
    """The preprocessing published with an official file, or with a spec's own architecture; None where there is none.

    For a spec it is that of the published weights that need the same settings, the builder's default first.
    """
    if isinstance(of, ArchitectureSpec):
        family = find_family(of.library, of.name)
        if family is not None:
            return _family_transforms(family, of)
        if of.library == "timm":
            return _timm_transforms(of)
    published = _published(of)
    if published is None:
        return None
    facts = published.transforms
    resize = tuple(int(n) for n in facts.get("resize_size", ()))
    crop = tuple(int(n) for n in facts.get("crop_size", ()))
    return TransformFacts(
        kind=facts["kind"],
        resize=None if not resize else resize[0] if len(resize) == 1 else (resize[0], resize[1]),
        crop=(crop[0], crop[-1]) if crop else None,
        mean=tuple(facts.get("mean", ())),
        std=tuple(facts.get("std", ())),
        interpolation=facts.get("interpolation", ""),
        source=published.name,
    )


def _family_transforms(family: Family, spec: ArchitectureSpec) -> TransformFacts | None:
    """As its repository prepares pictures; resized to the family's own size where the file fits no other."""
    given = family.preparation
    if given is None:
        return None
    _, height, width = default_input(spec)
    fixed = family.image_size is not None
    own = spec.num_classes
    other = ""
    if given.classes and own is not None and own != given.classes:
        other = f"; this one tells {own} classes apart, so it was trained on other pictures, perhaps of another size"
    return TransformFacts(
        kind="ImageClassification",
        resize=min(height, width) if fixed else resized_for(height, width),
        crop=(height, width),
        mean=given.mean,
        std=given.std,
        interpolation=given.interpolation,
        source=given.source + (f", {height} x {width} pixels" if fixed else "") + other,
    )


def resized_for(height: int, width: int) -> int:
    """The shorter side before the centre of this size is cut: 256 for 224, ImageNet's usual share."""
    return round(min(height, width) / _USUAL_SHARE)


def _timm_transforms(spec: ArchitectureSpec) -> TransformFacts | None:
    """timm's evaluation transform by its default_cfg: the shorter side to size / crop_pct, then the centre of size.

    A share above 1 leaves a black frame, as timm's own does. "border" scales the longer side instead, which is said.
    """
    entry = load_index().of(spec)
    if entry is None or "mean" not in entry.facts:
        return None
    facts = entry.facts
    _, height, width = default_input(spec)
    share = float(facts.get("crop_pct") or _USUAL_SHARE)  # timm's own default
    mode = facts.get("crop_mode") or "center"
    interpolation = facts.get("interpolation", "")
    if mode not in ("center", "squash", "border") or interpolation not in ("bilinear", "bicubic") or not share > 0:
        return None
    resize: int | tuple[int, int] = (int(height / share), int(width / share))
    if mode != "squash" and height == width:
        resize = int(height / share)
    elif mode != "squash":
        return None  # an oblong picture is scaled by whichever side needs it more
    tag = f" ({facts['tag']})" if facts.get("tag") else ""
    tag += ", cut at its centre where timm adds borders" if mode == "border" else ""
    return TransformFacts(
        kind="ImageClassification",
        resize=resize,
        crop=(height, width),
        mean=tuple(facts["mean"]),
        std=tuple(facts["std"]),
        interpolation=interpolation,
        source=f"timm's default_cfg of {spec.name}{tag}",
    )


def _is_fixed(entry: Entry) -> bool:
    return bool(entry.facts.get("fixed_input_size")) and not entry.positions


def categories(of: ArchitectureSpec | OfficialFile) -> tuple[str, ...]:
    """Class names in output order: of an official file, or those usual for a spec with the default class count.

    () where nothing is published, and for a spec with another class count than the published one.
    """
    if isinstance(of, OfficialFile):
        return of.categories
    published = _published_for(of)
    if published is None:
        return ()
    entry = load_index().of(of)
    classes = of.num_classes or (entry.num_classes if entry else None)
    return published.categories if classes in (None, len(published.categories)) else ()


def _published(of: ArchitectureSpec | OfficialFile) -> Published | None:
    if isinstance(of, OfficialFile):
        return next((p for p in published_files() if p.name == of.name), None)
    return _published_for(of)


def _published_for(spec: ArchitectureSpec) -> Published | None:
    """The published weights that fit a spec best: the same picture size and quantisation, then DEFAULT."""
    mine = [p for p in published_files() if p.spec.library == spec.library and p.spec.name == spec.name]
    if not mine:
        return None
    options = dict(spec.options)

    def fitness(published: Published) -> tuple[bool, bool, bool]:
        theirs = dict(published.spec.options)
        same_size = theirs.get("image_size") == options.get("image_size")
        return same_size, bool(published.categories), published.is_default

    return max(mine, key=fitness)
