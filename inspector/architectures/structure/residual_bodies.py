"""A body of residual stages as ResNet's (He 2016, table 1), whatever is between: "3-4-6-3 blocks of two 3x3", and what
differs. Names need not agree; stages of blocks and their kernels must."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inspector.architectures.structure.types import CONVOLUTIONS, NORMS, Claim, Layer, LayerKind, Topic
from inspector.architectures.structure.wording import widths_text

_BASIC, _BOTTLENECK = (3, 3), (1, 3, 1)
_KNOWN: dict[tuple[tuple[int, ...], tuple[int, ...]], str] = {
    (_BASIC, (1, 1, 1, 1)): "resnet10",
    (_BASIC, (2, 2, 2, 2)): "resnet18",
    (_BASIC, (3, 4, 6, 3)): "resnet34",
    (_BOTTLENECK, (2, 2, 2, 2)): "resnet26",
    (_BOTTLENECK, (3, 4, 6, 3)): "resnet50",
    (_BOTTLENECK, (3, 4, 23, 3)): "resnet101",
    (_BOTTLENECK, (3, 8, 36, 3)): "resnet152",
    **{(_BASIC, (n, n, n)): f"resnet{6 * n + 2} for small pictures" for n in (3, 5, 7, 9, 18)},
}
_WORDS = {_BASIC: "two 3x3 convolutions", _BOTTLENECK: "1x1, 3x3 and 1x1 convolutions"}
_WIDTHS = {4: (64, 128, 256, 512), 3: (16, 32, 64)}
_NUMBER = re.compile(r"\d+")
_DEPTHS = (4, 3)
_STEM = 7
_SHORTCUT = re.compile(r"short|down|skip|proj|identity", re.I)


def residual_body(layers: Sequence[Layer]) -> Iterator[Claim]:
    """One claim at most: the stages in the file's order."""
    for numbers in (1, 2):
        rows = [stage for stage in _stages(layers, numbers) if stage.kernels]
        for depth in _DEPTHS:
            for start in range(len(rows) - depth + 1):
                stages = rows[start : start + depth]
                builds = {stage.kernels for stage in stages}
                patterns = {_NUMBER.sub("*", stage.path) for stage in stages}
                counts = tuple(len(stage.blocks) for stage in stages)
                name = _KNOWN.get((stages[0].kernels, counts), "") if len(builds) == len(patterns) == 1 else ""
                widths = [stage.width for stage in stages]
                if name and all(b in (a, 2 * a) for a, b in pairwise(widths)) and widths[0] < widths[-1]:
                    yield _claim(name, stages, widths, layers)
                    return


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """Numbered blocks in one module. kernels: of the convolutions of each, (3, 3) or (1, 3, 1), () where a block has
    others; width: of its 3x3 ones."""

    path: str
    blocks: tuple[tuple[Layer, ...], ...]
    kernels: tuple[int, ...]
    width: int


def _stages(layers: Sequence[Layer], numbers: int) -> list[_Stage]:
    """Modules whose children are numbered, of which numbers are in their names so far."""
    found: dict[str, dict[str, list[Layer]]] = {}
    for layer in layers:
        names = layer.path.split(".")
        places = [place for place, name in enumerate(names[:-1]) if name.isdecimal()]
        if len(places) >= numbers:
            at = places[numbers - 1]
            found.setdefault(".".join(names[:at]), {}).setdefault(names[at], []).append(layer)
    return [_stage(path, [_own(path, number, group) for number, group in found[path].items()]) for path in found]


def _stage(path: str, blocks: Sequence[tuple[Layer, ...]]) -> _Stage:
    sizes = {_sizes(block) for block in blocks}
    kernels = sizes.pop() if len(sizes) == 1 else ()
    wide = [one for one in blocks[0] if one.kind in CONVOLUTIONS and max(one.kernel) > 1]
    return _Stage(path=path, blocks=tuple(blocks), kernels=kernels, width=(wide[0].outputs or 0) if wide else 0)


def _own(path: str, number: str, block: Sequence[Layer]) -> tuple[Layer, ...]:
    """Without its shortcut, which stands in a module of its own."""
    root = f"{path}.{number}."
    return tuple(one for one in block if not _SHORTCUT.search(one.path.removeprefix(root)))


def _sizes(block: Sequence[Layer]) -> tuple[int, ...]:
    """(3, 3) or (1, 3, 1) of a block of square 2-d kernels, () of any other."""
    own = [layer for layer in block if layer.kind not in NORMS]
    plain = all(
        one.kind in CONVOLUTIONS - {LayerKind.DEPTHWISE} and len(one.kernel) == 2 and len(set(one.kernel)) == 1
        for one in own
    )
    sizes = tuple(layer.kernel[0] for layer in own) if plain else ()
    return sizes if sizes in (_BASIC, _BOTTLENECK) else ()


def _claim(name: str, stages: Sequence[_Stage], widths: Sequence[int], layers: Sequence[Layer]) -> Claim:
    kernels = stages[0].kernels
    counts = "-".join(f"{len(stage.blocks):,}" for stage in stages)
    differs = list(_differences(stages, widths, layers))
    return Claim(
        topic=Topic.NEAREST,
        says=f"A body like {name}'s: {counts} blocks of {_WORDS[kernels]}, {widths_text(widths)} wide"
        f"{'; it differs: ' if differs else ''}{', '.join(differs)}.",
        evidence="numbers of blocks in the stages, their kernels and widths",
        value=sum(len(stage.blocks) for stage in stages),
        path=stages[0].path,
    )


def _differences(stages: Sequence[_Stage], widths: Sequence[int], layers: Sequence[Layer]) -> Iterator[str]:
    usual = _WIDTHS[len(stages)]
    if tuple(widths) != usual:
        yield f"widths {widths_text(widths)} instead of {widths_text(usual)}"
    places = {layer.path: place for place, layer in enumerate(layers)}
    first = places[stages[0].blocks[0][0].path]
    stem = [layer for layer in layers[:first] if layer.kind in CONVOLUTIONS]
    small = len(stages) == 3
    if stem and not small and (len(stem) > 1 or stem[0].kernel != (_STEM, _STEM)):
        kernels = ", ".join(dict.fromkeys(layer.size for layer in stem))
        yield f"{kernels} convolution{'s' if len(stem) > 1 else ''} at the beginning instead of one of 7x7"
    own = stages[0].blocks[0]
    norms = [one for one in own if one.kind in (LayerKind.BATCH_NORM, LayerKind.NORM)]
    convolutions = [one for one in own if one.kind in CONVOLUTIONS]
    if len(norms) != len(convolutions):
        where = ", the first before the convolutions" if own and own[0] in norms else ""
        yield f"{len(norms)} norms in a block of {len(convolutions)} convolutions{where}"
    elif norms and own[0] in norms:
        yield "a norm before the first convolution of each block in the file"
    if any(one.kind is LayerKind.PRELU for one in own):
        yield "PReLUs in the blocks"
    kinds = {one.kind for one in norms}
    if kinds == {LayerKind.NORM}:
        yield "norms without running statistics"
    last = max(places[layer.path] for layer in layers if layer.path.startswith(f"{stages[-1].path}."))
    ends = [one for one in layers[last + 1 :] if one.kind in CONVOLUTIONS | {LayerKind.LINEAR, LayerKind.MATRIX}]
    if not ends:
        yield "nothing behind it"
    elif ends[-1].kind is LayerKind.LINEAR and len(ends) == 1:
        flat = f" from {ends[0].inputs:,} laid flat" if ends[0].inputs != _last_width(stages[-1]) else ""
        yield f"{ends[0].outputs:,} values behind it{flat}"
    else:
        yield f"{len(ends):,} layers of its own behind it"


def _last_width(stage: _Stage) -> int:
    return next((one.outputs or 0 for one in reversed(stage.blocks[-1]) if one.kind in CONVOLUTIONS), 0)
