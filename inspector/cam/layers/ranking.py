"""What the rankings of layers share: one name for each tensor, and the words for its place."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.cam.engine.trace import TracedCall
from inspector.cam.report import LayerProposal

# Below this many cells a side a map cannot point at anything smaller than a quarter of the picture.
COMFORTABLE_SIDE = 4

Pair = tuple[TracedCall, LayerProposal]


def outermost(pairs: Iterable[Pair]) -> list[Pair]:
    """One for each tensor, in the order in which they were last put out.

    Of modules that put out one and the same tensor the outermost is named ("layer4", not "layer4.1.relu"); a rearranged
    view of it is not ("norm", not "permute"), nor what only handed it on (an Identity).
    """
    by_memory: dict[int, Pair] = {}
    for call, layer in pairs:
        known = by_memory.get(call.memory)
        if known is None or (known[1].shape == layer.shape and depth(layer) <= depth(known[1]) and not call.passes):
            by_memory.pop(call.memory, None)
            by_memory[call.memory] = call, layer
    return list(by_memory.values())


def depth(layer: LayerProposal) -> int:
    """How many modules its own is nested in."""
    return layer.path.count(".")


def grid_text(layer: LayerProposal) -> str:
    """ "7x7", rows first."""
    return f"{layer.grid[0]}x{layer.grid[1]}"


def why_chosen(chosen: LayerProposal, last: LayerProposal) -> str:
    """The reason of the suggested one of several maps. last: the one nearest to the answer."""
    order = {"NHWC": "channels last", "NCHW": "channels first", "NLC": "patches row by row"}[chosen.layout]
    if chosen is last:
        return f"The last map before the answer, {grid_text(chosen)}, {order}."
    return (
        f"The last map with at least {COMFORTABLE_SIDE} cells a side, {grid_text(chosen)}, {order}; "
        f"{last.path} behind it has only {grid_text(last)}."
    )


def why_earlier(layer: LayerProposal) -> str:
    """The reason of a map of the same size as the suggested one, from farther before the answer."""
    return f"The map of an earlier step, {grid_text(layer)}: knows less about the class."
