"""A model without its values: what runs on it gives shapes and costs no memory."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


def bare_copy(model: nn.Module) -> nn.Module:
    """A copy on the meta device in the same mode; the model itself is left as it is, and no value is copied.

    Parameters that are shared stay shared. Raises whatever a module raises that refuses to be copied.
    """
    # Filling the memo beforehand makes deepcopy take these instead of copying the values.
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(torch.empty_like(parameter, device="meta"), parameter.requires_grad)
    for buffer in model.buffers():
        memo[id(buffer)] = torch.empty_like(buffer, device="meta")
    for module in model.modules():
        # Computed anew by each forward (weight_norm before torch 2), and no leaf, which deepcopy refuses.
        for value in vars(module).values():
            if isinstance(value, Tensor) and not value.is_leaf:
                memo.setdefault(id(value), torch.empty_like(value, device="meta"))
    return copy.deepcopy(model, memo).to("meta")
