"""What speaks against a reading by words, though every name in it has a counterpart.

`by_words.py` finds the best reading of two trees of names. Here it is looked at once more as a whole: a word must be
one thing in every block, and what is only left over must be little. What numbers say against it is in `miscounted.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from inspector.keys.placing.another_part import are_siblings, are_two_places, tells_apart
from inspector.keys.placing.matching import Counterpart, Doubt
from inspector.keys.placing.parts import Part
from inspector.keys.placing.replaced_words import replaced
from inspector.keys.placing.synonyms import AT_THE_TOP, EMPTY, WORDS
from inspector.keys.placing.tree import Path, before_shared_end, exchanged
from inspector.keys.placing.words import SAME_NUMBER, all_words, is_no_part, read, relation, words_of

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


def says_another(pair: Counterpart, points: float, ours: Path = (), theirs: Path = ()) -> bool:
    """Whether both names say what the module is for, in words that have nothing in common: policy and value.

    What has a number on one side alone (classifier.1 and fc) is named on the other side only. Of modules at the top
    whose insides have the same names (tail.out_proj, stem.out_proj) the tops are compared. points: of the whole names.
    ours, theirs: what stands above everything.
    """
    paths = pair.ours.path[len(ours) :] or pair.ours.path, pair.theirs.path[len(theirs) :] or pair.theirs.path
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
    tops = before_shared_end((ours, theirs))
    named = len(tops[0]) < len(ours) and not any(map(str.isdecimal, (*tops[0], *tops[1])))
    if tells_apart(*tops) or (named and are_two_places(*map(all_words, tops))):
        return True
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
