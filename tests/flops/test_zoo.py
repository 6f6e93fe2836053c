"""Awkward modules: each is counted to the last multiply-add, or refused with its own reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize, prune
from torch.utils.checkpoint import checkpoint

from inspector.errors import ModelError, NeedsValues
from inspector.flops.count import count_model_costs
from inspector.flops.report import CostReport


def bill(model: nn.Module, *shape: int, dtype: str = "float32") -> CostReport:
    return count_model_costs(model, shape, label="a model", dtype=dtype, second_opinion=False)


class Made(nn.Module):
    def __init__(self, run: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.run = run

    def forward(self, x: Tensor) -> Any:
        return self.run(self, x)


class Recursive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor, left: int = 3) -> Tensor:
        return self.fc(x) if not left else self(self.fc(x), left - 1)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x @ x.mT

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return (gradients[0] + gradients[0].mT) @ x


class Symmetric(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight.triu() + weight.triu(1).mT


def _tied() -> nn.Module:
    first = nn.Linear(4, 4, bias=False)
    return nn.Sequential(first, nn.ReLU(), first)


def _pruned() -> nn.Module:
    layer = nn.Linear(4, 6)
    prune.l1_unstructured(layer, "weight", 0.5)
    return layer


def _parametrised() -> nn.Module:
    layer = nn.Linear(4, 4)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer


def _hooked() -> nn.Module:
    layer = nn.Linear(4, 4)
    layer.register_forward_hook(lambda module, args, output: output @ output.mT)
    return layer


# (name, model, shape, MACs, parameters): the products written out.
ZOO: list[tuple[str, Callable[[], nn.Module], tuple[int, ...], int, int]] = [
    ("tied", _tied, (2, 4), 2 * 2 * 16, 16),
    ("recursive", Recursive, (2, 4), 4 * 2 * 16, 20),
    ("pruned: zeros are multiplied too", _pruned, (2, 4), 2 * 24, 30),
    ("parametrised", _parametrised, (2, 4), 2 * 16, 20),
    # The norm of each row is a sum of squares, element-wise by convention.
    ("weight norm", lambda: parametrizations.weight_norm(nn.Linear(4, 6)), (2, 4), 2 * 24, 6 + 24 + 6),
    ("functional only", lambda: Made(lambda m, x: functional.linear(x, x)), (3, 5), 3 * 3 * 5, 0),
    ("several outputs", lambda: Made(lambda m, x: {"a": m.a(x), "b": [m.b(x)]}, a=nn.Linear(4, 2), b=nn.Linear(4, 3)),
     (2, 4), 2 * (8 + 12), 25),
    ("nothing comes out", lambda: Made(lambda m, x: None), (2, 4), 0, 0),
    ("LSTM in both directions", lambda: nn.LSTM(4, 5, bidirectional=True), (3, 2, 4), 2 * 6 * 20 * (4 + 5),
     2 * (20 * 4 + 20 * 5 + 40)),
    ("LSTM with a projection", lambda: nn.LSTM(4, 6, proj_size=3), (5, 2, 4), 10 * (24 * 4 + 24 * 3 + 6 * 3),
     24 * 4 + 24 * 3 + 48 + 18),
    ("GRU cell by hand", lambda: Made(lambda m, x: m.cell(m.cell(x)), cell=nn.GRUCell(4, 4)), (2, 4),
     2 * 2 * (12 * 4 + 12 * 4), 12 * 4 * 2 + 24),
    ("attention with a mask", lambda: Made(
        lambda m, x: m.a(x, x, x, attn_mask=torch.zeros(5, 5), need_weights=False)[0],
        a=nn.MultiheadAttention(8, 2, batch_first=True)),
     (2, 5, 8), 2 * (5 * 8 * 24 + 2 * 5 * 5 * 8 + 5 * 64), 24 * 8 + 24 + 64 + 8),
    ("attention over other tokens", lambda: Made(
        lambda m, x: m.a(x[:, :2], x, x)[0], a=nn.MultiheadAttention(8, 2, kdim=8, vdim=8, batch_first=True)),
     (1, 5, 8), 2 * 64 + 2 * 5 * 64 + 2 * 2 * 5 * 8 + 2 * 64, 24 * 8 + 24 + 64 + 8),
    ("a decoder layer", lambda: Made(
        lambda m, x: m.d(x, x), d=nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, batch_first=True)),
     (1, 5, 8), 2 * (4 * 5 * 64 + 2 * 25 * 8) + 2 * 5 * 8 * 16, 2 * (24 * 8 + 24 + 72) + 2 * 128 + 16 + 8 + 48),
    ("custom autograd", lambda: Made(lambda m, x: Square.apply(x)), (3, 5), 3 * 3 * 5, 0),
    ("checkpointed", lambda: Made(lambda m, x: checkpoint(m.fc, x, use_reentrant=False), fc=nn.Linear(4, 3)), (2, 4),
     2 * 12, 15),
    ("a hook that multiplies", _hooked, (2, 4), 2 * 16 + 2 * 2 * 4, 20),
    ("a plain list", lambda: Made(lambda m, x: m.layers[1](m.layers[0](x)), layers=[nn.Linear(4, 4), nn.Linear(4, 2)]),
     (2, 4), 2 * (16 + 8), 0),
    ("a layer made inside forward", lambda: Made(lambda m, x: nn.Linear(4, 3)(x)), (2, 4), 2 * 12, 0),
    ("a loop over steps", lambda: Made(
        lambda m, x: torch.stack([m.fc(x[:, n]) for n in range(x.shape[1])]), fc=nn.Linear(4, 3)), (2, 6, 4),
     6 * 2 * 12, 15),
    ("broadcast products", lambda: Made(lambda m, x: x.unsqueeze(1) @ x.mT), (3, 5, 7), 3 * 3 * 5 * 5 * 7, 0),
    ("transposed, grouped", lambda: nn.ConvTranspose2d(4, 8, 3, 2, groups=2), (1, 4, 5, 5), 25 * 4 * 4 * 9,
     4 * 4 * 9 + 8),
    ("a bilinear layer", lambda: Made(lambda m, x: m.b(x, x), b=nn.Bilinear(3, 3, 2)), (4, 3), 4 * (2 * 9 + 2 * 3), 20),
    ("kronecker and outer", lambda: Made(lambda m, x: torch.outer(x, x)), (6,), 0, 0),
    ("unfolded and multiplied", lambda: Made(
        lambda m, x: m.w @ functional.unfold(x, 3), w=nn.Parameter(torch.zeros(5, 27))), (2, 3, 8, 8), 2 * 5 * 27 * 36,
     135),
    ("embedding", lambda: nn.Embedding(9, 4), (2, 5), 0, 36),
    ("normalisations only", lambda: nn.Sequential(nn.BatchNorm2d(3), nn.GroupNorm(1, 3), nn.ReLU()), (2, 3, 4, 4), 0,
     12),
]  # fmt: skip


@pytest.mark.parametrize(("make", "shape", "macs", "parameters"), [z[1:] for z in ZOO], ids=[z[0] for z in ZOO])
def test_awkward_modules_are_counted(
    make: Callable[[], nn.Module], shape: tuple[int, ...], macs: int, parameters: int
) -> None:
    model = make()
    report = bill(model, *shape, dtype="int64" if isinstance(model, nn.Embedding) else "float32")
    assert report.macs == macs
    assert report.parameters == parameters == sum(m.own_parameters for m in report.modules)
    assert sum(m.own_macs for m in report.modules) == macs
    assert report.uncounted == ()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: torch.jit.script(nn.Linear(4, 4)), "TorchScript"),
        (lambda: nn.Sequential(nn.LazyLinear(3)), "lazy module"),
        (lambda: torch.ao.nn.quantized.dynamic.Linear(4, 4), "quantised"),
        (lambda: Made(lambda m, x: x if bool((x > 0).any()) else -x), "the value of a tensor is read"),
        (lambda: Made(lambda m, x: torch.from_numpy(x.numpy())), "NumPy"),
        (lambda: Made(lambda m, x: x[: int(x.sum())]), "the value of a tensor is read"),
        (lambda: Made(lambda m, x: x.tolist() and x), "list"),
        (lambda: Made(lambda m, x: torch.tensor(x.cpu().tolist())), "list"),
        (lambda: Made(lambda m, x: x[x > 0]), "as many results as it finds"),
        (lambda: Made(lambda m, x: m.kept.add_(x) * 2, kept=torch.zeros(2, 4)), "overwritten"),
    ],
)
def test_what_cannot_be_counted_says_why(make: Callable[[], nn.Module], says: str) -> None:
    with pytest.raises(ModelError, match=says) as error:
        bill(make(), 2, 4)
    if says not in ("TorchScript", "lazy module"):
        assert isinstance(error.value, NeedsValues)
