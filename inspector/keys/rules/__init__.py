"""The rules, in the order in which they are asked.

Name rules first: who wants to claim places before equal names are looked at (twins before wrappers, since a twin is a
wrapper too; shifted numbers after wrappers, so that they are looked at level by level). Tensor rules take what is left:
lossless before lossy, and dropping last.
"""

from __future__ import annotations

from inspector.keys.rules import (
    bookkeeping_buffers,
    extra_tensors,
    first_convolution,
    head_mismatch,
    index_shift,
    joined_segments,
    norm_aliases,
    scalar_shape,
    twins,
    wrapper_segment,
)
from inspector.keys.rules.entry import Rule

RULES: tuple[Rule, ...] = (
    twins.RULE,
    wrapper_segment.RULE,
    joined_segments.RULE,
    index_shift.RULE,
    norm_aliases.RULE,
    scalar_shape.RULE,
    bookkeeping_buffers.RULE,
    head_mismatch.RULE,
    first_convolution.RULE,
    extra_tensors.RULE,
)
