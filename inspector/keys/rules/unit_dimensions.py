"""Dimensions of one more or fewer: a 1x1 convolution and a linear layer, a layer scale (C, 1, 1) and (C).

Only where no order of elements is in question: the other dimensions stand on one side of the ones. (1, 1, C, C) and
(C, C, 1, 1) have the same numbers of elements and another meaning (height and width first), and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.checkpoint.types import Shape
from inspector.keys.placing.layouts import Voucher, is_oblong, voucher_of
from inspector.keys.placing.roles import squeezed
from inspector.keys.report import Cost, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule, settle
from inspector.keys.rules.transposed import is_turned
from inspector.units import human_shape


def same_but_ones(ours: Shape, theirs: Shape) -> bool:
    """Whether one shape is the other with ones more at its end, or more at its start, or both are one vector."""
    kept = squeezed(ours)
    if not kept or kept != squeezed(theirs):
        return False  # one element alone says nothing about what it is
    if len(kept) < 2:
        return True
    return _without_last(ours) == _without_last(theirs) or _without_last(ours[::-1]) == _without_last(theirs[::-1])


def _without_last(shape: Shape) -> Shape:
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def _turned(link: Link) -> bool:
    ours, theirs = squeezed(link.source.shape) or (), squeezed(link.target.shape) or ()
    return ours != theirs and ours == theirs[::-1]


def _hides_layout(link: Link, left: Leftovers) -> bool:
    """Whether it is as wide as high, under a name or in a file that is not torch's: it may lie the other way round."""
    kept = squeezed(link.source.shape) or ()
    if len(kept) < 2 or len(set(kept)) == len(kept):
        return False
    voucher = voucher_of(link.source, link.target)
    if voucher is Voucher.NOTHING or voucher is Voucher.EMBEDDING:
        return voucher is Voucher.NOTHING and bool(left.elsewhere)
    # (1, in, out) for Conv1D's (in, out) is the same way round where every one that tells is.
    return not any(
        voucher_of(x.source, x.target) is voucher and len(set(squeezed(x.source.shape) or ())) == 2
        for x in left.reshaped
    )


def _steps(left: Leftovers) -> Iterator[Step]:
    # Beside matrices that are turned round, a square one may be turned too.
    if any(_turned(link) for link in left.reshaped):
        return
    told = any(is_oblong(link.target) for link in left.settled)
    for link in left.reshaped:
        ours, theirs = link.source.shape or (), link.target.shape or ()
        if ours == theirs or not same_but_ones(ours, theirs) or _hides_layout(link, left):
            continue
        # Of a layer of one output the shape shows which way round the file has its matrices, where no other does.
        if told or not is_turned(link):
            says = f"{human_shape(ours)} in the file, {human_shape(theirs)} in the target: the same numbers in a row."
            yield settle(link, rule=RULE.id, kind=StepKind.RESHAPE, reason=says, shape=theirs)


RULE = Rule(
    id="unit-dimensions",
    title="Dimensions of one",
    says="Adds or takes away dimensions of one: a 1x1 convolution as a linear layer, a scale [C, 1, 1] as [C].",
    cost=Cost.LOSSLESS,
    done="{tensors} {are} reshaped by dimensions of one",
    steps=_steps,
)
