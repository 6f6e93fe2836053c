"""The checks, in the order in which equals are shown. A new one is a file and a name here."""

from __future__ import annotations

from inspector.findings import Check
from inspector.health.checks import (
    adapters,
    averaged,
    constant,
    grad_scaler,
    large,
    moment_rows,
    moment_shapes,
    moments,
    non_finite,
    packed,
    progress,
    reparametrised,
    resuming,
    tied,
)
from inspector.health.subject import Subject

CHECKS: tuple[Check[Subject], ...] = (
    non_finite.CHECK,
    constant.CHECK,
    large.CHECK,
    packed.CHECK,
    adapters.CHECK,
    moments.CHECK,
    moment_rows.CHECK,
    moment_shapes.CHECK,
    grad_scaler.CHECK,
    resuming.CHECK,
    progress.CHECK,
    averaged.CHECK,
    tied.CHECK,
    reparametrised.CHECK,
)
