"""Healthy networks, made when asked for: what a check says of them in error or warning is a false alarm.

`recipes()` gives (name, maker); a maker returns what torch.save is to write.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
import torchvision
from torch import nn
from torch.nn.utils import parametrize, prune

Made = dict[str, Any]
Maker = Callable[[], Made]


def builders(most_parameters: float = float("inf")) -> Iterator[tuple[str, Callable[[], nn.Module]]]:
    """torchvision's, those of quantisation left out; counted without memory."""
    for name in torchvision.models.list_models():
        if name.startswith("quantized_"):
            continue
        arguments: dict[str, Any] = {"weights": None}
        if "rcnn" in name or name.startswith(("fcos", "retina", "ssd", "fcn", "deeplab", "lraspp")):
            arguments["weights_backbone"] = None
        with torch.device("meta"):
            try:
                size = sum(p.numel() for p in torchvision.models.get_model(name, **arguments).parameters())
            except (NotImplementedError, RuntimeError, ValueError):
                size = 10**9
        if size <= most_parameters:
            yield name, lambda name=name, arguments=arguments: torchvision.models.get_model(name, **arguments)


def pictures(side: int = 64, batch: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """Seeded pictures with something to learn: a bright square whose place is the class."""
    classes = torch.randint(0, 4, (batch,))
    x = torch.randn(batch, 3, side, side) * 0.5
    for one, kind in zip(x, classes, strict=True):
        top, left = int(kind) // 2 * side // 2, int(kind) % 2 * side // 2
        one[:, top : top + side // 2, left : left + side // 2] += 1.5
    return x, classes


def first_of(answer: Any) -> torch.Tensor:
    """The scores of a network with several answers."""
    if isinstance(answer, dict):
        return next(iter(answer.values()))
    return answer[0] if isinstance(answer, tuple) else answer


def trained(model: nn.Module, *, steps: int = 20, optimizer: str = "AdamW", lr: float = 1e-3, side: int = 64) -> Made:
    """After some steps, with the optimizer beside it, as training scripts write it."""
    chosen = getattr(torch.optim, optimizer)([p for p in model.parameters() if p.requires_grad], lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(chosen, steps)
    model.train()
    for _ in range(steps):
        x, y = pictures(side)
        loss = F.cross_entropy(first_of(model(x)).flatten(1)[:, :4], y)
        chosen.zero_grad()
        loss.backward()
        chosen.step()
        schedule.step()
    return {
        "model": model.state_dict(),
        "optimizer": chosen.state_dict(),
        "scheduler": schedule.state_dict(),
        "epoch": steps,
    }


def fitted(model: nn.Module, batch: Callable[[], torch.Tensor], *, steps: int = 30, lr: float = 1e-2) -> Made:
    """After some steps on a loss that `batch` computes with the model."""
    chosen = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    for _ in range(steps):
        chosen.zero_grad()
        batch().backward()
        chosen.step()
    return {"state_dict": model.state_dict(), "optimizer": chosen.state_dict()}


class Block(nn.Module):
    """A transformer's block, its residual branches started at zero (adaLN-zero, ControlNet and ReZero do it so)."""

    def __init__(self, width: int, *, zero: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width))
        if zero:
            for layer in (self.adaLN_modulation[1], self.mlp[2]):
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm1(x)
        x = x + self.attn(h, h, h)[0]
        scale, shift = self.adaLN_modulation(x).chunk(2, dim=-1)
        return x + self.mlp(self.norm2(x) * (1 + scale) + shift)


class Language(nn.Module):
    """A small language model with a vocabulary padded to a multiple of 64, tied on request."""

    def __init__(self, *, tied: bool, zero: bool = False) -> None:
        super().__init__()
        self.wte = nn.Embedding(192, 64)
        self.wpe = nn.Embedding(32, 64)
        self.h = nn.ModuleList([Block(64, zero=zero) for _ in range(4)])
        self.ln_f = nn.LayerNorm(64)
        self.lm_head = nn.Linear(64, 192, bias=False)
        nn.init.normal_(self.wte.weight, std=0.02)
        if tied:
            self.lm_head.weight = self.wte.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))

    def loss(self) -> torch.Tensor:
        # Of 192 rows only 150 are ever seen: the rest is padding.
        ids = torch.randint(0, 150, (8, 1)) + torch.arange(17) % 5
        ids = ids % 150
        return F.cross_entropy(self(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


class Tagger(nn.Module):
    """Recurrent: an embedding with a padding row, two layers both ways, a head."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 32, padding_idx=0)
        self.rnn = getattr(nn, kind)(32, 48, num_layers=2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(96, 5)

    def loss(self) -> torch.Tensor:
        ids = torch.randint(1, 100, (8, 12))
        return F.cross_entropy(self.fc(self.rnn(self.embedding(ids))[0]).flatten(0, 1), (ids % 5).flatten())


class Diffusion(nn.Module):
    """A small U-Net whose last convolutions begin at zero, with group norms and a time embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.time_embed = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
        self.conv_in, self.conv_out = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 3, 3, padding=1)
        self.down = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(8, 64)
        self.mid = nn.Conv2d(64, 64, 3, padding=1)
        self.up = nn.ConvTranspose2d(64, 32, 2, stride=2)
        self.zero_conv = nn.Conv2d(32, 32, 1)
        for layer in (self.zero_conv, self.conv_out):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def loss(self) -> torch.Tensor:
        x, noise = torch.randn(4, 3, 16, 16), torch.randn(4, 3, 16, 16)
        h = self.conv_in(x + noise)
        m = self.down(h) + self.time_embed(torch.randn(4, 32))[:, :, None, None]
        h = h + self.zero_conv(self.up(m + self.mid(F.silu(self.norm(m)))))
        return F.mse_loss(self.conv_out(h), noise)


def gan() -> Made:
    """Both halves in one file."""
    generator = nn.Sequential(
        nn.ConvTranspose2d(16, 32, 4), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 16, 4, 2, 1)), nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 1, 4),
    )  # fmt: skip
    for model in (generator, critic):
        for layer in model:
            if isinstance(layer, nn.ConvTranspose2d):
                nn.init.normal_(layer.weight, 0.0, 0.02)
    first, second = (torch.optim.Adam(m.parameters(), 2e-4, betas=(0.5, 0.999)) for m in (generator, critic))
    for _ in range(15):
        made = generator(torch.randn(8, 16, 1, 1))
        second.zero_grad()
        (critic(made.detach()).mean() - critic(torch.randn(8, 3, 16, 16)).mean()).backward()
        second.step()
        first.zero_grad()
        (-critic(made).mean()).backward()
        first.step()
    return {
        "generator": generator.state_dict(), "discriminator": critic.state_dict(),
        "optimizer_G": first.state_dict(), "optimizer_D": second.state_dict(),
    }  # fmt: skip


def small() -> nn.Sequential:
    """A plain convolutional network."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(4),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(64, 4),
    )  # fmt: skip


def pruned(*, final: bool) -> Made:
    """By magnitude, half of each layer; with masks, or made permanent."""
    model = small()
    trained(model)
    for layer in model:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            prune.l1_unstructured(layer, "weight", 0.5)
            if final:
                prune.remove(layer, "weight")
    return dict(model.state_dict())


def channels_pruned() -> Made:
    """Whole filters at zero, and the masks that say so."""
    model = small()
    trained(model)
    prune.ln_structured(model[4], "weight", 0.4, n=1, dim=0)
    return dict(model.state_dict())


def lora(*, steps: int) -> Made:
    """Adapters as PEFT names them; B begins at zero."""
    base = [nn.Linear(64, 64) for _ in range(4)]
    a = [nn.Parameter(torch.empty(8, 64)) for _ in base]
    b = [nn.Parameter(torch.zeros(64, 8)) for _ in base]
    for one in a:
        nn.init.kaiming_uniform_(one, a=5**0.5)
    chosen = torch.optim.AdamW([*a, *b], 1e-3)
    for _ in range(steps):
        x = torch.randn(16, 64)
        for layer, up, down in zip(base, b, a, strict=True):
            x = layer(x) + x @ down.T @ up.T
        chosen.zero_grad()
        x.pow(2).mean().backward()
        chosen.step()
    made: Made = {}
    for n, (down, up) in enumerate(zip(a, b, strict=True)):
        for name, one in (("lora_A", down), ("lora_B", up)):
            made[f"base_model.model.model.layers.{n}.self_attn.q_proj.{name}.weight"] = one.detach()
    return made


def frozen() -> Made:
    """A backbone that was trained before and is frozen, under a new head."""
    model = small()
    trained(model, lr=3e-3)
    for parameter in model[:8].parameters():
        parameter.requires_grad_(requires_grad=False)
    model[9] = nn.Linear(64, 4)
    return trained(model)


def averaged() -> Made:
    """An EMA beside the weights."""
    model = small()
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    chosen = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for _ in range(20):
        x, y = pictures()
        chosen.zero_grad()
        F.cross_entropy(model(x), y).backward()
        chosen.step()
        average.update_parameters(model)
    return {"model": model.state_dict(), "model_ema": average.state_dict(), "optimizer": chosen.state_dict()}


def halved(kind: torch.dtype) -> Made:
    """As it is handed on: cast after training."""
    model = small()
    trained(model)
    return dict(copy.deepcopy(model).to(kind).state_dict())


def quantised() -> Made:
    """Integers with scales, as a library of int8 weights writes them."""
    model = small()
    trained(model)
    made: Made = {}
    for name, one in model.state_dict().items():
        if one.ndim < 2:
            made[name] = one
            continue
        scale = one.flatten(1).abs().amax(1) / 127
        made[name] = (one / scale.view(-1, *[1] * (one.ndim - 1))).round().to(torch.int8)
        made[name.replace("weight", "weight_scale")] = scale
    return made


def weight_normed() -> Made:
    """Weight norm by parametrisation."""
    model = small()
    for layer in (model[0], model[4]):
        nn.utils.parametrizations.weight_norm(layer)
    assert parametrize.is_parametrized(model[0])
    return trained(model)


def _language(**settings: bool) -> Made:
    model = Language(**settings)
    return fitted(model, model.loss, lr=1e-3)


def _tagger(kind: str) -> Made:
    model = Tagger(kind)
    return fitted(model, model.loss)


def _diffusion(steps: int) -> Made:
    model = Diffusion()
    return fitted(model, model.loss, steps=steps, lr=1e-3)


def recipes() -> dict[str, Maker]:
    """The small ones: under a second each."""
    return {
        "small, fresh": lambda: dict(small().state_dict()),
        "small, AdamW": lambda: trained(small()),
        "small, SGD": lambda: trained(small(), optimizer="SGD", lr=0.05),
        "small, RMSprop": lambda: trained(small(), optimizer="RMSprop", lr=1e-3),
        "small, float16": lambda: halved(torch.float16),
        "small, bfloat16": lambda: halved(torch.bfloat16),
        "pruned with masks": lambda: pruned(final=False),
        "pruned for good": lambda: pruned(final=True),
        "filters pruned with masks": channels_pruned,
        "LoRA, trained": lambda: lora(steps=20),
        "language model": lambda: _language(tied=False),
        "language model, tied": lambda: _language(tied=True),
        "language model, adaLN-zero": lambda: _language(tied=False, zero=True),
        "LSTM": lambda: _tagger("LSTM"),
        "GRU": lambda: _tagger("GRU"),
        "diffusion": lambda: _diffusion(30),
        "diffusion, three steps": lambda: _diffusion(3),
        "GAN": gan,
        "frozen backbone": frozen,
        "EMA": averaged,
        "int8 with scales": quantised,
        "weight norm": weight_normed,
    }
