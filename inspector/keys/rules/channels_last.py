"""Convolution kernels stored with their axes in another order: Keras, TensorFlow and Flax (h, w, in, out), MLX (out, h,
w, in), spconv; torch has (out, in, h, w).

All kernels of one name are stored in one order. The orders under which every such kernel has the target's shape are
found; one alone is proven by the shapes. A kernel whose own shape shows nothing (3x3x3x3) goes as the others only where
its name vouches for that ("kernel" and its like, see `placing/layouts.py`), else it is asked about. Kernels of two
minds are left alone. Flax stores transposed convolutions (h, w, in, out) and flipped, which equal channels do not
show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from inspector.architectures.types import TargetKind
from inspector.keys.placing.layouts import Elsewhere, Voucher, voucher_of
from inspector.keys.placing.roles import roles_of, split_name
from inspector.keys.report import Ambiguity, Cost, Step, StepKind
from inspector.keys.rules.channels_flattened import flattened_steps
from inspector.keys.rules.entry import Leftovers, Link, Rule, settle
from inspector.keys.rules.pictures import UPWARD
from inspector.keys.rules.transposed import AS_IT_IS
from inspector.units import counted, human_shape

Axes = tuple[int, ...]

KERNEL_ORDER = "kernel-order"
SAME, FLIPPED, SWAPPED, LEAVE_OUT = "as-the-others", "flipped", "swapped", "leave-out"
_LETTERS = {3: "oiw", 4: "oihw", 5: "oidhw"}
_MOST_OPTIONS = 6
_NUMBER = re.compile(r"[0-9]+")


def _is_kernel(link: Link) -> bool:
    ours, theirs = link.source.shape or (), link.target.shape or ()
    same = len(ours) == len(theirs) in _LETTERS and sorted(ours) == sorted(theirs) and 0 not in ours
    return same and max(ours) > 1 and roles_of([link.target])[0] == "weight"


def _fits(axes: Axes, link: Link) -> bool:
    ours = link.source.shape or ()
    return tuple(ours[axis] for axis in axes) == link.target.shape


def _is_depthwise(link: Link) -> bool:
    """(h, w, channels, 1) for (channels, 1, h, w): one filter per channel has its own order in Keras."""
    theirs = link.target.shape or ()
    return theirs[1] == 1 and theirs[0] > 1 and link.source.shape == (*theirs[2:], theirs[0], 1)


def _upward(ndim: int) -> Axes:
    """Flax's order of a transposed convolution's axes, of which torch has (in, out, ...): those two come last."""
    return (ndim - 2, ndim - 1, *range(ndim - 2))


def orders_of(kernels: Sequence[Link]) -> list[Axes]:
    """Orders of axes that give every kernel its shape, the likeliest first: height before width, Keras's (.., in, out).

    Height and width stand together and not behind the channels: with these last it is another layer (a transposed
    convolution has (in, out, h, w)), not another order. Nor does any library store a convolution (h, w, out, in).
    """
    ndim = len(kernels[0].target.shape or ())
    spatial = (set(range(ndim - 2)), set(range(1, ndim - 1)))
    found = [
        axes for axes in permutations(range(ndim)) if set(axes[2:]) in spatial and axes[:2] != (ndim - 2, ndim - 1)
    ]
    found = [axes for axes in found if all(_fits(axes, link) for link in kernels)]
    return sorted(found, key=lambda axes: (list(axes[2:]) != sorted(axes[2:]), -axes[0]))


def layout_of(axes: Axes) -> str:
    """The order of the file in letters: (3, 2, 0, 1) is "hwio"."""
    letters = _LETTERS[len(axes)]
    return "".join(letters[axes.index(axis)] for axis in range(len(axes)))


def _steps(left: Leftovers) -> Iterator[Step]:
    last = False
    kernels = [(x, _is_vouched(x)) for x in (*left.settled, *left.reshaped) if _is_kernel(x)]
    for ndim in _LETTERS:
        for vouched in (True, False):
            alike = [x for x, known in kernels if len(x.target.shape or ()) == ndim and known is vouched]
            for link, axes in _orders(alike, vouched, left):
                if axes != tuple(range(ndim)):
                    yield _permute(link, axes, flipped=axes == _upward(ndim) and not _is_depthwise(link))
                    last = True
    if last:
        yield from flattened_steps(left, RULE.id)


def _is_vouched(link: Link) -> bool:
    return voucher_of(link.source, link.target) in (Voucher.IN_OUT, Voucher.OTHER)


def _orders(kernels: Sequence[Link], vouched: bool, left: Leftovers) -> Iterator[tuple[Link, Axes]]:
    """(kernel, its order) for kernels of one kind of name; none where they contradict each other."""
    turned = [x for x in kernels if x.source.shape != x.target.shape]
    upward = [x for x in turned if not orders_of([x]) and _fits(_upward(len(x.target.shape or ())), x)]
    upward = [x for x in upward if not _is_depthwise(x)]
    for link in upward:
        # While it is not answered, the plan shows what would be done, and is open.
        if _ask_upward(link, left, (FLIPPED, LEAVE_OUT)) != LEAVE_OUT:
            yield link, _upward(len(link.target.shape or ()))
    turned = [x for x in turned if x not in upward]
    plain = [x for x in kernels if x.source.shape == x.target.shape]
    if turned:
        single = [x for x in turned if _is_depthwise(x)]
        whole = [x for x in turned if x not in single]
        waiting = len(left.questions.open)
        axes = _order(whole, single, plain, left)
        if axes is None:
            return
        ndim = len(axes)
        # As long as the order of all is not known, there is nothing to ask about one.
        known = len(left.questions.open) == waiting
        yield from ((x, (ndim - 2, ndim - 1, *axes[2:])) for x in single)
        for link in (*whole, *plain):
            order: Axes | None = axes
            if known and link in plain and not vouched:
                order = _ask_same(link, axes, left)
            if known and order == axes:
                order = _as_or_upward(link, axes, left)
            yield link, order or axes
    elif vouched or left.elsewhere:
        # By its shape alone: of thousands of kernels few differ.
        by_shape = {link.source.shape: link for link in plain}
        orders_by_shape = {shape: orders_of([link]) for shape, link in by_shape.items()}
        ways = [(link, orders_by_shape[link.source.shape]) for link in plain]
        weak = left.elsewhere in (Elsewhere.CONTAINER, Elsewhere.NORM_WORDS, Elsewhere.PATHS, Elsewhere.STATED)
        if (vouched or weak) and not all(orders for _, orders in ways):
            return  # one of them is as torch has it, and none otherwise
        for link, orders in ways:
            if not vouched and left.elsewhere is Elsewhere.IN_OUT:
                # Of the libraries that such names and shapes are of, none stores kernels (out, h, w, in).
                orders = [axes for axes in orders if axes[:2] == (len(axes) - 1, len(axes) - 2)]
            if orders:
                waiting = len(left.questions.open)
                axes = _by_writer(link, orders, vouched, left) or _ask_plain(link, orders, left)
                known = len(left.questions.open) == waiting and axes in orders
                yield link, _as_or_upward(link, axes, left) if known else axes


def _by_writer(link: Link, orders: Sequence[Axes], vouched: bool, left: Leftovers) -> Axes | None:
    """The order that the library has which wrote the file, where its names and this one's prove it; None elsewhere."""
    if not vouched or left.writer is None or not left.writer.kernels:
        return None
    axes = (len(orders[0]) - 1, len(orders[0]) - 2, *range(len(orders[0]) - 2))
    return axes if axes in orders else None


def _order(whole: Sequence[Link], single: Sequence[Link], plain: Sequence[Link], left: Leftovers) -> Axes | None:
    """The one order in which these kernels are stored, None where there is none."""
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
    named = all(split_name(x.source.name)[1].endswith("kernel") for x in (*whole, *single))
    if keras in orders and (named or (left.writer is not None and left.writer.kernels)):
        return keras
    return _ask(orders, [*whole, *single], left)


def _ask_plain(link: Link, orders: Sequence[Axes], left: Leftovers) -> Axes:
    """The order of a kernel whose shape is the target's in torch's order and in another."""
    own = tuple(range(len(orders[0])))
    options = {layout_of(axes): axes for axes in (own, *orders[: _MOST_OPTIONS - 1])}
    answer = left.questions.ask(
        Ambiguity(
            id=RULE.id,
            question=(
                f"{link.source.name} is {human_shape(link.source.shape or ())} in every order of its axes that is in "
                "question, and nothing beside it tells in which it is stored. Either loads."
            ),
            options=tuple((name, _spell(name)) for name in options),
        ),
        place=split_name(link.target.name)[0] or link.target.name,
    )
    return options[answer] if answer is not None else own


def _ask_same(link: Link, axes: Axes, left: Leftovers) -> Axes | None:
    """The order of a kernel called weight, whose shape shows none, beside others that do; None while it is open."""
    answer = left.questions.ask(
        Ambiguity(
            id=KERNEL_ORDER,
            question=(
                f"{link.source.name} is {human_shape(link.source.shape or ())} in torch's order of axes and as the "
                f"other kernels of the file lie, {_spell(layout_of(axes))}. In which is it stored? Either loads."
            ),
            options=((SAME, "as the other kernels of the file"), (AS_IT_IS, "as torch has it")),
        ),
        place=split_name(link.target.name)[0] or link.target.name,
    )
    return {SAME: axes, AS_IT_IS: tuple(range(len(axes)))}.get(answer or "")


def _as_or_upward(link: Link, axes: Axes, left: Leftovers) -> Axes:
    """As the others, but for what may be a transposed convolution: with equal channels nothing shows of it."""
    shape, own = link.target.shape or (), FLIPPED if axes[:2] == (len(axes) - 1, len(axes) - 2) else SWAPPED
    up = _upward(len(axes)) if own == FLIPPED else (len(axes) - 1, *range(len(axes) - 1))
    if axes[0] not in (0, len(axes) - 1) or axes == up or shape[0] != shape[1] or not _fits(up, link):
        return axes
    named = UPWARD.search(link.source.name) or UPWARD.search(link.target.name)
    # What is known by name has transposed convolutions under such names only.
    if not named and left.target.kind is TargetKind.ARCHITECTURE:
        return axes
    if not named and _named_as_told(link, own, left):
        return axes
    # Keras has those of either kind of layer as (h, w, input, output of torch's weight) in one order.
    if left.writer is not None and left.writer.one_order:
        return axes
    if _ask_upward(link, left, (SAME, own)) != own:
        return axes
    return up


def _named_as_told(link: Link, own: str, left: Leftovers) -> bool:
    """Whether others that are called so in file and target, but for their numbers, show by their shapes that they are
    no transposed convolutions, and none that it is one: conv2 between a conv1 and a conv3 of unequal channels."""
    alike = [
        x
        for x in (*left.settled, *left.reshaped)
        if _is_kernel(x)
        and len(x.target.shape or ()) == len(link.target.shape or ())
        and _called(x.source.name) == _called(link.source.name)
        and _called(x.target.name) == _called(link.target.name)
    ]
    upward = _upward(len(link.target.shape or ())) if own == FLIPPED else None
    told = [x for x in alike if (x.target.shape or ())[0] != (x.target.shape or ())[1] and not _is_depthwise(x)]
    return bool(told) and not any(
        (not orders_of([x]) and (upward is None or _fits(upward, x))) or UPWARD.search(x.target.name) for x in told
    )


def _called(name: str) -> str:
    """A layer's own name without its number."""
    module = split_name(name.replace("/", "."))[0]
    return _NUMBER.sub("", split_name(module)[1])


def _ask_upward(link: Link, left: Leftovers, options: Sequence[str]) -> str | None:
    words = {
        SAME: "as the other kernels: it is none, or Keras wrote it, or Flax with transpose_kernel=True",
        FLIPPED: "as Flax does by default: (.., in, out) and flipped in every direction; flip it back",
        SWAPPED: "as MLX does: (out, .., in) of the layer, which is (in, out, ..) in torch",
        LEAVE_OUT: "otherwise, or not known: leave it out",
    }
    return left.questions.ask(
        Ambiguity(
            id="transposed-convolution",
            question=(
                f"{link.source.name} may be a transposed convolution, whose kernel Flax and MLX store otherwise. How "
                "is it stored? Each way loads."
            ),
            options=tuple((option, words[option]) for option in options),
        ),
        place=split_name(link.target.name)[0] or link.target.name,
    )


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
        place=split_name(first.target.name)[0] or first.target.name,
    )
    # While it is not answered, the plan shows what would be done, and is open.
    return options[answer] if answer is not None else orders[0]


def _spell(layout: str) -> str:
    words = {"o": "out", "i": "in", "d": "depth", "h": "height", "w": "width"}
    return f"({', '.join(words[letter] for letter in layout)})"


def _permute(link: Link, axes: Axes, *, flipped: bool) -> Step:
    if flipped:
        says = "A transposed convolution of Flax: (.., in, out) and flipped in every direction."
        return settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, axes=axes, value="flipped")
    says = f"{human_shape(link.source.shape or ())} as {_spell(layout_of(axes))} in the file; torch has channels first."
    return settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, axes=axes)


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
# What is asked about the order of the axes of one kernel.
QUESTIONS = (RULE.id, KERNEL_ORDER)
