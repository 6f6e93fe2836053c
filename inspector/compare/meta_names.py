"""What Meta's own Llama checkpoints call the tensors of Hugging Face's conversion of them.

Source: convert_llama_weights_to_hf.py of transformers (models/llama), which also reorders the rows of wq and wk in each
head: names say nothing about that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_WHOLE = {"tok_embeddings": "embed_tokens", "norm": "norm", "output": "lm_head"}
_IN_LAYER = {
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_PREFIXES = ("model.", "")
_LAYER = re.compile(r"layers\.([0-9]{1,4})\.([a-z_0-9.]+)\.(weight|bias)")
_OUTSIDE = re.compile(r"([a-z_]+)\.(weight|bias)")


def is_meta(names: Iterable[str]) -> bool:
    """Whether these are the names of Meta's own code."""
    inside = (_LAYER.fullmatch(name) for name in names)
    return any(found is not None and found[2] == "attention.wq" for found in inside)


def counterparts(meta: Iterable[str], others: Collection[str]) -> dict[str, str]:
    """Name in Meta's file -> name among the others."""
    there = set(others)
    found: dict[str, str] = {}
    for name in meta:
        wanted = next((other for other in _spellings(name) if other in there), None)
        if wanted is not None:
            found[name] = wanted
    return found


def _spellings(name: str) -> Iterable[str]:
    inside, outside = _LAYER.fullmatch(name), _OUTSIDE.fullmatch(name)
    if inside is not None and inside[2] in _IN_LAYER:
        own = f"layers.{inside[1]}.{_IN_LAYER[inside[2]]}.{inside[3]}"
    elif outside is not None and outside[1] in _WHOLE:
        own = f"{_WHOLE[outside[1]]}.{outside[2]}"
    else:
        return
    yield from (f"{prefix}{own}" for prefix in _PREFIXES)
