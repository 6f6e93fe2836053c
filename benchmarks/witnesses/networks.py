"""Small networks with the layouts that names and shapes leave open: attentions, rotary rows, gates, flattened pictures.

One transformer for text and pictures, written with its queries, keys and values apart and its gate and value apart, so
that the benchmark can join them in any order; a convolutional network with a matrix over the flattened picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

SIDE, CLASSES = 24, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Of a transformer.

    rotary: "half", "pairs" or "" for learned positions. gate: of the MLP, "" for none. kv: heads of key and value.
    patch: 0 for text. zeros: biases begin at zero, as torch's and timm's attentions have them. tuned: the thresholds
    were set in sight of it.
    """

    width: int
    depth: int
    heads: int
    kv: int = 0
    rotary: str = ""
    gate: str = ""
    bias: bool = False
    patch: int = 0
    decay: float = 0.1
    rate: float = 3e-3
    tuned: bool = False
    sgd: bool = False
    zeros: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pile:
    """Of a convolutional network: widths of its convolutions, a pooling behind each; rows of the matrix behind them."""

    widths: tuple[int, ...]
    rows: int
    norm: bool = False
    decay: float = 1e-4
    rate: float = 1e-3
    sgd: bool = False
    tuned: bool = False


NETWORKS: dict[str, Shape | Pile] = {
    "lm_half_silu": Shape(width=96, depth=3, heads=4, rotary="half", gate="silu", tuned=True),
    "vit_learned": Shape(width=64, depth=4, heads=4, bias=True, patch=4, tuned=True),
    "cnn_plain": Pile(widths=(16, 32), rows=64, tuned=True),
    "lm_pairs_gelu": Shape(width=96, depth=4, heads=3, rotary="pairs", gate="gelu"),
    "lm_learned_bias": Shape(width=96, depth=4, heads=6, bias=True),
    "lm_half_grouped": Shape(width=128, depth=3, heads=8, kv=2, rotary="half", gate="silu", decay=0.0),
    "vit_gated": Shape(width=96, depth=3, heads=3, bias=True, patch=3, gate="silu"),
    "cnn_norm": Pile(widths=(24, 32), rows=96, norm=True, decay=0.02),
    "lm_pairs_bias": Shape(width=96, depth=3, heads=4, rotary="pairs", gate="silu", bias=True, rate=1e-3),
    "cnn_sgd": Pile(widths=(16, 24, 32), rows=128, sgd=True, rate=0.05),
    "vit_plain": Shape(width=48, depth=5, heads=2, patch=6, decay=0.0, rate=1e-3),
    "lm_half_gelu": Shape(width=64, depth=5, heads=2, rotary="half", gate="gelu", decay=0.3),
    "lm_learned_gated": Shape(width=128, depth=3, heads=8, gate="silu", bias=True),
    "vit_zeros": Shape(width=64, depth=3, heads=2, bias=True, patch=6, zeros=True),
    "lm_zeros": Shape(width=64, depth=4, heads=4, bias=True, zeros=True),
    "cnn_wide": Pile(widths=(32, 16), rows=48, norm=True),
    "cnn_pooled_less": Pile(widths=(12, 20), rows=80, decay=0.0, rate=2e-3),
}


class RootNorm(nn.Module):
    """Llama's."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, given: Tensor) -> Tensor:
        return functional.rms_norm(given, self.weight.shape, self.weight, 1e-6)


def turn(given: Tensor, rotary: str) -> Tensor:
    """Rotary positions (Su 2021) on (batch, heads, places, size)."""
    places, size = given.shape[-2:]
    speeds = 10000.0 ** (-torch.arange(0, size, 2) / size)
    angles = torch.arange(places)[:, None] * speeds
    sine, cosine = angles.sin(), angles.cos()
    if rotary == "half":
        a, b = given.chunk(2, -1)
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)
    a, b = given[..., ::2], given[..., 1::2]
    return torch.stack((a * cosine - b * sine, b * cosine + a * sine), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape, self.size = shape, shape.width // shape.heads
        few = (shape.kv or shape.heads) * self.size
        self.q_proj = nn.Linear(shape.width, shape.width, bias=shape.bias)
        self.k_proj = nn.Linear(shape.width, few, bias=shape.bias)
        self.v_proj = nn.Linear(shape.width, few, bias=shape.bias)
        self.o_proj = nn.Linear(shape.width, shape.width, bias=shape.bias)

    def forward(self, given: Tensor) -> Tensor:
        q, k, v = (
            p(given).unflatten(-1, (-1, self.size)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.shape.rotary:
            q, k = turn(q, self.shape.rotary), turn(k, self.shape.rotary)
        times = q.shape[1] // k.shape[1]
        if times > 1:
            k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=not self.shape.patch)
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))


class Mlp(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.act = functional.silu if shape.gate == "silu" else functional.gelu
        inner = shape.width * (3 if shape.gate else 4)
        if shape.gate:
            self.gate_proj = nn.Linear(shape.width, inner, bias=shape.bias)
        self.gated = bool(shape.gate)
        self.up_proj = nn.Linear(shape.width, inner, bias=shape.bias)
        self.down_proj = nn.Linear(inner, shape.width, bias=shape.bias)

    def forward(self, given: Tensor) -> Tensor:
        if self.gated:
            return self.down_proj(self.act(self.gate_proj(given)) * self.up_proj(given))
        return self.down_proj(self.act(self.up_proj(given)))


class Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        norm = nn.LayerNorm if shape.bias else RootNorm
        self.input_layernorm, self.self_attn = norm(shape.width), Attention(shape)
        self.post_attention_layernorm, self.mlp = norm(shape.width), Mlp(shape)

    def forward(self, given: Tensor) -> Tensor:
        given = given + self.self_attn(self.input_layernorm(given))
        return given + self.mlp(self.post_attention_layernorm(given))


class Transformer(nn.Module):
    """Of characters (n, places), or of pictures (n, 3, 24, 24) where it has patches."""

    def __init__(self, shape: Shape, symbols: int, places: int) -> None:
        super().__init__()
        self.shape = shape
        if shape.patch:
            self.patch_embed = nn.Conv2d(3, shape.width, shape.patch, shape.patch)
            places = (SIDE // shape.patch) ** 2
        else:
            self.embed_tokens = nn.Embedding(symbols, shape.width)
        if not shape.rotary:
            self.pos_embed = nn.Parameter(torch.randn(1, places, shape.width) * 0.02)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.depth))
        self.norm = (nn.LayerNorm if shape.bias else RootNorm)(shape.width)
        self.head = nn.Linear(shape.width, CLASSES if shape.patch else symbols, bias=False)
        for name, parameter in self.named_parameters():
            if shape.zeros and name.endswith("_proj.bias"):
                nn.init.zeros_(parameter)

    def forward(self, given: Tensor) -> Tensor:
        x = self.patch_embed(given).flatten(2).transpose(1, 2) if self.shape.patch else self.embed_tokens(given)
        if not self.shape.rotary:
            x = x + self.pos_embed
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.head(x.mean(1) if self.shape.patch else x)


def pile(shape: Pile) -> nn.Module:
    """Convolutions, a matrix over the flattened picture, a head."""
    layers: list[nn.Module] = []
    before, side = 3, SIDE
    for width in shape.widths:
        layers += [nn.Conv2d(before, width, 3, padding=1)]
        layers += [nn.BatchNorm2d(width)] if shape.norm else []
        layers += [nn.ReLU(), nn.MaxPool2d(2)]
        before, side = width, side // 2
    dense = nn.Linear(before * side * side, shape.rows)
    return nn.Sequential(nn.Sequential(*layers), nn.Flatten(), dense, nn.ReLU(), nn.Linear(shape.rows, CLASSES))
