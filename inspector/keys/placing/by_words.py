"""Placing by words: two trees of names that share none, read as one network by what the names mean.

The trees are walked down together. At each place the modules below are compared by what they hold, the largest first;
what only one module of each side holds is its counterpart, and where several hold the same, their names decide: words
of one meaning, roles from the table of `synonyms.py`, and numbers, which go by their order. Names are compared by kind
(every layer's `norm1` at once), so that one mapping holds for all layers. What comes out is the best mapping and by how
much the next best is worse. Where that is too little nothing is placed: these are doubts, and the user is asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from inspector.checkpoint.level_words import tells_about
from inspector.keys.placing.another_part import is_another_part
from inspector.keys.placing.contradictions import (
    are_siblings_at_the_top,
    half_bare,
    in_the_targets_words,
    is_bare,
    left_over,
    may_be_left_over,
    reads_two_ways,
    replaces_a_word,
    says_another,
)
from inspector.keys.placing.counting import Choice
from inspector.keys.placing.matching import LEAST_MARGIN, Counterpart, Doubt, Mapping, Matcher
from inspector.keys.placing.miscounted import (
    Rows,
    against_definition,
    count_with_signs,
    counts_another_way,
    counts_from_another,
    counts_from_the_start,
    counts_inside_from_another,
    counts_with_letters,
    crossed,
    exchanges_numbers,
    monotone,
    nested_inside_out,
    runs_against,
    runs_back,
)
from inspector.keys.placing.parts import Part, grow_parts, in_runs, plain
from inspector.keys.placing.tree import Leaf, Path
from inspector.keys.placing.words import SAME_NUMBER, read, relation, words_of

# Of the tensors, in modules whose names are related at all: below, the file is not read by its words.
LEAST_RELATED = 0.5
# Of the file's tensors and of the target's places, what must find a counterpart.
LEAST_COVERED = 0.6
# One in so many tensors may be of a module whose own name speaks against its place: it is asked about.
MOST_DOUBTFUL = 4
# Of three modules there are six orders; more are no question for anybody.
MOST_CHOICES = 6
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worded:
    """What the words say. links: (tensor, place). sure: whether it is placed without asking. equations: words that were
    read as another, the most frequent first. said: tensors whose own names say it, not only that nothing else is left.
    """

    links: tuple[tuple[Leaf, Leaf], ...]
    said: frozenset[str]
    doubts: tuple[Doubt, ...]
    equations: tuple[tuple[str, str], ...]
    margin: float
    related: float
    covered: float
    contradicted: bool
    loose: bool
    # What speaks against the whole of it and the user may know better, "" for nothing.
    unsure: str
    ordered: bool
    # The same shares with the first choice of every doubt.
    waiting_related: float
    waiting_covered: float
    # What was read otherwise before (`readings.py`), "" for nothing.
    first: str = ""

    @property
    def spoken(self) -> tuple[tuple[Leaf, Leaf], ...]:
        """What the names themselves say, without what nothing else was left for."""
        return tuple(link for link in self.links if link[0].name in self.said)

    @property
    def renamed(self) -> tuple[tuple[Leaf, Leaf], ...]:
        """Of these, what has another name in the file than in the target."""
        return tuple((leaf, place) for leaf, place in self.spoken if leaf.name != place.name)

    @property
    def strong(self) -> bool:
        """Whether the file may be read by its words at all."""
        return self.related >= LEAST_RELATED and self.covered >= LEAST_COVERED and not self.contradicted

    @property
    def sure(self) -> bool:
        """Whether it is placed without asking."""
        return self.strong and not self.doubts and not self.loose and not self.unsure

    @property
    def asks(self) -> bool:
        """Whether all that is open is which of several modules is which, a question with few answers."""
        few = all(x.left_over or x.of_many or 2 <= len(x.choices) <= MOST_CHOICES for x in self.doubts)
        enough = self.waiting_related >= LEAST_RELATED and self.waiting_covered >= LEAST_COVERED
        return bool(self.doubts) and few and enough and not self.contradicted and not self.loose and not self.unsure

    @property
    def to_confirm(self) -> bool:
        """Whether nothing but what the user may know better speaks against it."""
        known = replace(self, unsure="")
        return bool(self.unsure) and (known.sure or known.asks)


def by_words(
    leaves: Sequence[Leaf], places: Sequence[Leaf], *, computed: frozenset[str], ordered: bool
) -> Worded | None:
    """How the file's names read as the target's; None where one side is empty, or counts with signs.

    computed: last names of buffers.
    """
    if not _share_words(leaves, places) or count_with_signs(leaves, places):
        return None
    ours, theirs = grow_parts(leaves, computed), grow_parts(places, computed)
    if not ours.size or not theirs.size:
        return None
    in_order = ordered and in_runs(leaves) and in_runs(places)
    found = Matcher(ordered=in_order).run(ours, theirs)
    found.doubts = [in_their_order(doubt, ordered=in_order) for doubt in found.doubts]
    links: list[tuple[Leaf, Leaf]] = []
    said: set[str] = set()
    related = 0
    loose = counts_with_letters(leaves)
    apart: list[Counterpart] = []
    siblings: list[Counterpart] = []
    doubtful: list[Counterpart] = []
    roots = plain(ours).path, plain(theirs).path
    renamed = not in_the_targets_words(found.pairs, *roots)
    tops: dict[tuple[Path, Path], bool] = {}
    for pair in found.pairs:
        if pair.ours.children:
            continue
        exact = pair.ours.path == pair.theirs.path
        points = max(pair.points, relation(read(pair.ours.path, 0), read(pair.theirs.path, 0)))
        links += [(leaf, pair.theirs.leaves[role]) for role, leaf in pair.ours.leaves.items()]
        # A number alone is no word.
        if points > SAME_NUMBER or exact or _of_one_kind(pair):
            related += len(pair.ours.leaves)
        if points > 0 or exact:
            said.update([leaf.name for leaf in pair.ours.leaves.values()])
        unsaid = points <= 0 and not exact
        loose = loose or crossed(pair)
        # A number of its own is no layer: what it means is in its name alone.
        if (unsaid and is_bare(pair)) or half_bare(pair) or pair.points < 0:
            doubtful.append(pair)
            continue
        # One of a kind at the top, such as the head of a task, may stand for another task's.
        # What holds it at the top of either side, under what stands above everything.
        top = pair.ours.path[len(roots[0]) :][:1], pair.theirs.path[len(roots[1]) :][:1]
        if top not in tops:
            tops[top] = are_siblings_at_the_top(*top)
        if tops[top]:
            siblings.append(pair)
        elif not exact and (says_another(pair, points, *roots) or (renamed and replaces_a_word(pair))):
            apart.append(pair)
    loose = (
        loose
        or runs_back(found.pairs)
        or nested_inside_out(found.pairs)
        or counts_another_way(found.pairs)
        or exchanges_numbers(found.pairs)
    )
    open_pairs = siblings if may_be_left_over(apart, found.pairs) else [*siblings, *apart]
    if any(pair.points < 0 for pair in doubtful):
        # What could be in its place, of equal shape in the same block, is as doubtful.
        crossed_out = {(_block(pair), pair.ours.bag) for pair in doubtful if pair.points < 0}
        known = {id(pair) for pair in (*doubtful, *open_pairs)}
        rivals = [p for p in found.pairs if not p.ours.children and (_block(p), p.ours.bag) in crossed_out]
        doubtful += [pair for pair in rivals if id(pair) not in known]
    few = MOST_DOUBTFUL * sum(pair.ours.size for pair in doubtful) <= ours.size
    if few:
        open_pairs = [*open_pairs, *doubtful]
    loose = loose or not few
    if open_pairs:
        found.doubts += left_over(open_pairs)
        asked = {leaf.name for pair in open_pairs for leaf in pair.ours.leaves.values()}
        links = [link for link in links if link[0].name not in asked]
    loose = loose or (in_order and against_definition(found.pairs))
    resized = _resized(found)
    links += [(a.leaves[role], b.leaves[role]) for a, b, _ in resized for role in a.leaves]
    rest_ours = sum(p.size for p in found.ours) - sum(a.size for a, _, _ in resized)
    rest_theirs = sum(p.size for p in found.theirs) - sum(b.size for _, b, _ in resized)
    # What is only a part may be of another network: its words are no proof.
    loose = loose or bool(rest_ours or rest_theirs)
    rows = Rows(ours), Rows(theirs)
    unsure = ""
    # What stands above all of it is never compared by itself.
    if is_another_part(*roots):
        unsure = f'all of it is called "{".".join(roots[0])}" in the file and "{".".join(roots[1])}" in the target'
    elif (
        counts_from_another(found.pairs)
        or counts_inside_from_another(found.pairs)
        or not all(counts_from_the_start(pair, *rows) for pair in found.pairs)
    ):
        unsure = "the numbers of some of these begin elsewhere in the file than in the target"
    contradicted = (
        any(pair.points < 0 for pair in found.pairs if pair.ours.children or not few)
        or not monotone(found.pairs)
        or runs_against(found.pairs)
        or _tells(*roots)
        or any(_tells(pair.ours.path, pair.theirs.path) for pair in found.pairs)
        or reads_two_ways(found.pairs)
    )
    more = [
        pair for doubt in found.doubts if doubt.choices for pair in settled(doubt.choices[0], ordered=in_order) or ()
    ]
    more_related = sum(_sounds_alike(leaf.name, place.name) for leaf, place in more)
    covered = min(len(links) / ours.size, len(links) / theirs.size)
    return Worded(
        links=tuple(links),
        said=frozenset(said),
        doubts=tuple(found.doubts),
        equations=_equations(found.pairs),
        margin=found.margin,
        related=related / max(len(links), 1),
        covered=covered,
        contradicted=contradicted,
        loose=loose,
        unsure=unsure,
        ordered=in_order,
        waiting_related=(related + more_related) / max(len(links) + len(more), 1),
        waiting_covered=(len(links) + len(more)) / max(ours.size, theirs.size),
    )


def _block(pair: Counterpart) -> Path:
    """The counted module that it lies in."""
    path = pair.ours.path
    return path[: next((n for n in range(len(path) - 1, 0, -1) if path[n - 1].isdecimal()), 0)]


def _tells(ours: Path, theirs: Path) -> bool:
    """`tells_about`, without the levels that the target's have another word for: mu is its mean."""
    if not tells_about(ours, theirs):
        return False
    there = [set(words_of(level)) for level in theirs]
    kept = [x for x in ours if not (said := set(words_of(x))) or not any(said <= other for other in there)]
    return tells_about(kept, theirs)


def _sounds_alike(one: str, other: str) -> bool:
    ours, theirs = tuple(one.split(".")), tuple(other.split("."))
    return relation(read(ours[:-1], 0), read(theirs[:-1], 0)) > SAME_NUMBER


def _of_one_kind(pair: Counterpart) -> bool:
    """Whether one side has a number alone where the other says what it is: features.0 and conv_1, a convolution."""
    ours, theirs = words_of(pair.ours.path[-1]), words_of(pair.theirs.path[-1])
    weight = pair.theirs.leaves.get("weight")
    if bool(ours) is bool(theirs) or weight is None or weight.shape is None:
        return False
    kind = {1: "norm", 2: "fc"}.get(len(weight.shape), "conv")
    return kind in (ours or theirs)


def _share_words(leaves: Sequence[Leaf], places: Sequence[Leaf]) -> bool:
    """Whether half of one side's names have a word that begins like one of the other's: a quick look at both."""
    return _know(leaves, places) or _know(places, leaves)


def _know(names: Sequence[Leaf], others: Sequence[Leaf]) -> bool:
    known = {"con", "nor", "fc"}.union(*map(_beginnings, _modules(others)))
    knows = sum(count for module, count in _modules(names).items() if not known.isdisjoint(_beginnings(module)))
    return 2 * knows >= len(names)


def _modules(leaves: Sequence[Leaf]) -> Counter[str]:
    """How many tensors each module has; one at the top stands for itself."""
    parted = [leaf.name.rpartition(".") for leaf in leaves]
    return Counter([module if dot else last for module, dot, last in parted])


def _beginnings(module: str) -> set[str]:
    return {word[:3] for segment in module.split(".") for word in words_of(segment)}


def settled(choice: Choice, *, ordered: bool) -> tuple[tuple[Leaf, Leaf], ...] | None:
    """The tensors of a doubt by one of its choices; None where what lies below is in doubt again."""
    matcher = Matcher(ordered=ordered)
    for ours, theirs in choice:
        matcher.pair(ours, theirs, 0.0)
    if matcher.found.doubts or matcher.found.ours or matcher.found.theirs:
        return None
    pairs = [pair for pair in matcher.found.pairs if not pair.ours.children]
    return tuple((leaf, pair.theirs.leaves[role]) for pair in pairs for role, leaf in pair.ours.leaves.items())


def in_their_order(doubt: Doubt, *, ordered: bool) -> Doubt:
    """Of more readings than anybody reads the one that keeps the order of both sides, where there is one."""
    if len(doubt.choices) <= MOST_CHOICES:
        return doubt
    sides = [_listed(side, ordered=ordered) for side in zip(*doubt.choices[0], strict=True)]
    if None in sides:
        return doubt
    order = dict(zip(*([id(part) for part in side or ()] for side in sides), strict=True))
    kept = [choice for choice in doubt.choices if all(order[id(one)] == id(other) for one, other in choice)]
    return replace(doubt, choices=tuple(kept), of_many=True) if len(kept) == 1 else doubt


def _listed(parts: Sequence[Part], *, ordered: bool) -> list[Part] | None:
    """By the numbers of one name, else as the side lists them, where that is its own order."""
    names = {_NUMBER.sub("#", ".".join(part.path)) for part in parts}
    if len(names) == 1:
        return sorted(parts, key=lambda part: [int(n) for n in _NUMBER.findall(".".join(part.path))])
    return sorted(parts, key=lambda part: part.first) if ordered else None


def _resized(found: Mapping) -> list[tuple[Part, Part, float]]:
    """A last or first layer of another width: one module left on each side that differs in one axis of its weight."""
    like: dict[Hashable, list[tuple[int, Part]]] = {}
    for n, part in enumerate(found.theirs):
        for key in _but_one_axis(part):
            like.setdefault(key, []).append((n, part))
    candidates = []
    for one in found.ours:
        near = {n: other for key in _but_one_axis(one) for n, other in like.get(key, ())}
        for _, other in sorted(near.items()):
            if _one_axis(one, other):
                points = relation(read(one.path, 0), read(other.path, 0))
                if points >= 0:
                    candidates.append((one, other, points))
        if len(candidates) > 100:
            return []
    chosen = []
    for one, other, points in candidates:
        rivals = [x for x in candidates if (x[0] is one) != (x[1] is other)]
        if all(points - x[2] >= LEAST_MARGIN for x in rivals):
            chosen.append((one, other, points))
    return chosen


def _but_one_axis(part: Part) -> Iterator[Hashable]:
    """What must be equal for the weight's first axis, or its second, to be all that differs."""
    weight = part.leaves.get("weight")
    if weight is not None and weight.shape is not None and len(weight.shape) > 1:
        for axis in (0, 1):
            yield frozenset(part.leaves), axis, weight.shape[:axis], weight.shape[axis + 1 :]


def _one_axis(one: Part, other: Part) -> bool:
    ours, theirs = one.leaves.get("weight"), other.leaves.get("weight")
    if ours is None or theirs is None or ours.shape is None or theirs.shape is None:
        return False
    if len(ours.shape) != len(theirs.shape) or len(ours.shape) < 2:
        return False
    differing = [n for n, (a, b) in enumerate(zip(ours.shape, theirs.shape, strict=True)) if a != b]
    if differing not in ([0], [1]):
        return False
    # A bias that is as long as its matrix is wide is of a layer that lies the other way round.
    for part, weight in ((one, ours), (other, theirs)):
        bias = part.leaves.get("bias")
        if bias is not None and bias.shape and weight.shape and bias.shape != weight.shape[:1]:
            return False
    return True


def _equations(pairs: Sequence[Counterpart]) -> tuple[tuple[str, str], ...]:
    """Names of modules below what was agreed on, as the file and as the target write them, numbers as #."""
    count: dict[tuple[str, str], int] = {}
    done: dict[Path, Path] = {}
    for pair in sorted(pairs, key=lambda p: len(p.ours.path)):
        above = next((n for n in reversed(range(len(pair.ours.path))) if pair.ours.path[:n] in done), 0)
        below = len(done.get(pair.ours.path[:above], ()))
        done[pair.ours.path] = pair.theirs.path
        if pair.ours.path[above:] == pair.theirs.path[below:]:
            continue
        one = ".".join(_shown(pair.ours.path[above:], not pair.ours.children))
        other = ".".join(_shown(pair.theirs.path[below:], not pair.ours.children))
        if one != other:
            count[one, other] = count.get((one, other), 0) + pair.ours.size
    return tuple(sorted(count, key=lambda words: -count[words]))


def _shown(path: Path, is_layer: bool) -> list[str]:
    last = len(path) - 1
    return [s if is_layer and n == last else _NUMBER.sub("N", s) for n, s in enumerate(path)]


def agreed(pairs: Sequence[tuple[Leaf, Leaf]], links: Sequence[tuple[Leaf, Leaf]]) -> bool:
    """Whether another placing of the same tensors contradicts none of these."""
    goes = {leaf.name: place.name for leaf, place in pairs}
    return all(goes.get(leaf.name, place.name) == place.name for leaf, place in links)
