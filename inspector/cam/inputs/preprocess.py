"""From a picture to the model's input: which numbers, why these, and the steps themselves.

The steps are those of torchvision's classification presets: resize (antialiased), centre crop, scale to 0..1,
subtract the mean, divide by the standard deviation. Where nobody states the numbers a default is used and said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from inspector.architectures.facts import TransformFacts, default_input, resized_for, transforms
from inspector.architectures.types import ArchitectureSpec, Recognition
from inspector.cam.inputs.classes import class_names
from inspector.cam.inputs.picture import crop_box, full_size, scaled_size, seen_crop, upright
from inspector.cam.inputs.reduced import ReducedPicture
from inspector.cam.report import Crop, Preprocessing
from inspector.checkpoint.stated import stated, stated_beside, told_beside
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import ExplainError, UsageError
from inspector.units import counted

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["class_names", "infer_preprocessing", "prepare"]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
LARGEST_SIDE = 4096
# A ResNet-50 keeps about 1 kB for each input pixel; beyond this a forward pass would need many gigabytes.
MOST_INPUT_PIXELS = 2048 * 2048
# Of the picture between the resize and the crop.
_MOST_RESIZED_PIXELS = 100_000_000
_SQUASHED_FROM = 384
_USUAL = (224, 224)
_PICTURES = ("ImageClassification", "SemanticSegmentation", "ObjectDetection")
_RESAMPLING = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def infer_preprocessing(
    recognition: Recognition | None, checkpoint: Checkpoint | None, *, spec: ArchitectureSpec | None = None
) -> Preprocessing:
    """What the file's pictures were prepared with, by the best evidence there is.

    In this order: the file's own statement ("preprocessing" in its metadata); the transforms published with the
    official weights that it is by digest; preprocessor_config.json beside it; those of the architecture's published
    weights, or of its family's repository (assumed); a default by size and number of input channels (assumed).
    spec: what is built, where that is not the best candidate. Every face asks here; the size is that at which costs
    are counted (`default_input`).
    """
    best = recognition.best if recognition is not None else None
    built = spec if spec is not None else best.spec if best is not None else None
    facts = stated(checkpoint, "preprocessing")
    trouble = ""
    if isinstance(facts, Mapping):
        try:
            return _from_facts(facts)
        except (ValueError, TypeError, KeyError) as error:
            trouble = f"; the file's own statement cannot be used: {error}"
    channels = _input_channels(built, _state_of(recognition, checkpoint))
    official = recognition.official if recognition is not None else None
    if official is None:
        for read in (_processor, _timm, _open_clip):
            beside = read(checkpoint)
            if beside is not None and beside.channels == channels:
                return replace(beside, source=beside.source + trouble)
    guess = None if official is None else _of_facts(transforms(official), assumed=False)
    guess = guess or _assumed(built, channels)
    if channels != guess.channels:
        guess = _in_channels(guess, channels)
    return replace(guess, source=guess.source + trouble)


def stated_preprocessing(facts: object, source: str) -> Preprocessing:
    """What somebody wrote: {"resize": 256, "crop": 224, "mean": [...], "std": [...], "interpolation": "bilinear"}.

    Raises UsageError in words for numbers that cannot be meant.
    """
    try:
        if not isinstance(facts, Mapping):
            raise ValueError("it is no mapping")
        return replace(_from_facts(facts), source=source)
    except (ValueError, TypeError, KeyError) as error:
        says = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise UsageError(
            f"This preprocessing cannot be used: {says}.",
            hint='Write {"resize": 256, "crop": 224, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}.',
        ) from error


def prepare(picture: Image.Image, preprocessing: Preprocessing) -> tuple[Tensor, Crop]:
    """The model's input (1, C, H, W) float32, and the rectangle of the upright picture that it shows.

    Raises ExplainError when the model wants neither 1 nor 3 channels.
    """
    import torch

    if preprocessing.channels not in (1, 3):
        raise ExplainError(
            f"This model takes {preprocessing.channels} channels; a picture gives 3, or 1 in grey.",
            hint="Heat maps of such models need input from Python.",
        )
    shown, size = upright(picture), full_size(picture)
    crop = seen_crop(size, preprocessing)
    width, height = scaled_size(*size, preprocessing.resize)
    # Of a picture read at a coarser scale its edge need not be that of the last pixel.
    box = shown.box if isinstance(shown, ReducedPicture) else None
    if box is not None and (width > shown.width or height > shown.height):
        raise ExplainError(
            f"The picture is too large for this model: of its {size[0]} x {size[1]} pixels {shown.width} x "
            f"{shown.height} are read, and the model asks for {width} x {height}.",
            hint="Scale it down, cut out the part that matters, or set a size to resize to.",
        )
    if width * height > _MOST_RESIZED_PIXELS:
        raise ExplainError(
            f"The picture is too long and thin ({size[0]} x {size[1]} pixels): it would become {width} x {height}.",
            hint="Cut out the part that matters.",
        )
    if preprocessing.channels == 1:
        shown = shown.convert("L")
    if (width, height) != shown.size or box is not None:
        shown = shown.resize((width, height), _RESAMPLING[preprocessing.interpolation], box)
    left, top, right, bottom = crop_box(width, height, preprocessing.crop)
    if (right - left) * (bottom - top) > MOST_INPUT_PIXELS:
        raise ExplainError(
            f"The model's input would be {right - left} x {bottom - top} pixels, more than "
            f"{MOST_INPUT_PIXELS:,} in all.",
            hint="Set a size to resize or crop to.",
        )
    # Beyond the edges Pillow fills with 0, as torchvision pads.
    shown = shown.crop((left, top, right, bottom))
    values = torch.from_numpy(np.array(shown, dtype=np.uint8)).reshape(shown.height, shown.width, -1)
    scaled = values.permute(2, 0, 1).to(torch.float32).div(255.0)
    mean = torch.tensor(preprocessing.mean, dtype=torch.float32)[:, None, None]
    std = torch.tensor(preprocessing.std, dtype=torch.float32)[:, None, None]
    # In one order of memory, however it came here: kernels for another one round otherwise.
    return ((scaled - mean) / std)[None].contiguous(), crop


def _from_facts(facts: Mapping[object, object]) -> Preprocessing:
    """{"size": 64, "mean": [...], "std": [...]}, optionally with "resize", "crop" and "interpolation".

    Raises ValueError in words for numbers that cannot be meant.
    """
    mean, std = _numbers(facts, "mean"), _numbers(facts, "std")
    if len(mean) != len(std) or not mean:
        raise ValueError(f"{len(mean)} means and {len(std)} standard deviations")
    if min(std) <= 0:
        raise ValueError("a standard deviation is not above 0")
    resize = _size(facts.get("resize", facts.get("size")), "resize")
    crop = _size(facts.get("crop", facts.get("size")), "crop")
    interpolation = facts.get("interpolation", "bilinear")
    if interpolation not in _RESAMPLING:
        raise ValueError(f"unknown interpolation {interpolation!r}")
    return Preprocessing(
        resize=resize,
        crop=(crop, crop) if isinstance(crop, int) else crop,
        mean=mean,
        std=std,
        channels=len(mean),
        interpolation=str(interpolation),
        source="stated in the file",
        assumed=False,
    )


def _timm(checkpoint: Checkpoint | None) -> Preprocessing | None:
    """timm's config.json: "pretrained_cfg" with input_size, mean, std, crop_pct and interpolation, or these at the top.

    As timm/data/transforms_factory.py (1.0): the shorter side becomes floor(size / crop_pct), then the centre is cut;
    "squash" makes both sides so; "border" is something else.
    """

    def told(key: str) -> object:
        found = told_beside(checkpoint, "config.json", f"pretrained_cfg.{key}")
        return told_beside(checkpoint, "config.json", key) if found is None else found

    size, share, mode = told("input_size"), told("crop_pct"), told("crop_mode")
    if not isinstance(size, list) or len(size) != 3 or any(type(n) is not int or n < 1 for n in size):
        return None
    if mode not in (None, "center", "squash"):
        return None
    share = share if isinstance(share, int | float) and share > 0 else 0.875
    larger = [math.floor(side / share) for side in size[1:]]
    whole = mode == "squash" or larger[0] != larger[1]
    return _given(
        {
            "mean": told("mean"),
            "std": told("std"),
            "resize": larger if whole else larger[0],
            "crop": size[1:],
            # timm/data/config.py takes bicubic where nothing is said.
            "interpolation": "bilinear" if told("interpolation") == "random" else told("interpolation") or "bicubic",
        },
        "stated by timm's config.json beside the file",
    )


def _open_clip(checkpoint: Checkpoint | None) -> Preprocessing | None:
    """open_clip_config.json: "preprocess_cfg" beside the size in "model_cfg"."""

    def told(key: str) -> object:
        return told_beside(checkpoint, "open_clip_config.json", key)

    size = told("preprocess_cfg.size") or told("model_cfg.vision_cfg.image_size")
    mode = told("preprocess_cfg.resize_mode")
    if size is None or mode not in (None, "shortest", "squash"):
        return None
    sides = [size, size] if type(size) is int else size
    return _given(
        {
            "mean": told("preprocess_cfg.mean"),
            "std": told("preprocess_cfg.std"),
            "resize": sides if mode == "squash" or type(size) is not int else size,
            "crop": sides,
            "interpolation": told("preprocess_cfg.interpolation") or "bicubic",
        },
        "stated by open_clip_config.json beside the file",
    )


def _given(facts: dict[object, object], source: str) -> Preprocessing | None:
    try:
        return replace(_from_facts(facts), source=source)
    except (ValueError, TypeError, KeyError):
        return None


def _processor(checkpoint: Checkpoint | None) -> Preprocessing | None:
    """preprocessor_config.json as transformers writes it; None where it is absent or says something else than
    resize, crop, scale to 0..1, subtract and divide."""

    def told(key: str) -> object:
        return stated_beside(checkpoint, "preprocessor_config.json", key)

    def size(key: str) -> object:
        edge, height, width = (told(f"{key}.{side}") for side in ("shortest_edge", "height", "width"))
        plain = edge if edge is not None else told(key)
        return plain if height is None or width is None else [height, width]

    scale = told("rescale_factor")
    if told("do_normalize") is False or told("do_rescale") is False or told("rescale_offset") is True:
        return None
    if isinstance(scale, float) and abs(scale * 255 - 1) > 1e-6:
        return None
    crop = size("crop_size") if told("do_center_crop") is not False else None
    resize = size("size") if told("do_resize") is not False else None
    if crop is None and type(resize) is int and told("size.shortest_edge") is None:
        resize = [resize, resize]  # A plain number is both sides where nothing is cut off.
    share, edge = told("crop_pct"), told("size.shortest_edge")
    if resize is not None and isinstance(share, int | float) and 0 < share <= 1 and type(edge) is int:
        # ConvNeXt's processor: from 384 pixels on both sides are made so, below the shorter one larger and cut.
        crop = [edge, edge]
        resize = crop if edge >= _SQUASHED_FROM else int(edge / share)
    kinds = {None: "bilinear", 1: "bicubic", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers
    kind = told("resample")
    if kind not in kinds:
        return None
    facts: dict[object, object] = {
        "mean": told("image_mean"),
        "std": told("image_std"),
        "resize": resize,
        "crop": crop,
        "interpolation": kinds[kind],
    }
    nearly = ", Lanczos taken as bicubic" if kind == 1 else ""
    return _given(facts, f"stated by preprocessor_config.json beside the file{nearly}")


def _numbers(facts: Mapping[object, object], key: str) -> tuple[float, ...]:
    found = facts[key]
    if isinstance(found, int | float):
        found = [found]
    if not isinstance(found, list | tuple):
        raise ValueError(f"{key} is no list of numbers")
    numbers = tuple(float(number) for number in found)
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"{key} is not finite")
    return numbers


def _size(found: object, key: str) -> int | tuple[int, int] | None:
    if found is None:
        return None
    given = list(found) if isinstance(found, list | tuple) else [found]
    sides = [side for side in given if type(side) is int and 1 <= side <= LARGEST_SIDE]
    if len(given) not in (1, 2) or len(sides) != len(given):
        raise ValueError(f"{key} {found!r} is no size from 1 to {LARGEST_SIDE}")
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _assumed(spec: ArchitectureSpec | None, channels: int) -> Preprocessing:
    """What is published for this architecture, else ImageNet's numbers; at the size that its cost is counted at."""
    _, height, width = (channels, *_USUAL) if spec is None else default_input(spec)
    found = None if spec is None else _of_facts(transforms(spec), assumed=True)
    if found is None:
        return _default(channels, (height, width))
    if found.crop not in (None, (height, width)):
        # Nobody published weights for this size, and the position table in the file fits no other.
        source = f"{found.source}, at the file's own size {height} x {width}"
        return replace(found, resize=min(height, width), crop=(height, width), source=source)
    return found


def _in_channels(guess: Preprocessing, channels: int) -> Preprocessing:
    """The same for another number of channels. Numbers that are one for all channels hold for these too."""
    if len(set(guess.mean)) == len(set(guess.std)) == 1:
        return replace(guess, mean=guess.mean[:1] * channels, std=guess.std[:1] * channels, channels=channels)
    mean, std, numbers = _usual_numbers(channels)
    source = f"assumed: {numbers}{_pixels(guess.resize, guess.crop)}"
    return replace(guess, mean=mean, std=std, channels=channels, source=source, assumed=True)


def _of_facts(facts: TransformFacts | None, *, assumed: bool) -> Preprocessing | None:
    if facts is None or facts.kind not in _PICTURES:
        return None
    if facts.kind == "ObjectDetection":
        # Detectors resize and normalise by themselves.
        facts = replace(facts, mean=(0.0,) * 3, std=(1.0,) * 3, resize=None, crop=None)
    if not facts.mean:
        return None
    return Preprocessing(
        resize=facts.resize,
        crop=facts.crop,
        mean=facts.mean,
        std=facts.std,
        channels=len(facts.mean),
        interpolation=facts.interpolation or "bilinear",
        source=f"{'assumed: ' if assumed else ''}as published with {facts.source}",
        assumed=assumed,
    )


def _state_of(recognition: Recognition | None, checkpoint: Checkpoint | None) -> StateDict | None:
    if checkpoint is None:
        return None
    if recognition is not None:
        for state in checkpoint.state_dicts:
            if state.path == recognition.state_dict:
                return state
    return checkpoint.weights


def _input_channels(spec: ArchitectureSpec | None, state: StateDict | None) -> int:
    """By the architecture that is built, else by the file's first convolution without groups of its own, else 3."""
    if spec is not None:
        return spec.in_channels or 3
    for tensor in state.tensors if state is not None else ():
        if len(tensor.shape) == 4 and tensor.name.endswith("weight"):
            return tensor.shape[1]
    return 3


def _default(channels: int, size: tuple[int, int]) -> Preprocessing:
    """What is assumed when nothing is published."""
    resize = resized_for(*size) if size == _USUAL else min(size)
    mean, std, numbers = _usual_numbers(channels)
    return Preprocessing(
        resize=resize,
        crop=size,
        mean=mean,
        std=std,
        channels=channels,
        interpolation="bilinear",
        source=f"assumed: {numbers}{_pixels(resize, size)}",
        assumed=True,
    )


def _usual_numbers(channels: int) -> tuple[tuple[float, ...], tuple[float, ...], str]:
    """(mean, deviation, what they are): ImageNet's for colour, -1..1 for everything else."""
    if channels == 3:
        return IMAGENET_MEAN, IMAGENET_STD, "ImageNet mean and deviation"
    return (0.5,) * channels, (0.5,) * channels, f"{counted(channels, 'channel')} scaled to -1..1"


def _pixels(resize: int | tuple[int, int] | None, crop: tuple[int, int] | None) -> str:
    """ ", 224 of 256 pixels", ", 32 x 32 pixels"."""
    if crop is None:
        return ""
    if isinstance(resize, int) and crop[0] == crop[1] and resize > crop[0]:
        return f", {crop[0]} of {resize} pixels"
    return f", {crop[0]} x {crop[1]} pixels"
