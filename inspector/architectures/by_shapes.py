"""What could it be when its names say nothing? Known architectures by the shapes of the tensors alone.

Weaker evidence than names, and kept apart from it: a `Likeness` is no `Candidate`, and nothing is built or repaired on
it unless the user names the architecture as the target. How many tensors of which shape there are narrows it down;
pairs and triples of neighbours in order decide between relatives, where the file keeps the order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
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
    ranked = rank_by_shapes(shapes, index)
    return tuple(one for one in ranked[:MOST_SHOWN] if one.tensors >= LEAST_TENSORS and one.share >= LEAST_ALIKE)


def rank_by_shapes(shapes: Mapping[str, Shape], index: Index) -> list[Likeness]:
    """The nearest by shapes; builders with the same shapes in the same order are one."""
    own = _weighty(shapes.items())
    bag = Counter(own)
    bags = _bags(index)
    rough = sorted(range(len(bags)), key=lambda number: (-_common(bag, bags[number]), number))[:COMPARED]
    own_runs = _runs(own)
    found: dict[tuple[Shape, ...], tuple[tuple[float, ...], list[Entry]]] = {}
    for number in rough:
        entries = index.of_layout[number]
        layout = entries[0].layout
        sequence = tuple(_weighty(zip(layout.names, layout.shapes, strict=True)))
        if sequence not in found:
            whole, order = _common(bag, bags[number]), _common(own_runs, _runs(sequence))
            found[sequence] = ((whole + 2 * order, whole, order), [])
        found[sequence][1].extend(entries)
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


@lru_cache(maxsize=1)
def _bags(index: Index) -> tuple[Counter[Shape], ...]:
    return tuple(
        Counter(_weighty(zip(entries[0].layout.names, entries[0].layout.shapes, strict=True)))
        for entries in index.of_layout
    )
