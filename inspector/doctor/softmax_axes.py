"""Softmaxes over the wrong axis: attention whose weights sum to 1 elsewhere than they are summed, one over one entry.

Read off the functions of one pass: q @ k makes scores, softmax goes over an axis of them, and the product with v
contracts an axis. What is done in between and not followed here (a norm over the tokens, a reshape) ends the reading.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from inspector.doctor.frames import own_line
from inspector.doctor.report import SourceLine
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import human_shape

WRONG_AXIS = FindingKind("softmax-axis", Severity.WARNING, "Attention's softmax goes over an axis that is not summed")
OF_ONE = FindingKind("softmax-of-one", Severity.WARNING, "A softmax over one entry")

_PRODUCTS = ("matmul", "__matmul__", "bmm", "einsum", "baddbmm")
# What keeps scores scores: scaled, masked, biased.
_KEEP_SCORES = (
    "div", "mul", "add", "sub", "__truediv__", "__mul__", "__add__", "__sub__", "__rmul__", "__radd__", "true_divide",
    "masked_fill", "masked_fill_", "where", "float", "half", "to", "type_as", "contiguous", "div_", "mul_", "add_",
    "__itruediv__", "__imul__", "__iadd__", "clamp", "type",
)  # fmt: skip
_KEEP_WEIGHTS = ("dropout", "to", "type_as", "float", "half", "contiguous", "type", "clone", "masked_fill")
_MOST = 64


@dataclass(frozen=True, slots=True)
class WrongAxis:
    """axis: of the scores, that the softmax goes over; summed: that the product sums. shape: of the scores."""

    shape: tuple[int, ...]
    axis: int
    summed: int
    line: SourceLine | None
    product: SourceLine | None


@dataclass(frozen=True, slots=True)
class OfOne:
    """A softmax over an axis whose size 1 is its layer's own. inside: path of the module that ran it; maker: of that
    layer."""

    function: str
    shape: tuple[int, ...]
    axis: int
    inside: str
    maker: str
    line: SourceLine | None


@dataclass(frozen=True, slots=True)
class _Weights:
    """A softmax of scores. axis: where it stands by now; at: where it stood."""

    axis: int
    at: int
    shape: tuple[int, ...]
    line: SourceLine | None


class SoftmaxAxes:
    """Hears of each function and follows scores from their product to the next."""

    def __init__(self) -> None:
        self.found: list[WrongAxis] = []
        self._scores: dict[int, weakref.ref[Tensor]] = {}
        self._weights: dict[int, tuple[weakref.ref[Tensor], _Weights]] = {}

    def returned(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
        """As a Listener's."""
        name = getattr(function, "__name__", "")
        if not isinstance(output, Tensor) or not args or len(self.found) >= _MOST:
            return
        first = args[0] if isinstance(args[0], Tensor) else None
        if name in _PRODUCTS:
            given = [one for one in args if isinstance(one, Tensor)]
            self._product(name, args, given)
            if len(given) >= 2 and not any(isinstance(one, nn.Parameter) for one in given) and output.dim() > 2:
                self._scores[id(output)] = weakref.ref(output)
        elif name == "softmax" and first is not None and self._is_score(first):
            axis = args[1] if len(args) > 1 else kwargs.get("dim")
            if isinstance(axis, int):
                axis %= output.dim()
                made = _Weights(axis, axis, tuple(output.shape), own_line())
                self._weights[id(output)] = (weakref.ref(output), made)
        elif name in _KEEP_SCORES and any(isinstance(one, Tensor) and self._is_score(one) for one in args):
            self._scores[id(output)] = weakref.ref(output)
        elif first is not None and (kept := self._weights_of(first)) is not None:
            turned = _turned(name, args, kwargs, kept.axis, output.dim())
            if turned is not None:
                self._weights[id(output)] = (
                    weakref.ref(output),
                    _Weights(turned, kept.at, kept.shape, kept.line),
                )
        if name in _KEEP_WEIGHTS and first is not None and (kept := self._weights_of(first)) is not None:
            self._weights[id(output)] = (weakref.ref(output), kept)

    def _is_score(self, tensor: Tensor) -> bool:
        kept = self._scores.get(id(tensor))
        return kept is not None and kept() is tensor

    def _weights_of(self, tensor: Tensor) -> _Weights | None:
        kept = self._weights.get(id(tensor))
        return kept[1] if kept is not None and kept[0]() is tensor else None

    def _product(self, name: str, args: Sequence[Any], given: Sequence[Tensor]) -> None:
        for place, tensor in enumerate(given[:2]):
            kept = self._weights_of(tensor)
            if kept is None or len(given) != 2:
                continue
            summed = _summed(name, args, place, tensor)
            if summed and kept.axis not in summed and kept.shape[kept.at] > 1:
                # Back to where the axis stands in the scores.
                moved = kept.axis != kept.at
                self.found.append(WrongAxis(kept.shape, kept.at, -1 if moved else summed[0], kept.line, own_line()))


def _summed(name: str, args: Sequence[Any], place: int, tensor: Tensor) -> tuple[int, ...]:
    """The axes of one operand that a product sums; none where that is not told."""
    if name != "einsum":
        return (tensor.dim() - 1,) if place == 0 else (max(tensor.dim() - 2, 0),)
    if not isinstance(args[0], str) or "->" not in args[0] or "." in args[0]:
        return ()
    operands, made = args[0].replace(" ", "").split("->")
    parts = operands.split(",")
    if place >= len(parts) or len(parts[place]) != tensor.dim():
        return ()
    return tuple(i for i, letter in enumerate(parts[place]) if letter not in made)


def _turned(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], axis: int, rank: int) -> int | None:
    """Where an axis stands after a transposition; None for what is none."""
    order = list(range(rank))
    if name in ("transpose", "swapaxes", "swapdims") and len(args) == 3:
        a, b = args[1] % rank, args[2] % rank
        order[a], order[b] = order[b], order[a]
    elif name == "permute":
        dims = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
        if len(dims) != rank or not all(isinstance(one, int) for one in dims):
            return None
        order = [one % rank for one in dims]
    else:
        return None
    return order.index(axis)


def find_wrong_axes(found: Sequence[WrongAxis]) -> Iterator[Finding]:
    """One finding for each line."""
    seen: set[SourceLine | None] = set()
    for one in found:
        if one.line in seen:
            continue
        seen.add(one.line)
        where = f" ({one.line.file}, line {one.line.line}: {one.line.text})" if one.line is not None else ""
        product = f" (line {one.product.line}: {one.product.text})" if one.product is not None else ""
        summed = f" sums dimension {one.summed}" if one.summed >= 0 else " sums another"
        remedy = (
            f"dim={one.summed - len(one.shape)}, the dimension of the keys, in that softmax."
            if one.summed >= 0
            else "Softmax goes over the dimension of the keys, which the product with the values sums."
        )
        yield WRONG_AXIS.found(
            f"The softmax{where} of scores {human_shape(one.shape)} goes over dimension {one.axis}, and the product "
            f"behind it{product}{summed}: what is summed does not have weights that sum to 1.",
            evidence=(("axis", one.axis), ("size", one.shape[one.axis])),
            remedy=remedy,
        )


def find_of_one(found: Sequence[OfOne]) -> Iterator[Finding]:
    """The first of them."""
    for one in found[:1]:
        where = f" ({one.line.file}, line {one.line.line}: {one.line.text})" if one.line is not None else ""
        value = "0" if one.function == "log_softmax" else "1"
        maker = f" that {one.maker} gives" if one.maker else ""
        yield OF_ONE.found(
            f"{one.function} in {one.inside or 'the model itself'}{where} goes over dimension {one.axis} of "
            f"{human_shape(one.shape)}{maker}, which holds one entry: it gives {value} for every input, and no "
            "gradient goes back through it.",
            subjects=(one.inside,),
            evidence=(("axis", one.axis),),
            remedy="For one output take a sigmoid (in training BCEWithLogitsLoss on the logits), or make two outputs; "
            "for weights over positions name their dimension.",
        )
