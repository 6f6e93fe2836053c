"""Why a forward pass failed: the causes in the order in which they are asked, and what is said where none knows it."""

from __future__ import annotations

import dataclasses

from inspector.doctor.causes import (
    cats,
    code,
    convolution,
    differentiating,
    einsums,
    embeddings,
    indexing,
    joined,
    linear,
    losses,
    masks,
    norms,
    python,
    regrouped,
    repairs,
    sequences,
    shapes,
    squeezed,
    sums,
    types,
)
from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.lines import tried_line
from inspector.doctor.constructors import line_that_makes
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene

CAUSES: tuple[Cause, ...] = (
    norms.SINGLE_VALUE,
    *regrouped.CAUSES,
    *losses.CAUSES,
    *masks.CAUSES,
    *types.CAUSES,
    *code.CAUSES,
    *differentiating.CAUSES,
    *python.CAUSES,
    *squeezed.CAUSES,
    *embeddings.CAUSES,
    *indexing.CAUSES,
    *sequences.CAUSES,
    *joined.CAUSES,
    *convolution.CAUSES,
    *norms.CAUSES,
    *linear.CAUSES,
    *shapes.CAUSES,
    *cats.CAUSES,
    *einsums.CAUSES,
    *sums.CAUSES,
    *repairs.CAUSES,
    *python.LAST,
    *shapes.LAST,
    *losses.LAST,
)


# Those that are mended where the layer is made.
_OF_LAYER = frozenset(
    {
        "linear-features", "norm-width", "channels", "input-channels", "index-out-of-range", "position-table",
        "recurrent-width", "recurrent-state", "attention-width", "attention-batch", "attention-mask", "picture-size",
        "not-flattened", "shared-layer", "dimensions",
    }
)  # fmt: skip


def _with_line(scene: Scene, found: Diagnosis) -> Diagnosis:
    """With the line that makes the failing layer, where the cause lies there."""
    if found.change is not None or found.cause not in _OF_LAYER or scene.call is None or not scene.call.path:
        return found
    return dataclasses.replace(found, change=line_that_makes(scene.model, scene.call.path))


def diagnose_failure(scene: Scene) -> Diagnosis:
    """What the first cause says that knows the failure; never a guess as if it were certain."""
    for cause in CAUSES:
        found = cause.find(scene)
        if found is not None:
            return _with_line(scene, tried_line(scene, found))
    where = scene.frame.where if scene.frame is not None else None
    at = f" in {where.file}, line {where.line}" if where is not None else ""
    operands = "; ".join(scene.told(t) for t in scene.operands[:4])
    given = f" It was working on {operands}." if operands else ""
    return Diagnosis(
        cause="unknown",
        says=f"{type(scene.error).__name__} in {scene.path}{at}: {scene.first_line.rstrip('.')}.{given}",
        fix="Nothing here knows this failure; the tree says which shapes came as far.",
        sureness=Sureness.UNKNOWN,
    )
