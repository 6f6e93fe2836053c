"""Methods that follow attention: against a tiny transformer written out in the test, and on real implementations."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional

from inspector.cam.engine.attention import attentions
from inspector.cam.engine.maps import heat_maps
from inspector.errors import ExplainError

WIDTH, HEADS, SIDE, PATCH = 8, 2, 12, 4
TOKENS = 1 + (SIDE // PATCH) ** 2


class SelfAttention(nn.Module):
    """way: how the weights come about; all give the same numbers."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.num_heads = HEADS
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.way = way

    def forward(self, x: Tensor) -> Tensor:
        n, length, _ = x.shape
        q, k, v = self.qkv(x).reshape(n, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        if self.way == "fused":
            y = functional.scaled_dot_product_attention(q, k, v)
        else:
            scores = q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5
            if self.way == "method":
                weights = scores.softmax(dim=-1)
            elif self.way == "torch":
                weights = torch.softmax(scores, dim=-1)
            else:
                weights = functional.softmax(scores, dim=-1)
            y = weights @ v
        return self.proj(y.transpose(1, 2).reshape(n, length, WIDTH))


class Block(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = SelfAttention(way)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, way: str = "fused", *, class_token: bool = True) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.class_token = nn.Parameter(torch.randn(1, 1, WIDTH)) if class_token else None
        self.blocks = nn.ModuleList(Block(way) for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 4)

    def embedded(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).transpose(1, 2)
        return x if self.class_token is None else torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)

    def read(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        return self.head(x.mean(dim=1) if self.class_token is None else x[:, 0])

    def forward(self, x: Tensor) -> Tensor:
        x = self.embedded(x)
        for block in self.blocks:
            x = block(x)
        return self.read(x)


def make(way: str = "fused", *, class_token: bool = True) -> Transformer:
    torch.manual_seed(3)
    model = Transformer(way, class_token=class_token).double().eval()
    for block in model.blocks:
        nn.init.normal_(block.attn.qkv.weight, std=0.8)  # sharp attention, so that the maps differ
    return model


def written_out(model: Transformer, x: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """(logits, weights per block, tokens per block), every step spelled."""
    tokens = model.embedded(x)
    weights, outputs = [], []
    for block in model.blocks:
        q, k, v = block.attn.qkv(block.norm1(tokens)).chunk(3, dim=-1)
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (q, k, v))
        a = torch.exp(q @ k.mT / (WIDTH // HEADS) ** 0.5)
        a = a / a.sum(dim=-1, keepdim=True)
        weights.append(a)
        tokens = tokens + block.attn.proj((a @ v).transpose(1, 2).flatten(2))
        tokens = tokens + block.mlp(block.norm2(tokens))
        outputs.append(tokens)
    return model.read(tokens), weights, outputs


def grid_of(rows: Tensor, model: Transformer) -> Tensor:
    prefix = 0 if model.class_token is None else 1
    return rows[:, prefix:].reshape(-1, SIDE // PATCH, SIDE // PATCH)


def read_out(relevance: Tensor, model: Transformer) -> Tensor:
    return grid_of(relevance.mean(dim=1) if model.class_token is None else relevance[:, 0], model)


def rollout(model: Transformer, x: Tensor, target: int) -> Tensor:
    _, (first, second), _ = written_out(model, x)
    eye = torch.eye(first.shape[-1], dtype=x.dtype)
    one, two = (0.5 * w.mean(dim=1) + 0.5 * eye for w in (first, second))
    return read_out(two @ one, model)


def chefer(model: Transformer, x: Tensor, target: int) -> Tensor:
    logits, weights, _ = written_out(model, x)
    gradients = torch.autograd.grad(logits[:, target].sum(), weights)
    one, two = ((g * w).clamp(min=0).mean(dim=1) for g, w in zip(gradients, weights, strict=True))
    # (1 + two)(1 + one) - 1
    return read_out(two @ one + two + one, model)


def legrad(model: Transformer, x: Tensor, target: int) -> Tensor:
    _, weights, outputs = written_out(model, x)
    total = 0
    for w, z in zip(weights, outputs, strict=True):
        score = model.head(model.norm(z.mean(dim=1)))[:, target].sum()
        (gradient,) = torch.autograd.grad(score, [w], retain_graph=True)
        total = total + gradient.clamp(min=0).mean(dim=(1, 2))
    return grid_of(total, model)


ORACLES: dict[str, Callable[[Transformer, Tensor, int], Tensor]] = {
    "attention-rollout": rollout,
    "gradient-rollout": chefer,
    "le-grad": legrad,
}


@pytest.fixture
def x() -> Tensor:
    return torch.randn(2, 3, SIDE, SIDE, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("class_token", [True, False])
@pytest.mark.parametrize("way", ["fused", "method", "torch", "functional"])
@pytest.mark.parametrize("method", ORACLES)
def test_against_everything_written_out(method: str, way: str, class_token: bool, x: Tensor) -> None:
    model = make(way, class_token=class_token)
    expected = ORACLES[method](model, x, 2).detach()
    found = heat_maps(model, x, method=method, targets=2)
    torch.testing.assert_close(found.raw, expected, rtol=1e-9, atol=1e-12)
    assert float(found.raw.std()) > 0
    torch.testing.assert_close(found.logits, model(x).detach())


@pytest.mark.parametrize("method", ORACLES)
def test_torchs_own_attention_layer(method: str) -> None:
    """The same weights in torchvision's vision transformer, whose attention is fused inside of a larger function."""
    torch.manual_seed(5)
    model = torchvision.models.VisionTransformer(16, 4, 2, 2, 8, 16, num_classes=3).double().eval()
    nn.init.normal_(model.heads.head.weight)
    for layer in model.encoder.layers:
        nn.init.normal_(layer.self_attention.in_proj_weight, std=0.8)
    x = torch.randn(1, 3, 16, 16, dtype=torch.float64)
    found = heat_maps(model, x, method=method, targets=1)
    weights = []
    tokens = torch.cat([model.class_token.expand(1, -1, -1), model._process_input(x)], dim=1)
    tokens = tokens + model.encoder.pos_embedding
    outputs = []
    for layer in model.encoder.layers:
        attention, normed = layer.self_attention, layer.ln_1(tokens)
        q, k, v = (normed @ attention.in_proj_weight.T + attention.in_proj_bias).chunk(3, dim=-1)
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in (q, k, v))
        a = torch.softmax(q @ k.mT / 2, dim=-1)
        weights.append(a)
        tokens = tokens + attention.out_proj((a @ v).transpose(1, 2).flatten(2))
        tokens = tokens + layer.mlp(layer.ln_2(tokens))
        outputs.append(tokens)
    logits = model.heads(model.encoder.ln(tokens)[:, 0])
    torch.testing.assert_close(found.logits, logits.detach())
    if method == "attention-rollout":
        eye = torch.eye(17, dtype=x.dtype)
        rows = ((weights[1].mean(1) + eye) / 2 @ ((weights[0].mean(1) + eye) / 2))[:, 0]
    elif method == "gradient-rollout":
        g = torch.autograd.grad(logits[0, 1], weights)
        one, two = ((a * b).clamp(min=0).mean(dim=1) for a, b in zip(g, weights, strict=True))
        rows = (two @ one + two + one)[:, 0]
    else:
        rows = 0
        for a, z in zip(weights, outputs, strict=True):
            score = model.heads(model.encoder.ln(z.mean(dim=1)))[0, 1]
            rows = rows + torch.autograd.grad(score, [a], retain_graph=True)[0].clamp(min=0).mean(dim=(1, 2))
    torch.testing.assert_close(found.raw, rows[:, 1:].reshape(1, 4, 4).detach(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ORACLES)
def test_what_has_no_such_attention_is_refused(method: str) -> None:
    for name in ("swin_t", "mobilenet_v3_small"):
        model = torchvision.models.get_model(name, weights=None, num_classes=3).eval()
        with pytest.raises(ExplainError, match="attention"):
            heat_maps(model, torch.randn(1, 3, 64, 64), method=method)


def test_other_threads_and_later_calls_get_torchs_own_functions() -> None:
    fused, softmax = functional.scaled_dot_product_attention, functional.softmax
    q = torch.randn(1, 2, 5, 4)
    seen: list[int] = []

    def elsewhere() -> None:
        expected = fused(q, q, q)
        seen.append(int(torch.equal(functional.scaled_dot_product_attention(q, q, q), expected)))

    with attentions(5) as found:
        functional.softmax(torch.randn(3, 5, 5), dim=-1)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert seen == [1]
        assert len(found) == 1
        with attentions(7):
            pass
        functional.softmax(torch.randn(3, 5, 5), dim=-1)
        assert len(found) == 2
    assert functional.scaled_dot_product_attention is fused
    assert functional.softmax is softmax
    functional.softmax(torch.randn(3, 5, 5), dim=-1)
    assert len(found) == 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"attn_mask": torch.randn(5, 5, dtype=torch.float64)},
        {"attn_mask": torch.tensor([True, False, True, True, True]).expand(5, 5)},
        {"scale": 0.3},
        {"enable_gqa": True},
    ],
    ids=["plain", "causal", "bias", "mask", "scale", "shared keys"],
)
def test_the_plain_form_is_the_fused_one(options: dict[str, object]) -> None:
    torch.manual_seed(0)
    q = torch.randn(2, 4, 5, 8, dtype=torch.float64)
    k, v = (torch.randn(2, 2 if options.get("enable_gqa") else 4, 5, 8, dtype=torch.float64) for _ in range(2))
    expected = functional.scaled_dot_product_attention(q, k, v, **options)  # type: ignore[arg-type]
    with attentions(5) as found:
        got = functional.scaled_dot_product_attention(q, k, v, **options)  # type: ignore[arg-type]
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(found[0].sum(dim=-1), torch.ones_like(found[0][..., 0]))
