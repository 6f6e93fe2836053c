"""Pictures that a file whose kernels lie channels last flattens, or unfolds, place by place; torch does it channel by
channel. No shape shows which, so it is asked about."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.placing.layouts import is_table
from inspector.keys.placing.roles import roles_of, split_name
from inspector.keys.report import FILE, Ambiguity, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, settle
from inspector.keys.rules.transposed import is_square, is_turned, lies_turned, shown_ways

CHANNELS_FIRST, CHANNELS_LAST = "channels-first", "channels-last"
# What no shape shows of a matrix behind a flattened picture.
FLATTEN_ORDER = "flatten-order"
# How many dimensions a kernel has.
_KERNELS = (3, 4, 5)


def _weighs(link: Link) -> bool:
    return roles_of([link.target])[0] == "weight"


def flattened_steps(left: Leftovers, rule: str) -> Iterator[Step]:
    """Where a picture is flattened: the first matrix behind kernels that takes in more than one number per channel, and
    the last one in front of them."""
    links = {x.target.name: x for x in (*left.settled, *left.reshaped) if _weighs(x)}
    channels, before = 0, None
    for place in left.target.tensors:
        shape = place.shape or ()
        if place.name not in links or is_table(links[place.name].target):
            continue
        if len(shape) in _KERNELS:
            if before is not None:
                yield from _unfold(before, links[place.name], left, rule)
            channels, before = shape[0], None
        elif len(shape) == 2:
            per_channel, rest = divmod(shape[1], channels or 1)
            if channels and per_channel > 1 and not rest:
                yield from _reorder(links[place.name], channels, per_channel, left, rule)
            channels, before = 0, links[place.name]


def _unfold(link: Link, kernel: Link, left: Leftovers, rule: str) -> Iterator[Step]:
    """A matrix in front of kernels that gives more than one number per channel: what is unfolded into a picture."""
    shape, rows = kernel.target.shape or (), (link.target.shape or (0,))[0]
    for channels in dict.fromkeys(shape[:2]):  # a transposed convolution has its input channels first
        places, rest = divmod(rows, channels)
        if places > 1 and channels > 1 and not rest and link.target.name not in left.turned:
            break
    else:
        return
    answer = left.questions.ask(
        Ambiguity(
            id="unfold-order",
            question=(
                f"{link.source.name} gives {places:,} numbers for each of {channels:,} channels of the convolutions "
                "behind it, and the file stores kernels channels last. In which order does it give them? Either loads."
            ),
            options=(
                (CHANNELS_FIRST, "channel by channel, as torch does, or it is no picture that is unfolded"),
                (CHANNELS_LAST, f"place by place, as Keras does: reorder {places} places x {channels} channels"),
            ),
        ),
        place=link.target.name,
    )
    if answer != CHANNELS_LAST:
        return
    module, last = split_name(link.target.name)
    bias = f"{module}.{last.removesuffix('weight')}bias"
    says = f"Unfolded place by place in the file, {places} x {channels}; torch unfolds channel by channel."
    for one in (link, *(x for x in left.settled if x.target.name == bias and x.source.shape == (rows,))):
        lies_other_way = is_turned(one) or (is_square(one) and lies_turned(one, shown_ways(left), left))
        value = f"rows:{places},{channels}" + (",turned" if lies_other_way else "")
        yield settle(one, rule=rule, kind=StepKind.PERMUTE, reason=says, shape=one.target.shape, value=value)


def _reorder(link: Link, channels: int, per_channel: int, left: Leftovers, rule: str) -> Iterator[Step]:
    options = (
        (CHANNELS_FIRST, "channel by channel, as torch does, or it is no flattened picture"),
        (CHANNELS_LAST, f"place by place, as Keras does: reorder it as {per_channel} places x {channels} channels"),
    )
    answer = left.questions.ask(
        Ambiguity(
            id=FLATTEN_ORDER,
            question=(
                f"{link.source.name} takes in {per_channel:,} numbers for each of {channels:,} channels, and the file "
                "stores its kernels channels last. In which order does it expect the flattened picture? Either loads."
            ),
            options=options,
            side=FILE,
        ),
        place=link.target.name,
    )
    if answer == CHANNELS_LAST:
        turned = ",turned" if is_turned(link) or (is_square(link) and lies_turned(link, shown_ways(left), left)) else ""
        says = f"Flattened place by place in the file, {per_channel} x {channels}; torch flattens channel by channel."
        yield settle(
            link,
            rule=rule,
            kind=StepKind.PERMUTE,
            reason=says,
            shape=link.target.shape,
            value=f"flattened:{channels},1,{per_channel}{turned}",
        )
