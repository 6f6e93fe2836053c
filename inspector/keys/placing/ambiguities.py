"""Placings that the names allow and do not prove: found after the alignment, and asked about before anything is used.

Each rule is sound where it looks, one pair of places at a time; what only shows in the whole is looked for here.
A *mixture*: tensors of one set of weights in the gaps of another. A *rename*: a few tensors brought under another name
by elimination. A *rival*: a name that reads as another place just as well. All three would pass a strict load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.keys.placing.doubtful import (
    AS_PLACED,
    LEAVE_OUT,
    MIX,
    Doubt,
    by_levels,
    decide,
    exchange_of,
    is_within,
    module_of,
    of_levels,
    unwrapped,
    weights_of,
)
from inspector.keys.placing.kinds import shown
from inspector.keys.placing.renamed_parts import renames
from inspector.keys.placing.tree import Leaf, Path, is_most
from inspector.keys.report import Ambiguity
from inspector.keys.rules.entry import Link, Move, Questions, Rule
from inspector.units import counted

_MOST_SEGMENTS = 10
# What files call the parts of one network.
_PARTS = frozenset(
    {
        "model",
        "net",
        "network",
        "backbone",
        "body",
        "trunk",
        "base",
        "stem",
        "features",
        "neck",
        "bottleneck",
        "encoder",
        "decoder",
        "embed",
        "embedding",
        "embeddings",
        "head",
        "heads",
        "classifier",
        "fc",
        "top",
    }
)


def settle_ambiguities(
    links: Sequence[Link],
    extra: Sequence[Leaf],
    places: Sequence[Leaf],
    rules: Sequence[Rule],
    questions: Questions,
) -> tuple[list[Link], list[Leaf]]:
    """(links without doubt or confirmed, tensors held until the user has answered).

    extra: tensors of the file without a place. rules: those by which the links were made.
    Links the user declines are in neither: their tensors have no place.
    """
    kept: list[Link] = list(links)
    held: list[Leaf] = []
    for find in (_mixtures, renames, _rivals):
        for doubted, ambiguity, place in list(find(kept, extra, places, rules)):
            kept = decide(questions.ask(ambiguity, place=place), doubted, kept, held)
    return kept, held


_MIX_OPTIONS = (
    (MIX, "they are parts of one network: fill the gaps from it"),
    (LEAVE_OUT, "they are another network's: leave them out"),
)


def _mixtures(
    links: Sequence[Link], extra: Sequence[Leaf], places: Sequence[Leaf], rules: Sequence[Rule]
) -> Iterable[Doubt]:
    """Prefixes whose tensors fill some places, while more of them fit places that others fill."""
    # A copy is of a place, or of another tensor of the file that has a place.
    shapes = {link.source.name: link.source.shape for link in links} | {place.name: place.shape for place in places}
    by_name = {link.target.name for link in links if not link.moves}
    groups: dict[tuple[Path, Path], list[Link]] = {}
    copies: dict[tuple[Path, Path], list[Leaf]] = {}
    # What stands in one module, and came there by the same moves, has the same before it.
    known: dict[tuple[str, str, int], list[tuple[Path, Path]]] = {}
    for link in weights_of(links):
        if not link.moves:
            continue
        module, dot, last = link.source.name.rpartition(".")
        place, other_dot, other_last = link.target.name.rpartition(".")
        where = module + dot, place + other_dot, id(link.moves)
        if where not in known:
            known[where] = list(dict.fromkeys((exchange_of(link), *_dropped_levels(link))))
        for n, key in enumerate(known[where]):
            groups.setdefault(key, []).append(link)
            if not n and last == other_last:
                continue  # its own place
            name = ".".join((*key[1], *link.source.name.split(".")[len(key[0]) :]))
            if name != link.target.name and name in by_name and shapes[name] in (None, link.source.shape):
                copies.setdefault(key, []).append(link.source)
    starts: dict[Path, list[Path]] = {}
    for ours, theirs in groups:
        starts.setdefault(ours, []).append(theirs)
    for leaf in extra:
        segments = tuple(leaf.name.split("."))
        for n in range(1, len(segments)):
            for theirs in starts.get(segments[:n], ()):
                name = ".".join((*theirs, *segments[n:]))
                if name in shapes and shapes[name] in (None, leaf.shape) and segments[-1] not in BOOKKEEPING:
                    copies.setdefault((segments[:n], theirs), []).append(leaf)
    for key, leaves in copies.items():
        prefix = ".".join(key[0])
        yield (
            groups[key],
            Ambiguity(
                id="mixture",
                question=(
                    f'"{prefix}." looks like a second set of weights: {counted(len(leaves), "tensor")} under it, '
                    f"{leaves[0].name} first, fit where other tensors of the file are, and "
                    f"{counted(len(groups[key]), 'tensor')}, {groups[key][0].source.name} first, would fill gaps of "
                    "the others. Should the two be mixed?"
                ),
                options=_MIX_OPTIONS,
            ),
            prefix,
        )
    if not _are_parts_of_one(links, extra, places):
        yield from _unsure_levels(weights_of(links))


def _are_parts_of_one(links: Sequence[Link], extra: Sequence[Leaf], places: Sequence[Leaf]) -> bool:
    """Whether nothing is left over on either side, and every name is its place's behind one word for a part of a
    network: a student's trunk and a teacher's end may be all that a file has, too.
    """
    filled = {link.target.name for link in links}
    over = [*extra, *(place for place in places if place.name not in filled)]
    if any(leaf.name.rpartition(".")[2] not in BOOKKEEPING for leaf in over):
        return False
    above = [link.source.name.partition(".") for link in links]
    return all(
        behind == link.target.name and first.lower() in _PARTS
        for (first, _, behind), link in zip(above, links, strict=True)
    )


def _unsure_levels(links: Sequence[Link]) -> Iterable[Doubt]:
    """Levels that were taken off because what lies below fits into gaps, and for no other reason."""
    unsure: dict[Path, list[Link]] = {}
    for link in links:
        for move in link.moves:
            if not move.sure:
                unsure.setdefault(_dropped(move), []).append(link)
    for path, doubted in unsure.items():
        under = {link.source.name for link in doubted}
        if all(link.source.name in under for link in links):
            continue  # nothing to mix it with
        yield (
            doubted,
            Ambiguity(
                id="mixture",
                question=(
                    f'{counted(len(doubted), "tensor")} under "{".".join(path)}." fill gaps that the rest of the file '
                    f"leaves, {doubted[0].source.name} as {doubted[0].target.name} first. Are they parts of one "
                    "network?"
                ),
                options=_MIX_OPTIONS,
            ),
            ".".join(path),
        )


def _dropped_levels(link: Link) -> Iterator[tuple[Path, Path]]:
    """(what stands before in the file, what stands there in the target), for each level that was dropped."""
    gone: list[int] = []
    above = tuple(link.source.name.split("."))[:-1]
    for move in link.moves:
        path = _dropped(move)
        if path and above[: len(path)] == path:
            gone.append(len(path) - 1)
            yield path, tuple(segment for i, segment in enumerate(path) if i not in gone)


def _dropped(move: Move) -> Path:
    """The path of a dropped segment in the file, () for other moves."""
    parameters = dict(move.parameters)
    if "drop" not in parameters:
        return ()
    return (*filter(None, parameters["place"].split(".")), parameters["drop"])


def _rivals(
    links: Sequence[Link], extra: Sequence[Leaf], places: Sequence[Leaf], rules: Sequence[Rule]
) -> Iterable[Doubt]:
    """Names that become another place's by leaving out or putting in no more segments than were."""
    levels = of_levels(rules)
    moved = [link for link in weights_of(links) if by_levels(link, levels)]
    exchanges = {exchange_of(link) for link in moved}
    if len(exchanges) < 2 and all(not theirs or not ours for ours, theirs in exchanges):
        return  # one prefix for all of them
    there = {link.target.name: link for link in moved}
    ends: dict[str, list[Path]] = {}
    for path in dict.fromkeys(module_of(link.target) for link in moved):
        ends.setdefault(path[-1] if path else "", []).append(path)
    doubted = []
    known: dict[tuple[Path, Path], list[Path]] = {}
    wrappers = WRAPPER_SEGMENTS | _of_the_whole(moved, len(links))
    for link in moved:
        ours, theirs = module_of(link.source), module_of(link.target)
        if (ours, theirs) not in known:
            known[ours, theirs] = _readings(ours, theirs, ends, wrappers)
        leaf = link.target.name.rpartition(".")[2]
        for path in known[ours, theirs]:
            rival = there.get(".".join((*path, leaf)))
            if rival is None or _is_exact(rival, WRAPPER_SEGMENTS):
                continue
            if rival.target.shape in (None, link.source.shape):
                doubted.append((link, rival))
                break
    if doubted:
        link, rival = doubted[0]
        yield (
            list({x.source.name: x for pair in doubted for x in pair}.values()),
            Ambiguity(
                id="rival",
                question=(
                    f"{shown(link.source)} could be {link.target.name} or {rival.target.name}, and the same holds of "
                    f"{counted(len(doubted), 'tensor')} in all. Are they placed rightly?"
                ),
                options=((AS_PLACED, f"yes, {link.target.name}"), (LEAVE_OUT, "no, leave them out")),
            ),
            ".".join(module_of(link.source)),
        )


def _readings(ours: Path, theirs: Path, ends: dict[str, list[Path]], wrappers: frozenset[str]) -> list[Path]:
    """Other target modules that a name reads as with as few changes."""
    if len(ours) > _MOST_SEGMENTS:
        return []
    if len(ours) > len(theirs):
        shorter = (combinations(ours, n) for n in range(len(theirs), len(ours)))
        return [path for group in shorter for path in group if path != theirs]
    # Put in, or exchanged: what only needs more segments is the better reading.
    bucket = ends.get(ours[-1] if ours else "", []) if ours else [p for paths in ends.values() for p in paths]
    # Wrappers count for nothing: whoever put them in meant no other place by them.
    longest = len(unwrapped(theirs if is_within(ours, theirs) else ours, wrappers))
    longest += not is_within(ours, theirs)
    return [
        path
        for path in bucket
        if path != theirs and len(unwrapped(path, wrappers)) <= longest and is_within(ours, path)
    ]


def _is_exact(link: Link, wrappers: frozenset[str]) -> bool:
    """Whether its name is its place's but for wrappers: nothing else has a better claim to that place."""
    return unwrapped(module_of(link.source), wrappers) == unwrapped(module_of(link.target), wrappers)


def _of_the_whole(moved: Sequence[Link], total: int) -> frozenset[str]:
    """Segments that were dropped or added in most of the network: as good as a wrapper of torch's own."""
    count = Counter(
        segment
        for link in moved
        for segment in {value for move in link.moves for key, value in move.parameters if key in ("add", "drop")}
    )
    return frozenset(segment for segment, n in count.items() if is_most(n, total))


def _last(leaf: Leaf) -> str:
    return leaf.name.rpartition(".")[2]
