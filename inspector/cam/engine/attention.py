"""Attention weights as they are used, with their gradients, also where they are never written down.

torch's own attention layer, timm's and transformers' mostly call one fused function that keeps its weights to itself.
While a scene asks, that function is computed in its plain form in this thread, and softmaxes that look like attention
are kept as they pass. Other threads get torch's own.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_asking = threading.local()
_lock = threading.Lock()
_users = 0
_fused = functional.scaled_dot_product_attention
_softmax = functional.softmax


@contextmanager
def attentions(tokens: int) -> Iterator[list[Tensor]]:
    """A list that fills, in order, with the weights of every self-attention over `tokens` tokens that runs inside.

    Each is (..., tokens, tokens), after the softmax, and in the graph: differentiate with respect to it.
    """
    found: list[Tensor] = []
    before = getattr(_asking, "recorder", None)
    _install()
    _asking.recorder = _Recorder(tokens, found)
    try:
        with _Softmaxes():
            yield found
    finally:
        _asking.recorder = before
        _remove()


class _Recorder:
    def __init__(self, tokens: int, found: list[Tensor]) -> None:
        self._tokens = tokens
        self._found = found

    def keep(self, weights: Tensor) -> Tensor:
        """What goes on in the model's computation in the place of these weights."""
        if weights.dim() < 3 or tuple(weights.shape[-2:]) != (self._tokens, self._tokens):
            return weights
        if not weights.requires_grad and torch.is_grad_enabled():
            weights = weights.detach().requires_grad_()
        self._found.append(weights)
        # A view of its own: what follows may write into it.
        return weights.clone()


class _Softmaxes(TorchFunctionMode):
    """Sees the softmaxes that are methods of tensors; per thread by itself."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        recorder = getattr(_asking, "recorder", None)
        if recorder is not None and func in (torch.Tensor.softmax, torch.softmax) and isinstance(made, Tensor):
            return recorder.keep(made)
        return made


def _install() -> None:
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            functional.scaled_dot_product_attention = _attend
            functional.softmax = _normalised


def _remove() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            functional.scaled_dot_product_attention = _fused
            functional.softmax = _softmax


def _normalised(*args: Any, **kwargs: Any) -> Tensor:
    """torch's softmax, kept once: it calls the tensor's own."""
    recorder = getattr(_asking, "recorder", None)
    _asking.recorder = None
    try:
        made: Tensor = _softmax(*args, **kwargs)
    finally:
        _asking.recorder = recorder
    return made if recorder is None else recorder.keep(made)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(Q K^T * scale + mask) V, as torch's documentation writes the function out."""
    recorder = getattr(_asking, "recorder", None)
    if recorder is None or dropout_p:
        whole: Callable[..., Tensor] = _fused
        return whole(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], dim=-3)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~seen, -torch.inf)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype is torch.bool else scores + attn_mask
    return _normalised(scores, dim=-1) @ value
