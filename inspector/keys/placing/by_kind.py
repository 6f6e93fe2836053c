"""Placing layers that are counted kind by kind: conv2d, conv2d_1, dense, as Keras and Haiku call what nobody named.

Such names tell an order for each kind of layer, read as numbers, whatever order the file lists them in: sorted by name,
conv2d_10 comes before conv2d_2. The target's layers of a kind are those that hold what the file's do, in the target's
order. It is no more than an order, so it is asked for as that of the whole is. It is read only where the numbers run
without a gap, where what a layer holds tells its kind, and where every kind agrees from its first layer to its last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.types import Shape
from inspector.keys.placing.by_order import Sides, counters
from inspector.keys.placing.hidden_words import dotted
from inspector.keys.placing.roles import is_counter, roles_of, split_name, squeezed
from inspector.keys.placing.tree import Leaf

Size = Callable[[Shape | None], Shape | None]
# What says no more of a layer than what kind it is of: the libraries' classes, and tensors that are no layer's.
_KIND = re.compile(
    r"(?P<kind>conv([123]_?d)?(_transpose)?|(depthwise_|separable_)conv[12]d|dense|linear|fc|embed(ding)?"
    r"|((batch|layer|group|instance|rms)_?)?norm(alization)?([123]d)?|bn|ln|lstm|gru|rnn|simple_rnn|prelu|p_re_lu"
    r"|multi_head_attention|variable|parameter)(_(?P<number>0|[1-9][0-9]{0,3}))?",
    re.IGNORECASE,
)
# Last names that are a layer's where the layer has a name of its kind.
_ROLES = {"w": "weight", "embedding": "weight", "embeddings": "weight", "offset": "bias"}
_ROLES |= {"mean": "mean", "var": "variance", "moving_var": "variance"}


@dataclass(frozen=True, slots=True)
class Counted:
    """pairs: (tensor, place). kinds: what the file calls the kind of a layer, by the target's name for the layer."""

    pairs: Sequence[tuple[Leaf, Leaf]]
    kinds: Mapping[str, str]


@dataclass(slots=True)
class _Layer:
    """A module's own tensors, each under its role and shape."""

    name: str
    leaves: dict[Hashable, list[Leaf]] = field(default_factory=dict)

    @property
    def content(self) -> Hashable:
        return frozenset((token, len(leaves)) for token, leaves in self.leaves.items())


def counted_by_kind(sides: Sides) -> Counted | None:
    """Every tensor on the place that its layer's kind and number give it; None where they do not tell all of it."""
    if any(place.shape is None for place in sides.places) or _rows(sides.leaves, _exact) is None:
        return None
    return next(filter(None, (_counted(sides, size) for size in (_exact, squeezed, _either_way))), None)


def _counted(sides: Sides, size: Size) -> Counted | None:
    rows = _rows(sides.leaves, size) or {}
    of_content: dict[Hashable, str] = {}
    for kind, row in rows.items():
        for layer in row:
            if of_content.setdefault(layer.content, kind) != kind:
                return None
    goal: dict[str, list[_Layer]] = {kind: [] for kind in rows}
    for place in _layers(sides.places, [place.name for place in sides.places], size):
        if place.content not in of_content:
            return None
        goal[of_content[place.content]].append(place)
    pairs: list[tuple[Leaf, Leaf]] = []
    kinds: dict[str, str] = {}
    for kind, row in rows.items():
        if [layer.content for layer in row] != [place.content for place in goal[kind]]:
            return None
        for layer, place in zip(row, goal[kind], strict=True):
            found = _inside(layer, place)
            if found is None:
                return None
            pairs += found
            kinds[place.name] = kind
    return Counted([*pairs, *counters(sides, pairs)], kinds)


def _exact(shape: Shape | None) -> Shape | None:
    return shape


def _either_way(shape: Shape | None) -> Shape | None:
    """For matrices and kernels of another library, whose axes come in another order."""
    return None if shape is None else tuple(sorted(shape))


def _layers(side: Sequence[Leaf], names: Sequence[str], size: Size) -> list[_Layer]:
    """In the order of the first tensor of each, counters set aside. names: the tensors', perhaps written otherwise."""
    made: dict[str, _Layer] = {}
    written = [Leaf(name, leaf.shape) for name, leaf in zip(names, side, strict=True)]
    for leaf, name, role in zip(side, names, roles_of(written), strict=True):
        if not is_counter(leaf):
            module, last = split_name(name)
            layer = made.setdefault(module, _Layer(module))
            layer.leaves.setdefault((role or _ROLES.get(last), size(leaf.shape)), []).append(leaf)
    return list(made.values())


def _rows(leaves: Sequence[Leaf], size: Size) -> dict[str, list[_Layer]] | None:
    """The file's layers of each kind by their numbers; None where a name is none of a kind or a number is missing."""
    names = dotted([leaf.name for leaf in leaves])
    # What stands before all of them is a wrapper.
    first = names[0].split(".") if names else []
    depth = next(
        (n for n, segment in enumerate(first) if any(name.split(".")[n : n + 1] != [segment] for name in names)), 0
    )
    above = "".join(f"{segment}." for segment in first[: min(depth, len(first) - 2)])
    if not names or not _KIND.fullmatch(split_name(names[0].removeprefix(above))[0]):
        return None  # most files end here
    rows: dict[str, dict[int, _Layer]] = {}
    for layer in _layers(leaves, names, size):
        found = _KIND.fullmatch(layer.name.removeprefix(above))
        if found is None:
            return None
        number = int(found["number"]) if found["number"] else -1
        rows.setdefault(found["kind"], {})[number] = layer
    made = {}
    for kind, row in rows.items():
        numbers = sorted(row)
        # The first has no number, and the second 1; or the first has any, since a session counts on.
        run = numbers[1:] if numbers[0] == -1 else numbers
        if run and (run[-1] - run[0] >= len(run) or (numbers[0] == -1 and run[0] != 1)):
            return None
        made[kind] = [row[number] for number in numbers]
    return made


def _inside(layer: _Layer, place: _Layer) -> list[tuple[Leaf, Leaf]] | None:
    """The tensors of one layer on those of its place, by role and shape, and where that is not enough by name."""
    found: list[tuple[Leaf, Leaf]] = []
    for token, leaves in layer.leaves.items():
        there = place.leaves[token]
        if len(leaves) > 1:
            by_name = {split_name(x.name)[1]: x for x in there}
            named = [by_name.get(split_name(leaf.name)[1]) for leaf in leaves]
            if None in named or len(set(named)) < len(named):
                return None
            there = [x for x in named if x is not None]
        found += zip(leaves, there, strict=True)
    return found
