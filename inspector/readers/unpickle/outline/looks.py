"""What tensors of one shape have in common, made once: a model has thousands of tensors and a few dozen shapes."""

from __future__ import annotations

import math

from inspector.checkpoint.dtypes import DTYPES
from inspector.readers.unpickle.stand_ins import TensorStub
from inspector.units import human_shape

# Shape, stride, text and bytes.
Look = tuple[tuple[int, ...], tuple[int, ...] | None, str, int]
# Few, since numbers can be chosen so that finding one takes as long as there are.
_MOST = 128


class Looks:
    """By shape, stride and type of elements. The first of each is the one that all others share."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[tuple[tuple[int, ...], tuple[int, ...] | None, str], Look] = {}

    def of(self, stub: TensorStub) -> Look:
        """Shape, stride, "4x5 float32", and the bytes of its elements."""
        key = (stub.shape, stub.stride, stub.dtype)
        found = self.known.get(key)
        if found is None:
            says = f"{human_shape(stub.shape)[:100]} {stub.dtype}"
            found = (stub.shape, stub.stride, says, math.prod(stub.shape) * DTYPES[stub.dtype].itemsize)
            if len(self.known) < _MOST:
                self.known[key] = found
        return found
