"""Names whose dots were left out or written otherwise: blocks71mlpfc1weight, conv1/bn.running_mean, down_blocks_0_norm.

Lightning's LitEma takes the dots out, since a buffer's name may have none; converters write _ or / for them. Writing
dots for every _ again is wrong (conv_in), so the target says where they belong: both sides are compared without any
separator. A name that reads as two places is asked about.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.name_forms import are_alike
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Ambiguity, Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling

# Fewer names agree by chance.
_FEWEST = 3
_MOST_GROUPS = 64
# layers.-1 is the last of them, and not a separator before a 1.
_NEGATIVE = re.compile(r"(^|\.)-[0-9]")
_NUMBER = re.compile(r"[0-9]+")
_COUNTERS = tuple(BOOKKEEPING)
_SEPARATOR = re.compile(r"[^0-9A-Za-z]+")
_ASCII_SEPARATORS = {i: None for i in range(128) if not chr(i).isalnum()}
_BUT_LINES = {i: None for i in _ASCII_SEPARATORS if chr(i) != "\n"}


def _squashed(name: str) -> str:
    """Without anything but letters and digits, most names in one look at a table."""
    return name.translate(_ASCII_SEPARATORS) if name.isascii() else _SEPARATOR.sub("", name)


def _without_dots(name: str) -> str:
    return name.replace(".", "")


def _all(names: Sequence[str], squash: Callable[[str], str]) -> list[str]:
    """What `squash` makes of each name. As lines of one text they take a fraction of the time."""
    text = "\n".join(names)
    if not text.isascii() or text.count("\n") != len(names) - 1:
        return [squash(name) for name in names]
    return (_without_dots(text) if squash is _without_dots else text.translate(_BUT_LINES)).split("\n")


# The dots alone first: what _ means in a name is then left as it is.
_WAYS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("put the dots back into names without them", _without_dots),
    ("write dots for other separators, where the target has them", _squashed),
)


@dataclass(slots=True)
class _Reading:
    """How one group of names reads: what stands before every name, and the target's names each could be.

    level: what stands before them, as a level with its dot, where separators show that it is one: whether it can go
    is not for this rule to say (encoder/fc1 where the target has decoder.fc1, grads/fc1).
    """

    start: str
    names: dict[Leaf, list[str]]
    level: str = ""


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    if are_alike([leaf.name for leaf in leaves], [place.name for place in places]):
        return
    there = {place.name: place for place in places}
    weights = [place for place in places if _weighs(place)]
    groups = list(_groups(leaves))
    for number, (says, squash) in enumerate(_WAYS):
        tables: list[dict[str, list[tuple[str, Leaf]]]] = []
        whole: dict[str, str] = {}
        found = False
        for prefix, group in groups:
            if number == 0 and sum("." not in leaf.name[len(prefix) :] for leaf in group) < _FEWEST:
                continue  # with their dots they are not mangled this way, see `_is_mangled`
            tables = tables or [_table(under, squash) for under in _trunks(places)]
            if not whole:
                names = [leaf.name for leaf in leaves]
                whole = dict(zip(names, _all(names, squash), strict=True))
            # What is taken out is taken out letter by letter: the rest of a name's is the rest of it.
            start = len(squash(prefix))
            plain = [(leaf, whole[leaf.name][start:]) for leaf in group]
            reading = max((_read(prefix, plain, table, squash) for table in tables), key=lambda r: len(r.names))
            if not _holds(prefix, group, reading, weights):
                continue
            found = True
            move = Move(RULE.id, says, change=(number,))
            yield from _spell(prefix, group, reading, there, move, questions)
            yield from _others_of_rows(prefix, group, reading, there, move, squash)
        if found:
            return


def _weighs(leaf: Leaf) -> bool:
    return not leaf.name.endswith(_COUNTERS)


def _groups(leaves: Sequence[Leaf]) -> Iterator[tuple[str, list[Leaf]]]:
    """(prefix with its dot, tensors under it): the whole file, or else what stands below its first names."""
    yield "", list(leaves)
    found: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        first, dot, _ = leaf.name.partition(".")
        if dot:
            found.setdefault(first + dot, []).append(leaf)
    for prefix in list(found)[:_MOST_GROUPS]:
        if len(found[prefix]) >= _FEWEST and (len(found[prefix]) < len(leaves) or len(found) == 1):
            yield prefix, found[prefix]


def _trunks(places: Sequence[Leaf]) -> Iterator[list[tuple[str, Leaf]]]:
    """The target's names whole, and without each level that all of them share."""
    names = [place.name for place in places]
    while True:
        yield list(zip(names, places, strict=True))
        firsts = {name.partition(".")[0] for name in names}
        if len(firsts) != 1 or any("." not in name for name in names):
            return
        names = [name.partition(".")[2] for name in names]


def _table(under: Sequence[tuple[str, Leaf]], squash: Callable[[str], str]) -> dict[str, list[tuple[str, Leaf]]]:
    found: dict[str, list[tuple[str, Leaf]]] = {}
    plain = _all([name for name, _ in under], squash)
    for text, (name, place) in zip(plain, under, strict=True):
        found.setdefault(text, []).append((name, place))
    return found


def _read(
    prefix: str,
    plain: Sequence[tuple[Leaf, str]],
    table: Mapping[str, list[tuple[str, Leaf]]],
    squash: Callable[[str], str],
) -> _Reading:
    """plain: tensors with their names without separators."""
    # What a name has before the target's: the same in all of them, so the longest name shows it.
    longest = max((text for _, text in plain), key=len, default="")
    best = _Reading("", {})
    for n in range(len(longest)):
        if longest[n:] in table:
            start = longest[:n]
            names = {
                leaf: [
                    name
                    for name, place in table.get(text[n:], ())
                    if (place.shape is None or leaf.shape is None or place.shape == leaf.shape)
                    and _keeps_numbers(leaf.name[len(prefix) :], start, name, squash)
                ]
                for leaf, text in plain
                if text.startswith(start) and text[n:] in table
            }
            names = {leaf: options for leaf, options in names.items() if options}
            if len(names) > len(best.names):
                first = next(iter(names)).name[len(prefix) :]
                best = _Reading(start, names, _level(first, start) if start and squash is _squashed else "")
    return best


def _cut(name: str, start: str, squash: Callable[[str], str]) -> int:
    """Where in a name ends what reads as `start` without separators."""
    if len(squash(name[: len(start)])) == len(start):
        return len(start)
    return bisect_left(range(len(name)), len(start), key=lambda i: len(squash(name[:i])))


def _level(name: str, start: str) -> str:
    # An underscore parts words where slashes part levels: hessian_diag/fc1.
    levels = re.split(r"[./]+", name[: _cut(name, start, _squashed)])
    return ".".join(filter(None, (level.strip("_-:") for level in levels))) + "."


def _keeps_numbers(name: str, start: str, option: str, squash: Callable[[str], str]) -> bool:
    """Whether the target's name can be read in this one without taking a number apart at the cut, or joining two.

    "layers10" is never "layers1", which all names begin with, and "0"; nor is layers.1.0 the target's layers.10. In a
    name that keeps separators the cut is at one of them, or between letters and digits: "sublayers.0" has no "layers".
    """
    # What stands whole behind a dot has its numbers whole: most names, and the cut is not searched for.
    if name == option or name.endswith(f".{option}"):
        return True
    if _NEGATIVE.search(name):
        return False
    cut = _cut(name, start, squash)
    before, after = name[:cut], name[cut:]
    inside = start and before[-1].isalnum() and after[:1].isalnum() and before[-1].isdigit() == after[0].isdigit()
    if inside and (before[-1].isdigit() or squash(name) != name):
        return False
    at = 0
    # Every number of the target lies whole in one run of digits of the file's name.
    for number in _NUMBER.finditer(option):
        found = after.find(number[0], at)
        if found < 0:
            return False
        at = found + len(number[0])
    return True


def _holds(prefix: str, group: Sequence[Leaf], reading: _Reading, weights: Sequence[Leaf]) -> bool:
    """Whether these names are the target's but for separators: most of them, half of its weights, not as written."""
    if len(reading.names) < _FEWEST:
        return False
    hits = [leaf for leaf in reading.names if _weighs(leaf)]
    own = [leaf for leaf in group if _weighs(leaf)]
    if 5 * len(hits) < 4 * len(own) or 2 * len(hits) < len(weights):
        return False
    mangled = [leaf for leaf in hits if _is_mangled(leaf.name[len(prefix) :], reading.names[leaf])]
    return len(mangled) >= _FEWEST and 2 * len(mangled) >= len(hits)


def _is_mangled(name: str, options: Sequence[str]) -> bool:
    """Whether separators are what is wrong: no dot left at all, or other characters where the target has dots.

    norm1 for norm.1 is neither (see `joined_segments.py`), and something put before every name is none.
    """
    if any(name == option or name.endswith(f".{option}") for option in options):
        return False
    plain = name.replace(".", "")
    return "." not in name or not any(plain.endswith(option.replace(".", "")) for option in options)


def _spell(
    prefix: str,
    group: Sequence[Leaf],
    reading: _Reading,
    there: Mapping[str, Leaf],
    move: Move,
    questions: Questions,
) -> Iterator[Spelling]:
    by_name: dict[str, list[Leaf]] = {}
    for leaf, options in reading.names.items():
        exact = leaf.name[len(prefix) :]
        if exact in options or leaf.name in there:
            by_name.setdefault(exact, []).append(leaf)
            continue
        chosen: str | None = options[0]
        if len(options) > 1:
            chosen = _ask(leaf, options, questions)
        if chosen is not None:
            by_name.setdefault(chosen, []).append(leaf)
    for name, rivals in by_name.items():
        one: Leaf | None = rivals[0]
        if len(rivals) > 1:
            one = _ask_rivals(name, rivals, questions)
        own = f"{prefix}{reading.level}{name}"
        if one is None or one.name == own:
            continue
        yield Spelling(one, own, move)
        # The tensor that had this name already leaves it to the one that was chosen.
        for loser in rivals:
            if loser.name == own:
                yield Spelling(loser, one.name, move)


def _others_of_rows(
    prefix: str,
    group: Sequence[Leaf],
    reading: _Reading,
    there: Mapping[str, Leaf],
    move: Move,
    squash: Callable[[str], str],
) -> Iterator[Spelling]:
    """The rest of the rows that are read, under numbers that the target does not have: layers_9 beside layers_1 to
    layers_8, which are its layers.1 to layers.8. Left as it is written, it would be no part of its row."""
    left = [leaf for leaf in group if leaf not in reading.names and leaf.name not in there]
    if not left:
        return
    forms: dict[str, list[str]] = {}
    for leaf, options in reading.names.items():
        form = _form(leaf, prefix, reading.start, squash)
        if len(options) == 1 and form[1] and len(form[1]) == len(_NUMBER.findall(options[0])):
            forms.setdefault(form[0], _NUMBER.split(options[0]))
    for leaf in left:
        text, numbers = _form(leaf, prefix, reading.start, squash)
        if numbers and text in forms:
            between = [piece for pair in zip(forms[text], [*numbers, ""], strict=True) for piece in pair]
            name = f"{prefix}{reading.level}{''.join(between)}"
            if name != leaf.name:
                yield Spelling(leaf, name, move)


def _form(leaf: Leaf, prefix: str, start: str, squash: Callable[[str], str]) -> tuple[str, list[str]]:
    """("layers#weight", ["9"]) of layers_9.weight."""
    own = leaf.name[len(prefix) :]
    after = own[_cut(own, start, squash) :] if start else own
    return _NUMBER.sub("#", squash(after)), _NUMBER.findall(after)


def _ask(leaf: Leaf, options: Sequence[str], questions: Questions) -> str | None:
    return questions.ask(
        Ambiguity(
            id=RULE.id,
            question=f"Without separators, {leaf.name} reads as {' and as '.join(options)}. Which one is it?",
            options=tuple((name, f"it is {name}") for name in options),
        ),
        place=leaf.name,
    )


def _ask_rivals(name: str, rivals: Sequence[Leaf], questions: Questions) -> Leaf | None:
    chosen = questions.ask(
        Ambiguity(
            id=RULE.id,
            question=f"{' and '.join(x.name for x in rivals)} both read as {name}. Which one is meant?",
            options=tuple((x.name, f"the tensor {x.name}") for x in rivals),
        ),
        place=name,
    )
    return next((leaf for leaf in rivals if leaf.name == chosen), None)


RULE = Rule(
    id="separators",
    title="Other separators",
    says=(
        "Puts dots back into names that were written without them or with _ or / instead (LitEma, converters), where "
        "the target has them; asks where a name reads as two."
    ),
    cost=Cost.LOSSLESS,
    done="dots are put back into the names of {tensors}",
    spells=_spells,
)
