"""The size of an input as a person writes it: "3x224x224"."""

from __future__ import annotations

import math

from inspector.errors import UsageError
from inspector.units import whole_number

_MOST_SIDE = 1 << 20
_MOST_SIDES = 5
_MOST_INPUT = 1024 * 8192 * 8192


def parse_size(text: str) -> tuple[int, ...]:
    """ "3x224x224" -> (3, 224, 224); "128" tokens -> (128,); a clip is 3x16x112x112."""
    sizes = [whole_number(piece, _MOST_SIDE) for piece in text.lower().split("x")]
    known = [size for size in sizes if size]
    if len(known) < len(sizes) or len(sizes) > _MOST_SIDES:
        raise UsageError(f'"{text[:40]}" is no input size.', hint="Write channels x height x width, e.g. 3x224x224.")
    if len(known) == 3 and (known[0] > 1024 or max(known[1:]) > 8192):
        raise UsageError(f'"{text}" is too large an input.', hint="At most 1024x8192x8192.")
    if math.prod(known) > _MOST_INPUT:
        raise UsageError(f'"{text}" is too large an input.', hint=f"At most {_MOST_INPUT:,} numbers.")
    return tuple(known)
