"""Linear layers that work along another axis than those around them: steps of a time, places of a grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from inspector.architectures.structure.flow import given_widths, is_joined
from inspector.architectures.structure.types import CONVOLUTIONS, RECURRENT, Claim, Layer, LayerKind, Topic

_WEIGHTED = CONVOLUTIONS | RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX, LayerKind.ATTENTION, LayerKind.BILINEAR}


def other_axis(layers: Sequence[Layer]) -> Iterator[Claim]:
    """One claim for each."""
    for layer in along_another_axis(layers):
        yield Claim(
            topic=Topic.FED,
            says=f"{layer.name} takes {layer.inputs:,} and puts out {layer.outputs:,}, and nothing else in the file is "
            "as wide as either: likely along another axis than the layers around it, as from steps of time to more "
            "of them.",
            evidence=layer.evidence,
            value=layer.inputs,
            path=layer.path,
        )


def along_another_axis(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Linear layers neither of whose widths is another's or made of two others, where the layer behind each takes what
    the one before it puts out."""
    counts = Counter(width for one in layers for width in {one.inputs, one.outputs} if width)
    sizes = {
        int(size) for one in layers if one.kind is LayerKind.TENSOR for size in one.more.split("x") if size.isdecimal()
    }
    given = given_widths(layers)
    weighted = [one for one in layers if one.kind in _WEIGHTED and one.outputs and one.inputs]
    return tuple(
        layer
        for before, layer, behind in zip(weighted, weighted[1:], weighted[2:], strict=False)
        if layer.kind is LayerKind.LINEAR
        and layer.inputs
        and layer.outputs
        and layer.inputs != layer.outputs
        and before.outputs == behind.inputs
        and counts[layer.inputs] == counts[layer.outputs] == 1
        and not {layer.inputs, layer.outputs} & sizes
        and not is_joined(layer.inputs, given - {layer.outputs}, most=2)
        # A map laid flat has several times the channels before it.
        and not (before.kind in CONVOLUTIONS and layer.inputs % (before.outputs or 1) == 0)
    )
