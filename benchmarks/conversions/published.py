"""Networks that no package brings, written after what their authors publish: the names are theirs, the code is not.

nanoGPT (karpathy/nanoGPT model.py), Meta's Llama (meta-llama/llama model.py), fairseq's RoBERTa (hub checkpoints),
detectron2's ResNet (modeling/backbone/resnet.py). Only what is needed to run one forward.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def attend(q: Tensor, k: Tensor, v: Tensor, heads: int, *, causal: bool) -> Tensor:
    """Attention of [batch, length, width] in this many heads."""
    b, n, _ = q.shape
    q, k, v = (x.view(b, n, heads, -1).transpose(1, 2) for x in (q, k, v))
    made = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return made.transpose(1, 2).reshape(b, n, -1)


class NanoGPT(nn.Module):
    """transformer.h.N.attn.c_attn and mlp.c_fc as nn.Linear; lm_head tied to wte."""

    def __init__(
        self, vocabulary: int = 61, width: int = 48, layers: int = 3, heads: int = 4, length: int = 32
    ) -> None:
        super().__init__()
        self.heads = heads
        blocks = []
        for _ in range(layers):
            attention = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width), "c_proj": nn.Linear(width, width)})
            mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})
            norms = {"ln_1": nn.LayerNorm(width), "ln_2": nn.LayerNorm(width)}
            blocks.append(nn.ModuleDict({"ln_1": norms["ln_1"], "attn": attention, "ln_2": norms["ln_2"], "mlp": mlp}))
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(vocabulary, width),
                "wpe": nn.Embedding(length, width),
                "h": nn.ModuleList(blocks),
                "ln_f": nn.LayerNorm(width),
            }
        )
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.transformer["wte"].weight = self.lm_head.weight

    def forward(self, ids: Tensor) -> Tensor:
        t: Any = self.transformer
        x = t["wte"](ids) + t["wpe"](torch.arange(ids.shape[1]))
        for block in t["h"]:
            q, k, v = block["attn"]["c_attn"](block["ln_1"](x)).chunk(3, dim=-1)
            x = x + block["attn"]["c_proj"](attend(q, k, v, self.heads, causal=True))
            x = x + block["mlp"]["c_proj"](functional.gelu(block["mlp"]["c_fc"](block["ln_2"](x)), approximate="tanh"))
        return self.lm_head(t["ln_f"](x))


class SplitGPT(nn.Module):
    """The same with query, key and value apart, as many teach it: blocks.N.attn.q_proj, mlp.fc1; tied head."""

    def __init__(
        self, vocabulary: int = 61, width: int = 48, layers: int = 3, heads: int = 4, length: int = 32
    ) -> None:
        super().__init__()
        self.heads = heads
        self.tok_emb = nn.Embedding(vocabulary, width)
        self.pos_emb = nn.Embedding(length, width)
        blocks = []
        for _ in range(layers):
            attention = nn.ModuleDict({n: nn.Linear(width, width) for n in ("q_proj", "k_proj", "v_proj", "out_proj")})
            mlp = nn.ModuleDict({"fc1": nn.Linear(width, 4 * width), "fc2": nn.Linear(4 * width, width)})
            blocks.append(
                nn.ModuleDict(
                    {"norm1": nn.LayerNorm(width), "attn": attention, "norm2": nn.LayerNorm(width), "mlp": mlp}
                )
            )
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tok_emb.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tok_emb(ids) + self.pos_emb(torch.arange(ids.shape[1]))
        for block in self.blocks:
            b: Any = block
            y = b["norm1"](x)
            a = b["attn"]
            x = x + a["out_proj"](attend(a["q_proj"](y), a["k_proj"](y), a["v_proj"](y), self.heads, causal=True))
            x = x + b["mlp"]["fc2"](functional.gelu(b["mlp"]["fc1"](b["norm2"](x)), approximate="tanh"))
        return self.head(self.norm(x))


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def turn_pairs(x: Tensor) -> Tensor:
    """Rotary positions of neighbouring pairs: [batch, length, heads, size], as Meta's code turns them."""
    size, n = x.shape[-1], x.shape[1]
    freqs = 1.0 / (10000.0 ** (torch.arange(0, size, 2, dtype=x.dtype) / size))
    angle = torch.arange(n, dtype=x.dtype)[:, None] * freqs
    cos, sin = angle.cos()[None, :, None], angle.sin()[None, :, None]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


class MetaLlama(nn.Module):
    """tok_embeddings, layers.N.attention.wq, feed_forward.w1, attention_norm, output."""

    def __init__(
        self, vocabulary: int = 61, width: int = 48, layers: int = 2, heads: int = 4, kv: int = 2, hidden: int = 80
    ) -> None:
        super().__init__()
        self.heads, self.kv, self.size = heads, kv, width // heads
        self.tok_embeddings = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList()
        for _ in range(layers):
            attention = nn.ModuleDict(
                {
                    "wq": nn.Linear(width, width, bias=False),
                    "wk": nn.Linear(width, kv * self.size, bias=False),
                    "wv": nn.Linear(width, kv * self.size, bias=False),
                    "wo": nn.Linear(width, width, bias=False),
                }
            )
            ffn = nn.ModuleDict(
                {
                    "w1": nn.Linear(width, hidden, bias=False),
                    "w2": nn.Linear(hidden, width, bias=False),
                    "w3": nn.Linear(width, hidden, bias=False),
                }
            )
            norms = {"attention_norm": RMSNorm(width), "ffn_norm": RMSNorm(width)}
            self.layers.append(nn.ModuleDict({"attention": attention, "feed_forward": ffn, **norms}))
        self.norm = RMSNorm(width)
        self.output = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tok_embeddings(ids)
        b, n = ids.shape
        for layer in self.layers:
            block: Any = layer
            a, f, y = block["attention"], block["feed_forward"], block["attention_norm"](x)
            q = turn_pairs(a["wq"](y).view(b, n, self.heads, self.size))
            k = turn_pairs(a["wk"](y).view(b, n, self.kv, self.size)).repeat_interleave(self.heads // self.kv, dim=2)
            v = a["wv"](y).view(b, n, self.kv, self.size).repeat_interleave(self.heads // self.kv, dim=2)
            x = x + a["wo"](attend(q.flatten(2), k.flatten(2), v.flatten(2), self.heads, causal=True))
            y = block["ffn_norm"](x)
            x = x + f["w2"](functional.silu(f["w1"](y)) * f["w3"](y))
        return self.output(self.norm(x))


class FairseqRoberta(nn.Module):
    """encoder.sentence_encoder.layers.N.self_attn.q_proj, final_layer_norm; positions start at padding + 1."""

    def __init__(
        self, vocabulary: int = 61, width: int = 48, layers: int = 2, heads: int = 4, length: int = 34
    ) -> None:
        super().__init__()
        self.heads = heads
        inner = nn.Module()
        inner.embed_tokens = nn.Embedding(vocabulary, width)
        inner.embed_positions = nn.Embedding(length, width)
        inner.layernorm_embedding = nn.LayerNorm(width)
        inner.layers = nn.ModuleList()
        for _ in range(layers):
            attention = nn.ModuleDict({n: nn.Linear(width, width) for n in ("k_proj", "v_proj", "q_proj", "out_proj")})
            inner.layers.append(
                nn.ModuleDict(
                    {
                        "self_attn": attention,
                        "self_attn_layer_norm": nn.LayerNorm(width),
                        "fc1": nn.Linear(width, 4 * width),
                        "fc2": nn.Linear(4 * width, width),
                        "final_layer_norm": nn.LayerNorm(width),
                    }
                )
            )
        self.encoder = nn.Module()
        self.encoder.sentence_encoder = inner
        head = nn.Module()
        head.weight = inner.embed_tokens.weight
        head.bias = nn.Parameter(torch.zeros(vocabulary))
        head.dense = nn.Linear(width, width)
        head.layer_norm = nn.LayerNorm(width)
        self.encoder.lm_head = head

    def forward(self, ids: Tensor) -> Tensor:
        inner: Any = self.encoder.sentence_encoder
        x = inner.layernorm_embedding(
            inner.embed_tokens(ids) + inner.embed_positions(torch.arange(2, 2 + ids.shape[1]))
        )
        for layer in inner.layers:
            a = layer["self_attn"]
            y = attend(a["q_proj"](x), a["k_proj"](x), a["v_proj"](x), self.heads, causal=False)
            x = layer["self_attn_layer_norm"](x + a["out_proj"](y))
            x = layer["final_layer_norm"](x + layer["fc2"](functional.gelu(layer["fc1"](x))))
        head: Any = self.encoder.lm_head
        return functional.linear(head.layer_norm(functional.gelu(head.dense(x))), head.weight, head.bias)


class TorchBert(nn.Module):
    """BERT's body out of torch.nn.TransformerEncoder: in_proj_weight, linear1, norm1, as people build it themselves."""

    def __init__(
        self, vocabulary: int = 61, width: int = 48, layers: int = 2, heads: int = 4, length: int = 32
    ) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width)
        self.position_embeddings = nn.Embedding(length, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.word_embeddings(ids) + self.position_embeddings(torch.arange(ids.shape[1]))
        return self.encoder(self.norm(x + self.token_type_embeddings(torch.zeros_like(ids))))


class FrozenNorm(nn.Module):
    """detectron2's FrozenBatchNorm2d: four buffers."""

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, torch.full((width,), value))

    def forward(self, x: Tensor) -> Tensor:
        s: Any = self
        scale = s.weight * (s.running_var + self.eps).rsqrt()
        return x * scale[:, None, None] + (s.bias - s.running_mean * scale)[:, None, None]


class NormedConv(nn.Conv2d):
    """detectron2's Conv2d with the norm inside: conv1.weight, conv1.norm.weight."""

    def __init__(self, *sizes: Any, frozen: bool, **options: Any) -> None:
        super().__init__(*sizes, bias=False, **options)
        self.norm = FrozenNorm(self.out_channels) if frozen else nn.BatchNorm2d(self.out_channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(super().forward(x))


class DetectronBlock(nn.Module):
    def __init__(self, width: int, middle: int, out: int, stride: int, frozen: bool) -> None:
        super().__init__()
        if width != out:
            self.shortcut = NormedConv(width, out, 1, stride, frozen=frozen)
        self.conv1 = NormedConv(width, middle, 1, frozen=frozen)
        self.conv2 = NormedConv(middle, middle, 3, stride, 1, frozen=frozen)
        self.conv3 = NormedConv(middle, out, 1, frozen=frozen)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv3(functional.relu(self.conv2(functional.relu(self.conv1(x)))))
        return functional.relu(y + (self.shortcut(x) if hasattr(self, "shortcut") else x))


class DetectronResNet(nn.Module):
    """backbone.bottom_up.stem.conv1, res2.0.shortcut ... of ResNet-50; prefix is what a detector puts before it."""

    def __init__(self, frozen: bool = True, classes: int = 0) -> None:
        super().__init__()
        self.stem = nn.ModuleDict({"conv1": NormedConv(3, 64, 7, 2, 3, frozen=frozen)})
        width = 64
        for n, blocks in enumerate((3, 4, 6, 3)):
            middle = 64 << n
            stage = []
            for i in range(blocks):
                stride = 2 if i == 0 and n else 1
                stage.append(DetectronBlock(width, middle, 4 * middle, stride, frozen))
                width = 4 * middle
            setattr(self, f"res{n + 2}", nn.Sequential(*stage))
        if classes:
            self.linear = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        s: Any = self
        x = functional.max_pool2d(functional.relu(s.stem["conv1"](x)), 3, 2, 1)
        for n in range(2, 6):
            x = getattr(self, f"res{n}")(x)
        return self.linear(x.mean((2, 3))) if hasattr(self, "linear") else x
