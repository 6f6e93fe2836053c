"""Whether tensors come in the order in which their model's author wrote its layers down, or sorted by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from inspector.keys.placing.roles import is_counter
from inspector.keys.placing.tree import Leaf


def keeps_order(leaves: Sequence[Leaf], ordered: bool) -> bool:
    """Whether these come in the order of their model. ordered: whether their container keeps it."""
    return ordered and not sorted_by_name([leaf.name for leaf in leaves if not is_counter(leaf)])


def sorted_by_name(names: Sequence[str]) -> bool:
    """Whether this is an alphabet's order (or that with numbers as numbers), and not just a running number."""
    if len(names) < 3 or _runs(names):
        return False
    # Worked out name by name: most lists show at their beginning that they are in another order.
    natural = (
        [int(x) if x.isdecimal() and x.isascii() else x for x in re.split(r"([0-9]{1,18})", name)] for name in names
    )
    return all(a <= b for a, b in pairwise(names)) or all(a <= b for a, b in pairwise(natural))


def _runs(names: Sequence[str]) -> bool:
    """p0001, p0002, ...: one name and a number that goes up by one each time."""
    around: tuple[str, str] | None = None
    before = 0
    for name in names:
        found = re.fullmatch(r"(.*?)([0-9]{1,18})([^0-9]*)", name)
        if found is None:
            return False
        here, number = (found[1], found[3]), int(found[2])
        if around is not None and (here != around or number != before + 1):
            return False
        around, before = here, number
    return len(names) > 1
