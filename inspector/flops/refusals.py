"""Why a forward pass could not be counted, as a sentence with what to do next."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from inspector.errors import ModelError, NeedsValues
from inspector.flops.formulas import name_of, short_name
from inspector.forward.watch import Call, ForwardError, ValuesNeeded, tensors_in
from inspector.units import human_shape

_VALUE_ASKED = ("_local_scalar_dense", "is_nonzero", "item", "equal")
REAL_RUN = "A run with real numbers can count it: --values random."


def explained(label: str, shape: tuple[int, ...], failed: ForwardError) -> ModelError:
    """The error of a forward as a sentence: which layer got what, and what it is made for."""
    where = failed.calls[-1] if failed.calls else None
    needed = _value_asked_for(failed)
    if needed:
        place = f", in {_name(where)} ({type(where.module).__name__})" if where else ""
        return NeedsValues(
            f"The cost of {label} depends on what is in its input: {needed}{place}. Shapes alone do not tell how much "
            "work follows.",
            hint=REAL_RUN,
        )
    error = failed.error
    says = f"{label} does not take an input of {human_shape(shape)}"
    hint = "Try the input size that the model was trained with."
    if isinstance(error, TypeError):
        hint = "A model with several inputs is given them one by one: --input name=1x128:int64."
    if where is not None:
        first = next(tensors_in((where.args, dict(where.kwargs))), None)
        got = None if first is None else tuple(first.shape)
        name = _name(where)
        says += f": the forward pass failed in {name} ({_described(where.module)})"
        says += "" if got is None else f", which got {human_shape(got)}"
        wants = getattr(where.module, "in_channels", None)
        if isinstance(wants, int) and got is not None and len(got) >= 2 and got[1] != wants:
            hint = f"{name} takes {wants} {'channel' if wants == 1 else 'channels'}, not {got[1]}."
        if isinstance(where.module, nn.Conv3d) and got is not None and len(got) == 4:
            hint = "It takes clips (batch x channels x frames x height x width), not pictures."
    return ModelError(f"{says}: {first_line(error)}", hint=hint)


def _value_asked_for(failed: ForwardError) -> str:
    """What the model asked of a value that nobody computed; "" where the failure is another one."""
    error, operator = failed.error, failed.operator
    text = str(error)
    if isinstance(error, ValuesNeeded):
        return text
    tags: Any = getattr(operator, "tags", ())
    name = "" if operator is None else short_name(operator)
    on_meta = any(tensor.is_meta for tensor in tensors_in(failed.operands))
    if torch.Tag.dynamic_output_shape in tags:
        return f"{name_of(operator)} gives as many results as it finds"
    if name in _VALUE_ASKED or torch.Tag.data_dependent_output in tags or ".item() cannot be called on meta" in text:
        asked = "item" if operator is None else name_of(operator)
        return f"the value of a tensor is read, as a branch on it does ({asked})"
    if ("numpy" in text and "meta" in text) or "can't convert meta" in text:
        return "a tensor is handed to NumPy"
    if "Cannot copy out of meta tensor" in text or ("tolist" in text and "meta" in text):
        return "a tensor's numbers are moved to another device, a list or NumPy"
    if "data-dependent" in text:
        return f"{name or 'an operation'} depends on data"
    if operator is not None and on_meta and isinstance(error, NotImplementedError):
        return f"{name_of(operator)} cannot be run without numbers"
    return ""


def _name(call: Call | None) -> str:
    return "the model itself" if call is None or not call.path else call.path


def _described(module: nn.Module) -> str:
    """Class and weight shape: "Conv2d, weight 64x3x7x7"."""
    weight = module._parameters.get("weight")
    kind = type(module).__name__
    return kind if weight is None else f"{kind}, weight {human_shape(tuple(weight.shape))}"


def first_line(error: BaseException) -> str:
    """The first line of what an error says, cut at 200 characters."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    text = text if len(text) <= 200 else text[:199] + "…"
    return text if text.endswith((".", "!", "…")) else text + "."
