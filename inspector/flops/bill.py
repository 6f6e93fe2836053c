"""Listens to one forward pass and adds up, per module, what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from inspector.flops.formulas import has_formula, is_movement, is_uncounted, macs_of, name_of
from inspector.flops.receptive.follow import ReceptiveFields
from inspector.flops.report import Operand
from inspector.flops.traffic import elements_of, nbytes_of, operands_of, traffic_of
from inspector.forward.watch import Call, Listener, Operation, tensors_in

_MOST_EINSUMS = 100
_UNCOUNTED, _ELEMENTWISE = "uncounted", "element-wise"
# MACs, element-wise operations, bytes read and written, in which list it stands ("" in none), and by which name.
Price = tuple[int, int, int, int, str, str]


@dataclass(slots=True)
class Line:
    """What is known of one module; one that ran twice has the sums, and the shapes of its first call."""

    module: nn.Module
    path: str
    order: int
    inputs: tuple[Operand, ...] = ()
    outputs: tuple[Operand, ...] = ()
    macs: int = 0
    own_macs: int = 0
    elementwise: int = 0
    own_elementwise: int = 0
    read: int = 0
    own_read: int = 0
    written: int = 0
    own_written: int = 0
    calls: int = 0
    output_nbytes: int = 0
    is_leaf: bool = True
    receptive_field: tuple[int, ...] | None = None


@dataclass(slots=True)
class Bill(Listener):
    """lines: by module, in the order in which they were first entered. Counters: operator's name to calls.

    prices: of calls by their likeness. given: what the whole model was given.
    """

    lines: dict[int, Line] = field(default_factory=dict)
    uncounted: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    einsums: Counter[tuple[str, str]] = field(default_factory=Counter)
    fields: ReceptiveFields = field(default_factory=ReceptiveFields)
    prices: dict[Hashable, Price] = field(default_factory=dict)
    given: list[torch.Tensor] = field(default_factory=list)

    def function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if (
            function is torch.functional.einsum
            and args
            and isinstance(args[0], str)
            and len(self.einsums) < _MOST_EINSUMS
        ):
            self.einsums[args[0], _order_of(args[0], args[1:])] += 1

    def enter(self, call: Call) -> None:
        line = self.lines.get(id(call.module))
        if line is None:
            line = self.lines[id(call.module)] = Line(call.module, call.path, len(self.lines))
            line.inputs = tuple(map(_operand, operands_of((call.args, dict(call.kwargs)))))
            if call.inside is None:
                self.given = operands_of((call.args, dict(call.kwargs)))
        line.calls += 1
        if call.inside is not None:
            self.lines[id(call.inside.module)].is_leaf = False

    def operation(self, operation: Operation) -> None:
        self.fields.operation(operation)
        price = self.prices.get(operation.likeness) if operation.likeness is not None else None
        if price is None:
            price = _price_of(operation)
            if operation.likeness is not None:
                self.prices[operation.likeness] = price
        macs, elements, read, written, lists, name = price
        if lists:
            (self.uncounted if lists == _UNCOUNTED else self.others)[name] += 1
        if operation.inside is None or not (macs or elements or read or written):
            return
        own = self.lines[id(operation.inside.module)]
        own.own_macs += macs
        own.own_elementwise += elements
        own.own_read += read
        own.own_written += written
        # A module may be running twice at once (recursion); it did the work once.
        for line in {id(line): line for line in self._running(operation.inside)}.values():
            line.macs += macs
            line.elementwise += elements
            line.read += read
            line.written += written

    def leave(self, call: Call) -> None:
        line = self.lines[id(call.module)]
        tensors = operands_of(call.output)
        line.output_nbytes += sum(map(nbytes_of, tensors))
        if not line.outputs:
            line.outputs = tuple(map(_operand, tensors))
            line.receptive_field = self.fields.of(tensors[0]) if tensors else None

    def _running(self, call: Call | None) -> Iterator[Line]:
        while call is not None:
            yield self.lines[id(call.module)]
            call = call.inside


def _price_of(operation: Operation) -> Price:
    operator = operation.operator
    macs = macs_of(operator, operation.args, operation.kwargs, operation.output)
    elements, lists = 0, ""
    if any(t.layout is not torch.strided for t in tensors_in((operation.args, dict(operation.kwargs)))):
        # How many products there are depends on how many numbers are kept.
        return 0, 0, 0, 0, _UNCOUNTED, f"{name_of(operator)} (sparse)"
    if macs is None:
        if is_uncounted(operator):
            lists = _UNCOUNTED
        elif not is_movement(operator):
            lists, elements = _ELEMENTWISE, elements_of(operation)
    return macs or 0, elements, *traffic_of(operation), lists, name_of(operator)


def _operand(tensor: torch.Tensor) -> Operand:
    return Operand(shape=tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."))


def is_whole(operator: Any) -> bool:
    """Composite operators with a formula are counted as one; others by what they are made of."""
    return has_formula(operator)


def _order_of(equation: str, operands: Sequence[Any]) -> str:
    """In which order torch contracts the operands of an einsum."""
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = operands[0]
    if len(operands) < 3:
        return "one product" if len(operands) == 2 else "no product"
    settings = torch.backends.opt_einsum
    if settings.is_available() and settings.enabled:
        try:
            path = settings.get_opt_einsum().contract_path(equation, *operands, optimize=settings.strategy or "auto")[0]
        except (ValueError, TypeError, AttributeError):
            return "the order was chosen by opt_einsum"
        return "by opt_einsum: " + ", ".join("-".join(str(n + 1) for n in step) for step in path)
    return "left to right (opt_einsum is not installed)"
