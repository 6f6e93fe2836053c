"""Tensors that hold several square matrices: query, key and value in one, gate and value, a recurrent layer's gates,
layers or experts in a stack.

Their shape says which way round the whole lies and nothing of the squares in it: three that lie (in, out) each, put
below each other, are as high and as wide as three that lie as torch has them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from inspector.checkpoint.types import Shape
from inspector.keys.placing.layouts import is_weight, own_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.rules.entry import Link
from inspector.keys.rules.fused_attention import PAIRS, WHOLE
from inspector.keys.rules.fused_gates import JOINED

_RECURRENT = re.compile(r"(^|\.)weight_[ih]h(_l[0-9]+(_reverse)?)?$")
# How many matrices a whole of this name has in one.
_COUNTS = ((WHOLE, (3,)), (PAIRS, (2,)), (JOINED, (2,)), (_RECURRENT, (3, 4)))


@dataclass(frozen=True, slots=True)
class Squares:
    """Square matrices in one tensor. columns: they stand side by side, else below each other or behind each other."""

    count: int
    columns: bool = False


def squares_in(link: Link) -> Squares | None:
    """The square matrices that this tensor holds, of one shape on both sides; None for one alone and for none."""
    shape = link.target.shape or ()
    return held_by(shape, link.source, link.target) if link.source.shape == shape else None


def held_by(shape: Shape, *leaves: Leaf) -> Squares | None:
    """The same of a shape; leaves: what it is called on either side."""
    if len(shape) not in (2, 3) or min(shape[-2:]) < 2 or not is_weight(leaves[-1]):
        return None
    stacked = shape[0] if len(shape) == 3 else 1
    high, wide = shape[-2:]
    if high == wide:
        return Squares(stacked) if len(shape) == 3 else None
    number, rest = divmod(max(high, wide), min(high, wide))
    if rest or not any(number in counts and _is_called(p, x) for p, counts in _COUNTS for x in leaves):
        return None
    return Squares(stacked * number, columns=wide > high)


def _is_called(pattern: re.Pattern[str], leaf: Leaf) -> bool:
    """Whatever its last name is: qkv.weight, qkv/kernel:0, qkv.w, a parameter called qkv."""
    module, last = own_name(leaf)
    name = f"{module}.{last}" if module else last
    return any(pattern.search(x) for x in (name, f"{name}.weight", f"{module}.weight"))
