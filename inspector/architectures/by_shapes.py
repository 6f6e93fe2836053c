"""What could it be when its names say nothing? Known architectures by the shapes of the tensors alone.

Weaker evidence than names, and kept apart from it: a `Likeness` is no `Candidate`, and nothing is built or repaired on
it unless the user names the architecture as the target. How many tensors of which shape there are narrows it down;
pairs and triples of neighbours in order decide between relatives, where the file keeps the order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import nsmallest
from itertools import pairwise
from operator import eq
from typing import TypeVar

from inspector.architectures.index import LIBRARIES, Entry, Index
from inspector.architectures.types import Likeness
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape

_T = TypeVar("_T")

LEAST_TENSORS = 20
LEAST_ALIKE = 0.85  # of the shapes, as a multiset
COMPARED = 40  # layouts whose order is compared
MOST_SHOWN = 5


def alike(shapes: Mapping[str, Shape], index: Index) -> tuple[Likeness, ...]:
    """Architectures with nearly these shapes, the likeliest first, at most five; () where none is near enough."""
    # With fewer tensors than that no share of so many is reached.
    ranked = rank_by_shapes(shapes, index) if len(shapes) >= LEAST_ALIKE * LEAST_TENSORS else []
    return tuple(one for one in ranked[:MOST_SHOWN] if one.tensors >= LEAST_TENSORS and one.share >= LEAST_ALIKE)


def rank_by_shapes(shapes: Mapping[str, Shape], index: Index) -> list[Likeness]:
    """The nearest by shapes; builders with the same shapes in the same order are one."""
    own = _weighty(shapes.items())
    bag = Counter(own)
    shares = _shares(bag, index)
    rough = nsmallest(COMPARED, range(len(shares)), key=lambda number: (-shares[number], number))
    own_runs = _runs(own)
    found: dict[tuple[Shape, ...], tuple[tuple[float, ...], list[Entry]]] = {}
    for number in rough:
        sequence, runs = _in_order(index, number)
        if sequence not in found:
            whole, order = shares[number], _common(own_runs, runs)
            found[sequence] = ((whole + 2 * order, whole, order), [])
        found[sequence][1].extend(index.of_layout[number])
    # Two libraries may put the same runs together in another order: then the places decide.
    best_first = sorted(found.items(), key=lambda item: (-item[1][0][0], -sum(map(eq, own, item[0]))))
    return [
        _likeness(entries, share, order, tensors=len(sequence), fitting=(bag & Counter(sequence)).total())
        for sequence, ((_, share, order), entries) in best_first
    ]


def _likeness(entries: Iterable[Entry], share: float, order: float, *, tensors: int, fitting: int) -> Likeness:
    plainest = sorted(entries, key=lambda e: (e.name.startswith("quantized_"), LIBRARIES.index(e.library), len(e.name)))
    labels = tuple(dict.fromkeys(entry.label for entry in plainest))
    return Likeness(label=labels[0], twins=labels[1:], share=share, order=order, tensors=tensors, fitting=fitting)


def _weighty(tensors: Iterable[tuple[str, Shape]]) -> list[Shape]:
    """Shapes in order. Scalars are left out, which under any name are mostly counters."""
    return [shape for name, shape in tensors if shape and not is_bookkeeping(name)]


def _runs(sequence: Sequence[Shape]) -> Counter[tuple[Shape, ...]]:
    """Pairs and triples of neighbours."""
    runs: Counter[tuple[Shape, ...]] = Counter(pairwise(sequence))
    runs.update(zip(sequence, sequence[1:], sequence[2:], strict=False))
    return runs


def _common(one: Counter[_T], other: Counter[_T]) -> float:
    """Jaccard similarity of two multisets."""
    both = sum(min(count, other[item]) for item, count in one.items() if item in other)
    return both / max(1, one.total() + other.total() - both)


def _shares(bag: Counter[Shape], index: Index) -> list[float]:
    """`_common` of the bag and of each layout's shapes."""
    holders, totals = _postings(index)
    both = [0] * len(totals)
    for shape, count in bag.items():
        for number, there in holders.get(shape, ()):
            both[number] += min(count, there)
    own = bag.total()
    return [held / max(1, own + total - held) for held, total in zip(both, totals, strict=True)]


@lru_cache(maxsize=1)
def _postings(index: Index) -> tuple[Mapping[Shape, Sequence[tuple[int, int]]], Sequence[int]]:
    """(shape -> (layout, how many of it are there), how many tensors each layout has)."""
    holders: defaultdict[Shape, list[tuple[int, int]]] = defaultdict(list)
    totals = []
    for number in range(len(index.of_layout)):
        bag = Counter(index.weighty_shapes(number))
        totals.append(bag.total())
        for shape, count in bag.items():
            holders[shape].append((number, count))
    return holders, totals


@lru_cache(maxsize=512)
def _in_order(index: Index, number: int) -> tuple[tuple[Shape, ...], Counter[tuple[Shape, ...]]]:
    """A layout's shapes in order, and their runs."""
    sequence = tuple(index.weighty_shapes(number))
    return sequence, _runs(sequence)
