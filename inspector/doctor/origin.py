"""Which operator made the first NaN or infinity, and in which line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from inspector.doctor.frames import own_frame, own_line
from inspector.doctor.modes import run_in_mode
from inspector.doctor.operand_values import operand_told
from inspector.doctor.record import unwatched
from inspector.doctor.report import SourceLine
from inspector.forward.watch import ForwardError, Listener, Operation, tensors_in


@dataclass(frozen=True, slots=True)
class Origin:
    """operator: its plain name. inside: path of the module that called it. line: of the model's own code. makes: "NaN"
        or "infinity". why: what of that operator does it, with the remedy; "" where that is not known.
    operand: a clause about the values that it was given."""

    operator: str
    inside: str
    line: SourceLine | None
    makes: str
    why: str
    operand: str = ""


_MASKED = (
    "A row of it is masked throughout (-inf everywhere): leave one key in it, and look whether the mask is inverted."
)
_WHY = {
    "std": "Of one value there is no spread: a batch of two or more, or unbiased=False.",
    "var": "Of one value there is no spread: a batch of two or more, or unbiased=False.",
    "log": "log of 0 or less: clamp before, as x.clamp_min(1e-8).",
    "log2": "log of 0 or less: clamp before, as x.clamp_min(1e-8).",
    "sqrt": "Root of a negative number: clamp before, as x.clamp_min(0).",
    "rsqrt": "Root of 0 or less: add a small number before.",
    "div": "A division by 0: add a small number below.",
    "reciprocal": "A division by 0: add a small number below.",
    "exp": "exp of more than about 88 (float32) or 11 (float16) is infinite: subtract the greatest before.",
    "pow": "A negative number to a broken power, 0 to a negative one, or an overflow.",
    "mean": "A mean over nothing: a dimension of 0.",
}


# Whose -infinity is none that a mask put there.
_LOGS = ("log", "log2", "log10", "log1p")


class _Search(Listener):
    def __init__(self) -> None:
        self.found: Origin | None = None

    def operation(self, operation: Operation) -> None:
        if self.found is not None:
            return
        with unwatched():
            name = operation.operator._schema.name.partition("::")[2]
            # Memory that nobody has written yet holds anything; of a mask -inf is meant.
            if name.startswith(("empty", "new_empty", "full", "masked_fill", "scalar_tensor")):
                return
            given = [t for t in tensors_in((operation.args, dict(operation.kwargs))) if not t.is_meta]
            made = [t for t in tensors_in(operation.output) if _has_values(t)]
            for makes, test in (("NaN", torch.isnan), ("infinity", torch.isinf)):
                test = torch.isposinf if makes == "infinity" and name.strip("_") not in _LOGS else test
                if not any(bool(test(t).any()) for t in made) or any(bool(test(t).any()) for t in given):
                    continue
                masked = any(bool(torch.isneginf(t).any()) for t in given)
                plain = name.strip("_").removeprefix("safe_")
                why = _MASKED if masked and ("softmax" in plain or "attention" in plain) else _WHY.get(plain, "")
                operand, remedy = operand_told(plain, given, operation.args, makes, own_frame())
                inside = operation.inside.path if operation.inside else ""
                self.found = Origin(plain, inside, own_line(), makes, remedy or why, operand)
                return


def _has_values(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and not tensor.is_meta


def find_origin(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], *, training: bool) -> Origin | None:
    """The first operator that gives what is not finite and got only finite numbers; None where there is none."""
    search = _Search()
    try:
        run_in_mode(model, args, kwargs, training=training, listener=search)
    except ForwardError:
        return None
    return search.found


def bad_to_begin(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Which input or weight holds NaN or infinities before anything runs, as a sentence; "" where none does."""
    given = [(f"input {i}", t) for i, value in enumerate(args) for t in tensors_in(value)]
    given += [(f"input {name}", t) for name, value in kwargs.items() for t in tensors_in(value)]
    for name, tensor in (*given, *model.named_parameters(), *model.named_buffers()):
        plain = tensor.is_floating_point() and not tensor.is_meta and tensor.layout is torch.strided
        bad = ~torch.isfinite(tensor.detach()) if plain and not is_lazy(tensor) else None
        # -inf in a buffer is a mask.
        if bad is not None and bool((bad & ~torch.isneginf(tensor.detach())).any()):
            first = bad.nonzero()[0].tolist()
            return f"The {name} holds {int(bad.sum()):,} values that are not finite itself, the first at {first}."
    return ""
