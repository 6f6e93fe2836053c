"""What llama.cpp calls the tensors of Hugging Face's models, for pairing a GGUF file with what it was converted from.

Source: gguf-py/gguf/tensor_mapping.py and constants.py of ggml-org/llama.cpp. Where a name stands for several, the
first that the other file has is taken. Experts, which the converter stacks, have no single counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_PREFIXES = ("", "model.", "transformer.", "bert.", "roberta.", "language_model.model.", "model.language_model.")
_LAYERS = ("layers.{i}.", "h.{i}.", "encoder.layer.{i}.")

# Stem in the GGUF file -> stems in the other, without the prefixes above.
_WHOLE: dict[str, tuple[str, ...]] = {
    "token_embd": ("embed_tokens", "wte", "embeddings.word_embeddings"),
    "position_embd": ("wpe", "embeddings.position_embeddings"),
    "token_types": ("embeddings.token_type_embeddings",),
    "token_embd_norm": ("embeddings.LayerNorm",),
    "output_norm": ("norm", "ln_f", "final_layernorm"),
    "output": ("lm_head",),
}
# The same behind "blk.{i}." and behind one of `_LAYERS`.
_IN_LAYER: dict[str, tuple[str, ...]] = {
    "attn_norm": ("input_layernorm", "ln_1"),
    "attn_q": ("self_attn.q_proj", "attention.self.query"),
    "attn_k": ("self_attn.k_proj", "attention.self.key"),
    "attn_v": ("self_attn.v_proj", "attention.self.value"),
    "attn_qkv": ("self_attn.qkv_proj", "attn.c_attn"),
    "attn_output": ("self_attn.o_proj", "attn.c_proj", "attention.output.dense", "self_attn.dense"),
    "attn_q_norm": ("self_attn.q_norm", "self_attn.q_layernorm"),
    "attn_k_norm": ("self_attn.k_norm", "self_attn.k_layernorm"),
    "attn_output_norm": ("attention.output.LayerNorm",),
    "post_attention_norm": ("post_attention_layernorm",),
    "ffn_norm": ("pre_feedforward_layernorm", "post_attention_layernorm", "ln_2"),
    "post_ffw_norm": ("post_feedforward_layernorm",),
    "ffn_gate": ("mlp.gate_proj",),
    "ffn_up": ("mlp.up_proj", "mlp.gate_up_proj", "mlp.c_fc", "intermediate.dense", "mlp.fc1"),
    "ffn_down": ("mlp.down_proj", "mlp.c_proj", "output.dense", "mlp.fc2"),
    "ffn_gate_inp": ("block_sparse_moe.gate", "mlp.gate"),
    "layer_output_norm": ("output.LayerNorm",),
}
_LAYER = re.compile(r"blk\.([0-9]{1,4})\.([a-z_]+)\.(weight|bias)")
_OUTSIDE = re.compile(r"([a-z_]+)\.(weight|bias)")


def is_ggml(names: Iterable[str]) -> bool:
    """Whether these are names that llama.cpp gives."""
    return any(_LAYER.fullmatch(name) for name in names)


def counterparts(ggml: Iterable[str], others: Collection[str]) -> dict[str, str]:
    """Name in the GGUF file -> name among the others; none that two would claim."""
    there = set(others)
    claims: dict[str, list[str]] = {}
    for name in ggml:
        wanted = next((other for other in _spellings(name) if other in there), None)
        if wanted is not None:
            claims.setdefault(wanted, []).append(name)
    return {names[0]: wanted for wanted, names in claims.items() if len(names) == 1}


def _spellings(name: str) -> Iterable[str]:
    inside, outside = _LAYER.fullmatch(name), _OUTSIDE.fullmatch(name)
    if inside is not None:
        number, stem, kind = inside.groups()
        stems = [layer.format(i=number) + own for own in _IN_LAYER.get(stem, ()) for layer in _LAYERS]
    elif outside is not None:
        stem, kind = outside.groups()
        stems = list(_WHOLE.get(stem, ()))
    else:
        return
    for own in stems:
        yield from (f"{prefix}{own}.{kind}" for prefix in _PREFIXES)
