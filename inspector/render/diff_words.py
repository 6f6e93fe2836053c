"""What is said of a pair of tensors: in a terminal, on the Compare page, in the page without a server."""

from __future__ import annotations

import math

from inspector.compare.report import Relation, TensorDiff
from inspector.units import human_shape, human_share


def importance(tensor: TensorDiff) -> tuple[float, float]:
    """To sort by: what cannot be measured first, then the largest relative L2, last what has but another name."""
    if tensor.is_only_renamed:
        return (3.0, 0.0)
    if tensor.relation is Relation.UNREAD:
        return (0.0, 0.0)
    if tensor.numbers is None:
        return (1.0, 0.0)
    relative = tensor.numbers.relative
    return (2.0, -relative if not math.isnan(relative) else -math.inf)


def tensor_name(tensor: TensorDiff) -> str:
    """Its name, both where the files differ in it."""
    if tensor.renamed and tensor.a is not None and tensor.b is not None:
        return f"{tensor.a.name} => {tensor.b.name}"
    return tensor.name


def relation_word(tensor: TensorDiff) -> str:
    """What the second file's is to the first one's."""
    return "renamed" if tensor.is_only_renamed else str(tensor.relation)


def both_shapes(tensor: TensorDiff) -> str:
    """ "64x3 -> 64x4", once where both have it."""
    return _both(*(human_shape(side.shape) for side in (tensor.a, tensor.b) if side is not None))


def both_types(tensor: TensorDiff) -> str:
    """As `both_shapes`."""
    return _both(*(side.dtype for side in (tensor.a, tensor.b) if side is not None))


def _both(*sides: str) -> str:
    return " -> ".join(dict.fromkeys(sides))


def largest_change(tensor: TensorDiff) -> str:
    """ "0.5 at [3, 7]: 1 -> 1.5", "" where nothing changed."""
    change = tensor.numbers.largest if tensor.numbers is not None else None
    if change is None or tensor.a is None:
        return ""
    shape = (*tensor.a.shape, tensor.parts) if tensor.parts > 1 else tensor.a.shape
    place = f" at {list(change.place(shape))}" if shape else ""
    return f"{change.size:.4g}{place}: {change.a:.6g} -> {change.b:.6g}"


def tensor_note(tensor: TensorDiff) -> str:
    """What else is to be said of it."""
    parts = [tensor.note]
    if tensor.reshape is not None:
        parts.append(f"first {tensor.rows:,} rows equal" if tensor.reshape == "first rows equal" else tensor.reshape)
    if tensor.axes:
        parts.append(f"axes {list(tensor.axes)}")
    numbers = tensor.numbers
    if numbers is not None:
        if numbers.zeroed:
            rest = ", all others equal" if numbers.rest_equal else ""
            parts.append(f"{human_share(numbers.zeroed / numbers.n)} set to zero{rest}")
        odd = numbers.nan_a + numbers.nan_b + numbers.infinite_a + numbers.infinite_b
        if odd:
            parts.append(
                f"NaN or infinite: {numbers.nan_a + numbers.infinite_a:,} -> {numbers.nan_b + numbers.infinite_b:,}"
            )
    return "; ".join(part for part in parts if part)
