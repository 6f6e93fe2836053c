"""The rules, in the order in which they are asked.

Name rules first: they claim places before equal names are looked at. Twins come before wrappers, since a twin is a
wrapper too, and so do joined names, since norm.1 and norm.2 hold most of their block; shifted numbers come after, when
the levels are right. What no name places may be placed by order. Tensor rules take what is left: lossless before lossy,
and dropping last.
"""

from __future__ import annotations

from inspector.keys.rules import (
    bookkeeping_buffers,
    channels_last,
    computed_buffers,
    extra_tensors,
    first_convolution,
    flattened_kernel,
    folded_weights,
    fused_attention,
    head_mismatch,
    index_shift,
    joined_segments,
    matrix_aliases,
    mlp_names,
    moved_parts,
    nested_numbers,
    norm_aliases,
    other_library,
    parametrizations,
    position_grid,
    prefix_tokens,
    query_value_bias,
    same_order,
    scalar_shape,
    separators,
    tied_weights,
    transposed,
    truncated_names,
    twins,
    unit_dimensions,
    wrapper_segment,
)
from inspector.keys.rules.entry import Rule

RULES: tuple[Rule, ...] = (
    other_library.RULE,
    separators.RULE,
    truncated_names.RULE,
    moved_parts.RULE,
    nested_numbers.RULE,
    twins.RULE,
    joined_segments.RULE,
    mlp_names.RULE,
    wrapper_segment.RULE,
    index_shift.RULE,
    norm_aliases.RULE,
    matrix_aliases.RULE,
    parametrizations.RULE,
    same_order.RULE,
    scalar_shape.RULE,
    channels_last.RULE,
    unit_dimensions.RULE,
    flattened_kernel.RULE,
    transposed.RULE,
    fused_attention.RULE,
    query_value_bias.RULE,
    tied_weights.RULE,
    bookkeeping_buffers.RULE,
    computed_buffers.RULE,
    folded_weights.RULE,
    head_mismatch.RULE,
    first_convolution.RULE,
    position_grid.RULE,
    prefix_tokens.RULE,
    extra_tensors.RULE,
)
