"""Norms whose scales all lie around 0: a difference to another model was saved in place of the weights.

Scales begin at 1 (Ba et al. 2016, 1607.06450), shifts at 0, and what training adds to both is small: the difference of
two checkpoints has scales around 0 in every norm. Norms that store their scale less 1 look alike. Gemma's have no shift
and are passed over; Nemotron's LayerNorm1P has one (2402.16819), so that a file is only accused where its matrices are
as small as differences are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import listed
from inspector.health.roles import LAYERS, Role
from inspector.health.subject import Subject
from inspector.units import human_share

DELTA = FindingKind(
    "norm-scales-around-zero",
    Severity.WARNING,
    "The scales of all norms lie around zero",
    also=(Severity.NOTICE,),
)

# Scales and shifts of what was added; scales on both sides of zero; so many norms.
_SCALE, _SHIFT, _NEGATIVE, _LEAST = 0.3, 0.5, 0.2, 3
# Root mean square times the root of the fan-in: near 1 in trained matrices, which initialisers begin at.
_MATRIX = 0.1


def _find(subject: Subject) -> Iterator[Finding]:
    names: list[str] = []
    values: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    for _, tensors in subject.modules_with(Role.NORM_SHIFT):
        parts = {one.role: one for one in tensors}
        # Of a batch norm the variances tell more: some are negative then.
        scale, shift = parts.get(Role.NORM_SCALE), parts.get(Role.NORM_SHIFT)
        if scale is None or shift is None or Role.RUNNING_VAR in parts:
            continue
        t, other = scale.statistics, shift.statistics
        if t is None or other is None or not t.numel or t.finite < t.numel or other.finite < other.numel:
            continue
        if not t.rms and not other.rms:  # Begins at zero: the last norm of a residual branch.
            continue
        array = subject.array(scale) if t.rms < _SCALE and other.rms < _SHIFT else None
        if array is None:
            return
        names.append(scale.name)
        values.append(array.ravel())
    if len(names) < _LEAST:
        return
    every = np.concatenate(values)
    negative, rms = float((every < 0).mean()), float(np.sqrt(np.mean(np.square(every))))
    if negative < _NEGATIVE:
        return
    width = _width(subject)
    small = width is not None and width < _MATRIX
    yield DELTA.found(
        f"The scales of all {len(names):,} norms with a shift lie around 0: their root mean square is {rms:.3g}, and "
        f"{human_share(negative)} are negative; {listed(names)}.",
        severity=Severity.WARNING if small else Severity.NOTICE,
        subjects=names,
        evidence=(
            *(("norms", len(names)), ("rms", rms), ("negative", negative), ("threshold", _SCALE)),
            *((("matrices", width),) if width is not None else ()),
        ),
        remedy="Scales are near 1 in a model that works, so that this is the difference to another one: add it to that "
        "model's weights. Harmless where the layer adds 1 to what is stored (LayerNorm1P of Megatron and Nemotron).",
    )


def _width(subject: Subject) -> float | None:
    """The median over the matrices of their root mean square times the root of their fan-in."""
    columns = subject.columns
    layers = subject.among(*LAYERS) & (columns.numel >= subject.thresholds.few) & (columns.finite > 0)
    fans = np.maximum(1, columns.numel[layers] // columns.outputs[layers])
    return float(np.median(columns.rms[layers] * np.sqrt(fans))) if layers.any() else None


CHECK = Check(kinds=(DELTA,), find=_find)
