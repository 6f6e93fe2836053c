"""Convolutions, pooling and upsampling: channels, dimensions, and pictures too small for them."""

from __future__ import annotations

import re

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.repairs import (
    ALPHA,
    BATCH,
    CHANNEL,
    COLOUR,
    FRAMES,
    GREY,
    LAST_TO_SECOND,
    LAST_WITHOUT_BATCH,
    LATENT,
    ONE_FRAME,
    SQUEEZED,
    SWAPPED,
    Repair,
    fitting_sides,
    resized_input,
    smallest_side,
    tried_repair,
)
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.forward.watch import tensors_in
from inspector.units import counted, human_shape

_TOO_SMALL = re.compile(
    r"Kernel size can't be greater than actual input size|Output size is too small|output size is too small|"
    r"size should be less than the corresponding input dimension|[Ee]xpected more than 1 spatial element|"
    r"smaller than kernel size|output would be too small|Calculated padded input size|"
    r"bad size|non-zero size for its|should be greater than zero",
)
_RANKS = ((1, nn.Conv1d, nn.ConvTranspose1d), (2, nn.Conv2d, nn.ConvTranspose2d), (3, nn.Conv3d, nn.ConvTranspose3d))
_LAYOUT = {
    1: "batch x channels x length",
    2: "batch x channels x height x width",
    3: "batch x channels x frames x height x width",
}


def _rank(layer: nn.Module) -> int | None:
    return next((rank for rank, *kinds in _RANKS if isinstance(layer, tuple(kinds))), None)


def find_channels(scene: Scene) -> Diagnosis | None:
    """A convolution that received another number of channels than it takes."""
    layer, x = scene.layer, scene.given
    rank = _rank(layer)
    if (
        rank is None
        or not isinstance(layer, _ConvNd)
        or not isinstance(x, Tensor)
        or x.dim() not in (rank + 1, rank + 2)
    ):
        return None
    takes, got = layer.in_channels, x.shape[-rank - 1]
    if takes == got:
        return None
    shape = human_shape(tuple(x.shape))
    start = f"{scene.path} takes {counted(takes, 'channel')} and received {got:,}"
    inputs = [t.shape for t in tensors_in((scene.args, dict(scene.kwargs)))]
    if scene.before_all_weights and x.shape in inputs:
        for repairs in (*_candidates(rank, takes, got, x), *_moved(rank, takes, x)):
            found = tried_repair(scene, *repairs)
            if found is not None:
                return found
        return Diagnosis(
            cause="input-channels",
            says=f"{start}: the input is {shape}.",
            fix=f"It takes {_LAYOUT[rank]}, with {counted(takes, 'channel')}"
            + (f"; the {takes} stand last here: permute them." if x.shape[-1] == takes else "."),
        )
    if x.shape[-1] == takes:
        order = {1: "0, 2, 1", 2: "0, 3, 1, 2", 3: "0, 4, 1, 2, 3"}[rank]
        return Diagnosis(
            cause="channels-last",
            says=f"{start}: in {scene.told(x)} the {takes:,} channels stand last.",
            fix="Put them second before this layer, or leave out what moved them.",
            code=f"x = x.permute({order})" if x.dim() == rank + 2 else "",
            sureness=Sureness.CERTAIN if got != takes else Sureness.LIKELY,
        )
    return Diagnosis(
        cause="channels",
        says=f"{start}: {scene.told(x)}.",
        fix=f"Make this layer for {counted(got, 'channel')}, or let what comes before give {takes:,}.",
    )


def _candidates(rank: int, takes: int, got: int, x: Tensor) -> list[tuple[Repair, ...]]:
    if rank == 1:
        return [(SWAPPED,), (CHANNEL,), (BATCH,)]
    if rank == 3:
        return [(CHANNEL,), (ONE_FRAME,), (BATCH,)] if takes == 1 else [(ONE_FRAME,), (BATCH,)]
    found: list[tuple[Repair, ...]] = []
    if x.dim() == rank + 1:
        found += [(LAST_WITHOUT_BATCH,), (CHANNEL,), (BATCH, GREY), (BATCH, ALPHA), (BATCH, COLOUR), (CHANNEL, GREY)]
        found += [(LAST_WITHOUT_BATCH, ALPHA), (LAST_WITHOUT_BATCH, COLOUR)]
    found += [(GREY,)] if (takes, got) == (3, 1) else []
    found += [(ALPHA,)] if (takes, got) == (3, 4) else []
    found += [(COLOUR,)] if takes == 1 and got in (3, 4) else []
    return [*found, (LAST_TO_SECOND,), (LAST_TO_SECOND, ALPHA), (LAST_TO_SECOND, COLOUR), (LAST_TO_SECOND, GREY)]


def _moved(rank: int, takes: int, x: Tensor) -> list[tuple[Repair, ...]]:
    """The channels in front, wherever a dimension has their number: batch x frames x channels x height x width."""
    found: list[tuple[Repair, ...]] = []
    batch = int(x.dim() == rank + 2)
    for axis in range(batch + 1, x.dim()):
        if x.shape[axis] != takes:
            continue
        rest = [i for i in range(batch, x.dim()) if i != axis]
        order = (*range(batch), axis, *rest)
        last = axis == x.dim() - 1
        place = "last" if last else f"in dimension {axis}"
        lacks = "" if batch else ", and it has no batch dimension"
        repair = Repair(
            "channels-last" if last else "channels-elsewhere",
            f"The {counted(takes, 'channel')} stand {place} in the input of {{shape}}; {_LAYOUT[rank]} is "
            f"taken{lacks}.",
            f"x = x.permute({', '.join(map(str, order))})" + ("" if batch else ".unsqueeze(0)"),
            lambda one, order=order: (  # type: ignore[misc]
                (one.permute(order) if batch else one.permute(order)[None])
                if one.dim() == len(order) and tuple(one.shape) == tuple(x.shape)
                else None
            ),
        )
        found.append((repair,))
    return found


_DIMENSIONS = re.compile(
    r"[Ee]xpected (?:\d(?:D|-dimensional)|\dD \(unbatched\)|\dD or \dD|(?:non-empty )?\dD)|"
    r"expected \d(?:D or \d)?D input|"
    r"must be \dD|input must have \d dimensions|only supports? \d|Only \dD|dimensional input|\(batch mode\)",
)


def find_dimensions(scene: Scene) -> Diagnosis | None:
    """A layer that received a tensor with another number of dimensions than it takes."""
    layer, x = scene.layer, scene.given
    if not scene.is_torch_layer or not isinstance(x, Tensor):
        return None
    rank = _rank(layer)
    wrong = rank is not None and x.dim() not in (rank + 1, rank + 2)
    if not wrong and not _DIMENSIONS.search(scene.text):
        return None
    picture = scene.picture
    if picture is not None and picture.dim() != 4:
        few = ((BATCH,), (LAST_WITHOUT_BATCH,), (CHANNEL,), (LATENT,), (BATCH, GREY))
        for tried in few if picture.dim() < 4 else ((FRAMES,), (SQUEEZED,)):
            found = tried_repair(scene, *tried)
            if found is not None:
                return found
    wants = f"; it takes {_LAYOUT[rank]}" if rank else ""
    fix = "Print x.shape in front of this layer; unsqueeze adds a dimension, flatten or squeeze takes one away."
    if rank and x.dim() == 2:
        rest = "length" if rank == 1 else "height, width"
        fix = f"A flattened map has to get its shape back: x.view(x.size(0), channels, {rest})."
    elif scene.recorder.operator_of(x).startswith("squeeze"):
        fix = "squeeze() without a dimension takes a batch of 1 away, too: name the one, as squeeze(0) or squeeze(-1)."
    elif rank == 2 and x.dim() == 5:
        fix = "Frames of a clip go through a 2-d network as pictures: x.flatten(0, 1)."
    elif rank == 3 and x.dim() == 4:
        fix = "A 3-d convolution takes clips or volumes: x.unsqueeze(2) makes a clip of one frame."
    return Diagnosis(
        cause="dimensions",
        says=f"{scene.path} received {counted(x.dim(), 'dimension')}, {scene.told(x)}{wants}.",
        fix=fix,
        sureness=Sureness.CERTAIN,
    )


def find_too_small(scene: Scene) -> Diagnosis | None:
    """A picture that has no pixels left when a kernel or pool wants some."""
    if not _TOO_SMALL.search(scene.text):
        return None
    x = next((value for value in (scene.given, *scene.operands) if isinstance(value, Tensor)), None)
    if x is None:
        return None
    picture = scene.picture
    size = human_shape(tuple(picture.shape)) if picture is not None else "?"
    side = smallest_side(scene)
    fits = f"Pictures of {side}x{side} are the smallest square ones that run through." if side else ""
    return Diagnosis(
        cause="input-too-small",
        says=f"The input of {size} is too small for this network: {human_shape(tuple(x.shape))} is left of it at "
        f"{scene.path}.",
        fix=fits or "Give it a larger input, or take out a stride or pool.",
        code=resized_input(scene, side) if side else "",
        sureness=Sureness.CERTAIN,
        tried=(f"a picture of {side}x{side}: runs through, {side - 1}x{side - 1} does not",) if side else (),
    )


_WRONG_SIZE = re.compile(
    r"(?:image|Input|picture|input image|Wrong image) ?(?:size|height|width)|doesn't match model|"
    r"should be divisible by|must be divisible|divisible by (?:the )?patch",
    re.IGNORECASE,
)


def find_stated_size(scene: Scene) -> Diagnosis | None:
    """The network itself says that the picture has the wrong size, and another size runs through."""
    picture = scene.picture
    if picture is None or picture.dim() < 4 or not _WRONG_SIZE.search(scene.text):
        return None
    numbers = tuple(int(n) for n in re.findall(r"\b\d{2,4}\b", scene.text))
    fits = fitting_sides(scene, numbers)
    if not fits:
        return None
    return Diagnosis(
        cause="picture-size",
        says=f"The network takes pictures of another size than {picture.shape[-2]}x{picture.shape[-1]}: "
        f"{scene.first_line.rstrip('.')}.",
        fix=f"Pictures of {fits[0]}x{fits[0]} run through.",
        code=resized_input(scene, fits[0]),
        tried=(f"a picture of {fits[0]}x{fits[0]}: runs through",),
    )


CAUSES = (
    Cause(
        kinds=(
            "channels",
            "input-channels",
            "channels-last",
            "channels-elsewhere",
            "grey-picture",
            "picture-with-alpha",
            "colour-picture",
            "channel-missing",
            "batch-missing",
            "sequence-transposed",
            "frames-missing",
        ),
        find=find_channels,
    ),
    Cause(kinds=("input-too-small",), find=find_too_small),
    Cause(kinds=("picture-size",), find=find_stated_size),
    Cause(
        kinds=(
            "dimensions",
            "batch-missing",
            "channels-last",
            "channel-missing",
            "map-dimensions-missing",
            "too-many-dimensions",
        ),
        find=find_dimensions,
    ),
)
