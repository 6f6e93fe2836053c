"""Which way a convolution runs, and whether it is depthwise, by what stands before it and behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from inspector.architectures.structure.names_of_directions import is_called_transposed
from inspector.architectures.structure.types import (
    BY_PLACES,
    CONVOLUTIONS,
    EITHER_WAY,
    MAYBE_DEPTHWISE,
    NORMS,
    SCALES,
    Layer,
    LayerKind,
)

_CALLED_DEPTHWISE = re.compile(
    r"depth_?wise|(?:^|_)dw(?:_|$|conv)|dwconv|dconv|(?:^|_)depth|(?:^|_)groups?(?:_|$)", re.I
)
# A depth may be a picture's, so it counts beside what is separable alone.
_CERTAINLY_DEPTHWISE = re.compile(r"depth_?wise|(?:^|[._])dw(?:[._]|$|conv)|dwconv|separable\w*_depth", re.I)
_MANY = 3
_BESIDE = frozenset({LayerKind.TENSOR, LayerKind.EMBEDDING, LayerKind.FOURIER})
_LEAST_TAKERS = 2
_PARTS_OF_COMPLEX = re.compile(r"real|imag(?:inary)?|(?<![a-z])(?:re|im)(?![a-z])|(?<![a-z])[ri](?![a-z])", re.I)
_FARTHEST = 12  # loose tensors and slopes between two layers


def with_neighbours(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Which way a convolution without a bias runs, by the widths on both sides of it; a filter that sees one channel of
    as many as there are is depthwise.

    A norm behind a layer may be the next one's own, so it alone proves nothing: transposed is said where both sides
    say so, forwards where one does and none says otherwise. In one Sequential an even kernel, as what upsamples has,
    and one side are enough.
    """
    made = list(layers)
    for place, layer in enumerate(made):
        if layer.kind is not LayerKind.EITHER_CONVOLUTION or layer.inputs == layer.outputs:
            continue
        before, behind = (_width(layers, made, place, step) for step in (-1, 1))
        forwards = (before == layer.inputs) + (behind == layer.outputs)
        backwards = (before == layer.outputs) + (behind == layer.inputs)
        sure = _norm_of_its_own(layers, place)
        if sure in (layer.inputs, layer.outputs) and not _is_inside(layers, place):
            forwards, backwards = (2, 0) if sure == layer.outputs else (0, 2)
        # Equal on both sides: a residual's branch. What runs backwards upsamples, mostly by an even kernel.
        is_branch = forwards == backwards == 1 and all(size % 2 for size in layer.kernel)
        if (forwards and not backwards) or is_branch:
            said = f"{before:,} before it" if before == layer.inputs else f"{layer.outputs:,} behind it"
            made[place] = replace(layer, kind=LayerKind.CONVOLUTION, evidence=f"{layer.evidence}; {said}", more="")
        elif _is_backwards(layers, place, backwards) and not forwards:
            sides = [f"{before:,} before it"] if before == layer.outputs else []
            sides += [f"{behind:,} behind it"] if behind == layer.inputs else []
            made[place] = replace(
                layer,
                kind=LayerKind.TRANSPOSED,
                inputs=layer.outputs,
                outputs=layer.inputs,
                evidence=f"{layer.evidence}; {', '.join(sides)}",
                more="",
            )
    tables = {layer.outputs for layer in layers if layer.kind is LayerKind.EMBEDDING}
    for place, layer in enumerate(made):
        if layer.kind in CONVOLUTIONS and layer.inputs == 1 and (layer.outputs or 0) > 1 and max(layer.kernel) > 1:
            before = _before(made, place)
            # Without a bias the same tensor may make one channel of so many, or upsample by an even kernel.
            odd = any(size % 2 for size in layer.kernel)
            sure = layer.kind is LayerKind.CONVOLUTION or (odd and _behind(made, place) == layer.outputs)
            # A gate between multiplies one half by the other (GLU, the branches of Mamba).
            halved = before == 2 * (layer.outputs or 0)
            # A kernel as wide as the vectors of a table before it reads them as a picture of one channel.
            sure = sure and not tables & set(layer.kernel[1:])
            if (before == layer.outputs or halved) and sure and not _may_see_the_input(layers, layer):
                half = f", {layer.outputs:,} when a gate or a split halves them" if halved else ""
                evidence = f"{layer.evidence}: a filter sees one channel, and there are {before:,} before it{half}"
                # Of how many channels there are no filters tell: two filters may share one.
                made[place] = replace(layer, kind=LayerKind.DEPTHWISE, inputs=None, evidence=evidence, more="")
    return tuple(made)


def with_first(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The first layer of all runs forwards where several others take its filters' number, and nothing takes or puts out
    the other width: backwards it would put out what nobody takes. Even kernels and networks with transposed
    convolutions are left open."""
    first = _first(layers)
    if first is None or first.kind is not LayerKind.EITHER_CONVOLUTION or first.is_square:
        return layers
    if any(layer.kind is LayerKind.TRANSPOSED for layer in layers) or not all(size % 2 for size in first.kernel):
        return layers
    others = [one for one in layers if one is not first and one.kind not in NORMS | _BESIDE]
    widths = {width for one in others for width in (one.inputs, one.outputs)}
    takers = sum(one.inputs == first.outputs for one in others)
    if first.inputs in widths or takers < _LEAST_TAKERS:
        return layers
    evidence = f"{first.evidence}: {first.outputs:,} is what {takers:,} layers take"
    told = replace(first, kind=LayerKind.CONVOLUTION, evidence=evidence, more="")
    return tuple(told if layer is first else layer for layer in layers)


def _norm_of_its_own(layers: Sequence[Layer], place: int) -> int | None:
    """The width of the batch norm right behind it in the same Sequential, where no other layer with weights follows in
    it that the norm might belong to."""
    parent, _, number = layers[place].path.rpartition(".")
    behind = layers[place + 1] if place + 1 < len(layers) else None
    if not number.isdecimal() or behind is None or behind.kind is not LayerKind.BATCH_NORM:
        return None
    after = layers[place + 2] if place + 2 < len(layers) else None
    last = after is None or not after.path.startswith(f"{parent}.")
    return behind.outputs if last and behind.path == f"{parent}.{int(number) + 1}" else None


def _is_inside(layers: Sequence[Layer], place: int) -> bool:
    """Whether something stands before it in its own Sequential, whose width counts as well."""
    parent = layers[place].path.rpartition(".")[0]
    return place > 0 and layers[place - 1].path.startswith(f"{parent}.")


def _first(layers: Sequence[Layer]) -> Layer | None:
    """The first layer of all that weighs, where it is a convolution; what a table looks up may come before it."""
    first = next((one for one in layers if one.kind not in NORMS | _BESIDE), None)
    return first if first is not None and first.kind in CONVOLUTIONS else None


def _may_see_the_input(layers: Sequence[Layer], layer: Layer) -> bool:
    """Whether the network may take one channel and this be a second branch on it, as a shortcut is: no name calls it
    depthwise, and there are not many of its shape."""
    first = _first(layers)
    if first is None or first.inputs != 1 or _is_called_depthwise(layer):
        return False
    of_shape = sum(
        one.kind in CONVOLUTIONS and (one.inputs, one.outputs, one.kernel) == (1, layer.outputs, layer.kernel)
        for one in layers
    )
    return of_shape < _MANY


def _is_backwards(layers: tuple[Layer, ...], place: int, sides: int) -> bool:
    kernel = layers[place].kernel
    if sides == 2:
        return max(kernel) > 1 or _norm_of_its_own(layers, place) == layers[place].inputs
    parent, _, number = layers[place].path.rpartition(".")
    # Numbers of one module: what stands before is called before. Its norm is told at the first and the last.
    beside = layers[max(0, place - 1) : place] + layers[place + 1 : place + 2]
    return (
        sides == 1
        and all(size % 2 == 0 for size in kernel)
        and number.isdecimal()
        and any(one.kind is LayerKind.BATCH_NORM and one.path.rpartition(".")[0] == parent for one in beside)
    )


def _before(made: Sequence[Layer], place: int) -> int | None:
    """What the last layer before puts out, or a norm between has; slopes of one number and loose tensors between tell
    nothing."""
    between = (one for one in reversed(made[max(0, place - _FARTHEST) : place]) if one.kind is not LayerKind.TENSOR)
    return next((one.outputs for one in between if one.kind not in SCALES or one.outputs != 1), None)


def _behind(made: Sequence[Layer], place: int) -> int | None:
    """What the next layer takes, or a norm between has. A convolution of a single place runs forwards."""
    behind = (one for one in made[place + 1 : place + _FARTHEST] if one.kind is not LayerKind.TENSOR)
    return next((one.inputs for one in behind if one.kind not in SCALES or one.outputs != 1), None)


def with_open_groups(layers: tuple[Layer, ...], *, ordered: bool) -> tuple[Layer, ...]:
    """Filters that see one channel, behind the first layer of all: as many channels may come, each with its own, or
    with several of them."""
    first = _first(layers) if ordered else None
    made = list(layers)
    for place, layer in enumerate(layers):
        if (
            layer.kind in (LayerKind.CONVOLUTION, LayerKind.EITHER_CONVOLUTION)
            and not _stands_beside(layer, first)
            and layer.inputs == 1
            and (layer.outputs or 0) > 1
            and max(layer.kernel) > 1
        ):
            before = _before(layers, place) if ordered else None
            if (
                not ordered
                and _CERTAINLY_DEPTHWISE.search(".".join(layer.path.split(".")[-2:]))
                and layer.outputs in _others(layers, layer)
            ):
                why = f"{layer.evidence}: a filter sees one channel, its name, and others put out {layer.outputs:,}"
                made[place] = replace(layer, kind=LayerKind.DEPTHWISE, inputs=None, evidence=why, more="")
                continue
            if before and (layer.outputs or 0) % before and before % (layer.outputs or 1):
                continue  # filters are shared out among channels in equal numbers
            more = [layer.more, _groups_text(before, layer.outputs or 0)]
            made[place] = replace(layer, more=", ".join(one for one in more if one not in ("", BY_PLACES)))
    return tuple(made)


def _is_called_depthwise(layer: Layer) -> bool:
    return any(_CALLED_DEPTHWISE.search(name) for name in layer.path.split("."))


def _others(layers: Sequence[Layer], layer: Layer) -> frozenset[int | None]:
    """What other layers of a width in and out put out; a norm's may be its own."""
    return frozenset(one.outputs for one in layers if one is not layer and one.kind in CONVOLUTIONS)


def _stands_beside(layer: Layer, first: Layer | None) -> bool:
    """Whether it is the first of all or its twin in the same module, as a convolution's imaginary part is."""
    if first is None or layer is first:
        return layer is first
    same = layer.path.rpartition(".")[0] == first.path.rpartition(".")[0] != ""
    shape = (layer.inputs, layer.outputs, layer.kernel) == (first.inputs, first.outputs, first.kernel)
    names = [_PARTS_OF_COMPLEX.sub("*", one.path.rpartition(".")[2]) for one in (layer, first)]
    return same and shape and names[0] == names[1]


def _groups_text(before: int | None, filters: int) -> str:
    """The second reading of filters that see one channel."""
    if before and filters > before > 1 and filters % before == 0:
        return f"unless in {before:,} groups"
    return MAYBE_DEPTHWISE


def _width(layers: tuple[Layer, ...], made: list[Layer], place: int, step: int) -> int | None:
    """What the neighbour before puts out, or the norm behind has."""
    at = place + step
    if not 0 <= at < len(layers):
        return None
    if step < 0:
        return made[at].outputs if made[at].kind is not LayerKind.TENSOR else None
    return layers[at].outputs if layers[at].kind in (LayerKind.BATCH_NORM, LayerKind.NORM) else None


def with_open_squares(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Where a network has transposed convolutions, each that is as wide as deep may be one too; elsewhere it is said of
    even kernels, which upsample by two, and of the first of all, which may begin a decoder."""
    # Whose author calls the transposed ones so has not hidden one under another name.
    some = any(
        layer.kind is LayerKind.TRANSPOSED
        and max(layer.kernel) > 1
        and not is_called_transposed(layer.path, layer.kernel)
        for layer in layers
    )
    first = next((layer for layer in layers if layer.kind in CONVOLUTIONS), None)
    return tuple(
        replace(layer, more=layer.more or EITHER_WAY)
        if layer.is_square and (some or layer is first or all(size % 2 == 0 for size in layer.kernel))
        else layer
        for layer in layers
    )
