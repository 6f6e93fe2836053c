"""When a file is not the target's network, in one sentence. A refused repair changes nothing.

Unlike missing tensors, which can be listed and left, these say that placing what happens to fit would make a wrong
model: other widths, another depth, or nothing in common.
"""

from __future__ import annotations

from inspector.architectures.types import Target
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.keys.blocks import is_block, stacks
from inspector.keys.draft import Draft
from inspector.keys.keytree import Node
from inspector.keys.report import StepKind
from inspector.keys.rules.prefix_tokens import say_tokens
from inspector.units import counted, human_shape


def refuse(made: Draft, target: Target, total: int) -> str:
    """Why this draft is no repair, "" when it is one."""
    if not total:
        return "The file has no tensors to place."
    moved = any(step.source is not None and step.target is not None for step in made.steps)
    if not moved and not made.reshaped and not made.held:
        return (
            f"None of the file's {counted(total, 'tensor')} can be placed in {target.label} by name: "
            f"{_first(made.source)} and {_first(made.target)} have nothing in common: strict=False would load 0 of "
            f"{len(target.tensors):,} and say nothing. {made.lost_order}"
        ).rstrip()
    if made.reshaped:
        for link in made.reshaped:
            if says := say_tokens(link):
                return says
        first = made.reshaped[0]
        return (
            f"{len(made.reshaped):,} of {counted(len(target.tensors), 'tensor')} have another shape than "
            f"{target.label} needs, {first.target.name} first: {human_shape(first.source.shape or ())} in the file, "
            f"{human_shape(first.target.shape or ())} in the target. This is another size or another network."
        )
    return _deeper(made, target)


def _first(node: Node) -> str:
    return next((leaf.name for _, leaf in node.walk()), "nothing")


def _deeper(made: Draft, target: Target) -> str:
    left_out = set(made.unplaced)
    # A block's tables go by rules of their own; what the user chose to leave out is no deeper network.
    dropped = {step.source for step in made.steps if step.kind is StepKind.DROP} - made.not_chosen
    placed = {link.source.name for link in made.placed}
    if not left_out:
        return ""
    for stack in stacks(made.source):
        blocks = list(stack.blocks.values())
        outside = [b for b in blocks if is_block(b) and all(x.name not in placed for _, x in b.walk())]
        outside = [b for b in outside if all(x.name in dropped for _, x in b.walk() if not is_bookkeeping(x.name))]
        outside = [b for b in outside if any(x.name in left_out for _, x in b.walk())]
        inside = [b for b in blocks if b not in outside and any(x.name in placed for _, x in b.walk())]
        kinds = {b.forms for b in inside}
        # The first block of a stage often has a shortcut more than those that repeat it.
        if any(b.forms <= kind for b in outside for kind in kinds):
            return (
                f"{stack.place or 'The file'} has {len(blocks)} blocks in the file and {len(inside)} in "
                f"{target.label}: this is a deeper network, and leaving blocks out would change what it computes."
            )
    return ""
