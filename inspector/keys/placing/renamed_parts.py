"""Tensors brought under another name by elimination: nothing says so but that both were left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.types import Shape
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.keys.placing.another_part import is_another_part
from inspector.keys.placing.doubtful import (
    AS_PLACED,
    LEAVE_OUT,
    Doubt,
    by_levels,
    exchange_of,
    is_within,
    module_of,
    of_levels,
    unwrapped,
    weights_of,
)
from inspector.keys.placing.grids import is_square
from inspector.keys.placing.kinds import shown
from inspector.keys.placing.synonyms import EMPTY
from inspector.keys.placing.tree import Leaf, Path, before_shared_end, is_most
from inspector.keys.placing.words import words_of
from inspector.keys.report import Ambiguity
from inspector.keys.rules.entry import Link, Move, Rule
from inspector.units import counted

# Last names that say nothing about where a tensor belongs.
_BARE = frozenset({"weight", "bias", "running_mean", "running_var"})
_LONGEST_NUMBER = 10


def renames(
    links: Sequence[Link], extra: Sequence[Leaf], places: Sequence[Leaf], rules: Sequence[Rule]
) -> Iterable[Doubt]:
    """Names exchanged for others over a part of the network: nothing says so but that both were left over."""
    groups: dict[tuple[Path, Path, Path], list[Link]] = {}
    shapes = {place.name: place.shape for place in places}
    ends = Counter(place.name.rpartition(".")[2] for place in places)
    total = sum(count for end, count in ends.items() if end not in BOOKKEEPING)
    levels = of_levels(rules)
    # Tensors of one module are renamed as one.
    only_levels: dict[tuple[str, str, int], bool] = {}
    known: dict[tuple[str, str, int], _Renamed] = {}
    plain = sorted((rule for rule in rules if rule.plain is not None), key=lambda rule: rule.renames)
    others = {rule.id for rule in plain}
    for link in weights_of(links):
        if not link.moves or any(move.proved for move in link.moves):
            continue
        place, dot, end = link.target.name.rpartition(".")
        key = "".join(link.source.name.rpartition(".")[:2]), place + dot, id(link.moves)
        if key not in only_levels:
            only_levels[key] = not any(move.rule in others for move in link.moves) and _is_only_a_level(link)
        if only_levels[key] and not end.isdecimal():
            continue
        if key not in known:
            known[key] = _renamed(link, plain)
        renamed = known[key]
        # A level more or less is no other name, unless nothing is left of the name but "weight".
        bare = renamed.bare and (end in _BARE or ends[end] > 1)
        sure = renamed.within and not bare
        if sure and not (by_levels(link, levels) and _takes_a_number(link, renamed.ours, shapes)):
            continue
        groups.setdefault(renamed.exchanged, []).append(link)
    for (shared, ours, theirs), group in groups.items():
        first = group[0]
        question = (
            f"{counted(len(group), 'tensor')} would get another name because shapes fit and both were left "
            f"over, {first.source.name} as {shown(first.target)} first. Is that right?"
        )
        if is_most(len(group), total):
            before, after = (".".join((*shared, *own)) for own in (ours, theirs))
            begins = len(shared) + len(ours)
            square = is_square((link.source.name.split(".")[begins:], link.source.shape) for link in group)
            if square and ours and theirs and not _one_word(ours[-1], theirs[-1]):
                question = (
                    f'What lies under "{before}." and "{after}." is counted by two numbers, both up to the same, and '
                    f"all of it is alike. Do they count in the same order, {first.source.name} as {first.target.name}?"
                )
            elif not is_another_part(ours, theirs):
                continue  # the name of the whole network: net. for model.
            else:
                question = (
                    f'{counted(len(group), "tensor")} under "{before}." fit where the target has "{after}.", a part of '
                    "another name. Are they meant for it?"
                )
        yield (
            group,
            Ambiguity(
                id="rename",
                question=question,
                options=((AS_PLACED, "yes, these are the same tensors"), (LEAVE_OUT, "no, leave them out")),
            ),
            ".".join(module_of(first.source)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Renamed:
    """A module of the file and its place, without what the rules that brought them together account for.

    ours: the file's name. bare: one side has no name left, within: one is the other with levels left out. exchanged:
    what both begin with, and what stands in either before the end that they share.
    """

    ours: Path
    bare: bool
    within: bool
    exchanged: tuple[Path, Path, Path]


def _renamed(link: Link, rules: Sequence[Rule]) -> _Renamed:
    """rules: those that account for a change, in the order of what they rename."""
    ours, theirs = (_plain(module_of(leaf), link.moves, rules) for leaf in (link.source, link.target))
    one, other = before_shared_end((ours, theirs))
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return _Renamed(
        ours=ours,
        bare=ours != theirs and not (ours and theirs),
        within=is_within(ours, theirs) or is_within(theirs, ours),
        exchanged=(one[:same], one[same:], other[same:]),
    )


def _one_word(ours: str, theirs: str) -> bool:
    """Whether two segments share a word, or one has none."""
    one, other = ({*words_of(segment)} - EMPTY for segment in (ours, theirs))
    return not (one and other) or bool(one & other)


def _takes_a_number(link: Link, ours: Path, shapes: dict[str, Shape | None]) -> bool:
    """Whether a number was put into a name that had none there, while the next number's place is just the same."""
    path = link.target.name.split(".")
    for i, segment in enumerate(path):
        if segment.isdecimal() and segment.isascii() and len(segment) < _LONGEST_NUMBER and segment not in ours:
            for near in (int(segment) - 1, int(segment) + 1):
                name = ".".join((*path[:i], str(near), *path[i + 1 :]))
                if name in shapes and shapes[name] in (None, link.source.shape):
                    return True
    return False


def _is_only_a_level(link: Link) -> bool:
    """Whether one module's whole name ends the other's, more than wrappers, and what was put in has no number: nor
    may the tensor's own name be one."""
    ours, theirs = exchange_of(link)
    if ours and theirs:
        return False
    ends = [leaf.name.rpartition(".")[0].rpartition(".")[2] for leaf in (link.source, link.target)]
    return (
        ends[0] == ends[1] != ""
        and ends[0] not in WRAPPER_SEGMENTS
        and not any(segment.isdecimal() for segment in theirs)
    )


def _plain(path: Path, moves: Iterable[Move], rules: Sequence[Rule]) -> Path:
    """Without what the rules that moved it account for by themselves. rules: in the order of what they rename."""
    moved = {move.rule for move in moves}
    for rule in rules:
        if rule.plain is not None and rule.id in moved:
            path = rule.plain(path)
    return unwrapped(path)
