"""torch.einsum whose letters name two sizes; other orders of an operand's letters are tried out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from inspector.doctor.causes.entry import Cause
from inspector.doctor.report import Diagnosis
from inspector.doctor.scene import Scene

_MOST_LETTERS = 4


def find_einsum(scene: Scene) -> Diagnosis | None:
    """The letters of one operand in another order, if it then runs to the end."""
    args = scene.recorder.function_args[0]
    if scene.recorder.function_name != "einsum" or not args or not isinstance(args[0], str):
        return None
    listed = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
    operands = [one for one in listed if isinstance(one, Tensor)]
    equation = args[0].replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if (
        "." in left
        or len(terms) != len(operands)
        or any(len(a) != b.dim() for a, b in zip(terms, operands, strict=True))
    ):
        return None
    sizes: dict[str, set[int]] = {}
    for term, tensor in zip(terms, operands, strict=True):
        for letter, size in zip(term, tensor.shape, strict=True):
            sizes.setdefault(letter, set()).add(size)
    clashes = [f"{letter} is {' and '.join(map(str, sorted(n)))}" for letter, n in sizes.items() if len(n - {1}) > 1]
    if not clashes:
        return None
    told = "; ".join(scene.told(t) for t in operands[:4])
    says = f"einsum '{args[0]}' in {scene.path}: {', '.join(clashes)}. The operands are {told}."
    batch = scene.picture.shape[0] if scene.picture is not None and scene.picture.dim() else 0
    shapes = [tuple(t.shape) for t in operands]
    # First those whose answer has the batch in front.
    for other in sorted(_others(terms, shapes), key=lambda one: _first_size(one, shapes, right) != batch):
        made = ",".join(other) + arrow + right

        def replace(name: str, given: Sequence[Any], kwargs: Mapping[str, Any], made: str = made) -> Any:
            return ((made, *given[1:]), kwargs) if name == "einsum" and given and given[0] == args[0] else None

        if scene.trials.runs_replaced(replace, scene.args, scene.kwargs):
            return Diagnosis(
                cause="shape-of-operand",
                says=says,
                fix="Each operand's letters are its dimensions in their order.",
                code=f"torch.einsum({made!r}, ...)",
                tried=("that, to the end of the forward: runs through",),
            )
    return Diagnosis(
        cause="shape-of-operand", says=says, fix="A letter is one size wherever it stands: give the other one its own."
    )


def _first_size(terms: list[str], shapes: list[tuple[int, ...]], right: str) -> int:
    """Of the answer's first letter."""
    named = {
        letter: size
        for term, shape in zip(terms, shapes, strict=True)
        for letter, size in zip(term, shape, strict=True)
    }
    return named.get(right[:1], 0)


def _others(terms: list[str], shapes: list[tuple[int, ...]]) -> Iterator[list[str]]:
    """Equations in which one operand's letters stand in another order and all sizes agree."""
    for at, term in enumerate(terms):
        if len(term) > _MOST_LETTERS:
            continue
        for order in itertools.permutations(term):
            other = [*terms[:at], "".join(order), *terms[at + 1 :]]
            named: dict[str, int] = {}
            agrees = all(
                named.setdefault(letter, size) == size
                for one, shape in zip(other, shapes, strict=True)
                for letter, size in zip(one, shape, strict=True)
            )
            if agrees and other != terms:
                yield other


CAUSES = (Cause(kinds=("shape-of-operand",), find=find_einsum),)
