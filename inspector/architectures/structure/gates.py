"""Layers that take half of what the one before puts out, where no groups explain it: a gate between them halves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from inspector.architectures.structure.blocks import layers_by_block, numbers_text
from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Stack, Topic

_WEIGHTED = CONVOLUTIONS | {LayerKind.LINEAR}
_LEAST, _MOST = 3, 2
_MOST_SHOWN = 4


def gates(layers: Sequence[Layer], stacks: Sequence[Stack], *, ordered: bool) -> Iterator[Claim]:
    """Of blocks of one build each of which sees half of what the one of the number before puts out, or in each of which
    a transposed convolution takes half of what stands before it (GLU, Dauphin 2017, eq. 1). A plain convolution
    inside may be grouped, which says another sentence."""
    long = [stack for stack in stacks if stack.count >= _LEAST and not stack.picked]
    said = 0
    for stack, inside in zip(long, layers_by_block(layers, long), strict=True):
        blocks = [[one for one in inside[n] if one.kind in _WEIGHTED and one.outputs] for n in sorted(inside)]
        if said >= _MOST or not all(blocks):
            continue
        between = [(a[-1], b[0]) for a, b in pairwise(blocks)]
        within = [next(((a, b) for a, b in pairwise(block) if _is_halved(a, b)), None) for block in blocks]
        pairs = [pair for pair in within if pair is not None]
        # Which layer of a block is its last, sorted names do not say.
        if ordered and len({a.outputs for a, _ in between}) > 1 and all(_halves(a, b) for a, b in between):
            says = f"{numbers_text(stack)}: each sees half of what the one before puts out"
            found = between
            why = "in two groups, or after a gate that halves them (GLU)"
        elif len(pairs) == len(blocks):
            says = f"In each of {numbers_text(stack)} a transposed convolution takes half of what the layer before it "
            says += "puts out"
            found = pairs
            why = "as after a gate that halves them (GLU)"
        else:
            continue
        said += 1
        listed = ", ".join(f"{b.inputs:,} of {a.outputs:,}" for a, b in found[:_MOST_SHOWN])
        more = ", ..." if len(found) > _MOST_SHOWN else ""
        yield Claim(
            topic=Topic.JOINS,
            says=f"{says} ({listed}{more}): {why}.",
            evidence="; ".join(f"{a.path} {a.outputs:,}, {b.path} {b.inputs:,}" for a, b in found[:_MOST_SHOWN]),
            value=len(found),
            path=found[0][1].path,
        )


def _halves(before: Layer, layer: Layer) -> bool:
    return layer.inputs is not None and before.outputs == 2 * layer.inputs and layer.inputs > 1


def _is_halved(before: Layer, layer: Layer) -> bool:
    parents = {before.path.rpartition(".")[0], layer.path.rpartition(".")[0]}
    return layer.kind is LayerKind.TRANSPOSED and len(parents) == 1 and _halves(before, layer)
