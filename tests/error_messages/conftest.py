"""Errors as the installed torch words them, provoked here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import pytest
import torch
import torchvision
from torch import nn


@lru_cache
def _build(name: str, options: tuple[tuple[str, Any], ...]) -> nn.Module:
    return getattr(torchvision.models, name)(weights=None, **dict(options)).eval()


@pytest.fixture(scope="session")
def model() -> Callable[..., nn.Module]:
    """model("resnet18", num_classes=10), built once and not to be changed."""
    torch.manual_seed(0)
    return lambda name, **options: _build(name, tuple(sorted(options.items())))


@pytest.fixture(scope="session")
def refusal() -> Callable[[nn.Module, Mapping[str, Any]], str]:
    """What load_state_dict(strict=True) says."""

    def say(module: nn.Module, state: Mapping[str, Any]) -> str:
        with pytest.raises(RuntimeError) as error:
            module.load_state_dict(state)
        return str(error.value)

    return say
