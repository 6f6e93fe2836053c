"""What the recorder of a pass notes down in passing, one small record each."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.doctor.report import End, SourceLine


@dataclass(slots=True)
class Foreign:
    """A parameter that ran and is none of the model's. inside: path of the module that ran it."""

    shape: tuple[int, ...]
    inside: str
    line: SourceLine | None
    ident: int


@dataclass(frozen=True, slots=True)
class InPlace:
    """An operator that changed a tensor while gradients were recorded."""

    operator: str
    shape: tuple[int, ...]
    inside: str
    line: SourceLine | None


@dataclass(frozen=True, slots=True)
class Spread:
    """A column and a row of `count` numbers each that an operator made a square of. difference: of two tensors of
    their own, as in a loss, and not of one with itself."""

    operator: str
    count: int
    inside: str
    line: SourceLine | None
    difference: bool = False


@dataclass(frozen=True, slots=True)
class OverFirst:
    """A softmax, mean or norm over dimension 0, of so many entries, of a tensor with more dimensions."""

    operator: str
    shape: tuple[int, ...]
    count: int
    inside: str
    line: SourceLine | None


@dataclass(frozen=True, slots=True)
class AllNegative:
    """A ReLU that let nothing through. inside: path of its module; maker: of what it was given. count: of values."""

    inside: str
    maker: str
    count: int
    line: SourceLine | None


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss that the forward itself calls, and what made its first argument."""

    function: str
    end: End | None
    line: SourceLine | None
