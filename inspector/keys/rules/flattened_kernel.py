"""A fully connected layer on one side, a convolution over the whole picture on the other: VGG's first classifier layer,
[4096, 25088] and [4096, 512, 7, 7], or a patch embedding.

torch flattens channel by channel, which is the order of a kernel's own numbers: behind a convolution of as many
channels it is a reshape. A matrix over patches of the picture itself may have been written place by place as well, so
the user is asked. Only where every other shape agrees or is a head's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from inspector.keys.placing.layouts import Voucher, voucher_of
from inspector.keys.report import FILE, TARGET, Ambiguity, Cost, Step, StepKind
from inspector.keys.rules.channels_flattened import CHANNELS_FIRST, CHANNELS_LAST
from inspector.keys.rules.entry import Leftovers, Link, Rule, settle
from inspector.units import human_shape


def _is_flat(link: Link) -> bool:
    matrix, kernel = sorted((link.source.shape or (), link.target.shape or ()), key=len)
    if len(matrix) != 2 or len(kernel) not in (3, 4, 5) or math.prod(kernel[2:]) == 1 or 0 in kernel:
        return False
    return matrix == (kernel[0], math.prod(kernel[1:]))


def _kernel_of(link: Link) -> tuple[int, ...]:
    return max(link.source.shape or (), link.target.shape or (), key=len)


def _only_rows_differ(link: Link) -> bool:
    ours, theirs = link.source.shape or (), link.target.shape or ()
    return len(ours) == len(theirs) and ours[1:] == theirs[1:]


def _steps(left: Leftovers) -> Iterator[Step]:
    # A kernel of another library is no matrix with its axes in torch's order: Flax has (in, heads, size) in attentions.
    flat = [x for x in left.reshaped if _is_flat(x) and voucher_of(x.source, x.target) is Voucher.NOTHING]
    if not flat or any(not _is_flat(x) and not _only_rows_differ(x) for x in left.reshaped):
        return
    for link in flat:
        ours, theirs = link.source.shape or (), link.target.shape or ()
        says = f"{human_shape(ours)} in the file, {human_shape(theirs)} in the target: the same numbers in a row."
        answer: str | None = CHANNELS_FIRST
        if _channels_before(link, left) != _kernel_of(link)[1]:
            answer = _ask(link, left)
        if answer == CHANNELS_LAST:
            _, channels, *sides = theirs
            says = f"{human_shape(ours)} over patches written place by place; the kernel has them channel by channel."
            value = f"flattened:{channels},{sides[0]},{sides[1]}"
            yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, shape=theirs, value=value)
        else:
            yield settle(link, rule=RULE.id, kind=StepKind.RESHAPE, reason=says, shape=theirs)


def _channels_before(link: Link, left: Leftovers) -> int:
    """The output channels of the nearest kernel before this one in the target, 0 without any."""
    channels = 0
    for place in left.target.tensors:
        if place.name == link.target.name:
            return channels
        if len(place.shape or ()) in (3, 4, 5) and place.name.endswith("weight"):
            channels = (place.shape or (0,))[0]
    return 0


def _ask(link: Link, left: Leftovers) -> str | None:
    options = [(CHANNELS_FIRST, "channel by channel, as torch flattens")]
    if len(link.target.shape or ()) == 4:
        options.append((CHANNELS_LAST, "place by place, the channels of each together"))
    return left.questions.ask(
        Ambiguity(
            id=RULE.id,
            question=(
                f"{link.source.name} is {human_shape(link.source.shape or ())} in the file, "
                f"{human_shape(link.target.shape or ())} in the target, and no layer before it says how pictures are "
                "flattened. In which order are the columns of the matrix? Either loads."
            ),
            options=tuple(options),
            side=FILE if len(options) > 1 else TARGET,
        ),
        place=link.target.name,
    )


RULE = Rule(
    id="flattened-kernel",
    title="Fully connected or convolution",
    says=(
        "Reshapes a fully connected layer behind a convolution into a convolution over the whole picture, or back, "
        "where everything else fits; asks about patches of the picture itself."
    ),
    cost=Cost.LOSSLESS,
    done="{tensors} {are} reshaped between matrix and kernel",
    steps=_steps,
)
