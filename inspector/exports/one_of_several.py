"""How many sets of weights a file holds, for who would write one of them and lose the others without a word."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.checkpoint.nested import same_numbers
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole
from inspector.errors import ExportError
from inspector.units import counted


def sets_of_weights(checkpoint: Checkpoint) -> tuple[StateDict, ...]:
    """Those that nothing tells apart, in the file's order: the likeliest and every other whose numbers are not its own.

    () for a file whose likeliest are averaged ones or untold, and for one without any. A module beside plain weights is
    no set of its own: training scripts keep their loss so.
    """
    chosen = checkpoint.weights
    if chosen is None or chosen.role is not StateRole.WEIGHTS:
        return ()
    held = [s for s in checkpoint.state_dicts if s.role is StateRole.WEIGHTS and s.tensors]
    held = [s for s in held if chosen.is_module or not s.is_module]
    others = [s for s in held if s is not chosen and not same_numbers(s, chosen)]
    places = {tensor.path: place for place, tensor in enumerate(checkpoint.tensors)}
    return tuple(sorted([chosen, *others], key=lambda s: places.get(s.tensors[0].path, 0)))


def several_sets(checkpoint: Checkpoint, groups: Sequence[StateDict]) -> ExportError:
    """The sentence that asks which is meant."""
    listed = ", ".join(f'"{s.label}"' for s in groups[:4]) + (" …" if len(groups) > 4 else "")
    return ExportError(
        f"Nothing was written: {checkpoint.origin.name} holds {counted(len(groups), 'set')} of weights, {listed}.",
        hint="Say with --state which one is meant.",
    )
