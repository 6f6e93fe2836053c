"""Tensors that count or keep something and say nothing of the network. The one list of them."""

from __future__ import annotations

# What each is, by the last segment of its name.
COUNTERS = {
    "num_batches_tracked": "a batch norm's batch counter, unused in evaluation",
    "total_ops": "left behind by a FLOP counter",
    "total_params": "left behind by a FLOP counter",
    "n_averaged": "the counter of weight averaging",
}
# Sizes of the network, which OpenAI's CLIP archives note beside the weights. A network that has them as tensors may
# compute with them: none is made up.
NOTED = dict.fromkeys(("input_resolution", "context_length", "vocab_size"), "a size that CLIP's archives note")
# A module's own state may belong to what it computes (quantisation in some libraries), so it identifies, and is kept.
EXTRA_STATE = "_extra_state"
# How often weights were averaged: torch's AveragedModel, CompVis's LitEma, ema_pytorch, diffusers' EMAModel.
UPDATES = ("n_averaged", "num_updates", "optimization_step", "updates", "step")
BOOKKEEPING = frozenset({*COUNTERS, *NOTED, EXTRA_STATE})


def is_bookkeeping(name: str) -> bool:
    """Whether a tensor of this name says nothing about the architecture: "bn1.num_batches_tracked"."""
    return name.rpartition(".")[2] in COUNTERS
