"""Which network a checkpoint's weights are, in a few words for a table."""

from __future__ import annotations

from inspector.architectures.recognise import recognise
from inspector.checkpoint.types import Checkpoint


def network_of(checkpoint: Checkpoint) -> str:
    """ "resnet34, 10 classes"; "" where there are no weights or nobody knows them. From the header alone."""
    best = recognise(checkpoint).best if checkpoint.weights is not None else None
    if best is None:
        return ""
    classes = best.spec.num_classes
    return best.spec.name + (f", {classes:,} classes" if classes is not None else "")
