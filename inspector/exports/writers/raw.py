"""The bytes of a tensor without a copy of them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def raw_bytes(tensor: Tensor) -> NDArray[np.uint8]:
    """Row-major bytes of a CPU tensor of any dtype; a copy only where its elements do not lie in that order."""
    if not tensor.numel():
        return np.empty(0, np.uint8)
    raw: NDArray[np.uint8] = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    return raw
