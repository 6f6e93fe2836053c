"""How many pixels of the picture one element of each output depends on, along each axis, padding not considered.

A rule per operator, as the forward pass runs: a convolution or pooling of kernel k and dilation d adds (k - 1) d steps,
its stride widens the step. What normalises (its statistics) and what gates channels from the whole picture
(squeeze-excitation) is not counted, by custom. Where no rule is known, or positions are regrouped (windows, a class
token), nothing is said from there on.

Araujo, Norris, Sim, "Computing Receptive Fields of Convolutional Neural Networks", Distill 2019.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from inspector.flops.formulas import short_name
from inspector.flops.receptive.field import Atoms, Field, fits
from inspector.flops.receptive.rules import KEEPS, RULES, elementwise
from inspector.forward.watch import Operation, tensors_in

# Their statistics are of all places.
_OVER_PLACES = ("native_group_norm", "_native_batch_norm_legit")


def _gates(read: list[Any]) -> bool:
    """Whether something made of the whole picture meets something that still has places."""
    fields = [found for found in read if isinstance(found, Field)]
    return len({any(field.dims) for field in fields}) > 1


# Stands for a tensor that depends on the picture in a way that no rule tells.
_LOST = object()


class ReceptiveFields:
    """Follows tensors through the operators of one forward pass."""

    def __init__(self) -> None:
        self._fields: Any = WeakIdKeyDictionary()
        self._convolved = False
        self._signal: Tensor | None = None
        self.by_custom = False

    def begin(self, picture: Tensor) -> None:
        """The input, (batch, channels, then two axes or three). Of fewer axes nobody knows which are places."""
        axes = picture.dim() - 2
        if axes == 1:
            # Which of the two is the place, only a convolution tells.
            self._signal = picture
        if axes > 1:
            self._take(picture)

    def _take(self, picture: Tensor) -> None:
        axes = picture.dim() - 2
        dims: tuple[Atoms, ...] = ((), (), *(((n, int(picture.shape[2 + n])),) for n in range(axes)))
        self._fields[picture] = Field(dims, (Fraction(1),) * axes, (Fraction(1),) * axes)

    def of(self, tensor: Tensor) -> tuple[int, ...] | None:
        """Pixels along each axis, rounded up; None where it is not determined, or no convolution has come yet."""
        field = self._field(tensor)
        if field is None or not self._convolved:
            return None
        return tuple(math.ceil(size) for size in field.size)

    def operation(self, operation: Operation) -> None:
        """Give the operator's outputs their fields."""
        name = short_name(operation.operator)
        if self._signal is not None and "convolution" in name and operation.args[0] is self._signal:
            self._take(self._signal)
        read = [self._fields.get(tensor) for tensor in tensors_in((operation.args, dict(operation.kwargs)))]
        if not any(found is not None for found in read):
            return
        self._convolved = self._convolved or "convolution" in name
        self.by_custom = self.by_custom or name in _OVER_PLACES or _gates(read)
        field = None if any(found is _LOST for found in read) else self._told(operation)
        for output in tensors_in(operation.output):
            told = field if field is not None and fits(field, output.shape) else _LOST
            base = output._base
            # Written through a view: what else its memory holds has another field now.
            if base is not None and self._fields.get(output) not in (None, told):
                self._fields[base] = _LOST
            self._fields[output] = told

    def _told(self, operation: Operation) -> Field | None:
        name = short_name(operation.operator).rstrip("_")
        rule = RULES.get(name)
        if rule is None and (torch.Tag.pointwise in operation.operator.tags or name in KEEPS):
            rule = elementwise
        try:
            return rule(self._field, operation) if rule is not None else None
        # A form of the call that the rule was not written for.
        except (IndexError, ValueError, TypeError):
            return None

    def _field(self, tensor: Any) -> Field | None:
        found = self._fields.get(tensor)
        return found if isinstance(found, Field) else None
