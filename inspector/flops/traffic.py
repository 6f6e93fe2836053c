"""What one operator call reads and writes, and how many element-wise operations it is.

As if nothing were fused: each operator reads its operands from memory and writes its results there.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from inspector.flops.formulas import is_view, short_name
from inspector.forward.watch import Operation, tensors_in

# They make memory without writing to it.
_UNWRITTEN = ("empty", "new_empty", "empty_like", "empty_strided", "set_", "resize_", "lift_fresh", "detach")
# They read of their first operand only what they give.
_PICKS = ("embedding", "index", "index_select", "gather", "take")


def nbytes_of(tensor: Tensor) -> int:
    """Bytes of memory that a tensor covers; one that repeats itself (expand) covers less than its elements say."""
    size = tensor.numel() * tensor.element_size()
    if 0 in tensor.stride() and tensor.numel():
        for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
            if stride == 0:
                size //= max(1, length)
    return size


def traffic_of(operation: Operation) -> tuple[int, int]:
    """(bytes read, bytes written) of one call."""
    name = short_name(operation.operator)
    if is_view(operation.operator) or name in _UNWRITTEN:
        return 0, 0
    written = sum(map(nbytes_of, tensors_in(operation.output)))
    read = list(tensors_in((operation.args, dict(operation.kwargs))))
    if name in _PICKS and read:
        return sum(map(nbytes_of, read[1:])) + written, written
    if name.startswith("_embedding_bag") and len(read) > 1:
        table, places = read[:2]
        return sum(map(nbytes_of, read[1:])) + places.numel() * table.shape[-1] * table.element_size(), written
    if name in ("fill_", "zero_", "copy_") and read:
        read = read[1:]
    return sum(map(nbytes_of, read)), written


def elements_of(operation: Operation) -> int:
    """Elements of the largest tensor that the call reads or makes."""
    sizes = [tensor.numel() for tensor in tensors_in((operation.args, dict(operation.kwargs), operation.output))]
    return max(sizes, default=0)


def operands_of(value: Any, most: int = 16) -> list[Tensor]:
    """The first tensors inside a module's input or output."""
    found = []
    for tensor in tensors_in(value):
        found.append(tensor)
        if len(found) == most:
            break
    return found
