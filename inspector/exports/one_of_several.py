"""For who would write one of a file's sets of weights and lose the others without a word."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import ExportError
from inspector.units import counted


def several_sets(checkpoint: Checkpoint, groups: Sequence[StateDict]) -> ExportError:
    """The sentence that asks which is meant."""
    listed = ", ".join(f'"{s.label}"' for s in groups[:4]) + (" …" if len(groups) > 4 else "")
    return ExportError(
        f"Nothing was written: {checkpoint.origin.name} holds {counted(len(groups), 'set')} of weights, {listed}.",
        hint="Say with --state which one is meant.",
    )
