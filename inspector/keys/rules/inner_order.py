"""Numbers inside a tensor that the file's library orders otherwise than the target's: patch mergings, gate and value,
shift and scale.

Name and shape may be the same on both sides. The names of a whole side prove which order its library writes; where both
sides are proved, the numbers are put into the target's order, or left alone where it is one order. Where one side is
proved and the tensor gets another code's name, the user is asked. `inner_orders/` has the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.keys.inner_orders import INNER_ORDERS
from inspector.keys.inner_orders.entry import InnerOrder, Way
from inspector.keys.operations import blocks
from inspector.keys.placing.provenance import shapes_of_names, shown_in
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import FILE, TARGET, Ambiguity, Cost, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule, leave_out, settle
from inspector.keys.rules.same_shape import WITHOUT_NAMES
from inspector.keys.rules.transposed import is_square, is_turned
from inspector.units import counted

AS_IT_IS = "as-it-is"


def _steps(left: Leftovers) -> Iterator[Step]:
    our_shapes = shapes_of_names(leaf.name for leaf in leaves_of_file(left))
    their_shapes = shapes_of_names(tensor.name for tensor in left.target.tensors)
    for order in INNER_ORDERS:
        ours, theirs = _way(our_shapes, order), _way(their_shapes, order)
        # Where both sides prove one order, or neither proves any, no tensor needs to be looked at.
        if ours is theirs:
            continue
        links = [x for x in (*left.settled, *left.permuted) if order.holds(x)]
        if not links:
            continue
        if ours is not None and theirs is not None:
            yield from _changed(links, order, ours, theirs, left)
            continue
        known = ours or theirs
        named = [link for link in links if not by_order(link)]
        renamed = [link for link in named if _own(link.source.name) != _own(link.target.name)]
        if known is None or not renamed:
            continue
        other = next(way for way in order.ways if way is not known)
        if _ask(renamed, order, known, of_the_file=ours is not None, left=left) != AS_IT_IS:
            # While it is not answered, the plan shows what would be done, and is open.
            yield from _changed(renamed, order, *((known, other) if ours is not None else (other, known)), left=left)


def by_order(link: Link) -> bool:
    """Whether order alone has brought these together: that is asked about already."""
    return any(move.rule in WITHOUT_NAMES for move in link.moves)


def leaves_of_file(left: Leftovers) -> Iterator[Leaf]:
    """Every tensor of the file that is still spoken of."""
    yield from (link.source for link in left.settled)
    yield from (link.source for link in (*left.reshaped, *left.permuted))
    yield from left.extra


def _own(name: str) -> list[str]:
    """The tensor's own name and its module's."""
    return name.split(".")[-2:]


def _way(shapes: Sequence[str], order: InnerOrder) -> Way | None:
    """The way that these names prove, as `shapes_of_names` gives them; None for none, or several."""
    found = [way for way in order.ways if shown_in(shapes, way.shown)]
    return found[0] if len(found) == 1 else None


def _changed(links: Sequence[Link], order: InnerOrder, ours: Way, theirs: Way, left: Leftovers) -> Iterator[Step]:
    for link in links:
        says = f"In the file {ours.says}; the target has it {theirs.says}."
        value = order.change(link, ours.id, theirs.id)
        if link.target.name in left.turned:
            # One step alone makes a tensor: this one transposes it, too, or nothing does both.
            value = blocks.turned(value) if is_turned(link) or is_square(link) else ""
        if not value:
            yield leave_out(link, rule=RULE.id, reason=f"{says} It lies the other way round, besides.")
            continue
        yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, value=value)


def _ask(links: Sequence[Link], order: InnerOrder, known: Way, *, of_the_file: bool, left: Leftovers) -> str | None:
    other = next(way for way in order.ways if way is not known)
    side, unknown = (FILE, TARGET) if of_the_file else (TARGET, FILE)
    return left.questions.ask(
        Ambiguity(
            id=order.id,
            question=(
                f"{counted(len(links), 'tensor')} of {order.what} ({links[0].source.name} first) get another code's "
                f"names. The {side} has their numbers {known.says}; which order the {unknown} has, nothing in it "
                "shows. Either loads."
            ),
            options=(
                (other.id, f"the {unknown} has them {other.says}: reorder them"),
                (AS_IT_IS, f"the {unknown} has them {known.says}, too"),
            ),
            side=unknown,
        )
    )


RULE = Rule(
    id="inner-order",
    title="Order inside a tensor",
    says=(
        "Puts the numbers of patch mergings, gated layers and final modulations into the target's order where the "
        "names of both sides prove that their libraries order them differently; asks where one side proves nothing."
    ),
    cost=Cost.LOSSLESS,
    done="the numbers inside {tensors} are put into the target's order",
    steps=_steps,
)
