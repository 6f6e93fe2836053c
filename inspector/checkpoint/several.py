"""How many sets of weights a file holds: one is the answer to most questions, of several somebody has to say which."""

from __future__ import annotations

from inspector.checkpoint.nested import same_numbers
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole

_FEWEST = 10  # Of ten tensors of the one at least one of the other: a loss's own weight is no network beside it.


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


def equal_sets(checkpoint: Checkpoint) -> tuple[StateDict, ...]:
    """Of `sets_of_weights` those that are networks beside each other, a generator and its discriminator, in the file's
    order; () where there are not two.

    A network saved as dicts in dicts, a dict per part, is one.
    """
    groups = sets_of_weights(checkpoint)
    most = max((len(state.tensors) for state in groups), default=0)
    held = tuple(s for s in groups if len(s.tensors) > 1 and _FEWEST * len(s.tensors) >= most)
    in_parts = all("." not in tensor.name for state in groups for tensor in state.tensors)
    return held if len(held) > 1 and not in_parts else ()
