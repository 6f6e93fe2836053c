"""Stacks of numbered blocks in a tree of names: what a deeper and a shallower network differ by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inspector.keys.placing.tree import Node, numbered

# What has fewer tensors is a layer, which may repeat by chance.
_LEAST = 4


@dataclass(frozen=True, slots=True)
class Stack:
    """Children of one module that differ by their number alone: layer1.0, layer1.1, or denselayer1, denselayer2.

    place: what stands before the numbers, "" for the top. blocks: by number, in the order of the names.
    """

    place: str
    blocks: Mapping[int, Node]


def stacks(root: Node) -> Iterator[Stack]:
    """Every stack of the tree, those at the top first."""
    pending = [root]
    while pending:
        node = pending.pop()
        pending.extend(node.children.values())
        for stem, segments in node.stems.items():
            blocks = {(numbered(s) or ("", 0))[1]: node.children[s] for s in segments}
            yield Stack(".".join((*node.path, stem)).rstrip("."), blocks)


def side_by_side(stack: Stack) -> bool:
    """Whether its blocks are copies of which none can follow another, as twin critics and the heads of an ensemble:
    the first layer takes in, and the last one puts out, what no layer of theirs puts out or takes in."""
    blocks = list(stack.blocks.values())
    if len({block.signature for block in blocks}) != 1:
        return False
    # A table of positions is no layer.
    shapes = [
        leaf.shape
        for name, leaf in blocks[0].walk()
        if leaf.shape is not None and len(leaf.shape) > 1 and name.rpartition(".")[2] == "weight"
    ]
    if not shapes:
        return False
    ins, outs = {shape[1] for shape in shapes}, {shape[0] for shape in shapes}
    return shapes[0][1] not in outs and shapes[-1][0] not in ins


def is_block(node: Node) -> bool:
    """Whether it has as many tensors as the blocks that networks repeat, and is no single layer."""
    return node.size >= _LEAST
