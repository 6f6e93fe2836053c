"""Square matrices in one tensor whose whole has torch's shape, in a file that may have matrices the other way round.

Query, key and value taken out of an (in, out) file and put below each other have, square as they are, the shape of
torch's one matrix, and each lies the other way round in it. So has a stack of square layers or experts. What makes a
square matrix doubtful (`transposed.py`) makes these doubtful, and no other matrix speaks for them: where all others
are turned, these would be too, and then the whole would have another shape, unless its parts were joined afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inspector.keys.operations.squares import BELOW, BESIDE
from inspector.keys.placing.roles import split_name
from inspector.keys.report import Ambiguity, Cost, Step, StepKind
from inspector.keys.rules import channels_last
from inspector.keys.rules.entry import Leftovers, Link, Rule, leave_out, settle
from inspector.keys.rules.stacked import OTHERWISE
from inspector.keys.rules.transposed import AS_IT_IS, TRANSPOSED, Kind, is_square, shown_ways, way_of
from inspector.keys.rules.wholes import Squares, squares_in
from inspector.units import human_shape


def _steps(left: Leftovers) -> Iterator[Step]:
    if not left.elsewhere:
        return
    shown = shown_ways(left)
    if not _may_be_turned(shown, left):
        return
    for link in left.settled:
        squares = squares_in(link)
        if squares is None or link.target.name in left.turned or link.target.name in left.oriented:
            continue
        if way_of(link, shown, left) is False or _is_asked_as_kernel(link, left):
            continue
        answer = _ask(link, squares, left)
        if answer == TRANSPOSED:
            says = f"{squares.count} square matrices in one, each stored the other way round, by the user's word."
            value = BESIDE if squares.columns else BELOW
            yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, value=value)
        elif answer == OTHERWISE:
            yield leave_out(link, rule=RULE.id, reason="How the matrices in it lie is not known.")


def _may_be_turned(shown: Mapping[Kind, set[bool]], left: Leftovers) -> bool:
    """Whether a matrix of the file lies the other way round, by its shape or the user's word, or none tells.

    A square alone may: but the whole has torch's shape, and where all others have it, too, nothing speaks against it.
    """
    turned = any(is_square(link) and link.target.name in left.turned for link in left.settled)
    return turned or set().union(*shown.values()) != {False}


def _place(link: Link) -> str:
    return split_name(link.target.name)[0] or link.target.name


def _is_asked_as_kernel(link: Link, left: Leftovers) -> bool:
    """(N, D, D) may be a kernel of one dimension: whoever was asked for the order of its axes has said it."""
    return any(f"{question}:{_place(link)}" in left.questions.asked for question in channels_last.QUESTIONS)


def _ask(link: Link, squares: Squares, left: Leftovers) -> str | None:
    where = "side by side" if squares.columns else "below each other" if len(link.target.shape or ()) == 2 else "in one"
    return left.questions.ask(
        Ambiguity(
            id=RULE.id,
            question=(
                f"{link.source.name} is {human_shape(link.source.shape or ())} as in the target, {squares.count:,} "
                f"square matrices {where}, and something in the file shows another layout than torch's. How does each "
                "of them lie in it? The shape of the whole does not tell, and each answer loads."
            ),
            options=(
                (AS_IT_IS, "(out, in), as torch has them: change nothing"),
                (TRANSPOSED, "(in, out), as before they were put into one: transpose each"),
                (OTHERWISE, "otherwise, or not known: leave them out"),
            ),
        ),
        place=_place(link),
    )


RULE = Rule(
    id="transposed-parts",
    title="Transposed matrices in one tensor",
    says=(
        "Asks how square matrices lie that are fused or stacked in one tensor (query, key and value; gates; experts), "
        "where a square one of the file would be asked about, and transposes each where they lie (in, out)."
    ),
    cost=Cost.LOSSLESS,
    done="each of the matrices in {tensors} {are} transposed",
    steps=_steps,
)
