"""The checks, in the order in which equals are shown. A new one is a file and a name here."""

from __future__ import annotations

from inspector.findings import Check
from inspector.health.checks import (
    constant,
    copied_layers,
    dead,
    duplicates,
    embedding_rows,
    half_range,
    large,
    non_finite,
    norm_scale,
    norm_shift,
    norm_untouched,
    norm_variance,
    outliers,
    saturation,
    siblings,
    sparsity,
    still_initial,
    storage_grid,
    stretches,
    type_mix,
)
from inspector.health.subject import Subject

CHECKS: tuple[Check[Subject], ...] = (
    non_finite.CHECK,
    stretches.CHECK,
    norm_variance.CHECK,
    still_initial.CHECK,
    norm_untouched.CHECK,
    constant.CHECK,
    large.CHECK,
    dead.CHECK,
    duplicates.CHECK,
    copied_layers.CHECK,
    embedding_rows.CHECK,
    siblings.CHECK,
    outliers.CHECK,
    norm_scale.CHECK,
    norm_shift.CHECK,
    sparsity.CHECK,
    saturation.CHECK,
    storage_grid.CHECK,
    half_range.CHECK,
    type_mix.CHECK,
)
