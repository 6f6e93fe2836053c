"""Dotted names as a tree that two state dicts can be compared by: subtree sizes, contents and exact signatures.

For the alignment of a file with a target. Two things are computed per subtree: its *bag*, the multiset of (leaf name,
shape) below it, which no wrapper segment changes; and its *signature*, which equals another's only when every relative
name and shape below is equal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar

from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.types import Shape

Token = tuple[str, Shape | None]
# The segments of a name, or the first of them.
Path = tuple[str, ...]

# Old and new names of the same leaf; for comparing subtrees only, no tensor is renamed by this.
_SAME_LEAF = {"gamma": "weight", "beta": "bias"}
# Python's \d also knows the digits of other scripts, and $ an end before a newline; layers are numbered 0-9.
_NUMBERED = re.compile(r"([^0-9]*)([0-9]{1,9})")
_DIGITS = frozenset("0123456789")
# No module is nested deeper; what is below stays one name, so that no file decides how deep we recurse.
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Leaf:
    """One tensor of either side. name: its full key. shape: None when only names are known."""

    name: str
    shape: Shape | None


_Made = TypeVar("_Made")


class _Once(Generic[_Made]):
    """A property of a node that is worked out when it is first asked for, and kept in the node.

    As `functools.cached_property`, which before Python 3.12 takes a lock each time: of thousands of nodes several are
    worked out, all by the one thread that has the tree.
    """

    def __init__(self, work: Callable[[Any], _Made]) -> None:
        self._work = work
        self._name = work.__name__
        self.__doc__ = work.__doc__

    def __get__(self, node: Any, owner: object = None) -> _Made:
        if node is None:
            return self  # type: ignore[return-value]  # asked of the class, as a documentation's builder does
        made = node.__dict__[self._name] = self._work(node)
        return made


@dataclass(eq=False)
class Node:
    """A module path of one side. path: segments from the root of that side.

    children and leaves: by segment, in order. Not written to after it was built; `only` makes smaller views.
    in_order: that order is the model's own, and not an alphabet's or a container's.
    """

    path: Path
    children: dict[str, Node] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    names_only: bool = False
    in_order: bool = False

    @_Once
    def bag(self) -> Counter[Token]:
        """How often each (leaf name, shape) occurs below, bookkeeping left out, one-element shapes as scalars."""
        bag: Counter[Token] = Counter()
        tokens = self._own_tokens()
        for child in self.children.values():
            if child.children:
                for token, count in child.bag.items():
                    bag[token] = bag.get(token, 0) + count
            else:
                # Most modules hold tensors alone: none of them needs a bag of its own for that.
                tokens += child._own_tokens()
        for token in tokens:
            bag[token] = bag.get(token, 0) + 1
        return bag

    def _own_tokens(self) -> list[Token]:
        if self.names_only:
            return [(_SAME_LEAF.get(segment, segment), None) for segment in self.leaves if segment not in BOOKKEEPING]
        return [
            (_SAME_LEAF.get(segment, segment), plain_shape(leaf.shape))
            for segment, leaf in self.leaves.items()
            if segment not in BOOKKEEPING
        ]

    @_Once
    def size(self) -> int:
        """Number of tensors below, bookkeeping left out."""
        size = 0
        for segment in self.leaves:
            size += segment not in BOOKKEEPING
        for child in self.children.values():
            size += child.size
        return size

    @_Once
    def signature(self) -> int:
        """Equal for equal relative names and shapes (order not looked at)."""
        own = frozenset([(s, None if self.names_only else leaf.shape) for s, leaf in self.leaves.items()])
        return hash((own, frozenset([(s, child.signature) for s, child in self.children.items()])))

    @_Once
    def forms(self) -> frozenset[tuple[str, int]]:
        """Relative (name, number of dimensions) below: what stays when sizes change."""
        found = {(s, len(leaf.shape or ())) for s, leaf in self.leaves.items() if s not in BOOKKEEPING}
        for segment, child in self.children.items():
            found.update((f"{segment}.{name}", ndim) for name, ndim in child.forms)
        return frozenset(found)

    @_Once
    def stems(self) -> dict[str, list[str]]:
        """Numbered children by what stands before their number."""
        found: dict[str, list[str]] = {}
        for segment in self.children:
            number = numbered(segment)
            if number is not None:
                found.setdefault(number[0], []).append(segment)
        return found

    @_Once
    def shapes(self) -> dict[str, Shape | None]:
        """Shape by relative name of everything below."""
        return {name: leaf.shape for name, leaf in self.walk()}

    def walk(self) -> Sequence[tuple[str, Leaf]]:
        """(relative name, leaf) of everything below, in order."""
        found: list[tuple[str, Leaf]] = []
        self._walk("", found)
        return found

    def _walk(self, above: str, found: list[tuple[str, Leaf]]) -> None:
        found += [(above + segment, leaf) for segment, leaf in self.leaves.items()]
        for segment, child in self.children.items():
            child._walk(f"{above}{segment}.", found)

    def only(self, keep: Callable[[str], bool], *, leaves: Mapping[str, Leaf] | None = None) -> Node:
        """The same place with some children (and all or the given leaves)."""
        return Node(
            path=self.path,
            children={s: child for s, child in self.children.items() if keep(s)},
            leaves=dict(self.leaves if leaves is None else leaves),
            names_only=self.names_only,
            in_order=self.in_order,
        )


def grow(leaves: Iterable[Leaf], *, names_only: bool = False, in_order: bool = False) -> Node:
    """The tree of all keys; names_only leaves shapes out of every comparison. in_order: as of a `Node`."""
    root = Node(path=(), names_only=names_only, in_order=in_order)
    known: dict[str, Node] = {}
    for leaf in leaves:
        module, dot, last = leaf.name.rpartition(".")
        if dot and module in known:
            known[module].leaves[last] = leaf
            continue
        *parents, last = leaf.name.split(".", _DEEPEST)
        node = root
        for segment in parents:
            child = node.children.get(segment)
            if child is None:
                child = Node(path=(*node.path, segment), names_only=names_only, in_order=in_order)
                node.children[segment] = child
            node = child
        node.leaves[last] = leaf
        if dot and len(parents) < _DEEPEST:
            known[module] = node
    return root


def plain_shape(shape: Shape | None) -> Shape | None:
    """(1,) as (): one element is one element."""
    return () if shape == (1,) else shape


def overlap(one: Node, other: Node) -> int:
    """How many tensors of one could sit in the other, by leaf name and shape alone."""
    small, large = (one.bag, other.bag) if len(one.bag) <= len(other.bag) else (other.bag, one.bag)
    return sum([min(count, large.get(token, 0)) for token, count in small.items()])


def is_most(part: int, whole: int) -> bool:
    """Whether so many of so many tensors stand for all of them: 60 %, which leaves room for another head or stem."""
    return part * 5 >= whole * 3


def before_shared_end(names: Sequence[Path]) -> list[Path]:
    """What stands before the end that all of them share."""
    shared, shortest = 0, min(map(len, names), default=0)
    while shared < shortest and all(name[-1 - shared] == names[0][-1 - shared] for name in names):
        shared += 1
    return [name[: len(name) - shared] for name in names]


@lru_cache(maxsize=20_000)
def exchanged(ours: str, theirs: str) -> tuple[Path, Path]:
    """What stands before the end that two dotted names share."""
    # Of most pairs one is the other's whole end.
    if ours == theirs:
        return (), ()
    if ours.endswith(f".{theirs}"):
        return tuple(ours[: -len(theirs) - 1].split(".")), ()
    if theirs.endswith(f".{ours}"):
        return (), tuple(theirs[: -len(ours) - 1].split("."))
    before = before_shared_end([tuple(ours.split(".")), tuple(theirs.split("."))])
    return before[0], before[1]


def stands_around(pairs: Iterable[tuple[Leaf, Leaf]]) -> set[tuple[Path, Path]]:
    """Of tensors and their places, what stands before the end that both names share, each exchange once."""
    return {exchanged(leaf.name, place.name) for leaf, place in pairs}


def numbered(segment: str) -> tuple[str, int] | None:
    """'12' -> ('', 12), 'denselayer3' -> ('denselayer', 3), None without a number at the end."""
    # Most names end in a letter.
    if segment[-1:] not in _DIGITS:
        return None
    found = _NUMBERED.fullmatch(segment)
    # "01" and "1" would be the same number under two names.
    if found is None or (len(found[2]) > 1 and found[2].startswith("0")):
        return None
    return found[1], int(found[2])
