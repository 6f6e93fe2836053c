"""T5 as its authors' T5X writes it, beside transformers: one way, since T5X is no torch module.

The names are those that transformers' convert_t5x_checkpoint_to_pytorch.py reads; the network inside is transformers'
own, written down under them: kernels (in, out), relative positions (heads, buckets), a tensor per matrix and layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.conversions.pairs.hf_vision import HF, hf
from benchmarks.conversions.sides import Pair, Side, tokens

_WORDS = 61
_ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "out"}
_ROWS = (
    (r"^shared\.weight$", "token_embedder/embedding"),
    (r"^lm_head\.weight$", "decoder/logits_dense/kernel"),
    (r"^(\w+)\.final_layer_norm\.weight$", r"\1/\1_norm/scale"),
    (r"^(\w+)\.block\.0\.layer\.0\.SelfAttention\.relative_attention_bias\.weight$", r"\1/relpos_bias/rel_embedding"),
    (r"^encoder\.block\.(\d+)\.layer\.0\.layer_norm\.weight$", r"encoder/layers_\1/pre_attention_layer_norm/scale"),
    (r"^encoder\.block\.(\d+)\.layer\.0\.SelfAttention\.(\w)\.weight$", r"encoder/layers_\1/attention/\2/kernel"),
    (
        r"^decoder\.block\.(\d+)\.layer\.0\.layer_norm\.weight$",
        r"decoder/layers_\1/pre_self_attention_layer_norm/scale",
    ),
    (r"^decoder\.block\.(\d+)\.layer\.0\.SelfAttention\.(\w)\.weight$", r"decoder/layers_\1/self_attention/\2/kernel"),
    (
        r"^decoder\.block\.(\d+)\.layer\.1\.layer_norm\.weight$",
        r"decoder/layers_\1/pre_cross_attention_layer_norm/scale",
    ),
    (
        r"^decoder\.block\.(\d+)\.layer\.1\.EncDecAttention\.(\w)\.weight$",
        r"decoder/layers_\1/encoder_decoder_attention/\2/kernel",
    ),
    (r"^(\w+)\.block\.(\d+)\.layer\.[12]\.layer_norm\.weight$", r"\1/layers_\2/pre_mlp_layer_norm/scale"),
    (r"^(\w+)\.block\.(\d+)\.layer\.[12]\.DenseReluDense\.(\w+)\.weight$", r"\1/layers_\2/mlp/\3/kernel"),
)


def _called(name: str) -> str:
    for pattern, put in _ROWS:
        if re.match(pattern, name):
            made = re.sub(pattern, put, name)
            return re.sub(r"/([qkvo])/kernel$", lambda m: f"/{_ATTENTION[m[1]]}/kernel", made)
    raise KeyError(name)


def _save(model: Any, folder: Path) -> Path:
    tied = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    tied |= {"lm_head.weight"} if model.lm_head.weight is model.shared.weight else set()
    arrays = {}
    for name, tensor in model.state_dict().items():
        if name not in tied:
            own = f"target/{_called(name)}"
            turned = own.endswith(("/kernel", "/rel_embedding"))
            arrays[own] = np.ascontiguousarray(tensor.T.numpy() if turned else tensor.numpy())
    np.savez(folder / "t5x.npz", **arrays)
    return folder / "t5x.npz"


def _run(model: Any, ids: Tensor) -> Tensor:
    return model(input_ids=ids, decoder_input_ids=ids.flip(1)).logits


def _sides(**options: Any) -> tuple[Side, Side]:
    sizes = {"vocab_size": _WORDS, "d_model": 48, "d_kv": 12, "d_ff": 96, "num_layers": 2, "num_decoder_layers": 2}
    build = hf("T5ForConditionalGeneration", "T5Config", num_heads=4, decoder_start_token_id=0, **sizes, **options)
    return (
        Side(library="T5X", build=build, run=_run, save=_save, own=False, can_be_target=False),
        Side(library=HF, build=build, run=_run),
    )


def pairs() -> Iterator[Pair]:
    torch.manual_seed(0)
    for name, options in (
        ("T5", {}),
        ("T5 v1.1", {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    ):
        ours, theirs = _sides(**options)
        yield Pair(
            id=name,
            ours=ours,
            theirs=theirs,
            input=tokens(_WORDS),
            both=False,
            accept=("tied-weights",),
            rounds=1e-5,  # transformers' T5 takes the mean square in float32
            same="epsilon of the norms",
        )
