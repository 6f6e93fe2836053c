"""The cost of a model that a person's own code builds, counted in the process where that code runs.

As `architectures/user_code.py`: whoever calls has asked the person first, and the process contains accidents, not
malice. What comes back are numbers and names, checked like anything from outside.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.architectures.user_code import SECONDS, check_source, parse_factory, run_factory
from inspector.errors import InspectorError, ModelError
from inspector.flops.report import CostReport, ModuleCost, SecondOpinion

if TYPE_CHECKING:
    from torch import nn

_SIDE = 224
_SIZE_HINT = "Say what the model takes: --input-size 3x224x224, or 128 for so many numbers or tokens."


def count_code_costs(
    text: str,
    input_shape: tuple[int, ...] | None = None,
    *,
    batch: int = 1,
    second_opinion: bool = True,
    folder: Path | None = None,
    seconds: float = SECONDS,
) -> CostReport:
    """Run the factory and count one forward pass of what it returns. Runs the person's code.

    input_shape: of the one input without its batch; None for a picture of 224x224, or as many numbers, as the model's
    first layer takes. folder: where it runs, the current one if None. Raises as `target_of_code`, and ModelError as
    `count_model_costs`.
    """
    factory = parse_factory(text)
    here = folder or Path.cwd()
    check_source(factory, here)
    arguments = {
        "label": factory.text,
        "shape": None if input_shape is None else list(input_shape),
        "batch": batch,
        "second_opinion": second_opinion,
    }
    call = {"function": f"{__name__}:count_built", "arguments": arguments}
    with tempfile.TemporaryDirectory(prefix="inspector-code-") as private:
        answer = run_factory(factory, here, Path(private), seconds=seconds, call=call)
    if "refused" in answer:
        raise ModelError(str(answer["refused"])[:2000], hint=str(answer.get("hint", ""))[:500])
    try:
        return _report(answer["report"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{factory.text} left an answer that is no description.") from error


def count_built(
    model: Any, *, label: str, shape: Sequence[int] | None, batch: int, second_opinion: bool
) -> dict[str, Any]:
    """What `code_runner.hand_over` calls in the other process: {"report": ...}, or {"refused": ..., "hint": ...}."""
    from torch import nn

    from inspector.flops.count import count_model_costs
    from inspector.flops.trace import check_countable

    if not isinstance(model, nn.Module):
        return {"refused": f"{label} returned a {type(model).__name__}, not a torch.nn.Module."}
    try:
        check_countable(model, label=label)
        size, dtype = _input_of(model, shape, label)
        report = count_model_costs(model, (batch, *size), label=label, dtype=dtype, second_opinion=second_opinion)
    except InspectorError as error:
        return {"refused": error.says, "hint": error.hint}
    assumed = "" if shape else "assumed from its first layer; --input-size says otherwise"
    return {"report": dataclasses.asdict(dataclasses.replace(report, input_assumed=assumed))}


def _input_of(model: nn.Module, shape: Sequence[int] | None, label: str) -> tuple[tuple[int, ...], str]:
    """(shape without batch, element type) by the first layer that says what it takes."""
    from torch import nn

    layers = (m for m in model.modules() if isinstance(m, nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear | nn.Embedding))
    first = next(layers, None)
    if shape:
        return tuple(shape), "int64" if isinstance(first, nn.Embedding) and len(shape) == 1 else "float32"
    if isinstance(first, nn.Conv2d):
        return (first.in_channels, _SIDE, _SIDE), "float32"
    if isinstance(first, nn.Linear):
        return (first.in_features,), "float32"
    raise ModelError(f"Nothing tells what {label} takes.", hint=_SIZE_HINT)


def _report(found: object) -> CostReport:
    """The report as JSON carried it. Raises TypeError, KeyError or ValueError for what is none."""
    plain = _mapping(found)
    return CostReport(
        target=_text(plain["target"]),
        input_shape=_shape(plain["input_shape"]),
        modules=tuple(
            ModuleCost(
                path=_text(one["path"]),
                depth=_count(one["depth"]),
                kind=_text(one["kind"]),
                input_shape=None if one["input_shape"] is None else _shape(one["input_shape"]),
                output_shape=None if one["output_shape"] is None else _shape(one["output_shape"]),
                macs=_count(one["macs"]),
                own_macs=_count(one["own_macs"]),
                parameters=_count(one["parameters"]),
                calls=_count(one["calls"]),
            )
            for one in map(_mapping, plain["modules"])
        ),
        macs=_count(plain["macs"]),
        parameters=_count(plain["parameters"]),
        uncounted=tuple((_text(name), _count(calls)) for name, calls in plain["uncounted"]),
        other_operations=tuple((_text(name), _count(calls)) for name, calls in plain["other_operations"]),
        activation_nbytes=_count(plain["activation_nbytes"]),
        second_opinions=tuple(
            SecondOpinion(
                tool=_text(one["tool"]),
                macs=None if one["macs"] is None else _count(one["macs"]),
                note=_text(one["note"]),
            )
            for one in map(_mapping, plain["second_opinions"])
        ),
        input_assumed=_text(plain["input_assumed"]),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError
    return value


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(map(_count, value))
