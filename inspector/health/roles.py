"""What a tensor is for, from its name, shape, type and siblings: most false alarms are mistaken roles.

A role is claimed where something shows it; `OTHER` is an honest answer, and checks leave it alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from inspector.checkpoint.types import TensorInfo


class Role(StrEnum):
    """What a tensor is for."""

    CONV = "convolution"
    DEPTHWISE = "depthwise convolution"
    TRANSPOSED = "transposed convolution"
    LINEAR = "linear"
    EMBEDDING = "embedding"
    POSITION = "position"
    RECURRENT = "recurrent"
    NORM_SCALE = "norm scale"
    NORM_SHIFT = "norm shift"
    RUNNING_MEAN = "running mean"
    RUNNING_VAR = "running variance"
    LAYER_SCALE = "layer scale"
    BIAS = "bias"
    LORA_A = "LoRA A"
    LORA_B = "LoRA B"
    MASK = "mask"
    QUANTISED = "quantised payload"
    SCALE = "scale"
    BUFFER = "buffer"
    COUNTER = "counter"
    MOMENT = "optimizer moment"
    OTHER = "other"

    @property
    def is_weight(self) -> bool:
        """Whether it multiplies what comes in: a matrix or kernels."""
        return self in _WEIGHTS


_WEIGHTS = frozenset(
    {Role.CONV, Role.DEPTHWISE, Role.TRANSPOSED, Role.LINEAR, Role.RECURRENT, Role.LORA_A, Role.LORA_B}
)


def roles_of(tensors: Sequence[TensorInfo]) -> Mapping[tuple[str, ...], Role]:
    """The role of every tensor of one state dict, by its path."""
    names = {t.name: t for t in tensors}
    return {t.path: _role(t, names) for t in tensors}


def _role(tensor: TensorInfo, names: Mapping[str, TensorInfo]) -> Role:
    return Role.OTHER
