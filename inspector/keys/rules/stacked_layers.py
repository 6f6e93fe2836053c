"""Layers or experts in one tensor on one side and numbered on the other: experts.w1 (E, out, in); experts.0.w1.weight.

Whole networks of an ensemble may be stacked so, too: fc.weight (N, out, in), models.0.fc.weight (functorch's
stack_module_state), where every tensor of the one side is.
The first axis counts them (transformers' Mixtral since 5, T5X's and big_vision's scanned layers), or their rows lie
below each other (DBRX). A stack whose matrices lie (in, out), as gpt-oss and Llama 4 have them, shows it by its sizes;
a square one is asked about. Names must agree but for the number, and a "weight" that a bare parameter has not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from inspector.checkpoint.name_forms import forms_of
from inspector.checkpoint.types import Shape
from inspector.keys.operations.grouped import value_of
from inspector.keys.placing.tree import Leaf
from inspector.keys.recast import Piece, Recast
from inspector.keys.report import Ambiguity, Cost
from inspector.keys.rules.entry import Questions, Rule

AS_IT_IS, TRANSPOSED = "as-it-is", "transposed"
_NUMBER = re.compile(r"(?<=\.)([0-9]{1,4})\.")
# What wraps all names of a side is another rule's.
_WRAPPERS = ("module", "model", "_orig_mod", "transformer", "params", "net")
_AROUND = re.compile(rf"^(({'|'.join(_WRAPPERS)})\.)+")
_ASIDE = frozenset({*_WRAPPERS, "weight", "kernel"})
_MOST = 4096

# By form of name: its words, how many levels are numbers.
Words = set[tuple[tuple[str, ...], int]]


def _plain(name: str) -> str:
    return _AROUND.sub("", name).removesuffix(".weight").removesuffix(".kernel")


def _may_stack(side: Words, other: Words) -> bool:
    """Whether a name of this side is one of the other's but for a number, as far as their forms tell."""
    return not side.isdisjoint({(words, numbers - 1) for words, numbers in other})


def _words_of(leaves: Sequence[Leaf]) -> Words:
    """By form of name: its words without what `_plain` takes off, wherever they stand; how many levels are numbers."""
    found = set()
    for form in forms_of(leaf.name for leaf in leaves):
        levels = form.split(".")
        words = [x for x in levels if not x.isdecimal()]
        found.add((tuple([x for x in words if x not in _ASIDE]), len(levels) - len(words)))
    return found


def _rows_of_layers(leaves: Sequence[Leaf]) -> dict[str, list[Leaf]]:
    """Tensors whose names differ by one number, 0 and up, by their name without it; all of one shape."""
    rows: dict[tuple[str, str], dict[int, Leaf]] = {}
    for leaf in leaves:
        for found in _NUMBER.finditer(leaf.name):
            key = (leaf.name[: found.start()], leaf.name[found.end() :])
            rows.setdefault(key, {})[int(found[1])] = leaf
    made: dict[str, list[Leaf]] = {}
    torn = set()
    for (before, after), row in rows.items():
        if len(row) < 2 or set(row) != set(range(len(row))) or len({leaf.shape for leaf in row.values()}) != 1:
            continue
        name = _plain(before + after)
        if name in made:
            torn.add(name)
        made[name] = [row[number] for number in range(len(row))]
    return {name: row for name, row in made.items() if name not in torn and len(row) <= _MOST}


def _members(side: Sequence[Leaf], other: Sequence[Leaf]) -> dict[str, list[Leaf]]:
    """Tensors of the members of an ensemble, by the one side's name of them all; {} unless all of both sides are."""
    number = next((found for leaf in other if (found := _NUMBER.search(leaf.name))), None)
    if number is None:
        return {}
    before = number.string[: number.start()]
    rows: dict[str, dict[int, Leaf]] = {}
    for leaf in other:
        found = _NUMBER.match(leaf.name, len(before)) if leaf.name.startswith(before) else None
        if found is None:
            return {}
        rows.setdefault(leaf.name[found.end() :], {})[int(found[1])] = leaf
    own = {_AROUND.sub("", leaf.name): leaf for leaf in side}
    if len(own) < len(side):
        return {}
    size = len(rows[next(iter(rows))])
    whole = all(set(row) == set(range(size)) and len({x.shape for x in row.values()}) == 1 for row in rows.values())
    if rows.keys() != own.keys() or not 1 < size <= _MOST or not whole:
        return {}
    if any((own[name].shape or ()) != (size, *(row[0].shape or ())) for name, row in rows.items()):
        return {}
    return {_plain(name): [row[number] for number in range(size)] for name, row in rows.items()}


def _recasts(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Recast]:
    words = _words_of(leaves), _words_of(places)
    cut = False
    for in_target in (False, True):
        side, other = (places, leaves) if in_target else (leaves, places)
        if cut:
            # What was cut stands there in parts by now.
            words = _words_of(leaves), _words_of(places)
        may_stack = _may_stack(words[in_target], words[not in_target])
        rows = (_rows_of_layers(other) if may_stack else {}) | _members(side, other)
        own = {_plain(leaf.name) for leaf in side} if rows else set()
        if rows.keys().isdisjoint(own):
            continue
        numbered = {_plain(leaf.name) for row in rows.values() for leaf in row}
        wholes = [x for x in side if _plain(x.name) in rows and _plain(x.name) not in numbered]
        # A side that has the numbered ones, too, has something else under this name.
        wholes = [x for x in wholes if not any(_plain(leaf.name) in own for leaf in rows[_plain(x.name)])]
        found = [(x, rows[_plain(x.name)], _way(x.shape or (), rows[_plain(x.name)])) for x in wholes]
        ways = {way for leaf, _, way in found if len(leaf.shape or ()) == 3}
        for leaf, row, way in found:
            # Others of the same stacks, whose sizes tell, speak for the square ones.
            asked = way == "square" and ways & {"plain", "turned"} != {"plain"}
            if way == "square":
                way = _ask(leaf, in_target, questions) if asked else "plain"
            if way:
                cut = True
                yield _recast(leaf, row, way == "turned", in_target, oriented=asked)


def _way(whole: Shape, row: Sequence[Leaf]) -> str:
    """How the layers lie in the stack: "plain", "turned", "square" where both fit, "" for not."""
    shape, number = row[0].shape or (), len(row)
    square = len(shape) == 2 and shape[0] == shape[1] > 1
    # Below each other, square ones may be turned one by one (DBRX's w2), which nothing shows.
    if len(shape) > 1 and not square and whole == (number * shape[0], *shape[1:]):
        return "plain"
    if whole == (number, *shape):
        return "square" if square else "plain"
    return "turned" if len(shape) == 2 and whole == (number, *shape[::-1]) else ""


def _ask(leaf: Leaf, in_target: bool, questions: Questions) -> str:
    side = "target" if in_target else "file"
    answer = questions.ask(
        Ambiguity(
            id=RULE.id,
            question=(
                f"{leaf.name} of the {side} is a stack of square matrices. Does each lie (in, out) in it, as in "
                "gpt-oss and Llama 4, or as a linear layer has it? Nothing shows it, and either loads."
            ),
            options=(
                (AS_IT_IS, "(out, in), as a linear layer has it"),
                (TRANSPOSED, "(in, out): transpose each"),
            ),
        ),
        place=re.sub(r"[0-9]+", "N", leaf.name),
    )
    return "turned" if answer == TRANSPOSED else "plain"


def _recast(leaf: Leaf, row: Sequence[Leaf], turned: bool, in_target: bool, *, oriented: bool) -> Recast:
    around = _AROUND.match(leaf.name)
    wrapper = around[0] if around else ""
    rows = (leaf.shape or (1,))[0] // len(row)
    pieces = tuple(
        Piece(Leaf(wrapper + _AROUND.sub("", one.name), one.shape), (at * rows, (at + 1) * rows))
        for at, one in enumerate(row)
    )
    return Recast(
        rule=RULE.id,
        reason=f"{len(row):,} layers in one tensor, counted by its first axis.",
        whole=leaf,
        pieces=pieces,
        in_target=in_target,
        value=value_of(1, [rows] * len(row), turned=turned),
        turned=turned,
        proved=True,
        oriented=oriented,
    )


RULE = Rule(
    id="stacked-layers",
    title="Layers in one tensor",
    says=(
        "Takes apart a tensor that holds the same layer of several blocks, experts or networks of an ensemble along "
        "its first axis, or stacks numbered ones; transposes each where sizes show that they lie (in, out), and asks "
        "about square ones."
    ),
    cost=Cost.LOSSLESS,
    done="layers in {tensors} are stacked or taken apart",
    recasts=_recasts,
)
