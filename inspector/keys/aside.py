"""What one side has of its own, set aside before names and order are read: one such tensor spoils either.

A buffer that the file's network computes itself, and an output layer that repeats the embedding, have no place in the
target at all; what becomes of them is settled by their rules, by their numbers. A head for another number of classes
has one, and is looked at with as many rows as the target's: so everything else is placed as in a file with as many
classes, and whether the head may stay out is asked as ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from inspector.checkpoint.types import Shape
from inspector.keys.operations.computed import COMPUTED
from inspector.keys.placing.roles import split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.rules.computed_buffers import kind_of_buffer
from inspector.keys.rules.entry import Link
from inspector.keys.rules.head_mismatch import is_called_head
from inspector.keys.rules.tied_weights import HEADS, is_embedding, is_head

_BUFFERS = frozenset(name for kind in COMPUTED.values() for name in kind.leaves)
_HEADS = tuple(f"{name}.weight" for name in HEADS)


def without_place(leaves: Sequence[Leaf], places: Sequence[Leaf]) -> set[str]:
    """Names of computed buffers of a kind that the target has none of, and of a head that it has no matrix for."""
    ours, theirs = ([x for x in side if x.name.rpartition(".")[2] in _BUFFERS] for side in (leaves, places))
    # Most that is called bias is one.
    ours, theirs = (
        [x for x in side if not x.name.endswith("bias") or len(x.shape or ()) > 2] for side in (ours, theirs)
    )
    there = {kind_of_buffer(place) for place in theirs}
    named = {place.name for place in places}
    found = {leaf.name for leaf in ours if leaf.name not in named and kind_of_buffer(leaf) not in ("", *there)}
    return found | _copies(leaves, places, named)


def _copies(leaves: Sequence[Leaf], places: Sequence[Leaf], named: set[str]) -> set[str]:
    """The output layer that is as large as the one embedding, where the target has one such matrix and no more."""
    ends = [leaf for leaf in leaves if leaf.name.endswith(_HEADS) and leaf.name not in named]
    heads = [leaf for leaf in ends if is_head(leaf) and not is_embedding(leaf.name)]
    if len(heads) != 1:
        return set()
    shape = heads[0].shape
    alike = [leaf for leaf in leaves if leaf.shape == shape and leaf is not heads[0]]
    there = [place for place in places if place.shape == shape]
    one = len(alike) == len(there) == 1 and is_embedding(alike[0].name) and is_embedding(there[0].name)
    return {heads[0].name} if one else set()


def with_the_targets_classes(
    leaves: Sequence[Leaf], places: Sequence[Leaf], *, in_order: Callable[[], bool]
) -> dict[str, Leaf]:
    """The head's tensors by name, with the target's number of rows; {} unless all else has its shapes there.

    It must be called a head, or be the last of counted layers. Where a hidden layer has the head's shape, it is the
    last of both sides that keep their order, or what alone is called one. in_order: whether they keep it.
    """
    more, fewer = (Counter([x.shape for x in side if x.shape != ()]) for side in (leaves, places))
    if None in more or None in fewer:
        return {}
    surplus = [shape for shape in (more - fewer).elements() if shape is not None]
    lack = [shape for shape in (fewer - more).elements() if shape is not None]
    mine, wanted = _layer(surplus), _layer(lack)
    if mine is None or wanted is None or len(surplus) != len(lack) or mine[1:] != wanted[1:]:
        return {}
    ordered = in_order()
    source, target = _head(leaves, mine, in_order=ordered), _head(places, wanted, in_order=ordered)
    if source is None or target is None:
        return {}
    module = split_name(source.name)[0]
    own = [leaf for leaf in leaves if leaf is source or (leaf.name == f"{module}.bias" and leaf.shape == mine[:1])]
    if len(own) != len(surplus):
        return {}
    return {leaf.name: replace(leaf, shape=(wanted[0], *(leaf.shape or ())[1:])) for leaf in own}


def _layer(shapes: Sequence[Shape]) -> Shape | None:
    """The weight's shape where these are one layer's: a weight, and perhaps its bias."""
    weights = [shape for shape in shapes if len(shape) > 1]
    rest = [shape for shape in shapes if len(shape) < 2]
    return weights[0] if len(weights) == 1 and rest in ([], [weights[0][:1]]) else None


def _head(side: Sequence[Leaf], shape: Shape, *, in_order: bool) -> Leaf | None:
    alike = [leaf for leaf in side if leaf.shape == shape]
    called = [leaf for leaf in alike if is_called_head(leaf)]
    if len(alike) > 1 and in_order:
        last = next(leaf for leaf in reversed(side) if len(leaf.shape or ()) > 1)
        alike = [last] if last in alike else []
    elif len(alike) > 1:
        alike = called
    if len(alike) != 1:
        return None
    return alike[0] if alike[0] in called or _is_last_counted(alike[0], side) else None


def _is_last_counted(leaf: Leaf, side: Sequence[Leaf]) -> bool:
    """Whether its module has a number alone, the highest of those beside it: net.4 of net.0 to net.4."""
    parent, own = split_name(split_name(leaf.name)[0])
    if not own.isdecimal():
        return False
    around = f"{parent}." if parent else ""
    beside = {x.name[len(around) :].partition(".")[0] for x in side if x.name.startswith(around)}
    return all(not number.isdecimal() or int(number) <= int(own) for number in beside)


def with_own_rows(links: Sequence[Link], own: dict[str, Leaf]) -> list[Link]:
    """Links of the file's own tensors. own: those that were looked at with other rows, by name."""
    return [replace(link, source=own[link.source.name]) if link.source.name in own else link for link in links]
