"""What speaks against a reading by words, though every name in it has a counterpart.

`by_words.py` finds the best reading of two trees of names. Here it is looked at once more as a whole: numbers must keep
their order, a word must be one thing in every block, and what is only left over must be little.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from inspector.keys.placing.grids import counted_alike
from inspector.keys.placing.matching import Counterpart, Doubt
from inspector.keys.placing.parts import Part
from inspector.keys.placing.replaced_words import replaced
from inspector.keys.placing.synonyms import AT_THE_TOP, EMPTY, WORDS
from inspector.keys.placing.tree import Path, exchanged
from inspector.keys.placing.words import SAME_NUMBER, all_words, are_siblings, is_no_part, read, relation, words_of

# Of so many tensors one may be in a layer that is only left over.
_LEAST_TOLD = 5
_KINDS_OF_LAYERS = frozenset({"mlp", "fc", "conv", "block"})
# Of the layers, under the target's own names: from here on its author's words are the target's.
LEAST_EXACT = 1 / 3
# What a layer is, and says nothing of which.
_OF_LAYERS = frozenset({"fc", "conv", "norm", "block", "proj", "embed", "pointwise", "mlp"})
# What comes last.
_LAST = frozenset(words_of("out_head_final_logits_softmax_generator_score"))
_NUMBER = re.compile(r"[0-9]+")
_INSIDE = re.compile(r"_[0-9]{1,4}_")
# What makes no other head of one: a language model's lm_head is another author's head.
_NOTHING_MORE = EMPTY | {"lm"}
# What a layer is built of tells no two of a kind apart: mlp_head and fc_head.
_KINDS = frozenset({"mlp", "fc", "conv", "norm", "final", "out", "proj", "layer", "block"})


def reads_two_ways(pairs: Sequence[Counterpart]) -> bool:
    """Whether one name of the file's numbered blocks is another thing in one block than in the next.

    What only one side counts is no row of alike blocks, such as the parts of a Sequential that the other side names: it
    may be what stands outermost or innermost.
    """
    return all(_differs_by_block(pairs, innermost) for innermost in (False, True))


def _differs_by_block(pairs: Sequence[Counterpart], innermost: bool) -> bool:
    """The same with the counts that only one side has taken for names. innermost: which of the file's are these."""
    read_as: dict[str, str] = {}
    zeroed: dict[str, str] = {}
    for pair in pairs:
        if pair.ours.children or not (pair.ours.path and pair.theirs.path):
            continue
        # A layer that is known by its number alone is as many things as there are numbers.
        if not (words_of(pair.ours.path[-1]) and words_of(pair.theirs.path[-1])):
            continue
        own, there = _counters(pair.ours.path), _counters(pair.theirs.path)
        more = max(0, len(own) - len(there))
        ours = _in_any_block(pair.ours.path, own[: len(own) - more] if innermost else own[more:], zeroed)
        theirs = _in_any_block(pair.theirs.path, there, zeroed)
        if read_as.setdefault(ours, theirs) != theirs:
            return True
    return False


def _counters(path: Path) -> list[int]:
    """Which segments count blocks. The number in norm1 is of its name, and so is that in conv1.norm."""
    own = len(path) - (1 if len(path) < 2 or path[-2].isdigit() else 2)
    return [n for n in range(own) if not path[n].isalpha() and _NUMBER.search(path[n])]


def _in_any_block(path: Path, counters: Sequence[int], zeroed: dict[str, str]) -> str:
    """zeroed: segments with their numbers as 0, which is added to."""
    made = list(path)
    for n in counters:
        segment = path[n]
        if segment not in zeroed:
            zeroed[segment] = _NUMBER.sub("0", segment)
        made[n] = zeroed[segment]
    return ".".join(made)


def crossed(pair: Counterpart) -> bool:
    """Whether counted levels stand the other way round, their numbers not: towers.0.units.1 as units.0.towers.1."""
    one, other = read(pair.ours.path, 0), read(pair.theirs.path, 0)
    if one.words == other.words or one.words != other.above or one.above != other.words:
        return False
    numbers = [_NUMBER.findall(".".join(part.path)) for part in (pair.ours, pair.theirs)]
    return len(numbers[0]) > 1 and numbers[0] != numbers[1][::-1]


def monotone(pairs: Sequence[Counterpart]) -> bool:
    """Whether numbers of one row of modules keep their order, also where shapes and not numbers placed them."""
    rows: dict[tuple[Path, str, Path, str], set[tuple[int, int, bool]]] = {}
    for pair in pairs:
        if pair.ours.path and pair.theirs.path:
            one, other = numbered_end(pair.ours.path[-1]), numbered_end(pair.theirs.path[-1])
            if one and other:
                key = (pair.ours.path[:-1], one[0], pair.theirs.path[:-1], other[0])
                rows.setdefault(key, set()).add((one[1], other[1], pair.by_number))
    for row in rows.values():
        if any(by_number for _, _, by_number in row):
            numbers = sorted({(ours, theirs) for ours, theirs, _ in row})
            if any(a >= b for (_, a), (_, b) in pairwise(numbers)):
                return False
    return True


def runs_against(pairs: Sequence[Counterpart]) -> bool:
    """Whether shapes turn one row of numbered modules round and numbers keep another beside it as it is counted: an FPN
    whose laterals 2 to 5 are inner_blocks 3 to 0 has its outputs the other way round, too."""
    rows: dict[tuple[Path, str, Path, str], set[tuple[int, int, bool]]] = {}
    for pair in pairs:
        one, other = _innermost(pair.ours.path), _innermost(pair.theirs.path)
        if one and other and not pair.ours.children:
            row = rows.setdefault((*one[0], *other[0]), set())
            row.add((one[1], other[1], pair.by_number))
    turned, kept = set(), set()
    for row in rows.values():
        order = [there for _, there, _ in sorted(row)]
        numbers = tuple(sorted(n for n, _, _ in row)), tuple(sorted(order))
        if len(row) > 1 and len(set(numbers[0])) == len(set(numbers[1])) == len(row):
            if order == sorted(order, reverse=True):
                turned.add(numbers)
            elif any(by_number for _, _, by_number in row) and order == sorted(order):
                kept.add(numbers)
    return bool(turned & kept)


def _innermost(path: Path) -> tuple[tuple[Path, str], int] | None:
    """((what stands around it, its name without the number), number) of the innermost segment that is numbered; what
    lies in it is part of the row's name."""
    for at in range(len(path) - 1, -1, -1):
        if (end := numbered_end(path[at])) and not (path[at] == "0" and at and numbered_end(path[at - 1])):
            return ((path[:at], f"{end[0]}.{'.'.join(path[at + 1 :])}"), end[1])
    return None


def says_another(pair: Counterpart, points: float) -> bool:
    """Whether both names say what the module is for, in words that have nothing in common: policy and value.

    What has a number on one side alone (classifier.1 and fc) is named on the other side only. Of modules at the top
    whose insides have the same names (tail.out_proj, stem.out_proj) the tops are compared. points: of the whole names.
    """
    paths = pair.ours.path, pair.theirs.path
    if len(paths[0]) > 1 and paths[0][0] != paths[1][0] and paths[0][1:] == paths[1][1:]:
        paths = paths[0][:1], paths[1][:1]
    elif points > SAME_NUMBER:
        return False
    if paths[0][-1].isdigit() is not paths[1][-1].isdigit():
        return False
    one, other = (read(path, 0) for path in paths)
    if not one.words or not other.words or relation(one, other) > SAME_NUMBER:
        return False
    # mlp1 and conv1, of one shape, are two names of a layer that is known by its number.
    if one.number and one.number == other.number and one.words | other.words <= _KINDS_OF_LAYERS:
        return False
    return not one.words & (other.words | other.above) and not other.words & (one.words | one.above)


def in_the_targets_words(pairs: Sequence[Counterpart], ours: Path, theirs: Path) -> bool:
    """Whether so many layers are called as in the target that another name is an odd one (`odd_names.py` asks).

    ours, theirs: what stands above everything.
    """
    layers = [pair for pair in pairs if not pair.ours.children]
    exact = sum(pair.ours.path[len(ours) :] == pair.theirs.path[len(theirs) :] for pair in layers)
    return exact >= LEAST_EXACT * len(layers)


def replaces_a_word(pair: Counterpart) -> bool:
    """Whether a word stands in another's place: style_proj where the target has memory_proj.

    What both end in and says only which kind of layer it is (linear, linear_layer) is no name of it.
    """
    # Of all layers of one name alike.
    return _replaces(*((*(_any_number(x) for x in path[:-1]), path[-1]) for path in (pair.ours.path, pair.theirs.path)))


def _any_number(segment: str) -> str:
    return "0" if segment.isdecimal() else segment


@lru_cache(maxsize=4096)
def _replaces(ours: Path, theirs: Path) -> bool:
    if (read(ours, 0).roles & read(theirs, 0).roles) - AT_THE_TOP:
        return False
    while len(ours) > 1 and len(theirs) > 1 and all(set(words_of(path[-1])) <= _OF_LAYERS for path in (ours, theirs)):
        ours, theirs = ours[:-1], theirs[:-1]
    said, there = all_words(ours), all_words(theirs)
    letters = _letters(said - there, there - said) | _letters(there - said, said - there)
    return replaced(ours, theirs, harmless=_OF_LAYERS | letters) is not None


def _letters(own: frozenset[str], foreign: frozenset[str]) -> frozenset[str]:
    """Letters that say nothing against the other side's words, and what they begin: r for receptance."""
    words = [word for word in foreign - _OF_LAYERS if len(word) > 1 and not is_no_part(word)]
    found: set[str] = set()
    for letter in own:
        begun = [word for word in words if word.startswith(letter)]
        if len(letter) == 1 and (begun or not words):
            found |= {letter, *begun}
    return frozenset(found)


def left_over(apart: Sequence[Counterpart]) -> list[Doubt]:
    """What has other words on both sides, as questions: one for all of a module."""
    groups: dict[tuple[Path, Path], list[Counterpart]] = {}
    for pair in apart:
        groups.setdefault(exchanged(".".join(pair.ours.path), ".".join(pair.theirs.path)), []).append(pair)
    return [
        Doubt(choices=(tuple((pair.ours, pair.theirs) for pair in group),), left_over=True) for group in groups.values()
    ]


def may_be_left_over(apart: Sequence[Counterpart], pairs: Sequence[Counterpart]) -> bool:
    """Whether what has other words on both sides may be one thing because nothing else is left for it.

    One layer of a network that the names tell of otherwise, of a shape that no other has: pi_head and action_net. More
    of it, or a smaller rest, may be another part that happens to be built alike.
    """
    if not apart:
        return True
    if _is_table_and_head(apart[0]):
        return False
    layers = [pair.ours for pair in pairs if not pair.ours.children]
    one = apart[0].ours
    alone = sum(part.bag == one.bag for part in layers) == 1
    return len(apart) == 1 and alone and _LEAST_TOLD * one.size <= sum(part.size for part in layers)


def _is_table_and_head(pair: Counterpart) -> bool:
    """Whether one side has rows to look up where the other has what comes out at last: output and src_embed."""
    one, other = all_words(pair.ours.path), all_words(pair.theirs.path)
    return ("embed" in one) is not ("embed" in other) and not _LAST.isdisjoint(one | other)


def are_siblings_at_the_top(ours: Path, theirs: Path) -> bool:
    """Whether two modules at the top of either side are one of a kind: lm_head and cls_head; rotation_head and head.

    ours, theirs: their names.
    """
    here, there = read(ours, 0), read(theirs, 0)
    one, other = here.words, there.words
    if (here.roles & there.roles) - {"head"}:
        return False
    if are_siblings(one, other):
        return not (one - other <= _KINDS or other - one <= _KINDS)
    more = one ^ other
    return (
        "head" in one & other
        and (one < other or other < one)
        and any(x not in WORDS and x not in _NOTHING_MORE for x in more)
    )


def half_bare(pair: Counterpart) -> bool:
    """Whether a layer's weight stands against a parameter of its own, and no role says that they are the same."""
    one, other = _holds_itself(pair.ours), _holds_itself(pair.theirs)
    return one is not other and not read(pair.ours.path, 0).roles & read(pair.theirs.path, 0).roles


def is_bare(pair: Counterpart) -> bool:
    """Whether it is a parameter of its own on either side, and not a layer's weight or bias."""
    return _holds_itself(pair.ours) or _holds_itself(pair.theirs)


def _holds_itself(part: Part) -> bool:
    """Whether a tensor in it has its name: a parameter, which is no layer's."""
    own = part.path[-1:]
    return any(leaf.name.endswith(own) and leaf.name.rpartition(".")[2] == own[0] for leaf in part.leaves.values())


@lru_cache(maxsize=20_000)
def numbered_end(segment: str) -> tuple[str, int] | None:
    """("norm", 1) of "norm1"; None without a number at the end."""
    found = re.fullmatch(r"(.*?)([0-9]{1,4})", segment)
    return (found[1], int(found[2])) if found else None


def against_definition(pairs: Sequence[Counterpart]) -> bool:
    """Whether parts that one side only numbers (norm1, norm2) stand there in another order than their counterparts,
    which have names, do: by convention norm1 is the attention's, and in a block that begins with its MLP it is not.

    Only for sides that are both in the order of their definition.
    """
    return any(_out_of_order(rows) for rows in (_numbered_rows(pairs, True), _numbered_rows(pairs, False)))


def _numbered_rows(pairs: Sequence[Counterpart], ours: bool) -> Iterable[list[tuple[int, int]]]:
    """Of each row of modules that one side numbers and the other names, where both stand: (one side's, the other's)."""
    rows: dict[tuple[Path, str, Path, int], list[tuple[int, int, int]]] = {}
    for pair in pairs:
        one, other = (pair.ours, pair.theirs) if ours else (pair.theirs, pair.ours)
        if one.children:
            continue
        same = {end[1] for segment in other.path if (end := numbered_end(segment)) and end[0]}
        for at, segment in enumerate(one.path):
            end = numbered_end(segment)
            if end and end[0] and end[1] not in same:
                key = (one.path[:at], end[0], one.path[at + 1 :], one.bag)
                rows.setdefault(key, []).append((end[1], one.first, other.first))
    # Where its own numbers do not run up, the order that a side lists its modules in is none.
    return [
        [(first, there) for _, first, there in row]
        for row in rows.values()
        if all(a < b for (_, a, _), (_, b, _) in pairwise(sorted(row)))
    ]


def _out_of_order(rows: Iterable[list[tuple[int, int]]]) -> bool:
    return any(a >= b for row in rows for (_, a), (_, b) in pairwise(sorted(row)))


def counts_from_another(pairs: Sequence[Counterpart]) -> bool:
    """Whether a name without a number became a number of a row (norm, norm1 as norm2, norm1), or one number of a word
    alone another (gamma_1 as gamma_2): the count of the two is not the same, and nothing tells how they differ."""
    beside = Counter((pair.ours.path[:-1], _stem_and_number(pair.ours.path[-1])[0]) for pair in pairs if pair.ours.path)
    rows: dict[tuple[Path, str, Path], list[tuple[int | None, int | None]]] = {}
    for pair in pairs:
        if pair.ours.path[-1:] != pair.theirs.path[-1:] and len(pair.ours.path) == len(pair.theirs.path):
            (one, first), (other, second) = (_stem_and_number(part.path[-1]) for part in (pair.ours, pair.theirs))
            if one and one == other and first != second:
                rows.setdefault((pair.ours.path[:-1], one, pair.theirs.path[:-1]), []).append((first, second))
    for (above, stem, _), row in rows.items():
        if beside[above, stem] > 1 and any((a is None) is not (b is None) for a, b in row):
            return True
        if beside[above, stem] == 1 and None not in row[0] and set(row[0]) != {0, 1}:
            return True
    return False


def exchanges_numbers(pairs: Sequence[Counterpart]) -> bool:
    """Whether two layers of one word have each other's numbers in the target, as their shapes want it: pointwise1 and
    pointwise2 of a block."""
    rows: dict[tuple[Path, Path, frozenset[str]], set[tuple[str, str]]] = {}
    for pair in pairs:
        if not pair.ours.children and pair.ours.path and pair.theirs.path:
            one, other = read(pair.ours.path[-1:], 0), read(pair.theirs.path[-1:], 0)
            if one.words and one.words == other.words and one.number and other.number and one.number != other.number:
                row = rows.setdefault((pair.ours.path[:-1], pair.theirs.path[:-1], one.words), set())
                row.add((one.number, other.number))
    return any((b, a) in row for row in rows.values() for a, b in row)


def counts_inside_from_another(pairs: Sequence[Counterpart]) -> bool:
    """Whether numbers within the segments of names (blocks_7_attn) are others than the target's and begin neither at 0
    nor at 1, or leave some out: the blocks of a deeper network."""
    rows: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for pair in pairs:
        if not pair.ours.children and any(_INSIDE.search(segment) for segment in pair.ours.path):
            ours, theirs = ".".join(pair.ours.path), ".".join(pair.theirs.path)
            rows.setdefault((_NUMBER.sub("#", ours), _NUMBER.sub("#", theirs)), []).append((ours, theirs))
    for row in rows.values():
        own, there = (zip(*(map(int, _NUMBER.findall(pair[n])) for pair in row), strict=True) for n in (0, 1))
        for numbers, others in zip(map(set, own), map(set, there), strict=False):
            if numbers != others and (min(numbers) > 1 or max(numbers) - min(numbers) >= len(numbers)):
                return True
    return False


def _stem_and_number(segment: str) -> tuple[str, int | None]:
    end = numbered_end(segment)
    return (end[0].rstrip("_"), end[1]) if end else (segment, None)


def counts_another_way(pairs: Sequence[Counterpart]) -> bool:
    """Whether modules of one shape that two numbers count could be counted the other way round: layers.0.1 as
    heads.1.layers.0 or as heads.0.layers.1."""
    rows: dict[tuple[str, str, int], list[Counterpart]] = {}
    for pair in pairs:
        own = (numbered_end(part.path[-1]) for part in (pair.ours, pair.theirs) if part.path)
        # A number in a layer's own name (bn1) is the innermost on both sides.
        if not pair.ours.children and not any(end and end[0] for end in own):
            names = (_NUMBER.sub("#", ".".join(part.path)) for part in (pair.ours, pair.theirs))
            rows.setdefault((*names, pair.ours.bag), []).append(pair)  # type: ignore[arg-type]
    for row in rows.values():
        if len(row) < 4:
            continue
        row.sort(key=lambda pair: _counts_of(pair.ours))
        likely = counted_alike([pair.ours for pair in row], [pair.theirs for pair in row])
        if likely is None or any(one is not pair.theirs for one, pair in zip(likely, row, strict=True)):
            return True
    return False


def _counts_of(part: Part) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(".".join(part.path)))
