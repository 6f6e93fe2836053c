"""What a tensor is, in the words of whoever wrote the network: "Conv2d 3x3, 64 -> 128" helps more than a bare key."""

from __future__ import annotations

import re

from inspector.keys.placing.layouts import is_table
from inspector.keys.placing.roles import NORM_NAME, split_name
from inspector.keys.placing.tree import Leaf
from inspector.units import human_shape

_CONVOLUTIONS = {3: "Conv1d", 4: "Conv2d", 5: "Conv3d"}
_WEIGHT = re.compile(r"(^|_)(weight|weights|kernel|w)$")
# May be rows to look up, or a matrix in front of them.
_ROWS = re.compile(r"emb|vocab|lookup", re.IGNORECASE)
# What is called so has its sizes the other way round; of an "up" either may be meant.
_TRANSPOSED = re.compile(r"transpose|deconv|(^|[._])t_?convs?([._0-9]|$)", re.IGNORECASE)
_UP = re.compile(r"(^|[._])up(s|_?convs?|_?sampl[a-z]*)?[._]?[0-9]*$", re.IGNORECASE)


def kind_of(leaf: Leaf) -> str:
    """The module that a weight of this name and shape usually is, its shape for what is none; "" without a shape.

    A convolution's groups stand in its second size: depthwise is said where that is 1. Sizes are (out, in, ...).
    """
    shape = leaf.shape
    if not shape:
        return ""
    module, last = split_name(leaf.name)
    if not _WEIGHT.search(last):
        return human_shape(shape)
    if len(shape) in _CONVOLUTIONS:
        sides = "x".join(str(n) for n in shape[2:])
        if _TRANSPOSED.search(module):
            return f"ConvTranspose{len(shape) - 2}d {sides}, {shape[0]:,} -> {shape[1]:,}"
        if _UP.search(module) and shape[0] != shape[1]:
            return human_shape(shape)
        if shape[1] == 1 and shape[0] > 1 and max(shape[2:]) > 1:
            return f"{_CONVOLUTIONS[len(shape)]} {sides}, depthwise on {shape[0]:,}, or of one channel"
        return f"{_CONVOLUTIONS[len(shape)]} {sides}, {shape[1]:,} -> {shape[0]:,}"
    if len(shape) == 2:
        if is_table(leaf):
            return f"Embedding, {shape[0]:,} rows of {shape[1]:,}"
        if _ROWS.search(leaf.name):
            return human_shape(shape)
        return f"Linear, {shape[1]:,} -> {shape[0]:,}"
    if len(shape) == 1 and NORM_NAME.search(split_name(module)[1]):
        return f"norm of {shape[0]:,}"
    return human_shape(shape)


def shown(leaf: Leaf) -> str:
    """'layer1.0.conv1.weight (Conv2d 3x3, 64 -> 64)'."""
    kind = kind_of(leaf)
    return f"{leaf.name} ({kind})" if kind else leaf.name
