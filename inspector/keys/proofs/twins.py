"""What a strict load cannot prove: that the target is the network the weights were trained as.

Builders with the same names and shapes differ in strides, padding, pooling or activations (resnet50 and resnetaa50).
"""

from __future__ import annotations

from inspector.architectures.claims import stated_architectures, twins_of
from inspector.architectures.index import load_index
from inspector.architectures.types import Target
from inspector.checkpoint.types import Checkpoint
from inspector.keys.report import Proof

_SHOWN = 3


def prove_which(checkpoint: Checkpoint, target: Target) -> Proof | None:
    """A note that is never passed, None for a target without twins, and where something names the target itself."""
    names = twins_of(target.spec) if target.spec is not None else ()
    if target.spec is None or not names:
        return None
    stated = stated_architectures(checkpoint, load_index())
    own = f"{target.spec.library}/{target.spec.name}"
    if own in stated:
        return None
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    says = (
        f"A strict load also fits {', '.join(names[:_SHOWN])}{more}, which may compute other numbers: that it was "
        f"{own} is not in the weights."
    )
    other = next((name for name in names if name in stated), None)
    if other is not None:
        says = f"{other} is named in {stated[other]}, not {own}. {says} Make sure which of them it was."
    return Proof(id="which-twin", says=says, passed=None)
