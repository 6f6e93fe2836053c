"""Buffers that a network computes when it is built, on one side only: position_ids, Swin's relative_position_index
and relative_coords_table, GPT-2's causal mask (called bias), rotary frequencies.

One that the target lacks is left out if its numbers are the computed ones, which is looked at when the plan is applied:
other frequencies are another base, and that is information. One that the file lacks is computed where everything about
it follows from its shape, or where the target is code and was seen to hold it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from inspector.keys.operations.computed import COMPUTED
from inspector.keys.operations.drop_computed import LEAVE_OUT
from inspector.keys.operations.fill_constant import numbers_of
from inspector.keys.placing.roles import split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Rule


def kind_of_buffer(leaf: Leaf) -> str:
    """Which of `COMPUTED` its name and shape say that it is, "" for none."""
    module, last = split_name(leaf.name)
    found = [k for k, x in COMPUTED.items() if last in x.leaves and leaf.shape and 0 not in leaf.shape]
    found = [k for k in found if COMPUTED[k].inside in module.lower()]
    return next((k for k in found if COMPUTED[k].fits(leaf.shape or ())), "")


def _steps(left: Leftovers) -> Iterator[Step]:
    for leaf in left.extra:
        if kind := kind_of_buffer(leaf):
            # Only its numbers can raise this question, so it is not asked beforehand.
            lossy = left.questions.told(RULE.id, (LEAVE_OUT,)) == LEAVE_OUT
            why = "by the user's choice" if lossy else f"if it is {COMPUTED[kind].what}"
            yield Step(
                kind=StepKind.DROP,
                source=leaf.name,
                target=None,
                rule=RULE.id,
                reason=f"The target computes it itself: left out {why}.",
                cost=Cost.LOSSY if lossy else Cost.LOSSLESS,
                evidence=Evidence.CHOSEN if lossy else Evidence.RULE,
                shape=leaf.shape,
                value="" if lossy else f"computed:{kind}",
            )
    held = {tensor.name: tensor.held for tensor in left.target.tensors if tensor.held}
    for leaf in left.missing:
        kind = kind_of_buffer(leaf)
        if (step := _as_held(leaf, held.get(leaf.name, ""))) is not None:
            yield step
        elif kind and COMPUTED[kind].fills:
            says = f"The file lacks it; its shape says all about {COMPUTED[kind].what}."
            yield _fill(leaf, says, f"computed:{kind}")


def _as_held(leaf: Leaf, held: str) -> Step | None:
    """A place that the target's own code fills when it is built, as its numbers there have shown."""
    way, _, argument = held.partition(":")
    shape = leaf.shape or ()
    if way == "computed" and argument in COMPUTED and COMPUTED[argument].fits(shape):
        what = COMPUTED[argument].what
    elif way == "constant" and len(numbers_of(argument)) == math.prod(shape):
        what = "what the target's own code sets"
    else:
        return None
    return _fill(leaf, f"The file lacks it: {what}.", held)


def _fill(leaf: Leaf, says: str, value: str) -> Step:
    return Step(
        kind=StepKind.FILL,
        source=None,
        target=leaf.name,
        rule=RULE.id,
        reason=says,
        cost=Cost.LOSSLESS,
        evidence=Evidence.RULE,
        shape=leaf.shape,
        value=value,
    )


RULE = Rule(
    id="computed-buffers",
    title="Computed buffers",
    says=(
        "Leaves out buffers that the network computes itself (position_ids, relative_position_index, "
        "relative_coords_table, causal masks, inv_freq) if their numbers are the computed ones; computes missing ones "
        "that follow from their shape, or that the target's own code was seen to hold (causal masks, sines and cosines "
        "of positions, the means of pictures' colours)."
    ),
    cost=Cost.LOSSLESS,
    done="computed buffers are left out or computed",
    steps=_steps,
)
