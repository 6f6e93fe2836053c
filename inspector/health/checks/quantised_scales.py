"""Scales beside int8 and float8 weights that no largest weight over 127 is: zero, negative, out of all proportion.

w = s q, with s > 0 for each row, block or tensor (Jacob et al. 2018, 1712.05877; LLM.int8, 2208.07339; float8:
Micikevicius et al. 2022, 2209.05433). Schemes that have negative scales (MLX, AutoRound, ggml's) keep no such payload
under such names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.units import human_place

SCALES = FindingKind("quantised-scales", Severity.WARNING, "Scales of quantised weights cannot be right")

# By what a weight is multiplied, where it is "weight"; SCB is the largest magnitude itself.
_NAMES = ("weight_scale", "weight_scale_inv", "SCB", "scale_weight")
_PAYLOADS = ("int8", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_FLOATS = ("float32", "float16", "bfloat16", "float64")
# One scale over the median of its tensor's, or of the file's; at most this part of them is so far away.
_FAR, _FEW, _LEAST = 1e3, 0.02, 8

_REMEDY_ZERO = (
    "The least scale that a type holds is above it: it was lost in a cast (float16 ends at 6e-8) or in writing. "
    "Quantise the layer anew."
)
_REMEDY_SIGN = (
    "Symmetric schemes have none: a scale is the largest magnitude over the highest level. Take the scales from where "
    "the layer was quantised."
)
_REMEDY_FAR = (
    "The row that it belongs to is as many times too large. A scale of another layer, its inverse, or a damaged number "
    "looks like this: quantise the layer anew."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Odd:
    """One tensor of scales. count: of its scales are odd. first: where the first is, [3, 0]. worst: the largest
    magnitude of these."""

    name: str
    count: int
    numel: int
    first: str
    worst: float
    usual: float


def _find(subject: Subject) -> Iterator[Finding]:
    zero: list[_Odd] = []
    negative: list[_Odd] = []
    far: list[_Odd] = []
    whole: dict[str, tuple[str, float]] = {}
    for payload, scale in _pairs(subject):
        values = _values(subject, scale)
        if values is None:
            continue
        positive = values[(values > 0) & np.isfinite(values)]
        usual = float(np.median(positive)) if len(positive) else 0.0
        if (values < 0).any():
            negative.append(_odd(scale, values, values < 0, usual))
        if (values == 0).any() and not _is_empty(subject, payload, values):
            zero.append(_odd(scale, values, values == 0, usual))
        beyond = np.isfinite(values) & (values > _FAR * usual)
        if len(values) >= _LEAST and 0 < beyond.sum() <= max(1, _FEW * len(values)):
            far.append(_odd(scale, values, beyond, usual))
        if len(values) == 1 and len(positive):
            whole[scale.name] = scale.last, float(values[0])
    far += _unlike_the_files(whole)
    for found, says, remedy in (
        (zero, "0: what they multiply is 0, though it was not", _REMEDY_ZERO),
        (negative, "negative, which turns the sign of what they multiply", _REMEDY_SIGN),
        (far, "", _REMEDY_FAR),
    ):
        if found:
            yield _finding(sorted(found, key=lambda each: -each.count / each.numel), says, remedy)


def _pairs(subject: Subject) -> Iterator[tuple[Examined, Examined]]:
    """(weight, scale) of one module."""
    for one in subject.tensors:
        if one.role is not Role.QUANTISED or one.tensor.dtype not in _PAYLOADS or len(one.tensor.shape) < 2:
            continue
        names = _NAMES if one.last == "weight" else (f"{one.last}_scale", f"{one.last}_scale_inv")
        for last in names:
            scale = subject.beside(one, last)
            if scale is not None and scale.tensor.dtype in _FLOATS and scale.tensor.numel:
                yield one, scale


def _values(subject: Subject, scale: Examined) -> NDArray[np.float64] | None:
    """(n,), some perhaps infinite; None where it cannot be read or holds NaN, which is said elsewhere."""
    t = scale.statistics
    array = subject.array(scale) if t is not None else None
    return array.ravel() if t is not None and array is not None and not t.nan else None


def _is_empty(subject: Subject, payload: Examined, values: NDArray[np.float64]) -> bool:
    """Whether the rows whose scale is zero hold zeros only, as rows do that were zero before. Of blocks and of what is
    too large to read nothing is claimed."""
    if len(values) != payload.tensor.shape[0] and len(values) != 1:
        return True
    array = subject.array(payload)
    if array is None:
        return True
    rows = array.reshape(payload.tensor.shape[0], -1)
    return not (rows if len(values) == 1 else rows[values == 0]).any()


def _odd(scale: Examined, values: NDArray[np.float64], where: NDArray[np.bool_], usual: float) -> _Odd:
    places = np.flatnonzero(where)
    worst = float(values[places][np.argmax(np.abs(values[places]))])
    return _Odd(
        name=scale.name,
        count=len(places),
        numel=len(values),
        first=human_place(int(places[0]), scale.tensor.shape),
        worst=worst,
        usual=usual,
    )


def _unlike_the_files(whole: Mapping[str, tuple[str, float]]) -> Iterator[_Odd]:
    """Scales of whole tensors, each against all others of its name in the file."""
    for last in dict.fromkeys(last for last, _ in whole.values()):
        sizes = {name: size for name, (of, size) in whole.items() if of == last}
        usual = float(np.median([*sizes.values()]))
        beyond = [name for name, size in sizes.items() if size > _FAR * usual]
        if len(sizes) >= _LEAST and len(beyond) <= max(1, _FEW * len(sizes)):
            for name in beyond:
                yield _Odd(name=name, count=1, numel=1, first="", worst=sizes[name], usual=usual)


def _finding(found: list[_Odd], says: str, remedy: str) -> Finding:
    worst, names = found[0], [each.name for each in found]
    times = says or f"{worst.worst:.3g}, {worst.worst / worst.usual:.3g} times the usual {worst.usual:.3g}"
    how_many = f"{worst.count:,} of {worst.numel:,} scales of {shown(worst.name)}" if worst.numel > 1 else ""
    where = f", the first at {worst.first}" if worst.numel > 1 else ""
    verb = "is" if worst.count == 1 else "are"
    return SCALES.found(
        f"{how_many or shown(worst.name)} {verb} {times}{where}{also(names)}.",
        subjects=names,
        evidence=(
            *(("scales", sum(each.count for each in found)), ("of", sum(each.numel for each in found))),
            *(("worst", worst.worst), ("usual", worst.usual), ("tensors", len(names)), ("threshold", _FAR)),
        ),
        remedy=remedy,
    )


CHECK = Check(kinds=(SCALES,), find=_find)
