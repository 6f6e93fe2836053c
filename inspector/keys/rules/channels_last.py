"""Convolution kernels stored with their axes in another order: Keras, TensorFlow and Flax (h, w, in, out), MLX (out, h,
w, in), spconv; torch has (out, in, h, w).

All kernels of a file are stored in one order. The orders under which every kernel has the target's shape are found; one
alone is proven by the shapes, and kernels whose own shape shows nothing (3x3x3x3) go as the others. Several are left
where all kernels are square: then the name "kernel" says that it is Keras's order, or the user is asked. A file whose
kernels are of two minds is left alone. What such a file flattens, it flattens channels last, which no shape shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import permutations

from inspector.keys.report import Ambiguity, Cost, Step, StepKind
from inspector.keys.roles import roles_of, split_name
from inspector.keys.rules.entry import Leftovers, Link, Rule, settle
from inspector.keys.rules.transposed import TRANSPOSED, ask_turned, has_bias
from inspector.units import counted, human_shape

Axes = tuple[int, ...]

CHANNELS_FIRST, CHANNELS_LAST = "channels-first", "channels-last"
_LETTERS = {3: "oiw", 4: "oihw", 5: "oidhw"}
_MOST_OPTIONS = 6


def _is_kernel(link: Link) -> bool:
    ours, theirs = link.source.shape or (), link.target.shape or ()
    same = len(ours) == len(theirs) in _LETTERS and sorted(ours) == sorted(theirs) and 0 not in ours
    return same and roles_of([link.target])[0] == "weight"


def _fits(axes: Axes, link: Link) -> bool:
    ours = link.source.shape or ()
    return tuple(ours[axis] for axis in axes) == link.target.shape


def _is_depthwise(link: Link) -> bool:
    """(h, w, channels, 1) for (channels, 1, h, w): one filter per channel has its own order in Keras."""
    theirs = link.target.shape or ()
    return theirs[1] == 1 and theirs[0] > 1 and link.source.shape == (*theirs[2:], theirs[0], 1)


def orders_of(kernels: Sequence[Link]) -> list[Axes]:
    """Orders of axes that give every kernel its shape, the likeliest first: height before width, Keras's (.., in, out).

    Height and width stand together and not behind the channels: with these last it is another layer (a transposed
    convolution has (in, out, h, w)), not another order.
    """
    ndim = len(kernels[0].target.shape or ())
    spatial = (set(range(ndim - 2)), set(range(1, ndim - 1)))
    found = [axes for axes in permutations(range(ndim)) if set(axes[2:]) in spatial]
    found = [axes for axes in found if all(_fits(axes, link) for link in kernels)]
    return sorted(found, key=lambda axes: (list(axes[2:]) != sorted(axes[2:]), -axes[0]))


def layout_of(axes: Axes) -> str:
    """The order of the file in letters: (3, 2, 0, 1) is "hwio"."""
    letters = _LETTERS[len(axes)]
    return "".join(letters[axes.index(axis)] for axis in range(len(axes)))


def _steps(left: Leftovers) -> Iterator[Step]:
    last = False
    for ndim in _LETTERS:
        turned = [x for x in left.reshaped if _is_kernel(x) and len(x.target.shape or ()) == ndim]
        if not turned:
            continue
        plain = [x for x in left.settled if _is_kernel(x) and len(x.target.shape or ()) == ndim]
        plain = [x for x in plain if max(x.target.shape or (0,)) > 1]
        single = [x for x in turned if _is_depthwise(x)]
        whole = [x for x in turned if x not in single]
        axes = _order(whole, single, plain, left)
        if axes is None:
            continue
        depthwise = (ndim - 2, ndim - 1, *axes[2:])
        for link in (*whole, *plain):
            yield _permute(link, axes)
        for link in single:
            yield _permute(link, depthwise)
        last = last or axes[1] != 1
        if axes[0] == ndim - 1:
            yield from _squares(left)
    if last:
        yield from _flattened(left)


def _order(whole: Sequence[Link], single: Sequence[Link], plain: Sequence[Link], left: Leftovers) -> Axes | None:
    """The one order in which this file stores its kernels, None where there is none."""
    if whole:
        orders = orders_of([*whole, *plain])
        if single:
            # (h, w, channels, 1) is of the same mind only with kernels whose height and width come first as well.
            spatial = set(range(len((single[0].target.shape or ())[2:])))
            orders = [axes for axes in orders if set(axes[2:]) == spatial]
    else:
        ndim = len(single[0].target.shape or ())
        ways = [(ndim - 1, ndim - 2, *rest) for rest in permutations(range(ndim - 2))]
        shown = [(ndim - 2, ndim - 1, *axes[2:]) for axes in ways]
        orders = [a for a, d in zip(ways, shown, strict=True) if all(_fits(d, link) for link in single)]
        orders = [axes for axes in orders if all(_fits(axes, link) for link in plain)]
    if len(orders) < 2:
        return orders[0] if orders else None
    keras = (len(orders[0]) - 1, len(orders[0]) - 2, *range(len(orders[0]) - 2))
    if keras in orders and all(split_name(x.source.name)[1].endswith("kernel") for x in (*whole, *single)):
        return keras
    return _ask(orders, [*whole, *single], left)


def _ask(orders: Sequence[Axes], turned: Sequence[Link], left: Leftovers) -> Axes:
    options = {layout_of(axes): axes for axes in orders[:_MOST_OPTIONS]}
    first = turned[0]
    answer = left.questions.ask(
        Ambiguity(
            id=RULE.id,
            question=(
                f"{counted(len(turned), 'kernel')} of the file ({first.source.name} first: "
                f"{human_shape(first.source.shape or ())} for {human_shape(first.target.shape or ())}) can be put into "
                f"the target's order in {len(orders)} ways, and no shape tells them apart. In which order are they "
                "stored?"
            ),
            options=tuple((name, _spell(name)) for name in options),
        ),
        place=f"{len(orders[0])}d",
    )
    # While it is not answered, the plan shows what would be done, and is open.
    return options[answer] if answer is not None else orders[0]


def _spell(layout: str) -> str:
    words = {"o": "out", "i": "in", "d": "depth", "h": "height", "w": "width"}
    return f"({', '.join(words[letter] for letter in layout)})"


def _permute(link: Link, axes: Axes) -> Step:
    name = layout_of(axes)
    says = f"{human_shape(link.source.shape or ())} as {_spell(name)} in the file; torch has the channels first."
    return settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, axes=axes)


def _squares(left: Leftovers) -> Iterator[Step]:
    """Square matrices beside kernels stored (.., in, out), where no other matrix shows how matrices are stored."""
    matrices = [x for x in (*left.settled, *left.reshaped) if len(x.target.shape or ()) == 2 and _weighs(x)]
    there = {link.target.name: link for link in left.settled}
    telling = [x for x in matrices if len(set(x.target.shape or ())) == 2 and has_bias(x, there)]
    squares = [x for x in matrices if len(set(x.target.shape or ())) == 1 and (x.target.shape or (0,))[0] > 1]
    if squares and not telling and ask_turned(squares, left.questions) == TRANSPOSED:
        for link in squares:
            says = "Square, and stored the other way round by the user's word."
            yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, axes=(1, 0))


def _weighs(link: Link) -> bool:
    return roles_of([link.target])[0] == "weight"


def _flattened(left: Leftovers) -> Iterator[Step]:
    """The first matrix behind kernels, where it takes in more than one number per channel: a flattened picture."""
    links = {x.target.name: x for x in (*left.settled, *left.reshaped) if _weighs(x)}
    channels = 0
    for place in left.target.tensors:
        shape = place.shape or ()
        if place.name not in links:
            continue
        if len(shape) in _LETTERS:
            channels = shape[0]
        elif len(shape) == 2 and channels:
            per_channel, rest = divmod(shape[1], channels)
            if per_channel > 1 and not rest:
                yield from _reorder(links[place.name], channels, per_channel, left)
            channels = 0


def _reorder(link: Link, channels: int, per_channel: int, left: Leftovers) -> Iterator[Step]:
    side = math.isqrt(per_channel)
    options = [(CHANNELS_FIRST, "channel by channel, as torch does, or it is no flattened picture")]
    if side * side == per_channel:
        options.append((CHANNELS_LAST, f"place by place, as Keras does: reorder it as {side} x {side} x {channels}"))
    answer = left.questions.ask(
        Ambiguity(
            id="flatten-order",
            question=(
                f"{link.source.name} takes in {per_channel:,} numbers for each of {channels:,} channels, and the file "
                "stores its kernels channels last. In which order does it expect the flattened picture? Either loads."
            ),
            options=tuple(options),
        ),
        place=link.target.name,
    )
    if answer == CHANNELS_LAST:
        turned = ",turned" if link.source.shape != link.target.shape else ""
        says = f"Flattened place by place in the file, {side} x {side} x {channels}; torch flattens channel by channel."
        yield settle(
            link,
            rule=RULE.id,
            kind=StepKind.PERMUTE,
            reason=says,
            shape=link.target.shape,
            value=f"flattened:{channels},{side},{side}{turned}",
        )


RULE = Rule(
    id="channels-last",
    title="Kernels stored channels last",
    says=(
        "Puts the axes of convolution kernels into torch's order where all kernels of the file agree on one (Keras, "
        "TensorFlow, Flax, MLX, spconv); asks where shapes leave several, and how pictures were flattened."
    ),
    cost=Cost.LOSSLESS,
    done="{tensors} {are} put into torch's order of axes",
    steps=_steps,
)
