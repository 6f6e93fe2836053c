"""Which functions drew random numbers in a pass, and in which line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inspector.doctor.frames import own_line
from inspector.doctor.report import SourceLine
from inspector.findings import Finding, FindingKind, Severity
from inspector.forward.watch import Listener, Operation

RANDOM = FindingKind("random-in-evaluation", Severity.WARNING, "Evaluation gives another answer each time")
_MOST = 8
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Draw:
    """function: "dropout", "randn_like". inside: path of the module that called it."""

    function: str
    inside: str
    line: SourceLine | None


class Draws(Listener):
    """Operators that torch itself tags as drawing from its generator."""

    def __init__(self) -> None:
        self.found: dict[Draw, None] = {}
        self._function = ""

    def function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        name = getattr(function, "__name__", "")
        if not name.startswith("__"):
            self._function = name

    def operation(self, operation: Operation) -> None:
        if torch.Tag.nondeterministic_seeded not in operation.operator.tags or len(self.found) >= _MOST:
            return
        inside = operation.inside.path if operation.inside else ""
        name = self._function or operation.operator._schema.name.partition("::")[2]
        self.found[Draw(name.strip("_"), inside, own_line())] = None


def random_finding(draws: Sequence[Draw]) -> Finding:
    """That evaluation is random, by what drew; without any draw something else changes from pass to pass."""
    if not draws:
        return RANDOM.found(
            "In evaluation the same input gives another answer the second time, and no function of torch draws random "
            "numbers.",
            remedy="Look for NumPy's or Python's random, and for what a pass keeps for the next one.",
        )
    places = [
        f"{one.function} in {one.inside or 'the model itself'}"
        + (f" ({one.line.file}, line {one.line.line}: {one.line.text})" if one.line is not None else "")
        for one in draws[:_SHOWN]
    ]
    more = f" and {len(draws) - _SHOWN:,} more" if len(draws) > _SHOWN else ""
    first = draws[0].line
    return RANDOM.found(
        f"In evaluation the same input gives another answer with other random numbers: {'; '.join(places)}{more} "
        "draws them.",
        subjects=tuple(dict.fromkeys(one.inside for one in draws)),
        evidence=() if first is None else (("file", first.file), ("line", first.line), ("text", first.text)),
        remedy=_remedy([one.function for one in draws]),
    )


def _remedy(functions: Sequence[str]) -> str:
    if all("dropout" in name for name in functions):
        return "F.dropout takes training=self.training; nn.Dropout knows it by itself."
    if any(name in ("multinomial", "bernoulli", "categorical", "poisson") for name in functions):
        return "Sample in training alone (if self.training:), and take the mean or the likeliest in evaluation."
    return "Add noise in training alone: if self.training:."
