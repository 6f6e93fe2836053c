"""Whether two names are of two parts that stand beside each other, though words and shapes would let one be the other.

A table of words of one meaning (`synonyms.py`) says what two authors may mean alike; words that say nothing in most
names (self, main, h, numbers) tell two apart only beside each other: lin_self and lin_neigh, h_to_4h and 4h_to_h.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from inspector.keys.placing.synonyms import EMPTY, PARTS
from inspector.keys.placing.tree import Path
from inspector.keys.placing.words import (
    NO_PART,
    all_words,
    are_beside,
    is_no_part,
    opposed,
    read,
    share_of,
    words_of,
)

# Where in a network a part stands. backbone, features, trunk and body are one word.
_PLACES = tuple(frozenset(words_of(words)) for words in ("stem_embed", "backbone", "neck", "head_output"))
_BODY = 1
# A U-Net's halves are its input blocks and output blocks.
_HALVES = frozenset(words_of("blocks"))
# What a part is built of, where its name says nothing else.
_BUILT_OF = tuple(frozenset(words_of(word)) for word in ("conv", "attn", "mlp", "rnn", "norm"))
# Words that say nothing but where the other name has one of these: of graph networks, of residual branches.
_BESIDE_ITSELF = {
    "self": frozenset({"neigh", "neighs", "neighbor", "neighbors", "neighbour", "neighbours", "nbr", "cross", "other"}),
    "main": frozenset(words_of("shortcut_aux_side_skip_residual_branch")),
}
# What makes two names of a head's row heads of different tasks.
_HEADS = tuple(
    frozenset(names.split())
    for names in (
        "lm_head embed_out lm_head.decoder",
        "classifier cls_head cls_head.fc class_head clf clf_head classification classifier_head score",
        "projection_head proj_head projector",
    )
)
_ATTENTIONS = (frozenset({"self attention"}), frozenset({"cross attention"}))
_ATTENTION = frozenset({"attn", "attns", "attention", "attentions", "att"})
_LAST_NORM = frozenset({"last norm"})
# A word too short to tell a part.
_SHORT = 2
_KERNEL = re.compile(r"(?<![0-9])([1-9])x([1-9])(?![0-9])")
# h_to_4h, a2b: what stands on either side of it. A level with more around is no direction.
_FROM_TO = re.compile(r"(?:(.+?)_)??([a-z0-9]+)(?:_to_|_2_|(?<=[a-z])2(?=[a-z]))([a-z0-9]+)(?:_(.+))?")
_NUMBERED = re.compile(r"(.*?)_?([0-9]+)")
_HALF = re.compile(r"[a-z][0-9]")
_HALVES_IN_ORDER = re.compile(r"(?:[a-z][0-9]){2,}")


def tells_apart(ours: Path, theirs: Path, *, beside: bool = True) -> bool:
    """Whether two names say that they are two of a kind in words that no table of meanings sees.

    beside: whether any word of a part's tells against self and main, and not only those that stand beside them.
    """
    if not ours or not theirs:
        return False
    return (
        _are_two_attentions(ours, theirs)
        or _are_turned(ours, theirs)
        or _are_two_sizes(ours, theirs)
        or _are_two_orders(ours, theirs)
        or _are_two_heads(ours, theirs)
        or _are_ends_of_a_row(ours, theirs)
        or _are_ends_of_a_row(theirs, ours)
        or _is_beside_itself(ours, theirs, any_word=beside)
        or _is_beside_itself(theirs, ours, any_word=beside)
    )


def _are_two_attentions(ours: Path, theirs: Path) -> bool:
    """Self attention and cross attention, both called so: one that is only called attention may be either."""
    one, other = read(ours, 0).roles, read(theirs, 0).roles
    said = not any(path[-1].lower() in _ATTENTION for path in (ours, theirs))
    return said and one in _ATTENTIONS and other in _ATTENTIONS and one != other


def _are_turned(ours: Path, theirs: Path) -> bool:
    """dense_h_to_4h and dense_4h_to_h: from one to the other, and back."""
    for a, b in zip(ours, theirs, strict=False):
        one, other = _FROM_TO.fullmatch(a), _FROM_TO.fullmatch(b)
        if (
            one
            and other
            and one[2] != one[3]
            and (one[2].lower(), one[3].lower()) == (other[3].lower(), other[2].lower())
        ):
            return True
    return False


def _are_two_sizes(ours: Path, theirs: Path) -> bool:
    """conv3x3 and conv1x1: layers that their authors call after the kernels."""
    one, other = _KERNEL.findall(".".join(ours)), _KERNEL.findall(".".join(theirs))
    return bool(one and other) and one != other


def _are_two_orders(ours: Path, theirs: Path) -> bool:
    """w3w1 and w1w3: halves of one matrix, each in the order of its name."""
    one, other = ours[-1].lower(), theirs[-1].lower()
    if one == other or not (_HALVES_IN_ORDER.fullmatch(one) and _HALVES_IN_ORDER.fullmatch(other)):
        return False
    return sorted(_HALF.findall(one)) == sorted(_HALF.findall(other))


def _are_two_heads(ours: Path, theirs: Path) -> bool:
    found = [{n for n, names in enumerate(_HEADS) if not names.isdisjoint(_ends(path))} for path in (ours, theirs)]
    return all(found) and found[0].isdisjoint(found[1])


def _ends(path: Path) -> Collection[str]:
    """Its last levels that say something, alone and with the one above."""
    named = [segment.lower() for segment in path if not segment.isdecimal()]
    return {*named[-1:], ".".join(named[-2:])}


def _are_ends_of_a_row(ours: Path, theirs: Path) -> bool:
    """ln_f and ln_0: the last norm, and the first of a row."""
    if read(ours, 0).roles != _LAST_NORM or set(words_of(theirs[-1])) != {"norm"}:
        return False
    counted = _NUMBERED.fullmatch(theirs[-1])
    return counted is not None and int(counted[2]) == 0


def _is_beside_itself(ours: Path, theirs: Path, *, any_word: bool) -> bool:
    one, other = all_words(ours), all_words(theirs)
    for word, words in _BESIDE_ITSELF.items():
        if word not in one or word in other:
            continue
        more, own = other - one - EMPTY, one - other - EMPTY
        if words & more and not words & one:
            return True
        if any_word and not own and any(len(x) > _SHORT and not is_no_part(x) and x not in _KINDS for x in more):
            return True
    return False


# What a layer is, and not which.
_KINDS = frozenset(words_of("norm_fc_conv_block_proj_embed_mlp_attn_rnn_pointwise_head"))


def is_another_part(ours: Path, theirs: Path) -> bool:
    """Whether two names are of different parts of a system: its two towers (text_model and vision_model), or whatever
    each name says of its own (policy and value, speaker and listener).

    Names of whole networks (backbone, bert) are no parts, but where a network has them beside others: its neck.
    """
    one, other = all_words(ours), all_words(theirs)
    parts = one & PARTS and other & PARTS and not one & other & PARTS
    own, foreign = one - NO_PART, other - NO_PART
    unlike = own and foreign and not own & foreign
    return (
        bool(parts or unlike)
        or any(opposed(one, other))
        or are_siblings(one, other)
        or are_two_places(one, other)
        or _are_built_otherwise(one, other)
        or tells_apart(ours, theirs, beside=False)
    )


def are_two_places(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether one is called after another place in a network than the other: its stem and its head."""
    if _HALVES & one & other:
        return False
    ours, theirs = ({n for n, words in enumerate(_PLACES) if words & side} for side in (one, other))
    if ours and theirs:
        return not ours & theirs
    # What stands before or behind a network's body is no whole network beside a word for a part.
    own, foreign = one - EMPTY, other - EMPTY
    return not own & foreign and (
        (bool(ours) and _BODY not in ours and bool(foreign - NO_PART))
        or (bool(theirs) and _BODY not in theirs and bool(own - NO_PART))
    )


def _are_built_otherwise(one: frozenset[str], other: frozenset[str]) -> bool:
    ours, theirs = ({n for n, words in enumerate(_BUILT_OF) if words & side} for side in (one, other))
    return len(ours) == len(theirs) == 1 and ours != theirs


def are_siblings(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two names have a word in common and each one of its own, as two of a kind are told apart: head_food and
    head_flowers, flow_stream and rgb_stream."""
    own, foreign = one - other - EMPTY, other - one - EMPTY
    shared = (one & other) - {"module", "the"}
    return bool(shared and own and foreign) and not share_of(own, foreign) and not are_beside(one, other)
