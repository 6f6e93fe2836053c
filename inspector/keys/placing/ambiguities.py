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
from inspector.checkpoint.types import Shape
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.keys.placing.grids import is_square
from inspector.keys.placing.kinds import shown
from inspector.keys.placing.synonyms import EMPTY
from inspector.keys.placing.tree import Leaf, Path, before_shared_end, exchanged, is_most
from inspector.keys.placing.words import is_another_part, words_of
from inspector.keys.report import Ambiguity
from inspector.keys.rules.entry import Link, Move, Questions, Renames, Rule
from inspector.units import counted

MIX, AS_PLACED, LEAVE_OUT = "mix", "as-placed", "leave-out"
# Last names that say nothing about where a tensor belongs.
_BARE = frozenset({"weight", "bias", "running_mean", "running_var"})
_MOST_SEGMENTS = 10
_LONGEST_NUMBER = 10
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
    for find in (_mixtures, _renames, _rivals):
        for doubted, ambiguity, place in list(find(kept, extra, places, rules)):
            kept = decide(questions.ask(ambiguity, place=place), doubted, kept, held)
    return kept, held


def decide(answer: str | None, doubted: Sequence[Link], kept: list[Link], held: list[Leaf]) -> list[Link]:
    """What is kept after the answer. held: is added to where there is none yet."""
    if answer in (MIX, AS_PLACED):
        return kept
    if answer is None:
        held += [link.source for link in doubted]
    away = {link.source.name for link in doubted}
    return [link for link in kept if link.source.name not in away]


Doubt = tuple[list[Link], Ambiguity, str]

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
    for link in _weights(links):
        if not link.moves:
            continue
        exchanged = _exchange(link)
        for key in dict.fromkeys((exchanged, *_dropped_levels(link))):
            groups.setdefault(key, []).append(link)
            if key == exchanged and _last(link.source) == _last(link.target):
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
        yield from _unsure_levels(_weights(links))


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
    for move in link.moves:
        path = _dropped(move)
        if path and tuple(link.source.name.split(".", len(path))[: len(path)]) == path:
            gone.append(len(path) - 1)
            yield path, tuple(segment for i, segment in enumerate(path) if i not in gone)


def _dropped(move: Move) -> Path:
    """The path of a dropped segment in the file, () for other moves."""
    parameters = dict(move.parameters)
    if "drop" not in parameters:
        return ()
    return (*filter(None, parameters["place"].split(".")), parameters["drop"])


def _renames(
    links: Sequence[Link], extra: Sequence[Leaf], places: Sequence[Leaf], rules: Sequence[Rule]
) -> Iterable[Doubt]:
    """Names exchanged for others over a part of the network: nothing says so but that both were left over."""
    groups: dict[tuple[Path, Path, Path], list[Link]] = {}
    shapes = {place.name: place.shape for place in places}
    ends = Counter(place.name.rpartition(".")[2] for place in places)
    total = sum(count for end, count in ends.items() if end not in BOOKKEEPING)
    levels = _of_levels(rules)
    others = {rule.id for rule in rules if rule.plain is not None}
    for link in _weights(links):
        if not link.moves or any(move.proved for move in link.moves):
            continue
        if _is_only_a_level(link) and not any(move.rule in others for move in link.moves):
            continue
        ours, theirs = (_plain(_module(leaf), link.moves, rules) for leaf in (link.source, link.target))
        # A level more or less is no other name, unless nothing is left of the name but "weight".
        end = link.target.name.rpartition(".")[2]
        bare = ours != theirs and not (ours and theirs) and (end in _BARE or ends[end] > 1)
        numbered = _by_levels(link, levels) and _takes_a_number(link, ours, shapes)
        if not (bare or numbered) and (_within(ours, theirs) or _within(theirs, ours)):
            continue
        ours, theirs = before_shared_end((ours, theirs))
        same = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), 0)
        groups.setdefault((ours[:same], ours[same:], theirs[same:]), []).append(link)
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
            ".".join(_module(first.source)),
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


def _rivals(
    links: Sequence[Link], extra: Sequence[Leaf], places: Sequence[Leaf], rules: Sequence[Rule]
) -> Iterable[Doubt]:
    """Names that become another place's by leaving out or putting in no more segments than were."""
    levels = _of_levels(rules)
    moved = [link for link in _weights(links) if _by_levels(link, levels)]
    exchanges = {_exchange(link) for link in moved}
    if len(exchanges) < 2 and all(not theirs or not ours for ours, theirs in exchanges):
        return  # one prefix for all of them
    there = {link.target.name: link for link in moved}
    ends: dict[str, list[Path]] = {}
    for path in dict.fromkeys(_module(link.target) for link in moved):
        ends.setdefault(path[-1] if path else "", []).append(path)
    doubted = []
    known: dict[tuple[Path, Path], list[Path]] = {}
    wrappers = WRAPPER_SEGMENTS | _of_the_whole(moved, len(links))
    for link in moved:
        ours, theirs = _module(link.source), _module(link.target)
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
            ".".join(_module(link.source)),
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
    longest = len(_unwrapped(theirs if _within(ours, theirs) else ours, wrappers))
    longest += not _within(ours, theirs)
    return [
        path for path in bucket if path != theirs and len(_unwrapped(path, wrappers)) <= longest and _within(ours, path)
    ]


def _is_exact(link: Link, wrappers: frozenset[str]) -> bool:
    """Whether its name is its place's but for wrappers: nothing else has a better claim to that place."""
    return _unwrapped(_module(link.source), wrappers) == _unwrapped(_module(link.target), wrappers)


def _of_the_whole(moved: Sequence[Link], total: int) -> frozenset[str]:
    """Segments that were dropped or added in most of the network: as good as a wrapper of torch's own."""
    count = Counter(
        segment
        for link in moved
        for segment in {value for move in link.moves for key, value in move.parameters if key in ("add", "drop")}
    )
    return frozenset(segment for segment, n in count.items() if is_most(n, total))


def _unwrapped(path: Path, wrappers: frozenset[str] = WRAPPER_SEGMENTS) -> Path:
    return tuple(segment for segment in path if segment not in wrappers)


def _weights(links: Sequence[Link]) -> list[Link]:
    return [link for link in links if link.source.name.rpartition(".")[2] not in BOOKKEEPING]


def _module(leaf: Leaf) -> Path:
    return tuple(leaf.name.split(".")[:-1])


def _exchange(link: Link) -> tuple[Path, Path]:
    """What stands before the shared end of both modules."""
    ours, theirs = link.source.name.rpartition(".")[0], link.target.name.rpartition(".")[0]
    # The module of a tensor at the top has no name, which is no segment either.
    return exchanged(ours, theirs) if ours and theirs else (_module(link.source), _module(link.target))


def _is_only_a_level(link: Link) -> bool:
    """Whether one module's whole name ends the other's, more than wrappers, and what was put in has no number."""
    ours, theirs = _exchange(link)
    if ours and theirs:
        return False
    ends = [leaf.name.rpartition(".")[0].rpartition(".")[2] for leaf in (link.source, link.target)]
    return (
        ends[0] == ends[1] != ""
        and ends[0] not in WRAPPER_SEGMENTS
        and not any(segment.isdecimal() for segment in (*theirs, _last(link.target)))
    )


def _last(leaf: Leaf) -> str:
    return leaf.name.rpartition(".")[2]


def _of_levels(rules: Sequence[Rule]) -> frozenset[str]:
    """Ids of the rules that take levels off or put them in."""
    return frozenset(rule.id for rule in rules if rule.renames is Renames.LEVELS)


def _by_levels(link: Link, levels: frozenset[str]) -> bool:
    """Whether levels of the names were taken off or put in, and nothing else done to them."""
    return bool(link.moves) and all(move.rule in levels for move in link.moves)


def _within(short: Path, long: Path) -> bool:
    """Whether short is long with segments left out."""
    rest = iter(long)
    return all(segment in rest for segment in short)


def _plain(path: Path, moves: Iterable[Move], rules: Sequence[Rule]) -> Path:
    """Without what the rules that moved it account for by themselves."""
    moved = {move.rule for move in moves}
    plain = [rule for rule in rules if rule.plain is not None and rule.id in moved]
    for rule in sorted(plain, key=lambda rule: rule.renames):
        assert rule.plain is not None
        path = rule.plain(path)
    return _unwrapped(path)
