"""How two names of a module are compared: what each says the module is for, and which words they share.

Nothing here knows a network. A path is read into words (`synonyms.py` says which mean the same), into the roles that
its end may have, and into numbers; `relation` says in points how far two such readings can be names of one part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from inspector.checkpoint.level_words import ASIDE_WORDS, QUANTITY_WORDS
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.keys.placing.synonyms import (
    AT_THE_TOP,
    BESIDE,
    EMPTY,
    MOST_SEGMENTS,
    OPPOSITES,
    ROLES,
    WORDS,
)
from inspector.keys.placing.tree import Path

# In place of a number that differs among the tensors of one kind.
ANY = "#"
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_KINDS = re.compile(r"(?<=[a-z_])[123#]d(?![a-z0-9])", re.IGNORECASE)
# Points. Set on half of keybench's networks and measured on the other half, by the kinds called "words".
SAME_NAME = 3.0
SHARED_WORDS = 2.0
ABOVE = 1.0
SAME_ROLE = 2.0
MAYBE_SAME_ROLE = 1.0
SAME_NUMBER = 0.75
BESIDE_EACH_OTHER = 1.25
INITIALS = 1.25
CONTRADICTION = -4.0

# Fewer letters are no beginning of a word, and what is a word itself cuts no other short.
_SHORTEST_CUT = 3
# From here on a letter makes no other word.
_LONG_ENOUGH = 6
_KNOWN = frozenset(WORDS.values())
_VOCABULARY = frozenset(WORDS).union(*(words for sides in OPPOSITES for words in sides))
_SHORTEST_PART = 2
_INSIDE = {role.id: role.inside for role in ROLES}
# Roles of single layers within a block.
OF_ONE_LAYER = frozenset(role.id for role in ROLES if role.inside)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a path says. words: of its last segment that has any; above: of those before; number: the last one.

    roles: what its end may be for, empty where no row of the table has it.
    """

    words: frozenset[str]
    above: frozenset[str]
    roles: frozenset[str]
    number: str


# Said of a kind of layer beside others that are counted, the first of them: conv_init, bn_init of Flax's ResNets. Said
# of a layer it is another moment: fc2_init.
_FIRST = frozenset({"init", "initial"})
_KINDS_OF_LAYERS = frozenset({"conv", "norm"})


@lru_cache(maxsize=20_000)
def words_of(segment: str) -> tuple[str, ...]:
    """'self_attn' -> ('attn',), 'LayerNorm' -> ('norm',): words of one meaning as one word, without numbers."""
    return tuple(word for word in pieces_of(segment) if not word.isdigit())


@lru_cache(maxsize=20_000)
def pieces_of(segment: str) -> tuple[str, ...]:
    """The same with the numbers."""
    pieces = [word for piece in _after_capitals(_PIECES.findall(_KINDS.sub("", segment))) for word in _parted(piece)]
    found: list[str] = []
    i = 0
    while i < len(pieces):
        pair = "".join(pieces[i : i + 2])
        # A to_k is a key, and no token.
        if i + 1 < len(pieces) and pair in WORDS and not pair.isdigit() and pieces[i] != "to":
            found.append(WORDS[pair])
            i += 2
            continue
        found.append(WORDS.get(pieces[i], pieces[i]))
        i += 1
    return tuple(found)


def _after_capitals(pieces: list[str]) -> list[str]:
    """In small letters: HRconv is HR and conv, and no word Rconv."""
    made: list[str] = []
    for piece in pieces:
        own = piece[1:]
        if made and made[-1].isupper() and piece[0].isupper() and own in WORDS and piece.lower() not in WORDS:
            made[-1] += piece[0]
            piece = own
        made.append(piece)
    return [piece.lower() for piece in made]


def _parted(word: str) -> tuple[str, ...]:
    """Two known words that are written as one: upconv, outproj."""
    if len(word) < 2 * _SHORTEST_PART or word in _VOCABULARY:
        return (word,)
    for at in range(len(word) - _SHORTEST_PART, _SHORTEST_PART - 1, -1):
        if word[:at] in _VOCABULARY and word[at:] in _VOCABULARY:
            return word[:at], word[at:]
    return (word,)


# A level called q1 that holds layers is one of reinforcement learning's two critics; a layer of that name is a query.
_CRITIC = re.compile(r"q(f|_?net)?_?[0-9]")
_CRITIC_LEVEL = ("critic",)


def all_words(path: Path) -> frozenset[str]:
    """The words of all levels."""
    found: set[str] = set()
    for at, segment in enumerate(path):
        found.update(_CRITIC_LEVEL if segment[:1] == "q" and _is_critic(path, at) else words_of(segment))
    return frozenset(found)


def _is_critic(path: Path, at: int) -> bool:
    return at < len(path) - 1 and _CRITIC.fullmatch(path[at]) is not None


def _squashed(segment: str) -> str:
    """One spelling for all of a segment's: 'ln_1', 'layer_norm1' and 'norm1' are 'norm1'."""
    return "".join(pieces_of(segment)) + (ANY if ANY in segment else "")


_BY_NAME: dict[str, frozenset[str]] = {}
for _role in ROLES:
    for _name in _role.names.split():
        _end = ".".join(_squashed(segment) for segment in _name.split("."))
        _BY_NAME[_end] = _BY_NAME.get(_end, frozenset()) | {_role.id}


@lru_cache(maxsize=20_000)
def read(path: Path, below: int) -> Reading:
    """What a path says of its module. below: how many of its segments the two sides have agreed on already."""
    words: frozenset[str] = frozenset()
    above: list[str] = []
    for at in range(len(path) - 1, below - 1, -1):
        own = frozenset(_CRITIC_LEVEL if path[at][:1] == "q" and _is_critic(path, at) else words_of(path[at])) - EMPTY
        if own and not words:
            words = own
        else:
            above += own
    numbers = re.findall(r"[0-9]+", path[-1]) if path else []
    return Reading(words, frozenset(above), _roles(path), numbers[-1] if numbers else "")


def _roles(path: Path) -> frozenset[str]:
    # What only holds a layer, such as a wrapper's .module, has the role of what it holds.
    while (
        len(path) > 1
        and (said := words_of(path[-1]))
        and EMPTY.issuperset(said)
        and _squashed(path[-1]) not in _BY_NAME
    ):
        path = path[:-1]
    plain = [_squashed(segment) for segment in path]
    for count in range(min(MOST_SEGMENTS, len(plain)), 0, -1):
        found = _BY_NAME.get(".".join(plain[-count:]))
        if found is not None:
            before = path[:-count]
            return _in_place(found, before, path)
    return frozenset()


def _in_place(found: frozenset[str], before: Path, path: Path) -> frozenset[str]:
    """The roles that a name can have where it stands."""
    if any(segment == ANY or segment.isdigit() for segment in before):
        found = found - AT_THE_TOP
    inside = ""
    for segment in before:
        for word in words_of(segment):
            inside = word if word in ("attn", "mlp") else inside
    if inside:
        fitting = frozenset(role for role in found if _INSIDE[role] in ("", inside))
        return fitting or found
    return found


@lru_cache(maxsize=50_000)
def relation(one: Reading, other: Reading) -> float:
    """Points for being two names of one part: 0 where neither says anything about it, below 0 where it is excluded."""
    ours, theirs = one.words | one.above, other.words | other.above
    if (one.words - theirs | other.words - ours) & QUANTITY_WORDS or _aside(one, other):
        return CONTRADICTION
    score = 0.0
    if one.words and (one.words == other.words or ours == theirs):
        score += SAME_NAME if one.above == other.above else SAME_NAME - 0.25
    else:
        score += SHARED_WORDS * share_of(one.words, other.words)
        score += ABOVE * share_of(one.above | one.words, other.above | other.words)
    if one.roles and other.roles:
        common = one.roles & other.roles
        if not common:
            return CONTRADICTION
        sure = len(one.roles) == 1 or len(other.roles) == 1
        score += SAME_ROLE if sure and len(one.roles | other.roles) <= 2 else MAYBE_SAME_ROLE
    elif any(opposed(one.words | one.above, other.words | other.above)):
        return CONTRADICTION
    score += BESIDE_EACH_OTHER * are_beside(one.words | one.above, other.words | other.above)
    score += INITIALS * _are_initials(one.words, other.words)
    if one.number and one.number == other.number:
        score += SAME_NUMBER
    return score


def _are_initials(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether the letters of one side begin the words that only the other has: s and t of scale_net and translate_net.

    a, b and c count.
    """
    for ours, theirs in ((one - other, other - one), (other - one, one - other)):
        letters = [x for x in ours if len(x) == 1]
        words = [x for x in theirs if len(x) >= _SHORTEST_CUT]
        if letters and all(x not in "abc" and any(word.startswith(x) for word in words) for x in letters):
            return True
    return False


def _aside(one: Reading, other: Reading) -> bool:
    """Whether one is called as the other is, with a word more that makes it something beside it: fc2_momentum, fc2."""
    # A level of its own says as much as a word: update_bias is update.bias.
    more = one.words - other.words - other.above | other.words - one.words - one.above
    common = one.words & other.words
    if more <= _FIRST and common <= _KINDS_OF_LAYERS:
        named, counted = (one, other) if one.words & _FIRST else (other, one)
        if counted.number and not named.number:
            return False
    return (
        bool(more and common)
        and more <= ASIDE_WORDS
        and not are_beside(one.words | one.above, other.words | other.above)
    )


def share_of(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that both have; a beginning of a word stands for it ("adv" for "advantage")."""
    if not one or not other:
        return 0.0
    common = one & other
    cut = sum(any(_cut(a, b) for b in other - common) for a in one - common)
    return (len(common) + cut) / (len(one | other) - cut)


def _cut(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _SHORTEST_CUT and short not in _KNOWN and long.startswith(short)


def are_beside(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether both speak of one side of a network, in words that are not the same."""
    for sides in BESIDE:
        ours = {i for i, words in enumerate(sides) if one & words}
        theirs = {i for i, words in enumerate(sides) if other & words}
        if len(ours) == 1 and ours == theirs and (len(sides) > 1 or one & sides[0] != other & sides[0]):
            return True
    return False


def opposed(one: frozenset[str], other: frozenset[str]) -> Iterator[bool]:
    for sides in OPPOSITES:
        ours = {i for i, words in enumerate(sides) if one & words}
        theirs = {i for i, words in enumerate(sides) if other & words}
        if ours and theirs and not ours & theirs:
            yield True


# What a whole network is called, by its kind or by who wrote it, and what all of its blocks are: the same network in
# other hands may have any of them.
_OF_THE_WHOLE = (
    "input_blocks output_blocks middle_block resnets layers stages units cells attentions",
    "backbone trunk body base core stem features extractor transformer cnn convnet visual",
    "bert roberta distilbert electra deberta vit deit swin beit clip resnet resnext regnet densenet vgg inception",
    "mobilenet efficientnet convnext unet gpt llama mistral qwen opt t5 wav2vec hubert whisper mlp mixer ddpm",
    "diffusion",
)
NO_PART = EMPTY | {word for name in (*WRAPPER_SEGMENTS, *" ".join(_OF_THE_WHOLE).split()) for word in words_of(name)}


def is_no_part(word: str) -> bool:
    """Whether a level of this word says that a whole network is meant, or nothing."""
    return word in EMPTY or (len(word) > 1 and word in NO_PART and word not in ("attn", "mlp"))


def is_spelled_like(one: str, other: str) -> bool:
    """Whether two words are one with a letter more, less or another, two exchanged, or cut short: mutihead, multihaed,
    adv for advantage."""
    short, long = sorted((one, other), key=len)
    if _cut(one, other):
        return True
    if len(short) < _LONG_ENOUGH or len(long) - len(short) > 1:
        return False
    at = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    # One letter is another, or two have changed places.
    turned = short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    return short[at + 1 :] == long[at + 1 :] or turned


# Roles whose one layer may be called by its kind alone, and that kind.
_ONE_OF_ITS_KIND = {"last norm": ("norm",), "word embedding": ("embed",)}


def is_called_by_its_kind(ours: Path, theirs: Path) -> bool:
    """Whether the target calls norm what the file calls final_norm, or embedding what is word_embedding there, at the
    top of a network."""
    if not ours or not theirs or len(words_of(theirs[-1])) != 1 or any(map(str.isdecimal, (*ours, *theirs))):
        return False
    above = frozenset().union(*(words_of(segment) for path in (ours, theirs) for segment in path[:-1]))
    kinds = [_ONE_OF_ITS_KIND.get(role) for role in read(ours, 0).roles]
    return above <= EMPTY and words_of(theirs[-1]) in kinds


# What names mean only beside each other: Meta's w1 and w3 are gate and up; Qwen's w1 and EVA's w1 beside w2 differ.
_BESIDE: dict[frozenset[str], dict[str, str]] = {
    frozenset(map(_squashed, pair)): dict(zip(map(_squashed, pair), ("gate", "up"), strict=True))
    for pair in (
        ("w1", "w3"),
        ("linear_1", "linear_3"),
        ("c_fc_0", "c_fc_1"),
        ("c_fc2", "c_fc"),
        ("fc1_g", "fc1_x"),
        ("wi_0", "wi_1"),
        ("gate_proj", "up_proj"),
        ("gate", "up"),
        ("ffn_gate", "ffn_up"),
    )
}


def siblings_roles(ends: list[str]) -> list[str]:
    """The role of each of these modules of one shape, "" where they have none together."""
    plain = [_squashed(end) for end in ends]
    known = _BESIDE.get(frozenset(plain), {}) if len(plain) == 2 else {}
    return [known.get(end, "") for end in plain]


_TOLD_BESIDE = frozenset().union(*_BESIDE)


def is_told_beside_others(end: str) -> bool:
    """Whether a module's name means something only beside its siblings' (`siblings_roles`)."""
    return _squashed(end) in _TOLD_BESIDE


def trapped(one: str, other: str) -> bool:
    """Whether the numbers of two kinds say nothing of each other: w1, w2, w3 are counted in three ways."""
    return (one != other and "w#" in {_squashed(one), _squashed(other)}) or one == other == "w#"
