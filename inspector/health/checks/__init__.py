"""The checks, in the order in which equals are shown. A new one is a file and a name here."""

from __future__ import annotations

from inspector.findings import Check
from inspector.health.checks import (
    adapters,
    averaged,
    bias_fit,
    byte_order,
    codebook,
    constant,
    copied_layers,
    dead,
    divisors,
    duplicates,
    embedding_collapsed,
    embedding_rows,
    equal_projections,
    exponents,
    grad_scaler,
    half_range,
    large,
    levels,
    lone_values,
    mislabelled,
    moment_rows,
    moment_scale,
    moment_shapes,
    moments,
    moments_faded,
    moments_lost,
    non_finite,
    norm_delta,
    norm_input_scale,
    norm_scale,
    norm_shift,
    norm_swapped,
    norm_untouched,
    norm_variance,
    optimizer_settings,
    outliers,
    packed,
    progress,
    quantised_scales,
    reparametrised,
    resuming,
    saturation,
    shifted,
    siblings,
    sparsity,
    still_initial,
    storage_grid,
    stretches,
    tied,
    type_mix,
    vanished,
    weight_norm,
)
from inspector.health.subject import Subject

CHECKS: tuple[Check[Subject], ...] = (
    *(byte_order.CHECK, mislabelled.CHECK, non_finite.CHECK, optimizer_settings.CHECK, stretches.CHECK),
    *(weight_norm.CHECK, constant.CHECK, lone_values.CHECK, vanished.CHECK, large.CHECK),
    *(bias_fit.CHECK, norm_swapped.CHECK, norm_delta.CHECK, divisors.CHECK, exponents.CHECK, codebook.CHECK),
    *(norm_variance.CHECK, norm_input_scale.CHECK, norm_untouched.CHECK, dead.CHECK, copied_layers.CHECK),
    equal_projections.CHECK,
    *(duplicates.CHECK, still_initial.CHECK, norm_scale.CHECK, norm_shift.CHECK, embedding_rows.CHECK),
    *(embedding_collapsed.CHECK,),
    *(siblings.CHECK, shifted.CHECK, outliers.CHECK, half_range.CHECK, sparsity.CHECK, saturation.CHECK),
    *(
        type_mix.CHECK,
        storage_grid.CHECK,
        packed.CHECK,
        levels.CHECK,
        quantised_scales.CHECK,
        adapters.CHECK,
        averaged.CHECK,
    ),
    *(tied.CHECK, reparametrised.CHECK, moments.CHECK, moments_lost.CHECK, moments_faded.CHECK, moment_rows.CHECK),
    *(moment_scale.CHECK, moment_shapes.CHECK, grad_scaler.CHECK, resuming.CHECK, progress.CHECK),
)

# Kinds about the file and what stands beside the weights: they are the same from whichever set of weights one looks.
OF_THE_FILE = frozenset(
    kind.id
    for check in (
        *(averaged, optimizer_settings, moments, moments_lost, moments_faded, moment_rows, moment_scale),
        *(moment_shapes, grad_scaler, resuming, progress),
    )
    for kind in check.CHECK.kinds
)
