"""Two numbered levels in the other nesting: block0.stage1 in the file, stages.1.blocks.0 in the target.

A square of equal modules loads either way. Where both levels are called on both sides, each word's number goes with it;
where the names do not say which number is which, the user is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.checkpoint.name_forms import are_alike
from inspector.keys.placing.hidden_words import dotted
from inspector.keys.placing.levels import Contents, Grid, Levels, Nesting, nesting, squares_of
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Ambiguity, Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    if are_alike([leaf.name for leaf in leaves], [place.name for place in places]):
        return
    own = dict(zip(dotted([leaf.name for leaf in leaves]), leaves, strict=True))
    ours = squares_of(leaf if name == leaf.name else Leaf(name, leaf.shape) for name, leaf in own.items())
    squares = {key: (grid, held) for key, grid in ours.items() if (held := grid.contents()) and _is_symmetric(held)}
    theirs = list(squares_of(places).values()) if squares else []
    done: set[str] = set()
    for (before, text), (grid, held) in squares.items():
        found = _counterpart(grid.levels, held, theirs)
        if found is None:
            continue
        there, says = found
        answer: str | None = says
        if says is Nesting.OPEN:
            answer = questions.ask(_question(grid.levels, there.levels), place=f"{before}{_shown(grid.levels)}")
        # While it is asked, one reading is shown, and the plan is open.
        exchanged = answer == Nesting.EXCHANGED
        move = Move(
            RULE.id, f'read "{_shown(grid.levels)}" as "{_shown(there.levels)}"', change=(text, there.levels.text)
        )
        numbers, other = grid.numbers, there.numbers
        for (a, b), below in grid.cells.items():
            i, j = numbers[0].index(a), numbers[1].index(b)
            name = there.levels.named(other[0][j if exchanged else i], other[1][i if exchanged else j])
            for rest, leaf in below.items():
                if leaf.name not in done:
                    done.add(leaf.name)
                    yield Spelling(own[leaf.name], f"{before}{name}{rest}", move)


def _counterpart(levels: Levels, held: Contents, others: Sequence[Grid]) -> tuple[Grid, Nesting] | None:
    """The target's levels that this square may be in either way, and what the words say; None where nothing is open."""
    found: dict[str, tuple[Grid, Nesting]] = {}
    for other in others:
        if held == other.contents():
            found.setdefault(other.levels.text, (other, nesting(levels, other.levels)))
    said = {says for _, says in found.values()}
    if Nesting.SAME in said:
        return None
    for wanted in (Nesting.EXCHANGED, Nesting.OPEN):
        ways = [way for way in found.values() if way[1] is wanted]
        if ways:
            return ways[0] if len(ways) == 1 else None
    return None


def _is_symmetric(contents: Contents) -> bool:
    return all(contents[j, i] == held for (i, j), held in contents.items())


def _question(ours: Levels, theirs: Levels) -> Ambiguity:
    one, other = ours.named(0, 1), theirs.named(0, 1)
    return Ambiguity(
        id=RULE.id,
        question=(
            f'"{_shown(ours)}" of the file and "{_shown(theirs)}" of the target count equal modules by two numbers, as '
            "many by the one as by the other. Their names do not say which number is which, and either loads. What is "
            f"{one}?"
        ),
        options=(
            (Nesting.SAME.value, f"{one} is {other}"),
            (Nesting.EXCHANGED.value, f"{one} is {theirs.named(1, 0)}"),
        ),
    )


def _shown(levels: Levels) -> str:
    return levels.text.replace("{}", "N").replace("{{", "{").replace("}}", "}")


RULE = Rule(
    id="exchanged-levels",
    title="Levels in the other nesting",
    says=(
        "Takes each number with its word where two numbered levels are nested the other way round (block0.stage1 in "
        "stages.1.blocks.0), and asks which is which where the words do not say it and no shape does."
    ),
    cost=Cost.LOSSLESS,
    done="the levels of {tensors} are nested as the target's",
    spells=_spells,
)
