"""A part that sits in the stage before or after: layers.0.downsample in the file, layers.1.downsample in the target.

Swin transformers put the reduction at the end of a stage or at the beginning of the next one; the stages themselves
keep their numbers. Only one part moves, everywhere, by one, and shapes must agree everywhere; where they agree without
moving too, the user is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.checkpoint.name_forms import are_alike
from inspector.checkpoint.types import Shape
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Ambiguity, Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling

MOVED, AS_NAMED = "moved", "as-named"
# (what stands before the number, what stands after it)
Part = tuple[tuple[str, ...], str]
# Number -> tensors, module by module, and where in their names the part ends.
Stages = dict[int, list[tuple[int, list[Leaf]]]]


def _parts(leaves: Sequence[Leaf]) -> dict[Part, Stages]:
    # Tensors of one module are in the same parts.
    modules: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        modules.setdefault(leaf.name.rpartition(".")[0], []).append(leaf)
    found: dict[Part, Stages] = {}
    for inside in modules.values():
        segments = inside[0].name.split(".", 12)
        start = 0
        for i in range(len(segments) - 2):
            number = segments[i]
            start += len(number) + 1
            if number.isascii() and number.isdigit() and len(number) < 4:
                part = (tuple(segments[:i]), segments[i + 1])
                end = start + len(segments[i + 1]) + 1
                found.setdefault(part, {}).setdefault(int(number), []).append((end, inside))
    return found


def _below(stage: Sequence[tuple[int, list[Leaf]]]) -> dict[str, Leaf]:
    """Rest of the name -> tensor."""
    return {leaf.name[end:]: leaf for end, inside in stage for leaf in inside}


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    if are_alike([leaf.name for leaf in leaves], [place.name for place in places]):
        return
    ours, theirs = _parts(leaves), _parts(places)
    by_name: dict[str, list[tuple[str, ...]]] = {}
    for place, part in theirs:
        by_name.setdefault(part, []).append(place)
    for (before, part), stages in ours.items():
        # Of one stage only, any shift would explain it; a number for a part is a block, not a part.
        if len(stages) < 2 or part.isdigit():
            continue
        there = next((theirs[place, part] for place in by_name.get(part, ()) if _same_place(before, place)), None)
        if there is None or set(stages) == set(there):
            continue
        shift = min(there) - min(stages)
        if abs(shift) != 1 or not _all_fit(stages, there, shift) or not _stages_agree(ours, theirs, before, part):
            continue
        if any(_shapes(stages[n]) == _shapes(there[n]) for n in stages if n in there):
            answer = questions.ask(_question(before, part, shift), place=".".join((*before, "N", part)))
            if answer != MOVED:
                continue
        stem = ".".join(before)
        move = Move(RULE.id, f"move {stem}.N.{part} by {shift:+d}", change=(stem, part, shift))
        for n, stage in stages.items():
            for rest, leaf in _below(stage).items():
                yield Spelling(leaf, ".".join((*before, str(n + shift), part, rest)), move)


def _same_place(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether one is the other, or the other with something before it."""
    short, long = sorted((one, other), key=len)
    return not short or long[len(long) - len(short) :] == short


def _all_fit(ours: Stages, theirs: Stages, shift: int) -> bool:
    return {n + shift for n in ours} == set(theirs) and all(
        _fits(_shapes(below), _shapes(theirs[n + shift])) for n, below in ours.items()
    )


def _fits(ours: dict[str, Shape | None], theirs: dict[str, Shape | None]) -> bool:
    return set(ours) == set(theirs) and all(theirs[name] in (None, shape) for name, shape in ours.items())


def _shapes(stage: Sequence[tuple[int, list[Leaf]]]) -> dict[str, Shape | None]:
    return {rest: leaf.shape for rest, leaf in _below(stage).items()}


def _stages_agree(ours: dict[Part, Stages], theirs: dict[Part, Stages], before: tuple[str, ...], part: str) -> bool:
    """Whether everything else of the stages has the same numbers on both sides: else all of them moved."""
    mine = {name: set(stages) for (place, name), stages in ours.items() if place == before and name != part}
    other = {
        name: set(stages) for (place, name), stages in theirs.items() if name != part and _same_place(before, place)
    }
    shared = mine.keys() & other.keys()
    return bool(shared) and all(mine[name] == other[name] for name in shared)


def _question(before: tuple[str, ...], part: str, shift: int) -> Ambiguity:
    place = ".".join(before)
    return Ambiguity(
        id=RULE.id,
        question=(
            f"{place}.N.{part} of the file has other numbers than in the target, and some equal names have equal "
            f"shapes: did {part} move by {shift:+d}, or do the names hold?"
        ),
        options=((MOVED, f"{part} moved to the neighbouring stage"), (AS_NAMED, "the names hold")),
    )


RULE = Rule(
    id="moved-parts",
    title="Parts of the neighbouring stage",
    says="Moves a part of every stage to the stage before or after, as Swin's downsample: layers.0 to layers.1.",
    cost=Cost.LOSSLESS,
    done="{tensors} of a part go to the neighbouring stage",
    spells=_spells,
)
