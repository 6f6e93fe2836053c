"""Numbered layers that moved: classifier.1 and classifier.4 in the file, classifier.0 and classifier.3 in the target.

Happens when a layer was put in front of a Sequential, or layers without parameters were put between. Equal neighbours
make equal names wrong afterwards: layer1.1 of the file may be the target's layer1.0, shape for shape. So the shift
competes with the names. It is taken by itself only when no name contradicts it and the layers are no blocks that may
be a part of a deeper network, and the file does not list them in another order than it numbers them; otherwise the user
decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator

from inspector.keys.placing.stacks import is_block
from inspector.keys.placing.tree import Node, Path, numbered, overlap
from inspector.keys.report import Ambiguity, Cost, RuleUse
from inspector.keys.rules.entry import Move, Pair, Phrase, Renames, Route, Rule

_FARTHEST = 64
_FEWEST_FROM_THE_END = 3
SHIFTED, AS_NAMED, AS_LISTED = "shifted", "as-named", "as-listed"


def _groups(node: Node) -> dict[str, dict[int, Node]]:
    found: dict[str, dict[int, Node]] = {}
    for segment, child in node.children.items():
        number = numbered(segment)
        if number is not None:
            found.setdefault(number[0], {})[number[1]] = child
    return found


def _score(ours: dict[int, Node], theirs: dict[int, Node], place: dict[int, int]) -> int:
    # Blocks of one kind are compared once.
    known: dict[tuple[int, int], int] = {}
    total = 0
    for n, m in place.items():
        if m in theirs:
            kinds = (ours[n].signature, theirs[m].signature)
            if kinds not in known:
                known[kinds] = overlap(ours[n], theirs[m])
            total += known[kinds]
    return total


def _best_map(ours: dict[int, Node], theirs: dict[int, Node]) -> tuple[dict[int, int], bool]:
    """The order-keeping map of numbers with the most tensors explained, and whether it explains all of both sides."""
    maps: list[dict[int, int]] = []
    if len(ours) == len(theirs):
        maps.append(dict(zip(sorted(ours), sorted(theirs), strict=True)))
    lowest, highest = min(theirs) - max(ours), max(theirs) - min(ours)
    shifts = range(max(lowest, -_FARTHEST), min(highest, _FARTHEST) + 1)
    maps += [{n: n + shift for n in ours} for shift in shifts if shift]
    if not maps:
        return {n: n for n in ours}, False
    best = max(maps, key=lambda m: _score(ours, theirs, m))
    fits = len(ours) == len(theirs) and all(best[n] in theirs and ours[n].forms == theirs[best[n]].forms for n in ours)
    return best, fits


def _routes(pair: Pair) -> Iterator[Route]:
    there = _groups(pair.target)
    for stem, ours in _groups(pair.source).items():
        theirs = there.get(stem)
        if theirs is None:
            continue
        if set(ours) == set(theirs):
            yield from _from_the_end(stem, ours, theirs, pair)
            continue
        by_name = {n: n for n in ours}
        best, fits = _best_map(ours, theirs)
        if best == by_name or _score(ours, theirs, best) <= _score(ours, theirs, by_name):
            continue
        # A layer that stays where it is contradicts nothing, where no other of the row is like it.
        apart = len({node.signature for node in ours.values()}) == len(ours)
        contradicted = any(overlap(ours[n], theirs[n]) for n in ours if n in theirs and not (apart and best[n] == n))
        answer: str | None = SHIFTED
        listed = _listed(pair, ours, theirs, best)
        if contradicted or not fits or listed or _is_part(ours, best) or _is_another(stem, ours, theirs):
            answer = _ask(pair, stem, best, theirs, contradicted=contradicted, listed=bool(listed))
        if answer == AS_NAMED:
            continue
        best = listed if answer == AS_LISTED else best
        prefix = ".".join((*pair.target.path, stem))
        numbers = ",".join(f"{n}>{best[n]}" for n in sorted(ours))
        parameters = (("prefix", prefix), ("numbers", numbers))
        move = Move(RULE.id, _say(prefix, best), parameters, change=(prefix, *_shifts(best)))
        for n, child in ours.items():
            goal = theirs.get(best[n])
            if answer is None:
                yield Route(child, None, (), takes=(f"{stem}{n}",))
            elif goal is not None:
                yield Route(child, goal, (move,), takes=(f"{stem}{n}",), fills=(f"{stem}{best[n]}",))


def _is_another(stem: str, ours: dict[int, Node], theirs: dict[int, Node]) -> bool:
    """Whether one part alone stands where the target has another of its kind: critic1 is not critic2."""
    return bool(stem) and len(ours) == len(theirs) == 1 and all(node.children for node in ours.values())


def _from_the_end(stem: str, ours: dict[int, Node], theirs: dict[int, Node], pair: Pair) -> Iterator[Route]:
    """A row that one side counts from its other end (a decoder by level, or by order), if shapes leave no other way.

    Each module must hold what one of the other side's row holds, and no two of a row the same. A layer that lies the
    other way round has its counterpart's sizes, too.
    """
    signatures = [[node.signature for node in side.values()] for side in (ours, theirs)]
    if len(ours) < _FEWEST_FROM_THE_END or any(len(set(side)) < len(side) for side in signatures):
        return
    turned = dict(zip(sorted(ours), sorted(theirs, reverse=True), strict=True))
    if any(ours[n].signature != theirs[m].signature for n, m in turned.items()):
        return
    if any(_sizes(ours[n]) == _sizes(theirs[n]) for n, m in turned.items() if n != m):
        return
    prefix = ".".join((*pair.target.path, stem))
    numbers = ",".join(f"{n}>{m}" for n, m in turned.items())
    move = Move(
        RULE.id,
        f"count {prefix}N from the other end",
        (("prefix", prefix), ("numbers", numbers)),
        change=(prefix, "end"),
    )
    for n, m in turned.items():
        yield Route(ours[n], theirs[m], (move,) if n != m else (), takes=(f"{stem}{n}",), fills=(f"{stem}{m}",))


def _sizes(node: Node) -> Counter[tuple[int, ...]]:
    """The matrices and kernels below, whichever way round they lie."""
    return Counter(tuple(sorted(leaf.shape)) for _, leaf in node.walk() if len(leaf.shape or ()) > 1 and leaf.shape)


def _listed(pair: Pair, ours: dict[int, Node], theirs: dict[int, Node], best: dict[int, int]) -> dict[int, int]:
    """The map by position, {} unless both sides keep their order, it is another than that of the numbers, and fits."""
    if not (pair.source.in_order and pair.target.in_order) or len(ours) != len(theirs):
        return {}
    # As the sides list them: `_groups` keeps that order.
    listed = dict(zip(ours, theirs, strict=True))
    fits = all(ours[n].bag == theirs[m].bag and ours[n].forms == theirs[m].forms for n, m in listed.items())
    return listed if fits and listed != best else {}


def _is_part(ours: dict[int, Node], best: dict[int, int]) -> bool:
    """Whether these may be some blocks of a deeper network, 6 to 11 of 12, and not a whole one numbered otherwise.

    Blocks that repeat, or one that lies far off. Single layers that moved by one had something put in front of them.
    """
    shifts = {m - n for n, m in best.items()}
    far = len(shifts) == 1 and abs(shifts.pop()) > 1
    blocks = any(is_block(node) for node in ours.values())
    repeated = len({node.signature for node in ours.values()}) < len(ours)
    return (blocks or far) if repeated else (blocks and far)


def _shifts(best: dict[int, int]) -> tuple[int, ...]:
    """By how much all the numbers move, () when not all by the same."""
    shifts = {m - n for n, m in best.items()}
    return tuple(shifts) if len(shifts) == 1 else ()


def _say(prefix: str, best: dict[int, int]) -> str:
    if shifts := _shifts(best):
        return f"shift the numbers of {prefix}N by {shifts[0]:+d}"
    return f"renumber {prefix}N in order"


def _ask(
    pair: Pair, stem: str, best: dict[int, int], numbers: Container[int], *, contradicted: bool, listed: bool
) -> str | None:
    place = ".".join((*pair.source.path, stem))
    # The first that has a place: the others' numbers are none of the target's.
    first = min((n for n in best if best[n] in numbers), default=min(best))
    why = "the file may hold a part of a deeper network, or of this one"
    if contradicted:
        why = "some equal names have equal shapes"
    elif listed:
        why = "the file lists these layers in another order than it numbers them"
    by_position = ((AS_LISTED, "the order in which the file lists them holds, whatever the numbers"),) if listed else ()
    return pair.questions.ask(
        Ambiguity(
            id=RULE.id,
            question=(
                f"{place}N is numbered otherwise than in the target, and {why}: is {place}{first} of the file the "
                f"target's number {best[first]}, or do the names hold?"
            ),
            options=(
                (SHIFTED, "the numbers moved, wherever this is in doubt; the order of the layers holds"),
                (AS_NAMED, "the names hold, wherever this is in doubt; the rest is missing or unexpected"),
                *by_position,
            ),
        ),
        place=f"{place}N",
    )


def _without_their_numbers(path: Path) -> Path:
    return tuple(re.sub(r"[0-9]+$", "#", segment) for segment in path)


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    parameters = dict(use.parameters)
    prefix = parameters["prefix"]
    table = {int(a): int(b) for a, b in (pair.split(">") for pair in parameters["numbers"].split(","))}
    pattern = "^" + re.escape(prefix) + r"([0-9]+)\."
    if shifts := _shifts(table):
        shift = shifts[0]
        code = f"int(found[1]) {'+' if shift > 0 else '-'} {abs(shift)}"
        return (Phrase(_line(pattern, prefix, code), _renumber(pattern, prefix, lambda n: n + shift)),)
    code = f"{table!r}[int(found[1])]"
    return (Phrase(_line(pattern, prefix, code), _renumber(pattern, prefix, lambda n: table.get(n, n))),)


def _line(pattern: str, prefix: str, code: str) -> str:
    return f'key = re.sub({pattern!r}, lambda found: {prefix!r} + str({code}) + ".", key)'


def _renumber(pattern: str, prefix: str, new: Callable[[int], int]) -> Callable[[str], str]:
    return lambda key: re.sub(pattern, lambda found: f"{prefix}{new(int(found[1]))}.", key)


RULE = Rule(
    id="index-shift",
    title="Shifted numbers",
    says=(
        "Renumbers layers whose order holds but whose numbers moved; asks where equal names say otherwise. A row that "
        "is counted from its other end is renumbered where shapes leave no other way."
    ),
    cost=Cost.LOSSLESS,
    done="shifted layer numbers are put back",
    renames=Renames.NUMBERS,
    plain=_without_their_numbers,
    routes=_routes,
    phrases=_phrases,
)
