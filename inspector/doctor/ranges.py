"""Inputs whose numbers reach the first layer as they were read: sound of 16 bits, pictures of 0 to 255, timestamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.instancenorm import _InstanceNorm

from inspector.doctor.report import CallRecord, SourceLine
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import human_shape

RANGE = FindingKind("input-range", Severity.WARNING, "The input reaches the first layer unscaled", (Severity.NOTICE,))
_LEAST_WHOLE = 100.0
_SOUND = 1000.0
_FAR = 1e4
# Beside columns of the usual size.
_USUAL = 100.0
_LEAST_VALUES = 64
_NORMS = (_BatchNorm, _InstanceNorm, nn.GroupNorm, nn.LayerNorm)


@dataclass(frozen=True, slots=True)
class Unscaled:
    """What a layer with weights was given. column: of it the one that stands far out; None for whole numbers
    throughout. usual: the median column's greatest."""

    path: str
    kind: str
    shape: tuple[int, ...]
    low: float
    high: float
    line: SourceLine | None
    column: int | None = None
    usual: float = 0.0


def unscaled(
    module: nn.Module, path: str, given: Tensor, *, from_input: bool, line: SourceLine | None
) -> Unscaled | None:
    """Whether numbers as large as files hold them come to this layer; None for those of the usual size.

    from_input: whether they are the model's input itself, not something computed from it.
    """
    if not isinstance(module, _ConvNd | nn.Linear | nn.RNNBase) or not module._parameters:
        return None
    plain = given.is_floating_point() and not given.is_meta and given.layout is torch.strided
    if not plain or given.numel() < _LEAST_VALUES or not bool(given.isfinite().all()):
        return None
    low, high = (float(v) for v in torch.aminmax(given))
    most = max(abs(low), abs(high))
    if most < _LEAST_WHOLE:
        return None
    kind, shape = type(module).__name__, tuple(given.shape)
    whole = bool((given == given.round()).all())
    if (whole and isinstance(module, _ConvNd)) or (whole and most > _SOUND):
        return Unscaled(path, kind, shape, low, high, line)
    if not from_input or isinstance(module, _ConvNd) or given.dim() < 2 or most < _FAR:
        return None
    columns = given.abs().reshape(-1, shape[-1]).amax(0)
    usual = float(columns.median())
    if columns.numel() < 2 or usual > _USUAL:
        return None
    return Unscaled(path, kind, shape, low, high, line, int(columns.argmax()), usual)


def find_unscaled(first: Unscaled | None, model: nn.Module, calls: list[CallRecord]) -> Iterator[Finding]:
    """A warning; a notice where a norm follows at once, which takes any scale."""
    if first is None:
        return
    line = f" ({first.line.file}, line {first.line.line}: {first.line.text})" if first.line is not None else ""
    place = f"{first.path or 'The model'} ({first.kind})"
    shape = human_shape(first.shape)
    if first.column is not None:
        most = max(abs(first.low), abs(first.high))
        unit = (
            " (milliseconds since 1970?)"
            if 1e12 < most < 3e12
            else " (seconds since 1970?)"
            if 1e9 < most < 3e9
            else ""
        )
        yield RANGE.found(
            f"{place} is given {shape} in which column {first.column} reaches {most:.6g}{unit}, while half of the "
            f"columns stay below {first.usual:.3g}{line}: it outweighs all others.",
            subjects=(first.path,),
            evidence=(("column", first.column), ("greatest", most)),
            remedy="Scale each column, (x - mean) / std of the training data; of a time take differences or its hour.",
        )
        return
    sound, pictures = max(abs(first.low), first.high) > 256 and first.low < 0, first.low >= 0 and first.high <= 255
    what, remedy = "the range in which the file holds them", "Divide by the greatest value that is possible."
    if sound and max(abs(first.low), first.high) <= 32768:
        what = "16-bit sound, as it is read"
        remedy = (
            "Divide by 32768 before the call: x = x / 32768. Behind such values sigmoid and tanh are at their ends."
        )
    elif pictures:
        what = "pictures of 0 to 255, as they are read"
        remedy = "Divide by 255 before the call (x = x / 255), then subtract the mean and divide by the deviation."
    yield RANGE.found(
        f"{place} is given whole numbers from {first.low:,.0f} to {first.high:,.0f}, {shape}{line}: {what}, unscaled.",
        severity=Severity.NOTICE if _norm_follows(first, model, calls) else None,
        subjects=(first.path,),
        evidence=(("least", first.low), ("greatest", first.high)),
        remedy=remedy,
    )


def _norm_follows(first: Unscaled, model: nn.Module, calls: list[CallRecord]) -> bool:
    """Whether the next layer with weights, or the next at all, is a norm."""
    modules = dict(model.named_modules())
    at = next((i for i, call in enumerate(calls) if call.path == first.path), len(calls))
    behind = [modules[c.path] for c in calls[at + 1 :] if c.path in modules and not modules[c.path]._modules]
    return bool(behind) and isinstance(behind[0], _NORMS)
