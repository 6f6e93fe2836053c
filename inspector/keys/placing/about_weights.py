"""Levels that say that what lies below has the weights' names and shapes and is no weights: gradients, an optimizer's
state, noise, one half of an adapter. Such a level is never taken off a name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from inspector.checkpoint.nested import DERIVED

_ABOUT = re.compile(
    r"nus?|mus?|noises?|perturbations?|curvatures?|kfac|log_?vars?|std_?devs?|step_sizes?|prev_(grads?|updates?)|slots"
    r"|error_feedback|(co)?tangents?|jvp|vjp|accumulators?|adam_[mv]|opt(imizer)?(_states?)?|swag_\w+|exp_inf|delta_w"
    # PEFT's and kohya's: of a product one factor alone, or what is put before or behind a layer.
    r"|lora_(a|b|up|down|embedding_[ab]|magnitude_vector)|lora|ia3_l|oft_r|boft_[rs]|vera_lambda_[bd]|hada_\w+|lokr_\w+",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_about_weights(segment: str) -> bool:
    return _ABOUT.fullmatch(segment) is not None or DERIVED.match(segment) is not None


def tells_about(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether one of the file's levels says that, and the target has none that does."""
    return any(map(is_about_weights, ours)) and not any(map(is_about_weights, theirs))
