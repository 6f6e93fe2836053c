"""Layers that a file leaves out, being another one's matrix: built so that the state dict has them neither."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from inspector.errors import MissingLibrary


def library(name: str) -> Any:
    """transformers or diffusers. Raises MissingLibrary where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibrary(
            f"Building a model of {name} needs {name}, which is not installed.", hint=f"pip install {name}"
        ) from error


def tie_output(parent: nn.Module, name: str, embedding: nn.Module, bias: nn.Module | None = None) -> None:
    """Put a product with the embedding's matrix in the place of a linear layer.

    bias: the module whose own bias is added, as in BERT's heads. What takes the place is no module, so that neither
    state dicts nor strict loads know of it; it looks its numbers up in each call, and copies of the model copy it.
    """
    delattr(parent, name)
    setattr(parent, name, partial(_product, embedding, bias))


def _product(embedding: Any, bias: Any, hidden: Tensor) -> Tensor:
    return functional.linear(hidden, embedding.weight, None if bias is None else bias.bias)
