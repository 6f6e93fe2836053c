"""The best ways to give each of some kinds one of as many others, and how good the next ones are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

# Of more kinds than this only exchanges of two are compared with the best.
_MOST_EXACT = 6
# Points of what cannot be: in no sum of real ones.
_NEVER = -1000.0


def ranked(table: Sequence[Sequence[float | None]]) -> list[tuple[tuple[int, ...], float]]:
    """Assignments with their points, the best first: all of them for few kinds, else the best and its exchanges."""
    n = len(table)
    if n <= _MOST_EXACT:
        found = []
        for order in permutations(range(n)):
            row = [table[i][j] for i, j in enumerate(order)]
            if None not in row:
                found.append((order, sum(x for x in row if x is not None)))
        return sorted(found, key=lambda item: -item[1])
    start = _greedy(table)
    if start is None:
        return []
    order = tuple(start)

    def points(these: Sequence[int]) -> float:
        return sum(x if (x := table[i][j]) is not None else _NEVER for i, j in enumerate(these))

    better = True
    rounds = 0
    while better and rounds < 10:
        better, rounds = False, rounds + 1
        for i in range(n):
            for j in range(i + 1, n):
                swapped = list(order)
                swapped[i], swapped[j] = swapped[j], swapped[i]
                if points(swapped) > points(order) + 1e-9:
                    order, better = tuple(swapped), True
    total = points(order)
    if total < _NEVER / 2:
        return []
    found = [(order, total)]
    for i in range(n):
        for j in range(i + 1, n):
            swapped = list(order)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            if (other := points(swapped)) > _NEVER / 2:
                found.append((tuple(swapped), other))
    return sorted(found, key=lambda item: -item[1])


def _greedy(table: Sequence[Sequence[float | None]]) -> list[int] | None:
    n = len(table)
    cells = sorted(
        ((value, i, j) for i, row in enumerate(table) for j, value in enumerate(row) if value is not None),
        key=lambda cell: -cell[0],
    )
    order: dict[int, int] = {}
    taken: set[int] = set()
    for _, i, j in cells:
        if i not in order and j not in taken:
            order[i] = j
            taken.add(j)
    return [order[i] for i in range(n)] if len(order) == n else None
