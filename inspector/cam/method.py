"""What a class activation method is: an entry that turns activations and gradients into a map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

Arithmetic = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method.

    id: "grad-cam". title: "Grad-CAM". paper: where the formula is from. says: what the map shows, for people.
    arithmetic: (activation, gradient), each (N, C, h, w) and at least float32, to the map before ReLU, (N, h, w).
    """

    id: str
    title: str
    paper: str
    says: str
    arithmetic: Arithmetic
