"""Convolutions that their names call transposed, where the widths beside them leave the direction open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from inspector.architectures.structure.types import BY_PLACES, CONVOLUTIONS, EITHER_WAY, Layer, LayerKind

# The operation itself, whatever the kernel.
_TRANSPOSED = re.compile(r"transpos|conv_?tr(?:an)?s?p|(?:^|_)t(?:r|rans)?_?conv", re.I)
# "upconv" is as often an interpolation and a plain convolution (ESRGAN), so it counts with a kernel of an even size.
_DECONVOLUTION = re.compile(r"deconv|deblock", re.I)
_UP = re.compile(r"up_?sampl|up_?conv", re.I)
_LEAST_UP = 4


def is_called_transposed(path: str, kernel: Sequence[int]) -> bool:
    """By its last name, or its module's where the last is a number; an even kernel beside words that leave it open."""
    names = path.split(".")
    name = next((name for name in reversed(names) if not name.isdecimal() and name not in ("conv", "weight")), "")
    even = bool(kernel) and all(size % 2 == 0 for size in kernel)
    return (
        _TRANSPOSED.search(name) is not None
        or (even and _DECONVOLUTION.search(name) is not None)
        or (even and min(kernel) >= _LEAST_UP and _UP.search(name) is not None)
    )


def with_named(layers: tuple[Layer, ...], *, ordered: bool) -> tuple[Layer, ...]:
    """Each such layer of open direction, unless the layer before puts out just what it would take forwards."""
    made = list(layers)
    for place, layer in enumerate(layers):
        if layer.kind is not LayerKind.EITHER_CONVOLUTION or not is_called_transposed(layer.path, layer.kernel):
            continue
        before = _before(layers, place) if ordered else None
        if not layer.is_square and before is not None and before == layer.inputs:
            continue
        more = "" if layer.more in (BY_PLACES, EITHER_WAY) else layer.more
        made[place] = replace(
            layer,
            kind=LayerKind.TRANSPOSED,
            inputs=layer.outputs,
            outputs=layer.inputs,
            evidence=f"{layer.evidence}, its name",
            more=more,
        )
    return tuple(made)


def _before(layers: Sequence[Layer], place: int) -> int | None:
    """What a layer of a direction that is certain puts out in the same Sequential."""
    parent, _, number = layers[place].path.rpartition(".")
    one = layers[place - 1] if place else None
    if one is None or not number.isdecimal() or one.path.rpartition(".")[0] != parent:
        return None
    return one.outputs if one.kind in CONVOLUTIONS - {LayerKind.EITHER_CONVOLUTION} else None
