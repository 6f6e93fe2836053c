"""Position embeddings with a token more before the same grid: [1, 198, 768] where the target has [1, 197, 768].

A class token or a distillation token is no other picture size: nothing is interpolated. One that the file has too much
can be left out, which the user decides, and which one where there are two; one that it lacks cannot be made up.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.placing.roles import split_name
from inspector.keys.report import Ambiguity, Cost, Step
from inspector.keys.rules.entry import Leftovers, Link, Rule, adapt
from inspector.keys.rules.position_grid import NAMES, is_square

_MOST_TOKENS = 2
FIRST, SECOND = "keep-first", "keep-second"


def tokens_of(link: Link) -> tuple[int, int] | None:
    """How many tokens stand before the one grid in the file and in the target, None where they are no such pair."""
    ours, theirs = link.source.shape or (), link.target.shape or ()
    if len(ours) != 3 or len(theirs) != 3 or ours[0] != 1 or ours[::2] != theirs[::2] or ours[1] == theirs[1]:
        return None
    if split_name(link.target.name)[1] not in NAMES:
        return None
    kinds = range(_MOST_TOKENS + 1)
    found = [(a, b) for a in kinds for b in kinds if ours[1] - a == theirs[1] - b and is_square(ours[1] - a)]
    return found[0] if len(found) == 1 else None


def say_tokens(link: Link) -> str:
    """Why this pair is refused, "" when it is no such pair."""
    tokens = tokens_of(link)
    if tokens is None:
        return ""
    length = (link.target.shape or (0, 0))[1]
    return (
        f"{link.target.name} has {tokens[0]} tokens before its {length - tokens[1]} positions in the file and "
        f"{tokens[1]} in the target: a class or distillation token more or less, not another picture size. A token "
        "that the file lacks cannot be made up."
    )


def _steps(left: Leftovers) -> Iterator[Step]:
    for link in left.reshaped:
        tokens = tokens_of(link)
        if tokens is None or tokens[0] != tokens[1] + 1:
            continue
        at = 0
        if tokens[0] == 2:
            at = 0 if _ask(link, left) == SECOND else 1
        says = (
            f"{tokens[0]} tokens before the grid in the file, {tokens[1]} in the target: number {at + 1} is left out."
        )
        yield adapt(link, rule=RULE.id, reason=says, value=f"drop-token:{at}")


def _ask(link: Link, left: Leftovers) -> str | None:
    return left.questions.ask(
        Ambiguity(
            id=RULE.id,
            question=(
                f"{link.source.name} has two tokens before its grid and the target one. Which of them stays? The first "
                "is the class token where a distillation token follows it."
            ),
            options=((FIRST, "the first stays"), (SECOND, "the second stays")),
        ),
        place=link.target.name,
    )


RULE = Rule(
    id="prefix-tokens",
    title="Another number of tokens",
    says="Leaves out a class or distillation token that the target's position embeddings lack; never resizes for it.",
    cost=Cost.LOSSY,
    done="a token is taken from the position embeddings",
    steps=_steps,
)
