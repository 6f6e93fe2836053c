"""State dicts whose names are their authors' own: Meta's Llama, nanoGPT, OpenAI's CLIP and Whisper, latent diffusion.

None of those codebases is a library, so the module trees are laid out here again, after the published files' names.
Latent diffusion's are checked against diffusers' own converter (`check_with_diffusers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from scripts import recorded_diffusion
from scripts.recorded_diffusion import tree

Row = tuple[str, tuple[int, ...], bool]
Section = tuple[str, Mapping[str, Any], list[Row]]


def meta_llama(*, dim: int, layers: int, heads: int, kv: int, ff: int, vocab: int, head: int) -> nn.Module:
    """facebookresearch/llama, llama/model.py."""

    def block() -> nn.Module:
        return tree(
            attention=tree(
                wq=nn.Linear(dim, heads * head, bias=False),
                wk=nn.Linear(dim, kv * head, bias=False),
                wv=nn.Linear(dim, kv * head, bias=False),
                wo=nn.Linear(heads * head, dim, bias=False),
            ),
            feed_forward=tree(
                w1=nn.Linear(dim, ff, bias=False), w2=nn.Linear(ff, dim, bias=False), w3=nn.Linear(dim, ff, bias=False)
            ),
            attention_norm=nn.RMSNorm(dim),
            ffn_norm=nn.RMSNorm(dim),
        )

    return tree(
        tok_embeddings=nn.Embedding(vocab, dim),
        layers=nn.ModuleList(block() for _ in range(layers)),
        norm=nn.RMSNorm(dim),
        output=nn.Linear(dim, vocab, bias=False),
    )


def mixtral(*, dim: int, layers: int, heads: int, kv: int, ff: int, vocab: int, head: int, experts: int) -> nn.Module:
    """The names of published Mixtral files: transformers before version 5, which stacks the experts."""

    def expert() -> nn.Module:
        return tree(
            w1=nn.Linear(dim, ff, bias=False), w2=nn.Linear(ff, dim, bias=False), w3=nn.Linear(dim, ff, bias=False)
        )

    def block() -> nn.Module:
        return tree(
            self_attn=tree(
                q_proj=nn.Linear(dim, heads * head, bias=False),
                k_proj=nn.Linear(dim, kv * head, bias=False),
                v_proj=nn.Linear(dim, kv * head, bias=False),
                o_proj=nn.Linear(heads * head, dim, bias=False),
            ),
            block_sparse_moe=tree(
                gate=nn.Linear(dim, experts, bias=False), experts=nn.ModuleList(expert() for _ in range(experts))
            ),
            input_layernorm=nn.RMSNorm(dim),
            post_attention_layernorm=nn.RMSNorm(dim),
        )

    return tree(
        model=tree(
            embed_tokens=nn.Embedding(vocab, dim),
            layers=nn.ModuleList(block() for _ in range(layers)),
            norm=nn.RMSNorm(dim),
        ),
        lm_head=nn.Linear(dim, vocab, bias=False),
    )


def nano_gpt(*, dim: int, layers: int, vocab: int, block_size: int, bias: bool, mask: bool) -> nn.Module:
    """karpathy/nanoGPT, model.py. mask: with the causal mask as a buffer, as where torch has no flash attention."""

    def block() -> nn.Module:
        attention = tree(c_attn=nn.Linear(dim, 3 * dim, bias=bias), c_proj=nn.Linear(dim, dim, bias=bias))
        if mask:
            attention.register_buffer("bias", torch.ones(1, 1, block_size, block_size))
        return tree(
            ln_1=nn.LayerNorm(dim, bias=bias),
            attn=attention,
            ln_2=nn.LayerNorm(dim, bias=bias),
            mlp=tree(c_fc=nn.Linear(dim, 4 * dim, bias=bias), c_proj=nn.Linear(4 * dim, dim, bias=bias)),
        )

    return tree(
        transformer=tree(
            wte=nn.Embedding(vocab, dim),
            wpe=nn.Embedding(block_size, dim),
            h=nn.ModuleList(block() for _ in range(layers)),
            ln_f=nn.LayerNorm(dim, bias=bias),
        ),
        lm_head=nn.Linear(dim, vocab, bias=False),
    )


def _resblocks(width: int, layers: int, ff: int, *, norm_first: bool) -> nn.Module:
    """norm_first: open_clip's order of the children; OpenAI's has the attention first."""

    def block() -> nn.Module:
        parts: dict[str, nn.Module] = {
            "attn": nn.MultiheadAttention(width, 1),
            "ln_1": nn.LayerNorm(width),
            "mlp": tree(c_fc=nn.Linear(width, ff), c_proj=nn.Linear(ff, width)),
            "ln_2": nn.LayerNorm(width),
        }
        order = ("ln_1", "attn", "ln_2", "mlp") if norm_first else tuple(parts)
        return tree(**{name: parts[name] for name in order})

    return tree(resblocks=nn.ModuleList(block() for _ in range(layers)))


def open_clip(
    *,
    width: int,
    layers: int,
    vision: int,
    vision_layers: int,
    joint: int,
    vocab: int = 49408,
    context: int = 77,
    patch: int = 32,
    grid: int = 7,
    norm_first: bool = False,
    text_only: bool = False,
) -> nn.Module:
    """openai/CLIP, clip/model.py, and mlfoundations/open_clip."""
    visual = tree(
        class_embedding=nn.Parameter(torch.empty(vision)),
        positional_embedding=nn.Parameter(torch.empty(grid * grid + 1, vision)),
        proj=nn.Parameter(torch.empty(vision, joint)),
        conv1=nn.Conv2d(3, vision, patch, patch, bias=False),
        ln_pre=nn.LayerNorm(vision),
        transformer=_resblocks(vision, vision_layers, 4 * vision, norm_first=norm_first),
        ln_post=nn.LayerNorm(vision),
    )
    text = {
        "positional_embedding": nn.Parameter(torch.empty(context, width)),
        "text_projection": nn.Parameter(torch.empty(width, joint)),
        "logit_scale": nn.Parameter(torch.empty(())),
    }
    rest = {
        "transformer": _resblocks(width, layers, 4 * width, norm_first=norm_first),
        "token_embedding": nn.Embedding(vocab, width),
        "ln_final": nn.LayerNorm(width),
    }
    return tree(**text, **rest) if text_only else tree(**text, visual=visual, **rest)


def openai_whisper(
    *, dim: int, encoder: int, decoder: int, vocab: int, mels: int, audio: int = 1500, text: int = 448
) -> nn.Module:
    """openai/whisper, whisper/model.py."""

    def attention() -> nn.Module:
        return tree(
            query=nn.Linear(dim, dim),
            key=nn.Linear(dim, dim, bias=False),
            value=nn.Linear(dim, dim),
            out=nn.Linear(dim, dim),
        )

    def block(*, cross: bool) -> nn.Module:
        parts: dict[str, nn.Module] = {"attn": attention(), "attn_ln": nn.LayerNorm(dim)}
        if cross:
            parts |= {"cross_attn": attention(), "cross_attn_ln": nn.LayerNorm(dim)}
        mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        return tree(**parts, mlp=mlp, mlp_ln=nn.LayerNorm(dim))

    encoding = tree(
        conv1=nn.Conv1d(mels, dim, 3),
        conv2=nn.Conv1d(dim, dim, 3),
        blocks=nn.ModuleList(block(cross=False) for _ in range(encoder)),
        ln_post=nn.LayerNorm(dim),
    )
    encoding.register_buffer("positional_embedding", torch.empty(audio, dim))
    decoding = tree(
        positional_embedding=nn.Parameter(torch.empty(text, dim)),
        token_embedding=nn.Embedding(vocab, dim),
        blocks=nn.ModuleList(block(cross=True) for _ in range(decoder)),
        ln=nn.LayerNorm(dim),
    )
    return tree(encoder=encoding, decoder=decoding)


def _sections(
    source: str, builder: Callable[..., nn.Module], models: Mapping[str, dict[str, Any]]
) -> Iterator[Section]:
    from scripts.record_families import rows_of

    for label, config in models.items():
        with torch.device("meta"):
            yield (
                label,
                {"config": config, "from": "originals", "source": source, "tied": []},
                rows_of(builder(**config)),
            )


_SEVEN_B = {"dim": 4096, "layers": 32, "heads": 32, "kv": 32, "ff": 11008, "vocab": 32000, "head": 128}
_TINY = {"dim": 48, "layers": 3, "heads": 6, "kv": 2, "ff": 52, "vocab": 101, "head": 8}
_NANO = {"dim": 768, "layers": 12, "vocab": 50304, "block_size": 1024, "bias": False, "mask": False}
_CHARS = {"dim": 36, "layers": 3, "vocab": 65, "block_size": 41, "bias": True, "mask": True}
_B32 = {"width": 512, "layers": 12, "vision": 768, "vision_layers": 12, "joint": 512}
_SMALL_CLIP = {"width": 36, "layers": 3, "vision": 28, "vision_layers": 2, "joint": 20, "vocab": 101, "context": 41}
_SMALL_CLIP |= {"patch": 6, "grid": 5}
_TEXT_H = {"width": 1024, "layers": 24, "vision": 1280, "vision_layers": 32, "joint": 1024, "norm_first": True}

MODELS: dict[str, Callable[[], Iterator[Section]]] = {
    "llama_meta": lambda: _sections(
        "facebookresearch/llama",
        meta_llama,
        {"llama-7b": _SEVEN_B, "llama-3-8b": {**_SEVEN_B, "kv": 8, "ff": 14336, "vocab": 128256}, "small": _TINY},
    ),
    "mixtral": lambda: _sections(
        "transformers before 5",
        mixtral,
        {
            "mixtral-8x7b": {**_SEVEN_B, "kv": 8, "ff": 14336, "experts": 8},
            "mixtral small": {**_TINY, "experts": 4},
        },
    ),
    "nanogpt": lambda: _sections(
        "karpathy/nanoGPT",
        nano_gpt,
        {
            "nanogpt": _NANO,
            "nanogpt chars": _CHARS,
            "nanogpt chars no bias": {**_CHARS, "bias": False},
            "nanogpt chars no mask": {**_CHARS, "mask": False},
        },
    ),
    "clip_openai": lambda: _sections(
        "openai/CLIP, mlfoundations/open_clip",
        open_clip,
        {
            "ViT-B-32": _B32,
            "ViT-L-14": {
                "width": 768,
                "layers": 12,
                "vision": 1024,
                "vision_layers": 24,
                "joint": 768,
                "patch": 14,
                "grid": 16,
            },
            "ViT-H-14 open_clip": {**_TEXT_H, "patch": 14, "grid": 16},
            "small": _SMALL_CLIP,
            "small open_clip": {**_SMALL_CLIP, "norm_first": True},
            "small text": {**_SMALL_CLIP, "text_only": True},
        },
    ),
    "whisper_openai": lambda: _sections(
        "openai/whisper",
        openai_whisper,
        {
            "tiny": {"dim": 384, "encoder": 4, "decoder": 4, "vocab": 51865, "mels": 80},
            "large-v3": {"dim": 1280, "encoder": 32, "decoder": 32, "vocab": 51866, "mels": 128},
            "large-v3-turbo": {"dim": 1280, "encoder": 32, "decoder": 4, "vocab": 51866, "mels": 128},
            "small sizes": {
                "dim": 36,
                "encoder": 3,
                "decoder": 2,
                "vocab": 101,
                "mels": 20,
                "audio": 30,
                "text": 41,
            },
        },
    ),
    **recorded_diffusion.MODELS,
}
