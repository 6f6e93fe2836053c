"""What reading names by their meaning (`by_words.py`) becomes: links with their evidence, or a question."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from inspector.keys.placing.by_order import Sides, counters, why_no_order
from inspector.keys.placing.by_words import Worded, settled
from inspector.keys.placing.counting import Choice
from inspector.keys.placing.kinds import kind_of
from inspector.keys.placing.matching import Doubt
from inspector.keys.placing.parts import Part
from inspector.keys.placing.readings import read_both
from inspector.keys.placing.tree import Leaf, Path, exchanged
from inspector.keys.report import Ambiguity, Evidence
from inspector.keys.rules import other_words
from inspector.keys.rules.entry import Link, Move, Questions

LEAVE_OUT = "leave-out"
SAME = "same"

# More are counted, not listed, in a sentence; the plan's parameters have them all.
_MOST_SAID = 6


def words_of_both(sides: Sides, links: Sequence[Link], *, by_table_only: bool) -> Worded | None:
    """The reading of both sides, None where there is none or where it moves a tensor that has its place's very name.

    by_table_only: numbers are in question, which only a library's own table may answer.
    """

    def read(places: Sequence[Leaf]) -> Worded | None:
        ordered = not why_no_order(sides)
        return read_both(sides.leaves, places, computed=_computed(), ordered=ordered, by_table_only=by_table_only)

    found = read(sides.places)
    if sides.ties and not (found and found.sure):
        # A file may hold what the target ties once.
        untied = read(sides.untied)
        found = untied if untied and untied.sure else found
    if found is None:
        return None
    goes = {leaf.name: place.name for leaf, place in found.links}
    same = [link for link in links if not link.moves and link.source.name == link.target.name]
    if any(goes.get(link.source.name, link.target.name) != link.target.name for link in same):
        return None
    return found


def _computed() -> frozenset[str]:
    from inspector.keys.operations.computed import COMPUTED

    return frozenset(name for kind in COMPUTED.values() for name in kind.leaves) - {"bias", "freqs"}


def _buffers(sides: Sides, found: Worded) -> list[tuple[Leaf, Leaf]]:
    """What is computed when a network is built goes where the module goes that it stands in."""
    computed = _computed()
    ours = [leaf for leaf in sides.leaves if leaf.name.rpartition(".")[2] in computed]
    if not ours:
        return []
    there = {place.name: place for place in sides.places}
    modules = {leaf.name.rpartition(".")[0]: place.name.rpartition(".")[0] for leaf, place in found.links}
    made = []
    for leaf in ours:
        module, _, last = leaf.name.rpartition(".")
        if module in modules:
            place = there.pop(f"{modules[module]}.{last}", None)
            if place is not None:
                made.append((leaf, place))
    return made


def place_by_words(sides: Sides, found: Worded) -> list[Link]:
    """Links of a reading that is sure, with counters and buffers beside the tensors of their module."""
    move = Move(other_words.RULE.id, _says(found), tuple((f"{a} is", b) for a, b in found.equations), change=("words",))
    moves = (move,)
    made = [_link(leaf, place, moves, found) for leaf, place in found.links]
    beside = [*counters(sides, found.links), *_buffers(sides, found)]
    known = {leaf.name for leaf, _ in found.links}
    return made + [_link(leaf, place, moves, found) for leaf, place in beside if leaf.name not in known]


def _link(leaf: Leaf, place: Leaf, moves: tuple[Move, ...], found: Worded) -> Link:
    if leaf.name == place.name:
        return Link(leaf, place)
    return Link(leaf, place, moves, Evidence.WORDS if leaf.name in found.said else Evidence.UNIQUE_TOKEN)


def _says(found: Worded) -> str:
    said = [f'"{ours}" as "{theirs}"' for ours, theirs in found.equations[:_MOST_SAID]]
    more = len(found.equations) - len(said)
    listed = ", ".join(said) + (f" and {more} more" if more else "")
    made = f"read {listed}" if said else "read the names by what they mean"
    return f"{found.first}, {made}" if found.first else made


def confirm_words(found: Worded, questions: Questions) -> str | None:
    """The answer where something speaks against a whole reading, None while there is none."""
    return questions.ask(
        Ambiguity(
            id=f"{other_words.RULE.id}:reading",
            question=f"The names fit once one would {_says(found)}; but {found.unsure}. Does this reading hold?",
            options=((SAME, "yes, these are the same layers"), (LEAVE_OUT, "no, or not known: leave them out")),
        )
    )


def ask_words(sides: Sides, found: Worded, questions: Questions) -> tuple[list[Link], list[Leaf]] | None:
    """(links, tensors held until the user has answered) where names leave a choice; None where it is no question.

    All layers whose modules are called the same are asked about once.
    """
    groups: dict[Hashable, list[Doubt]] = {}
    for doubt in found.doubts:
        groups.setdefault(_called(doubt), []).append(doubt)
    rests = [doubts[0] for doubts in groups.values() if doubts[0].left_over]
    rest = _question_left_over(rests, alone=len(rests) == len(groups)) if rests else None
    links = list(found.links)
    chosen: dict[str, None] = {}
    held: list[Leaf] = []
    for doubts in groups.values():
        ways = [[settled(choice, ordered=found.ordered) for choice in doubt.choices] for doubt in doubts]
        if len({len(w) for w in ways}) != 1 or any(way is None for w in ways for way in w):
            return None
        # One answer for all layers: by the names that it gives, whatever order each was looked at in.
        tables = [[SAME] if doubt.left_over else [_option(choice) for choice in doubt.choices] for doubt in doubts]
        names = tables[0]
        if any(sorted(set(table)) != sorted(names) for table in tables):
            return None
        question = rest if doubts[0].left_over and rest is not None else _question(doubts[0], names)
        answer = questions.ask(question, place=_place(doubts[0]))
        for way, table in zip(ways, tables, strict=True):
            if answer is None:
                held += [leaf for leaf, _ in way[0] or ()]
            elif answer in names:
                more = way[table.index(answer)] or ()
                links += more
                chosen |= dict.fromkeys(leaf.name for leaf, _ in more)
    made = place_by_words(sides, replace(found, links=tuple(links), said=found.said | frozenset(chosen)))
    return [replace(x, evidence=Evidence.CHOSEN) if x.source.name in chosen else x for x in made], held


def _called(doubt: Doubt) -> Hashable:
    """Equal for the doubts of all layers whose modules are called the same."""
    first = sorted_by_name(doubt)
    ends = sorted(theirs.path[-1:] for _, theirs in first)
    return doubt.left_over, tuple((ours.path[-1:], end) for (ours, _), end in zip(first, ends, strict=True))


def _template(path: Sequence[str]) -> str:
    """With N for the numbers of layers: blocks.3.norm1, encoder_layer_3.norm1."""
    return re.sub(r"(?<![A-Za-z0-9])[0-9]+(?=\.)", "N", ".".join(path))


def _place(doubt: Doubt) -> str:
    return " or ".join(dict.fromkeys(_template(ours.path) for ours, _ in sorted_by_name(doubt)))


def _own(pair: tuple[Part, Part]) -> Path:
    return pair[0].path


def sorted_by_name(doubt: Doubt) -> list[tuple[Part, Part]]:
    """The first choice of a doubt by the file's names, so that all layers are listed alike."""
    return sorted(doubt.choices[0], key=_own)


def _option(choice: Choice) -> str:
    """By what tells the places apart: cls_head.tower, reg_head.tower."""
    return ",".join(_told_apart([theirs.path for _, theirs in sorted(choice, key=_own)]))


def _told_apart(paths: Sequence[Path]) -> list[str]:
    """Their last names, or so much more of them as tells them apart."""
    longest = max(map(len, paths))
    most = next((n for n in range(1, longest) if len({path[-n:] for path in paths}) == len(paths)), longest)
    return [".".join(path[-most:]) for path in paths]


def _shown_apart(paths: Sequence[Path]) -> list[str]:
    """The same for a reader, to whom a number alone says nothing: convs.0."""
    told = [name.count(".") + 1 for name in _told_apart(paths)]
    return [
        ".".join(path[-(n + 1) :] if path[-n:][0].isdecimal() else path[-n:])
        for path, n in zip(paths, told, strict=True)
    ]


def _question(doubt: Doubt, names: Sequence[str]) -> Ambiguity:
    first = sorted_by_name(doubt)
    ours = _list(dict.fromkeys(_template(part.path) for part, _ in first))
    theirs = _list(dict.fromkeys(_template(part.path) for _, part in first))
    said = _shown_apart([part.path for part, _ in first])
    options = []
    for name, choice in zip(names, doubt.choices, strict=True):
        places = _shown_apart([other.path for _, other in sorted(choice, key=_own)])
        options.append((name, ", ".join(f"{one} is {other}" for one, other in zip(said, places, strict=True))))
    asks = "Are they in the order in which both sides have them?" if doubt.of_many else "Which reading holds?"
    return Ambiguity(
        id=other_words.RULE.id,
        question=f"{ours} have one shape{_kind(first)} and are {theirs} in some order, and their names do not tell "
        f"which is which. {asks}",
        options=(*options, (LEAVE_OUT, "not known: leave them out")),
    )


def _list(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


# What is left over is asked about as one, and by itself where something else is asked about as well.
_LEFT_OVER = f"{other_words.RULE.id}:left-over"


def _question_left_over(doubts: Sequence[Doubt], *, alone: bool) -> Ambiguity:
    """One question for all that has other words on both sides and nothing else left for it."""
    said = []
    for doubt in doubts:
        pairs = sorted_by_name(doubt)
        ours, theirs = exchanged(".".join(pairs[0][0].path), ".".join(pairs[0][1].path))
        said.append((_template(ours or pairs[0][0].path), _template(theirs or pairs[0][1].path), _kind(pairs)))
    one, other, kind = said[0]
    if len(said) == 1:
        return Ambiguity(
            id=other_words.RULE.id if alone else _LEFT_OVER,
            question=f'"{one}" is left over in the file and "{other}" in the target, of one shape{kind}, and their '
            "names do not say that they are one. Are they?",
            options=((SAME, f"yes, {one} is {other}"), (LEAVE_OUT, "no, or not known: leave it out")),
        )
    listed = "; ".join(f'"{ours}" and "{theirs}"{kind}' for ours, theirs, kind in said)
    return Ambiguity(
        id=other_words.RULE.id if alone else _LEFT_OVER,
        question=f"{len(said)} are left over in the file and as many in the target, pair by pair of one shape: "
        f"{listed}. Their names do not say that they are one. Is each of them?",
        options=((SAME, "yes, each is the other"), (LEAVE_OUT, "no, or not known: leave them out")),
    )


def _kind(pairs: Sequence[tuple[Part, Part]]) -> str:
    """' (Linear, 64 -> 64)': of the largest tensor of the first part, where it has tensors of its own."""
    leaves = pairs[0][0].leaves.values() if pairs else ()
    largest = max(leaves, key=lambda leaf: len(leaf.shape or ()), default=None)
    kind = kind_of(largest) if largest is not None else ""
    return f" ({kind})" if kind else ""
