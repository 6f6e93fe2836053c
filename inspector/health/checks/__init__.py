"""The checks, in the order in which equals are shown. A new one is a file and a name here."""

from __future__ import annotations

from inspector.findings import Check
from inspector.health.checks import (
    constant,
    copied_layers,
    dead,
    duplicates,
    embedding_rows,
    large,
    non_finite,
    outliers,
    saturation,
    siblings,
    sparsity,
    storage_grid,
    stretches,
)
from inspector.health.subject import Subject

CHECKS: tuple[Check[Subject], ...] = (
    non_finite.CHECK,
    stretches.CHECK,
    constant.CHECK,
    large.CHECK,
    dead.CHECK,
    duplicates.CHECK,
    copied_layers.CHECK,
    embedding_rows.CHECK,
    siblings.CHECK,
    outliers.CHECK,
    sparsity.CHECK,
    saturation.CHECK,
    storage_grid.CHECK,
)
