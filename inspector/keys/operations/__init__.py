"""What the steps of a plan do, one file per operation, looked up by the step's kind and the first word of its value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.keys.operations import (
    blocks,
    drop,
    drop_computed,
    drop_copy,
    drop_tokens,
    drop_zeros,
    fill_computed,
    fill_constant,
    fill_default,
    fill_initial,
    fill_statistics,
    fill_zero,
    fill_zeros,
    first_rows,
    flattened,
    flipped,
    fold_mask,
    fold_spectral_norm,
    fold_weight_norm,
    gates,
    grouped,
    inflate,
    keep,
    length_of,
    merge,
    merge_bias,
    merging,
    permute,
    reshape,
    resize_grid,
    resize_table,
    rows,
    split,
    spread_channels,
    squares,
    tie,
)
from inspector.keys.operations.entry import Operation
from inspector.keys.report import Step, StepKind

OPERATIONS: tuple[Operation, ...] = (
    keep.OPERATION,
    drop.OPERATION,
    drop_copy.OPERATION,
    drop_computed.OPERATION,
    drop_zeros.OPERATION,
    reshape.OPERATION,
    permute.OPERATION,
    flattened.OPERATION,
    flipped.OPERATION,
    rows.OPERATION,
    blocks.OPERATION,
    squares.OPERATION,
    merging.OPERATION,
    merge.OPERATION,
    merge_bias.OPERATION,
    fold_weight_norm.OPERATION,
    fold_spectral_norm.OPERATION,
    fold_mask.OPERATION,
    split.OPERATION,
    grouped.OPERATION,
    gates.OPERATION,
    spread_channels.OPERATION,
    inflate.OPERATION,
    resize_grid.OPERATION,
    resize_table.OPERATION,
    first_rows.OPERATION,
    drop_tokens.OPERATION,
    fill_zero.OPERATION,
    fill_zeros.OPERATION,
    fill_default.OPERATION,
    fill_initial.OPERATION,
    fill_statistics.OPERATION,
    fill_computed.OPERATION,
    fill_constant.OPERATION,
    tie.OPERATION,
    length_of.OPERATION,
)
_BY_WAY = {(kind, operation.way): operation for operation in OPERATIONS for kind in operation.kinds}


def operation_of(step: Step) -> Operation:
    """What this step does. Raises KeyError for a step that no operation knows: a mistake of the rule that made it."""
    return _BY_WAY[(StepKind(step.kind), step.value.partition(":")[0])]


def by_operation(steps: Iterable[Step]) -> Sequence[tuple[Operation, list[Step]]]:
    """The steps of each operation together, in the order of `OPERATIONS`."""
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(operation_of(step).id, []).append(step)
    return [(operation, found[operation.id]) for operation in OPERATIONS if operation.id in found]
