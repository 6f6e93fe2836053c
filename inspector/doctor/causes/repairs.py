"""Changes of the input that are tried out when a forward fails: what then runs through is told as what was wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor, nn

from inspector.doctor.causes.entry import Cause
from inspector.doctor.frames import forward_code
from inspector.doctor.own_layers import is_own_class
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.units import human_shape

_SIDES = (224, 32, 28, 64, 96, 128, 227, 299, 256, 160, 192, 384, 448, 512, 48, 56, 84, 112, 240, 288, 320, 336, 1024)
_MULTIPLES = (2, 4, 8, 16, 32, 64)
_COLOURS = (1, 3, 4)
_NAME = re.compile(r"\bx\b")
_ENDS = (RuntimeError, ValueError, AssertionError, IndexError, TypeError)


@dataclass(frozen=True, slots=True)
class Repair:
    """One change. says: what is wrong with {shape}. change: of a tensor, None where it does not apply."""

    id: str
    says: str
    code: str
    change: Callable[[Tensor], Tensor | None]


def weights_type(scene: Scene) -> torch.dtype:
    """Of the first floating-point parameter; float32 without one."""
    return next((p.dtype for p in scene.model.parameters() if p.is_floating_point()), torch.float32)


def input_name(scene: Scene) -> str:
    """What the model's own forward calls its first tensor; "x" where it has no name."""
    for name, value in scene.kwargs.items():
        if isinstance(value, Tensor) and not any(isinstance(one, Tensor) for one in scene.args):
            return name
    code = forward_code(scene.model)
    at = next((i for i, one in enumerate(scene.args) if isinstance(one, Tensor)), 0)
    names = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    return names[at] if at < len(names) and is_own_class(scene.model) else "x"


def named_code(scene: Scene, repair: Repair) -> str:
    """Its line with the model's own name of the input."""
    return _NAME.sub(input_name(scene), repair.code)


def resized_input(scene: Scene, side: int) -> str:
    """The line that brings the input to that size."""
    name = input_name(scene)
    return f"{name} = torch.nn.functional.interpolate({name}, size=({side}, {side}))  # at the start of forward"


def first_layer(scene: Scene) -> nn.Module | None:
    """The first module with weights of its own that was entered."""
    modules: dict[str, nn.Module] = dict(scene.model.named_modules())
    for record in scene.recorder.calls:
        module = modules.get(record.path)
        if module is not None and module._parameters and record.kind == type(module).__name__:
            return module
    return None


def picture_rank(scene: Scene) -> int | None:
    """Dimensions over which the first layer slides: 2 for Conv2d; None where it is no convolution."""
    layer = first_layer(scene)
    for rank, kind in ((1, nn.Conv1d), (2, nn.Conv2d), (3, nn.Conv3d)):
        if isinstance(layer, kind):
            return rank
    return None


def _is_picture(x: Tensor) -> bool:
    return x.is_floating_point() or x.dtype is torch.uint8


LAST_TO_SECOND = Repair(
    "channels-last",
    "The channels stand last in the input of {shape}; torch takes them in front of height and width.",
    "x = x.permute(0, 3, 1, 2)",
    lambda x: x.permute(0, 3, 1, 2) if x.dim() == 4 and x.shape[3] in _COLOURS and x.shape[1] > 4 else None,
)
LAST_WITHOUT_BATCH = Repair(
    "channels-last",
    "The input of {shape} has its channels last and no batch dimension.",
    "x = x.permute(2, 0, 1).unsqueeze(0)",
    lambda x: x.permute(2, 0, 1)[None] if x.dim() == 3 and x.shape[2] in _COLOURS and x.shape[0] > 4 else None,
)
LATENT = Repair(
    "map-dimensions-missing",
    "The input of {shape} has no height and width, which a convolution takes.",
    "x = x[:, :, None, None]",
    lambda x: x[:, :, None, None] if x.dim() == 2 else None,
)
ONE_FRAME = Repair(
    "frames-missing",
    "The network takes clips or volumes, and the input of {shape} has one dimension less.",
    "x = x.unsqueeze(2)  # a clip of one frame",
    lambda x: x.unsqueeze(2) if x.dim() == 4 else None,
)
BATCH = Repair(
    "batch-missing",
    "The input of {shape} has no batch dimension.",
    "x = x.unsqueeze(0)",
    lambda x: x.unsqueeze(0) if 1 <= x.dim() <= 4 else None,
)
GREY = Repair(
    "grey-picture",
    "The network takes three channels and the picture of {shape} has one (grey).",
    "x = x.expand(-1, 3, -1, -1)  # or open it with Image.open(path).convert('RGB')",
    lambda x: x.expand(-1, 3, -1, -1) if x.dim() == 4 and x.shape[1] == 1 else None,
)
ALPHA = Repair(
    "picture-with-alpha",
    "The network takes three channels and the picture of {shape} has four: the fourth is transparency.",
    "x = x[:, :3]  # or open it with Image.open(path).convert('RGB')",
    lambda x: x[:, :3] if x.dim() == 4 and x.shape[1] == 4 else None,
)
COLOUR = Repair(
    "colour-picture",
    "The network takes one channel (grey) and the picture of {shape} has three.",
    "x = x.mean(1, keepdim=True)  # or open it with Image.open(path).convert('L')",
    lambda x: x.to(torch.float32).mean(1, keepdim=True) if x.dim() == 4 and x.shape[1] in (3, 4) else None,
)
CHANNEL = Repair(
    "channel-missing",
    "The input of {shape} has no dimension for its one channel.",
    "x = x.unsqueeze(1)",
    lambda x: x.unsqueeze(1) if x.dim() in (2, 3, 4) and x.is_floating_point() else None,
)
SWAPPED = Repair(
    "sequence-transposed",
    "In the input of {shape} length and features have changed places.",
    "x = x.transpose(1, 2)",
    lambda x: x.transpose(1, 2) if x.dim() == 3 else None,
)
FLAT = Repair(
    "not-flattened",
    "The network takes rows of numbers and the input of {shape} is not flattened.",
    "x = x.flatten(1)",
    lambda x: x.flatten(1) if x.dim() > 2 else None,
)
FRAMES = Repair(
    "too-many-dimensions",
    "The input of {shape} has one dimension more than pictures have.",
    "x = x.flatten(0, 1)  # frames as pictures",
    lambda x: x.flatten(0, 1) if x.dim() == 5 else None,
)
SQUEEZED = Repair(
    "too-many-dimensions",
    "The input of {shape} has a dimension of size 1 too many.",
    "x = x.squeeze(1)",
    lambda x: x.squeeze(1) if x.dim() > 2 and x.shape[1] == 1 else None,
)
REPAIRS = (
    LAST_TO_SECOND, LAST_WITHOUT_BATCH, GREY, ALPHA, COLOUR, BATCH, CHANNEL, FLAT, SWAPPED, SQUEEZED, FRAMES,
    LATENT, ONE_FRAME,
)  # fmt: skip
# What people do both of.
_PAIRS = (
    (BATCH, GREY), (BATCH, ALPHA), (BATCH, COLOUR), (LAST_TO_SECOND, ALPHA), (LAST_WITHOUT_BATCH, ALPHA),
    (CHANNEL, GREY), (BATCH, CHANNEL), (LAST_TO_SECOND, COLOUR), (LAST_WITHOUT_BATCH, COLOUR),
)  # fmt: skip


def typed(scene: Scene, x: Tensor) -> Tensor:
    """As the weights are, where it is a picture: the type is a question of its own."""
    return x.to(weights_type(scene)) if _is_picture(x) else x


def tried_repair(scene: Scene, *repairs: Repair, sureness: Sureness = Sureness.CERTAIN) -> Diagnosis | None:
    """The diagnosis of these changes together, if the model runs through with them."""

    def change(x: Tensor) -> Tensor | None:
        for repair in repairs:
            made = repair.change(x)
            if made is None:
                return None
            x = made
        return typed(scene, x)

    if BATCH in repairs:
        lacks = lacks_batch(scene)
        if lacks is None:
            return None
        sureness = sureness if lacks else Sureness.LIKELY
    made = scene.changed(change)
    if made is None or not scene.trials.runs(*made):
        return None
    shape = human_shape(tuple(scene.picture.shape)) if scene.picture is not None else ""
    first = repairs[0]
    return Diagnosis(
        cause=first.id,
        says=" ".join(repair.says.format(shape=shape) for repair in dict.fromkeys(repairs)),
        fix="With the line below, before the call or at the start of forward, the network runs through."
        if len(repairs) == 1
        else "With these lines, before the call or at the start of forward, it runs through.",
        code="\n".join(named_code(scene, repair) for repair in repairs),
        sureness=sureness,
        tried=(f"{'; '.join(named_code(scene, repair).partition('  #')[0] for repair in repairs)}: runs through",),
    )


def lacks_batch(scene: Scene) -> bool | None:
    """Whether the first layer says that the batch is missing; None where it says that it is there."""
    layer, x, rank = first_layer(scene), scene.picture, picture_rank(scene)
    if x is None:
        return None
    if rank is not None:
        return x.dim() == rank + 1 if x.dim() <= rank + 1 else None
    if isinstance(layer, nn.Embedding | nn.Linear) and x.dim() >= (2 if isinstance(layer, nn.Embedding) else 3):
        return None
    return x.dim() == 1


def find_input_repair(scene: Scene) -> Diagnosis | None:
    """The first change of the input with which it runs through; a flattened picture before others."""
    if not isinstance(scene.error, _ENDS) or scene.picture is None:
        return None
    sure = Sureness.CERTAIN if scene.before_all_weights else Sureness.LIKELY
    for repair in REPAIRS:
        found = tried_repair(scene, repair, sureness=sure)
        if found is not None:
            return found
    return next((found for pair in _PAIRS if (found := tried_repair(scene, *pair, sureness=sure))), None) or _unfolded(
        scene
    )


def _unfolded(scene: Scene) -> Diagnosis | None:
    """Rows of numbers where pictures are wanted."""
    layer, x = first_layer(scene), scene.picture
    if not isinstance(layer, nn.Conv2d) or x is None or x.dim() != 2 or x.shape[1] % layer.in_channels:
        return None
    side = math.isqrt(x.shape[1] // layer.in_channels)
    if side * side * layer.in_channels != x.shape[1]:
        return None
    code = f"x = x.view(-1, {layer.in_channels}, {side}, {side})"
    repair = Repair(
        "picture-flattened",
        "The network takes pictures and the input of {shape} is flattened.",
        code,
        lambda one: one.view(-1, layer.in_channels, side, side) if one.dim() == 2 else None,
    )
    return tried_repair(scene, repair)


def sized(x: Tensor, height: int, width: int) -> Tensor | None:
    """Zeros of another height and width: sizes are tried out by shapes alone."""
    return x.new_zeros((*x.shape[:-2], height, width)) if x.dim() >= 4 else None


def fitting_sides(scene: Scene, first: tuple[int, ...] = (), *, most: int = 1) -> list[int]:
    """Sides of square pictures with which the model runs through. first: to be tried before the usual ones."""
    x = scene.picture
    if x is None or x.dim() < 4:
        return []
    sides = dict.fromkeys(side for side in (*first, *_SIDES) if 0 < side <= 2048)
    return list(islice(_fits(scene, [s for s in sides if (s, s) != tuple(x.shape[-2:])]), most))


def _fits(scene: Scene, sides: list[int]) -> Iterator[int]:
    for side in sides:
        if scene.runs_with(lambda x, side=side: sized(typed(scene, x), side, side)):  # type: ignore[misc]
            yield side


def smallest_side(scene: Scene) -> int | None:
    """The smallest square picture that runs through, where larger ones do, too."""
    x = scene.picture
    if x is None or x.dim() < 4:
        return None
    low, high = min(x.shape[-2:]), min(x.shape[-2:])
    while not (fits := bool(list(_fits(scene, [high])))) and high < 1024:
        low, high = high, high * 2
    if not fits:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if list(_fits(scene, [middle])) else (middle, high)
    return high


def fitting_multiple(scene: Scene) -> tuple[int, int, int] | None:
    """(multiple, height, width): of which both sides have to be multiples, and the next such size above."""
    x = scene.picture
    if x is None or x.dim() < 4:
        return None
    for multiple in _MULTIPLES:
        height, width = (-(-side // multiple) * multiple for side in x.shape[-2:])
        if (height, width) == tuple(x.shape[-2:]):
            continue
        if scene.runs_with(lambda x, h=height, w=width: sized(typed(scene, x), h, w)):  # type: ignore[misc]
            return multiple, height, width
    return None


CAUSES = (
    Cause(
        kinds=(
            "channels-last",
            "grey-picture",
            "picture-with-alpha",
            "colour-picture",
            "batch-missing",
            "channel-missing",
            "sequence-transposed",
            "not-flattened",
            "picture-flattened",
            "too-many-dimensions",
            "map-dimensions-missing",
            "frames-missing",
        ),
        find=find_input_repair,
    ),
)
