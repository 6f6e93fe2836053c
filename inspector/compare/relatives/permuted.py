"""A permuted copy: the same network with its hidden channels in another order.

Rows of a matrix are matched to the first file's by their directions, once its columns are in the order that an earlier
layer's rows were found in. Only a matching that both sides choose of their own accord counts, so that no assignment has
to be forced: related rows have a cosine near 1, unrelated ones near 0.1.

The order of a recurrent layer's gates repeats that of its hidden state, and a flattened picture repeats each channel
for every place: both are tried. A convolution with a row of nine numbers is too short to be matched by itself and is
held against the orders that are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inspector.compare.relatives.subject import Matrix, Relative, Relatives, Two
from inspector.compare.report import TensorDiff, Verdict
from inspector.units import counted

Order = NDArray[np.intp]

MATCHED = 0.5
_CERTAIN = 0.95  # of the rows, chosen from both sides
_MOST_ROWS = 4096
_MOST_ORDERS = 24
_LEAST_ROWS, _LEAST_LENGTH = 8, 16
# What short rows have to reach: nearly equal.
_EXACT = 0.999
_EXPLAINED = 0.9
_BLOCKS = (2, 3, 4)


@dataclass
class _Found:
    """orders: by length, each once, the untouched one first. exact, near: elements of tensors explained so."""

    orders: dict[int, list[Order]] = field(default_factory=dict)
    exact: int = 0
    near: int = 0
    unexplained: int = 0
    moved: dict[str, Order] = field(default_factory=dict)
    lowest: float = 1.0

    def known(self, length: int) -> list[Order]:
        """Orders that something of this length may be in."""
        found = [np.arange(length), *self.orders.get(length, [])]
        for shorter, orders in self.orders.items():
            times, rest = divmod(length, shorter)
            if rest or times < 2:
                continue
            for order in orders:
                # Each channel with its places behind it, and all places of the one after the other.
                found.append((order[:, None] * times + np.arange(times)).reshape(-1))
                found.append((np.arange(times)[:, None] * shorter + order).reshape(-1))
        return found[:_MOST_ORDERS]

    def add(self, order: Order) -> None:
        """Remember it, and the one that each of its blocks repeats."""
        for one in (order, *_of_blocks(order)):
            held = self.orders.setdefault(len(one), [])
            if not np.array_equal(one, np.arange(len(one))) and not any(np.array_equal(one, x) for x in held):
                held.append(one)


def _decide(subject: Relatives) -> Verdict | None:
    if not _may_be(subject):
        return None
    found = _Found()
    vectors = [t for t in subject.changed if t not in subject.weights and t.a is not None and len(t.a.shape) == 1]
    for two in subject.each(subject.weights):
        _explain(two, found)
    weights_seen = found.exact + found.near + found.unexplained
    if not found.moved or not weights_seen or found.near + found.exact < _EXPLAINED * weights_seen:
        return None
    exact = found.near == 0 and found.unexplained == 0 and not subject.left_out
    if exact:
        exact = all(_vector_moved(subject, pair, found) for pair in vectors)
    patterns = sorted({word for order in found.moved.values() if (word := pattern_of(order))})
    how = f" The order is {' and '.join(patterns)}." if patterns else ""
    names = tuple(found.moved)
    if exact:
        says = (
            f"A permuted copy: {counted(len(names), 'tensor')} are the first's with rows or columns in another order, "
            f"to the last bit, and each order is the same wherever that channel is read.{how}"
        )
    else:
        says = (
            f"Like a permuted copy that changed since: {counted(len(names), 'tensor')} match the first's once rows or "
            f"columns are put in order, with a cosine of {found.lowest:.2f} or more in the median row.{how}"
        )
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=says,
        proved=exact,
        test="rows matched by direction from both sides, columns in the order of the layer before",
        number=found.lowest,
        threshold=MATCHED,
        refuted_by="rows that match several others as well, or none",
        subjects=names,
    )


def _may_be(subject: Relatives) -> bool:
    """Whether the files have one shape and something in them that points elsewhere than before."""
    if not subject.rest_is_same or not subject.weights:
        return False
    return any(
        t.numbers is not None and (c := t.numbers.centred_cosine) is not None and c < 0.5 for t in subject.weights
    )


def _explain(two: Two, found: _Found) -> None:
    rows, columns = two.a.shape
    if np.array_equal(two.a, two.b):
        found.exact += two.a.size
        return
    best: tuple[float, Order, Order] | None = None
    width = columns // two.kernel
    for order in found.known(width):
        spread = (order[:, None] * two.kernel + np.arange(two.kernel)).reshape(-1)
        moved = two.a[:, spread]
        answer = _matched(moved, two.b) if _LEAST_ROWS <= rows <= _MOST_ROWS else None
        tried = [answer] if answer is not None else []
        tried += [
            (c, rows_in) for rows_in in found.known(rows) if (c := _median_cosine(moved[rows_in], two.b)) >= MATCHED
        ]
        for cosine, rows_in in tried:
            if best is None or cosine > best[0] + 1e-9:
                best = (cosine, rows_in, spread)
        if best is not None and best[0] > 1 - 1e-6:
            break
    if best is None:
        found.unexplained += two.a.size
        return
    cosine, rows_in, spread = best
    found.lowest = min(found.lowest, cosine)
    same = np.arange(rows)
    if not np.array_equal(rows_in, same) or not np.array_equal(spread, np.arange(columns)):
        found.moved[two.diff.name] = rows_in
    found.add(rows_in)
    if np.array_equal(two.a[rows_in][:, spread], two.b):
        found.exact += two.a.size
    else:
        found.near += two.a.size


def _matched(a: Matrix, b: Matrix) -> tuple[float, Order] | None:
    """(median cosine, which row of a each row of b is), where both sides choose the same."""
    count, length = a.shape
    # The largest of `count` cosines between directions that have nothing to do with each other, and a third more.
    chance = 1.3 * math.sqrt(2 * math.log(count) / length)
    least = min(max(MATCHED, chance), _EXACT) if length >= _LEAST_LENGTH else _EXACT
    cosines = _unit(b) @ _unit(a).T
    theirs, ours = cosines.argmax(axis=1), cosines.argmax(axis=0)
    mutual = ours[theirs] == np.arange(count)
    if mutual.mean() < _CERTAIN or len(set(theirs[mutual].tolist())) < mutual.sum():
        return None
    order = np.where(mutual, theirs, -1)
    # What found no partner goes to what nobody chose, in order.
    free = np.setdiff1d(np.arange(count), theirs[mutual])
    order[~mutual] = free
    median = float(np.median(cosines[np.arange(count), order]))
    return (median, order) if median >= least else None


def _median_cosine(a: Matrix, b: Matrix) -> float:
    """Of rows one by one; of a single column the cosine of the whole."""
    if a.shape[1] < _LEAST_LENGTH:
        size = float(np.linalg.norm(a) * np.linalg.norm(b))
        return float((a * b).sum()) / size if size else 0.0
    return float(np.median((_unit(a) * _unit(b)).sum(axis=1)))


def _unit(a: Matrix) -> Matrix:
    size = np.linalg.norm(a, axis=1, keepdims=True)
    return np.where(size > 0, a / np.where(size > 0, size, 1.0), 0.0)


def _vector_moved(subject: Relatives, pair: TensorDiff, found: _Found) -> bool:
    two = subject.two(pair)
    if two is None:
        return False
    a, b = two.a.reshape(-1), two.b.reshape(-1)
    return any(np.array_equal(a[order], b) for order in found.known(len(a)))


def _of_blocks(order: Order) -> Iterator[Order]:
    """The order that each of a few equal blocks repeats, as gates repeat that of the hidden state."""
    for blocks in _BLOCKS:
        size, rest = divmod(len(order), blocks)
        if rest or size < 2:
            continue
        inner = order[:size]
        if sorted(inner.tolist()) == list(range(size)) and all(
            np.array_equal(order[n * size : (n + 1) * size], inner + n * size) for n in range(blocks)
        ):
            yield inner


def pattern_of(order: Order) -> str:
    """A name for it: the two layouts of rotary embeddings, per head; "" for any other."""
    n = len(order)
    for head in (32, 64, 80, 96, 128, 256, 16, 8):
        if n % head:
            continue
        halves = np.arange(n).reshape(-1, 2, head // 2).transpose(0, 2, 1).reshape(-1)
        if np.array_equal(order, halves):
            return f"halves interleaved in heads of {head}, as rotary embeddings are converted"
        if np.array_equal(order, np.argsort(halves)):
            return f"pairs put into halves in heads of {head}, as rotary embeddings are converted"
    return ""


RELATIVE = Relative(
    id="permuted",
    title="Permuted copy",
    says="Rows and columns of the second are the first's in another order, the same order wherever a channel is read. "
    "Proved where that gives every bit; a likeness where rows only point the same way.",
    decide=_decide,
)
