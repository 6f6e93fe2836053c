"""Rows and columns of one file's matrices in another order: which order, and whether other tensors follow it.

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

from inspector.compare.relatives.subject import Matrix, Relatives, Two
from inspector.compare.report import TensorDiff

Order = NDArray[np.intp]

MATCHED = 0.5
_CERTAIN = 0.95  # of the rows, chosen from both sides
_MOST_ROWS = 4096
_MOST_ORDERS = 24
_LEAST_ROWS, _LEAST_LENGTH = 8, 16
# What short rows have to reach: nearly equal.
_EXACT = 0.999
_EXPLAINED = 0.9
# Rows that are elsewhere, of an order that is another one; places in which two orders agree that are one.
_MOVED, _AGREE = 0.2, 0.9
_BLOCKS = (2, 3, 4)


@dataclass
class Orders:
    """orders: by length, each once, the untouched one first. exact, near, unexplained: elements of tensors.

    moved: name -> its order of rows, of those with rows or columns in another order. columns: name -> its order of
    columns, where that is another one.
    """

    orders: dict[int, list[Order]] = field(default_factory=dict)
    exact: int = 0
    near: int = 0
    unexplained: int = 0
    moved: dict[str, Order] = field(default_factory=dict)
    columns: dict[str, Order] = field(default_factory=dict)
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

    @property
    def lone(self) -> tuple[str, ...]:
        """Tensors whose rows are in an order that no other tensor has, in its rows or its columns.

        A layout per head changes no order of channels, so that nothing has to follow it.
        """
        return tuple(n for n, order in self.moved.items() if _is_another(order) and not self._followed(n))

    def _followed(self, name: str) -> bool:
        order = self.moved[name]
        if pattern_of(order):
            return True
        alone = Orders()
        alone.add(order)
        for columns in self.columns.values():
            if any(_agree(columns, one) for one in alone.known(len(columns))[1:]):
                return True
        parts = (order, *_of_blocks(order))
        return any(
            _agree(one, part)
            for other, theirs in self.moved.items()
            if other != name and _is_another(theirs)
            for one in (theirs, *_of_blocks(theirs))
            for part in parts
        )

    def add(self, order: Order) -> None:
        """Remember it, and the one that each of its blocks repeats."""
        for one in (order, *_of_blocks(order)):
            held = self.orders.setdefault(len(one), [])
            if not np.array_equal(one, np.arange(len(one))) and not any(np.array_equal(one, x) for x in held):
                held.append(one)


def search(subject: Relatives) -> Orders:
    """Of all weights that changed; looked for once."""
    found = subject.answers.get("orders")
    if isinstance(found, Orders):
        return found
    found = Orders()
    if _may_be(subject):
        for two in subject.each(subject.weights):
            _explain(two, found)
    subject.answers["orders"] = found
    return found


def explains(found: Orders) -> bool:
    """Whether orders explain nearly all of the weights that changed."""
    size = found.exact + found.near + found.unexplained
    return bool(found.moved) and found.near + found.exact >= _EXPLAINED * size


def _is_another(order: Order) -> bool:
    """Whether more than a few rows that found no partner are elsewhere."""
    return bool((order != np.arange(len(order))).mean() > _MOVED)


def _agree(one: Order, other: Order) -> bool:
    """Of layers that were trained on a few rows are matched wrongly."""
    return len(one) == len(other) and bool((one == other).mean() >= _AGREE)


def _may_be(subject: Relatives) -> bool:
    """Whether the files have one shape and something in them that points elsewhere than before."""
    if not subject.rest_is_same or not subject.weights:
        return False
    return any(
        t.numbers is not None and (c := t.numbers.centred_cosine) is not None and c < 0.5 for t in subject.weights
    )


def _explain(two: Two, found: Orders) -> None:
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
        if not np.array_equal(spread, np.arange(columns)):
            found.columns[two.diff.name] = spread[:: two.kernel] // two.kernel
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


def vector_moved(subject: Relatives, pair: TensorDiff, found: Orders) -> bool:
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
