"""A word of the file's that its place's name has not: `unused.fc2`, `fc2_dummy` and `layersReversed.0` read as fc2 and
layers.0.

Whatever rule took the word off, shapes fit: whoever writes it may mean the same part under a longer name, or another
one that stands beside it, is from another time, or is counted from the other end. No list of such words is ever whole,
so it is turned round: words that say nothing of a part (kinds of layers, names of whole networks, words of the target's
own, what all names have around them) are no doubt, and all others are asked about, once for each word.

The same of a few words that the target's name has and the file's has not, where they say that other numbers are
meant: `fc` for `fc_transposed`, `experts.0` for `shared_expert`.

Names that are another's altogether, with other words on both sides, are looked at elsewhere (`by_words.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from inspector.checkpoint.level_words import ASIDE_WORDS, NO_WRAPPERS, OTHERWISE
from inspector.checkpoint.name_forms import shared_levels, substituted
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.keys.placing.another_part import tells_apart
from inspector.keys.placing.doubtful import SAME_OR_OUT, decide
from inspector.keys.placing.hidden_words import NUMBER_WORDS
from inspector.keys.placing.joined_levels import in_one_form
from inspector.keys.placing.kinds import shown
from inspector.keys.placing.replaced_words import by_a_letter, replaced
from inspector.keys.placing.roles import NORM_NAME, is_counter, roles_of
from inspector.keys.placing.synonyms import EMPTY
from inspector.keys.placing.tree import Leaf, Path
from inspector.keys.placing.words import (
    all_words,
    is_called_by_its_kind,
    is_no_part,
    is_spelled_like,
    pieces_of,
    read,
    words_of,
)
from inspector.keys.report import Ambiguity, Evidence
from inspector.keys.rules.entry import Link, Questions
from inspector.keys.rules.same_shape import WITHOUT_NAMES
from inspector.units import counted

# What a layer is, and not which.
_KINDS = frozenset(words_of("norm_fc_conv_block_proj_embed_mlp_attn_rnn_pointwise"))
# What code puts around a part or says of how it is built, which tells no part from another.
_BUILT = """
    my our own custom outer wrapped wrapper parametrizations table kernel variable batch
    layer double maxpool resolution volume map maps branch branches list seq sequential sequence group main matrix
    factor embedder intermediate stem out in input submodule extractor neck multihead hidden num level feature weight
    weights bias biases original default modules save tuner timm torch jax hf small medium large tiny huge mini
    big basic simple standard type parameter core trf mel clue sample samples token word sublayer sublayers
"""
# What transformers' models call their network, beside those that `is_no_part` knows.
_NETWORKS = """
    albert bart bigbird blip bloom camembert codegen detr dinov2 ernie esm falcon gemma gptj layoutlm longformer lxmert
    mamba mbart mixtral mpnet mpt neox olmo pegasus phi reformer rembert rwkv segformer splinter swinv2 trocr unispeech
    videomae vilt wavlm xglm xlm xlnet yolos rrdb gat gcn gin gnn sage gmf
"""
_IDLE = frozenset(word for piece in f"{_BUILT} {_NETWORKS}".split() for word in words_of(piece))
# Parts that a network may be named after; in one that has others beside it they tell two apart.
_PARTS = frozenset(words_of("encoder_decoder_text_image_head_cls"))
_SAYS_NO_PART = (_KINDS | _IDLE | EMPTY) - {"in", "out"}
_ALL_OF_ATTENTION = frozenset({"query", "key", "value"})
# In no place do they say nothing.
_ALWAYS = frozenset(word for said in NO_WRAPPERS for word in words_of(said))
_ORDINALS = frozenset(word for row in NUMBER_WORDS for piece in row for word in words_of(piece))
# Also init: Flax's conv_init is the first of a ResNet's.
_ORDINALS |= frozenset(words_of("init_first_mid_last_early_late_bottom_center_top_primary_secondary_tertiary"))
# A transformer's pos_ffn works at every position by itself, and is its one MLP.
_POSITIONWISE = frozenset({"pos", "mlp"})
# Kinds of layers that are often misspelt.
_LONG_KINDS = ("layernorm", "batchnorm", "convolution", "attention", "embedding", "projection")
_LONG = 7
# Letters and what is cut to two say too little.
_SHORT = 2
# Of the first layer, which is called so for being it, and of MobileNet's blocks.
_FIRST_LAYERS = frozenset(words_of("conv_norm_block_embed_proj_stem"))
_BEGINNING = frozenset(words_of("init_initial"))
# What says the same as a word of the target's in another one.
_SAYS_SO = {
    row.split()[0]: frozenset(row.split()[1:])
    for row in (
        "reversed backward",
        "transposed deconv up transpose tr",
        "inverted block mb mbconv residual",
        "random rand rnd",
        "expert moe mixture",
    )
}
_EXPERT = "expert"
_NUMBER = re.compile(r"[0-9]+")
_SEPARATORS = re.compile(r"[^0-9A-Za-z_]+")
_JOINED = re.compile(r"(.+)_(?:weight|bias)")


@dataclass(frozen=True, slots=True)
class _Added:
    """A segment of the file's that says more, and which words of it do. place: what the target says instead, if any."""

    segment: str
    words: frozenset[str]
    place: str = ""


def settle_added_words(links: Sequence[Link], questions: Questions) -> tuple[list[Link], list[Leaf]]:
    """(links without doubt or confirmed, tensors held until the user has answered)."""
    if all(link.source.name == link.target.name for link in links):
        return list(links), []
    # What the target's names have around them as well is no wrapper.
    levels = (
        len(shared_levels([leaf.name for leaf in side]))
        for side in zip(*((x.source, x.target) for x in links), strict=True)
    )
    around = max(0, next(levels) - next(levels))
    answered = answered_words(questions)
    mixed = "mixture" in questions.used or any(question.id.startswith("mixture") for question in questions.unanswered)
    known: dict[tuple[str, str], tuple[_Added, ...]] = {}
    groups: dict[tuple[frozenset[str], str], list[tuple[Link, _Added]]] = {}
    sides = [link.source for link in links], [link.target for link in links]
    plain: dict[str, set[frozenset[str]]] = {}
    found: list[tuple[Link, str, _Added]] = []
    forms = (substituted(_NUMBER, "0", [leaf.name for leaf in side]) for side in sides)
    for link, ours, theirs, form in zip(links, *map(roles_of, sides), zip(*forms, strict=True), strict=True):
        # What order alone brought together has no name to go by, and its own consent.
        if is_counter(link.source) or link.evidence is Evidence.CHOSEN or _is_by_order(link):
            continue
        if form not in known:
            pair = in_one_form(_path(link.source, ours is not None), _path(link.target, theirs is not None))
            known[form] = tuple(_added(*pair, around, len(pair[0]) - _is_role_alone(link, *pair), mixed=mixed))
        plain.setdefault(form[1], set()).add(frozenset().union(*(one.words for one in known[form])))
        found += [(link, form[1], one) for one in known[form] if not one.words <= answered]
    for link, place, one in found:
        # A network's own part: all layers of the same place are in it.
        if one.words <= _PARTS and all(one.words <= words for words in plain[place]):
            continue
        groups.setdefault((one.words, one.place), []).append((link, one))
    kept: list[Link] = list(links)
    held: list[Leaf] = []
    for group in groups.values():
        doubted = list({link.source.name: link for link, _ in group}.values())
        there = {link.source.name for link in kept}
        doubted = [link for link in doubted if link.source.name in there]
        if doubted:
            segment = _NUMBER.sub("N", group[0][1].segment)
            question = _question(segment, group[0][1].place, doubted)
            kept = decide(questions.ask(question, place=segment), doubted, kept, held)
    return kept, held


def _is_by_order(link: Link) -> bool:
    return any(move.rule in WITHOUT_NAMES for move in link.moves)


def answered_words(questions: Questions) -> frozenset[str]:
    """The words that the user has been asked about and has answered, or has answered with, whatever the question."""
    texts = [questions.answers[key] for key in questions.used]
    for key in questions.asked:
        ident, _, place = key.partition(":")
        if not questions.used.isdisjoint({ident, key}):
            texts.append(place)
    return frozenset().union(*(all_words(tuple(_SEPARATORS.split(text))) for text in texts))


def _question(segment: str, place: str, doubted: Sequence[Link]) -> Ambiguity:
    first, one = doubted[0], len(doubted) == 1
    beside = f'where the target has "{place}"' if place else "which says more than the target's"
    return Ambiguity(
        id="added-word",
        question=(
            f'{counted(len(doubted), "tensor")} {"has" if one else "have"} "{segment}" in the name, {beside}, '
            f"{first.source.name} as {shown(first.target)} first. It may be the same part under another "
            "name, or another one of equal shape: from another time, for another purpose, or counted from the other "
            f"end. {'Is it' if one else 'Are they'} the same?"
        ),
        options=SAME_OR_OUT,
    )


def _path(leaf: Leaf, has_role: bool) -> Path:
    """The name's levels without what only says weight or bias; of `fc.pinv_weight` fc and pinv."""
    *above, last = leaf.name.split(".")
    joined = _JOINED.fullmatch(last)
    if joined:
        return (*above, joined[1])
    of_norm = last == "scale" and above and NORM_NAME.search(above[-1])
    return tuple(above) if has_role or of_norm or last in ("weight", "bias") else (*above, last)


def _is_role_alone(link: Link, ours: Path, theirs: Path) -> bool:
    """Whether the file's path ends in what the target has weight or bias for: ln.scale for ln.weight."""
    return ours[-1:] == _last(link.source) and theirs[-1:] != _last(link.target)


def _last(leaf: Leaf) -> Path:
    return (leaf.name.rpartition(".")[2],)


def _added(ours: Path, theirs: Path, around: int, above: int, *, mixed: bool) -> Iterator[_Added]:
    """The segments of the file's name that say more than its place's, which says nothing else instead.

    around: how many levels all names have before them. above: how many stand above the tensor's own name. mixed:
    whether it has been asked if the file's sets are one network.
    """
    if ours == theirs:
        return
    yield from _on_the_other_side(ours, theirs)
    there, said = _words(theirs), _words(ours)
    instead = {x for x in there - said - _KINDS if not any(is_spelled_like(x, other) for other in said)}
    roles = read(ours, 0).roles & read(theirs, 0).roles
    same_role = bool(roles) or is_called_by_its_kind(ours, theirs)
    longer = _levels(ours) > _levels(theirs)
    # Where the target counts, any name may stand: dark3 as 2.
    one_more = longer and len(ours) > len(theirs)
    for n, segment in enumerate(ours):
        if segment in WRAPPER_SEGMENTS or segment in theirs or (same_role and n == len(ours) - 1):
            continue
        # A role's name may have two levels: patch_embeddings.projection is conv_proj.
        if roles & (read(ours[n:], 0).roles - read(ours[n + 1 :], 0).roles):
            continue
        own = frozenset(words_of(segment))
        if own >= _POSITIONWISE:
            own -= {"pos"}
        more = frozenset(word for word in own - there - EMPTY if is_telling(word, there))
        # A word that stands beside one of the target's, or a level that the target has not.
        beside = [other for other in theirs if words_of(other) and own.issuperset(words_of(other))]
        glued = bool(beside)
        if not more or _counts(segment, more, beside):
            continue
        always = more & _ALWAYS
        # Around all names a letter is part of the network's own name: w2v_encoder.
        if n < around and not always and not (glued and any(word in segment.lower() for word in more)):
            continue
        # What lies beside each other under two wrappers is a mixture, and asked about as one.
        if n == around and mixed and not glued:
            continue
        below = ours[n + 1 :]
        # from_end_0 in a list whose members the target only counts.
        counted_too = theirs[n : n + 1] != () and theirs[n].isdecimal() and n > 0 and ours[n - 1] == theirs[n - 1]
        kind_alone = bool(below) and n < len(theirs) and below == theirs[n + 1 :] and _says_its_kind(theirs[n])
        if always or counted_too or (not instead and (glued or kind_alone or own & there or (one_more and n < above))):
            yield _Added(segment, more)
    if not (instead or same_role or longer) and ours and theirs and frozenset(words_of(theirs[-1])) <= _KINDS:
        # fc1, which says only what it is, under a name that says another thing: gate_noise.
        own = frozenset(words_of(ours[-1]))
        if own.isdisjoint(there) and (more := frozenset(word for word in own if is_telling(word, there))):
            yield _Added(ours[-1], more, theirs[-1])
            return
    order = _other_order(ours, theirs)
    if order is not None:
        yield order
    other = _above(ours[around:], theirs)
    if other is not None:
        more = frozenset(word for word in said - there if is_telling(word, there))
        paths = [tuple(path.split(".")) for path in other]
        if not more and (by_a_letter(*paths) or tells_apart(*paths)):
            more = frozenset(words_of(other[0]))
        if more:
            yield _Added(other[0], more, other[1])


def _on_the_other_side(ours: Path, theirs: Path) -> Iterator[_Added]:
    """What the target's name says of its numbers and the file's does not: transposed, random, of one expert."""
    said = _words(ours)
    for n, segment in enumerate(theirs):
        words = frozenset(words_of(segment))
        more = words & OTHERWISE
        if words & _FIRST_LAYERS:
            more -= _BEGINNING
        if _EXPERT in words:
            # The expert that every token goes through stands beside those that are counted.
            more |= {_EXPERT} | words & {"shared"}
        own = frozenset(word for word in more - said if not any(_says_so(word, other) for other in said))
        if own and ours:
            yield _Added(ours[min(n, len(ours) - 1)], own, segment)


def _says_so(word: str, other: str) -> bool:
    alike = len(other) == 1 and word.startswith(other)
    return alike or other in _SAYS_SO.get(word, ()) or is_spelled_like(word, other)


def _says_its_kind(segment: str) -> bool:
    """Whether a level says of what kind its layers are, and nothing else: convs."""
    said = words_of(segment)
    return bool(said) and _KINDS.issuperset(said)


def _other_order(ours: Path, theirs: Path) -> _Added | None:
    """What names the parts of one tensor in another order than the target's: logvar_mu for mu_logvar."""
    said = [word for segment in ours for word in _in_one(segment)]
    for segment in theirs:
        parts = _in_one(segment)
        there = tuple(word for word in said if word in parts)
        # All three have a question with their orders (`fused_order.py`).
        if set(parts) != _ALL_OF_ATTENTION and len(parts) > 1 and there != parts and sorted(there) == sorted(parts):
            own = next(one for one in ours if not set(parts).isdisjoint(_in_one(one)))
            return _Added(own, frozenset(parts), segment)
    for one, other in product(ours, theirs):
        if one != other and any(_are_turned(*pair) for pair in product(words_of(one), words_of(other))):
            return _Added(one, frozenset(words_of(one)), other)
    return None


def _are_turned(one: str, other: str) -> bool:
    """Whether two words are the same few letters in another order: xz and zx."""
    return 1 < len(one) == len(other) <= 3 and one != other and sorted(one) == sorted(other) and set(one) != set("qkv")


def _in_one(segment: str) -> tuple[str, ...]:
    """What a segment names besides kinds of layers, in its order; kv is key and value."""
    words: list[str] = []
    for word in words_of(segment):
        letters = [words_of(letter)[0] for letter in word] if 1 < len(word) <= 3 and set(word) <= set("qkv") else [word]
        words += letters
    return tuple(word for word in words if word not in _SAYS_NO_PART)


def _counts(segment: str, words: frozenset[str], theirs: Sequence[str]) -> bool:
    """Whether the words stand where the target has a number: conv_second for conv2."""
    return words <= _ORDINALS and not _NUMBER.search(segment) and any(map(_NUMBER.search, theirs))


def _above(ours: Path, theirs: Path) -> tuple[str, str] | None:
    """What the two names say in each other's place above an end that means the same on both sides."""
    one, other = ours, theirs
    while one and other and _agree(one, other):
        one, other = one[:-1], other[:-1]
    if one == ours:
        return None
    return replaced(one, other, harmless=_KINDS | _IDLE)


def _agree(one: Path, other: Path) -> bool:
    """Whether two paths have ends of one meaning."""
    alike = pieces_of(one[-1]) == pieces_of(other[-1])
    return alike or bool(read(one, 0).roles & read(other, 0).roles)


def is_telling(word: str, there: Collection[str]) -> bool:
    """Whether a word that the other side has not may tell a part from another."""
    if len(word) <= _SHORT and word not in ASIDE_WORDS:
        return False
    # A letter of the target's may be its beginning: t for translate_net.
    if word not in _ALWAYS and any(len(other) == 1 and word.startswith(other) for other in there):
        return False
    # Also of several: bns.
    if any(one in there or one in _KINDS or one in _IDLE or is_no_part(one) for one in (word, *_singular(word))):
        return False
    known = (*there, *_LONG_KINDS) if len(word) >= _LONG else there
    return not any(is_spelled_like(word, other) for other in known)


def _singular(word: str) -> tuple[str, ...]:
    return words_of(word[:-1]) if word.endswith("s") else ()


def _words(path: Path) -> frozenset[str]:
    return all_words(path) - EMPTY


def _levels(path: Path) -> int:
    return sum(not segment.isdecimal() for segment in path)
