"""Scores that methods differentiate instead of the class's own: (logits (N, classes), targets (N,)) to (N,)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from inspector.errors import ExplainError

Objective = Callable[[Tensor, Tensor], Tensor]
# Finer-CAM's own settings (arXiv 2501.11309, section 4).
GAMMA = 0.6
NEAREST = 3


def against_nearest(logits: Tensor, targets: Tensor) -> Tensor:
    """The target's score minus GAMMA times the mean score of the NEAREST classes with the nearest scores.

    Raises ExplainError for a model with one output, which has nothing to be told from.
    """
    classes = logits.shape[1]
    if classes < 2:
        raise ExplainError("The model has one output, so there is no other class to tell it from.")
    own = logits.gather(1, targets[:, None])
    with torch.no_grad():
        distance = (logits - own).abs().scatter(1, targets[:, None], torch.inf)
        nearest = distance.topk(min(NEAREST, classes - 1), dim=1, largest=False).indices
    others = logits.gather(1, nearest).mean(dim=1)
    return own[:, 0] - GAMMA * others
