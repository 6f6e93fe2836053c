"""Segments that a wrapper put into every key below it, or that the target's wrapper expects.

DataParallel and DistributedDataParallel add "module", torch.compile "_orig_mod", Lightning modules the attribute that
holds the network, FSDP and activation checkpointing one segment per wrapped level. All of them are one thing: a level
of the tree that one side has and the other has not. A segment is dropped (or added) only where the other side lacks it
and what lies below fits what lies there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.level_words import is_about_weights
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.keys.placing.tree import Node, is_most, numbered, overlap
from inspector.keys.report import Cost, RuleUse
from inspector.keys.rules.entry import OWN_LEAVES, Move, Pair, Phrase, Renames, Route, Rule, substitution


def wraps(segment: str, child: Node, other: Node, by_name: int, *, rest: Node | None = None) -> bool:
    """Whether this level of one side stands for the whole place `other` of the other side.

    by_name: how many tensors equal names explain at this pair of places. True when other lacks the name and it is a
    known wrapper's; or 60 % of other's tensors are in it (by leaf name and shape), which is more than equal names
    explain and more than any like-named child of other does; or everything in it is in `rest` by exact relative name
    and shape.
    """
    if segment not in other.children and segment in WRAPPER_SEGMENTS:
        return True
    own = numbered(segment)
    rivals = other.stems.get(own[0], []) if own is not None else [segment] if segment in other.children else []
    if other.size and is_most(child.size, other.size):
        cover = overlap(child, other)
        enough = is_most(cover, other.size) and cover > by_name
        if enough and all(overlap(child, other.children[rival]) < cover for rival in rivals):
            return True
    return rest is not None and not rivals and not segment.isdigit() and _fits_exactly(child, rest)


def _fits_exactly(child: Node, rest: Node) -> bool:
    if not child.size or child.size > rest.size:
        return False
    there = rest.shapes
    return all(
        name in there and (there[name] is None or there[name] == leaf.shape)
        for name, leaf in child.walk()
        if name.rpartition(".")[2] not in BOOKKEEPING
    )


def explained_by_name(source: Node, target: Node) -> int:
    """How many tensors lie under equally named children, or are equally named, and could correspond."""
    same = [s for s in source.children if s in target.children]
    leaves = sum(
        1 for s, leaf in source.leaves.items() if s in target.leaves and (target.leaves[s].shape in (None, leaf.shape))
    )
    return leaves + sum(overlap(source.children[s], target.children[s]) for s in same)


def _settled_by_name(pair: Pair, by_name: int) -> set[str]:
    """Children of the same name on both sides whose contents agree by half or more: no wrapper, leave them alone."""
    found = set()
    for segment, child in pair.source.children.items():
        twin = pair.target.children.get(segment)
        if twin is None or _wraps_either(segment, child, twin, pair, by_name):
            continue
        if child.signature == twin.signature or 2 * overlap(child, twin) >= max(child.size, twin.size):
            found.add(segment)
    return found


def _wraps_either(segment: str, child: Node, twin: Node, pair: Pair, by_name: int) -> bool:
    return wraps(segment, child, pair.whole_target, by_name) or wraps(segment, twin, pair.whole_source, by_name)


def _routes(pair: Pair) -> Iterator[Route]:
    source, target = pair.source, pair.target
    # Judged against the whole places: what other rules left over may be so little that anything covers it.
    by_name = explained_by_name(pair.whole_source, pair.whole_target)
    named = _settled_by_name(pair, by_name)
    rest = target.only(
        lambda s: s not in named, leaves={s: leaf for s, leaf in target.leaves.items() if s not in source.leaves}
    )
    left = source.only(
        lambda s: s not in named, leaves={s: leaf for s, leaf in source.leaves.items() if s not in target.leaves}
    )
    dropping = [
        (s, child)
        for s, child in source.children.items()
        if s not in named and not is_about_weights(s) and wraps(s, child, pair.whole_target, by_name, rest=rest)
    ]
    # Where what lies below is the target, nothing explains more of it.
    exact = any(child.signature == target.signature for _, child in dropping)
    adding = [
        s
        for s, child in ({} if exact else rest.children).items()
        if s not in named and wraps(s, child, pair.whole_source, by_name)
    ]
    drop_cover = max((overlap(child, target) for _, child in dropping), default=-1) if adding else 0
    add_cover = max((overlap(source, rest.children[s]) for s in adding), default=-1)
    # A large part of a network (features) looks like a wrapper of what the target wraps whole: more explained wins.
    if dropping and drop_cover >= add_cover:
        for segment, child in dropping:
            place = ".".join(child.path[:-1])
            sure = wraps(segment, child, pair.whole_target, by_name)
            yield Route(child, rest, (drop_move(segment, place=place, sure=sure),), takes=(segment,))
    elif len(adding) == 1 and (left.children or left.leaves):
        segment = adding[0]
        move = add_move(segment, place=".".join(target.path))
        takes = (*left.children, *([OWN_LEAVES] if left.leaves and not named else []))
        yield Route(left, rest.children[segment], (move,), takes=takes, fills=(segment,))


def drop_move(segment: str, *, place: str, sure: bool = True) -> Move:
    """A level of the file that is taken off below this place."""
    return Move(RULE.id, f'drop the segment "{segment}"', (("drop", segment), ("place", place)), sure)


def add_move(segment: str, *, place: str) -> Move:
    """A level of the target that is put in below this place."""
    return Move(RULE.id, f'add the segment "{segment}"', (("add", segment), ("place", place)))


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    places = [value for name, value in use.parameters if name == "place"]
    dropped = next((value for name, value in use.parameters if name == "drop"), None)
    if dropped is not None:
        return (*_phrases_dropping(dropped, places),)
    added = next(value for name, value in use.parameters if name == "add")
    return (*_phrases_adding(added, places),)


def _phrases_dropping(segment: str, places: Iterable[str]) -> Iterator[Phrase]:
    yield Phrase(
        f'key = ".".join(part for part in key.split(".") if part != {segment!r})',
        lambda key: ".".join(part for part in key.split(".") if part != segment),
    )
    yield Phrase(f"key = key.removeprefix({segment + '.'!r})", lambda key: key.removeprefix(segment + "."))
    for place in places:
        if place:
            yield _substitution("^" + re.escape(place) + r"\." + re.escape(segment) + r"\.", place + ".")


def _phrases_adding(segment: str, places: Iterable[str]) -> Iterator[Phrase]:
    for place in places:
        if not place:
            yield Phrase(f"key = {segment + '.'!r} + key", lambda key: f"{segment}.{key}")
        else:
            yield _substitution("^" + re.escape(place) + r"\.", f"{place}.{segment}.")


def _substitution(pattern: str, put: str) -> Phrase:
    # Names are plain text; what is put in is a template, where a backslash would begin a group's number.
    template = put.replace("\\", r"\\")
    return substitution(pattern, template)


RULE = Rule(
    id="wrapper-segment",
    title="Wrapper segments",
    says="Drops or adds a level of the names that only one side has, such as the module. of DataParallel.",
    cost=Cost.LOSSLESS,
    done='"{segment}." is {verb}',
    names_suffice=True,
    renames=Renames.LEVELS,
    routes=_routes,
    phrases=_phrases,
)
