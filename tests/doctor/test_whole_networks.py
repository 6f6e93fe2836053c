"""Networks that learn nothing or less than they seem to: each beside the quiet twin that looks like it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from inspector.doctor.report import Trace
from inspector.doctor.trace import trace_model
from tests.doctor.made_modules import Net
from tests.doctor.test_silent_faults import told, traced


def ids(trace: Trace) -> list[str]:
    return [f.id for f in trace.findings]


class Adapter(nn.Module):
    def __init__(self, a: float, b: float) -> None:
        super().__init__()
        self.base = nn.Linear(6, 5)
        self.base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(2, 6) * a)
        self.b = nn.Parameter(torch.randn(5, 2) * b)

    def forward(self, x: Tensor) -> Any:
        return self.base(x) + x @ self.a.t() @ self.b.t()


@pytest.mark.parametrize(("a", "b", "stuck"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_factors_that_are_both_zero_never_learn(a: float, b: float, stuck: bool) -> None:
    model = Adapter(a, b)
    before = {name: p.clone() for name, p in model.named_parameters()}
    says = told(traced(model, torch.randn(4, 6), training=True), "stuck-at-zero")
    assert bool(says) == stuck
    assert not stuck or says.startswith("warning: a, b (22 weights) are all zeros")
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())


def zero(layer: Any) -> Any:
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


@pytest.mark.parametrize("first_zero", [True, False])
def test_a_branch_between_zero_convolutions(first_zero: bool) -> None:
    first, middle, last = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1), zero(nn.Conv2d(4, 3, 1))
    model = Net(
        lambda m, x: m.head(x + m.last(m.middle(m.first(x)))),
        first=zero(first) if first_zero else first,
        middle=zero(middle) if first_zero else middle,
        last=last,
        head=nn.Conv2d(3, 2, 1),
    )
    assert ("stuck-at-zero" in ids(traced(model, torch.randn(1, 3, 4, 4), training=True))) == first_zero


def test_zero_layers_that_wake_one_another_are_quiet() -> None:
    """As in a diffusion transformer: gates of zero in each block, and a last layer of zero that learns at once."""
    model = Net(
        lambda m, x: m.out(x + torch.tanh(m.gate(x)) * m.fc(x)), gate=zero(nn.Linear(4, 4)), fc=nn.Linear(4, 4),
        out=zero(nn.Linear(4, 2)),
    )  # fmt: skip
    assert "stuck-at-zero" not in ids(traced(model, torch.randn(5, 4), training=True))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("batch", [1, 5])
def test_a_softmax_over_one_output_is_always_one(training: bool, batch: int) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1), nn.Softmax(dim=1))
    says = told(traced(model, torch.randn(batch, 6), training=training), "softmax-of-one")
    assert "dimension 1 of " in says and "gives 1 for every input" in says and says.startswith("warning")
    model[2] = nn.Linear(8, 2)
    assert "softmax-of-one" not in ids(traced(model, torch.randn(batch, 6), training=training))


def test_weights_over_positions_that_are_taken_over_one_channel() -> None:
    def pooled(dim: int) -> Any:
        return lambda m, x: m.out((m.score(x).softmax(dim) * x).sum(1))

    x = torch.randn(2, 7, 6)
    layers = {"score": nn.Linear(6, 1), "out": nn.Linear(6, 2)}
    assert "of 2x7x1 that score gives" in told(traced(Net(pooled(-1), **layers), x), "softmax-of-one")
    assert "softmax-of-one" not in ids(traced(Net(pooled(1), **layers), x))
    # One position in this input says nothing of the network.
    assert "softmax-of-one" not in ids(traced(Net(pooled(1), **layers), x[:, :1]))
    attention = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
    assert "softmax-of-one" not in ids(traced(attention, x[:, :1]))


def attention(m: Any, x: Tensor, dim: int) -> Tensor:
    q, k, v = m.qkv(x).view(*x.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4)
    weights = functional.dropout((q @ k.transpose(-2, -1) / 2).softmax(dim), 0.1, m.training)
    out: Tensor = m.out((weights @ v).transpose(1, 2).flatten(2))
    return out


@pytest.mark.parametrize(("dim", "says"), [(-1, ""), (1, "dimension 1"), (2, "dimension 2")])
def test_attention_whose_softmax_goes_over_another_axis(dim: int, says: str) -> None:
    model = Net(lambda m, x: attention(m, x, dim), qkv=nn.Linear(8, 24), out=nn.Linear(8, 8))
    told_ = told(traced(model, torch.randn(2, 5, 8)), "softmax-axis")
    assert bool(told_) == bool(says) and says in told_
    assert not says or ("sums dimension 3" in told_ and "dim=-1" in told_)


@pytest.mark.parametrize(
    "forward",
    [
        # Linear attention: q over features, k over positions.
        lambda m, x: m.q(x).softmax(-1) @ (m.k(x).softmax(1).transpose(1, 2) @ m.v(x)),
        # SAGAN: the values stand in front.
        lambda m, x: (m.v(x).transpose(1, 2) @ (m.q(x) @ m.k(x).transpose(1, 2)).softmax(1)).transpose(1, 2),
        # Co-attention: turned before it is summed.
        lambda m, x: (m.q(x) @ m.k(x).transpose(1, 2)).softmax(1).transpose(1, 2) @ m.v(x),
        # Slots compete, and their weights are brought to a sum of 1 over the inputs.
        lambda m, x: slots((m.q(x) @ m.k(x).transpose(1, 2)).softmax(1)) @ m.v(x),
        lambda m, x: torch.einsum("bij,bjd->bid", torch.einsum("bid,bjd->bij", m.q(x), m.k(x)).softmax(-1), m.v(x)),
    ],
)
def test_softmaxes_over_other_axes_that_are_meant(forward: Any) -> None:
    model = Net(forward, q=nn.Linear(8, 8), k=nn.Linear(8, 8), v=nn.Linear(8, 8))
    assert "softmax-axis" not in ids(traced(model, torch.randn(2, 5, 8)))


def slots(weights: Tensor) -> Tensor:
    return weights / weights.sum(-1, keepdim=True)


def test_an_einsum_that_sums_another_letter_than_the_softmax() -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        scores = torch.einsum("bid,bjd->bij", m.q(x), m.k(x)).softmax(1)
        return torch.einsum("bij,bjd->bid", scores, m.v(x))

    model = Net(forward, q=nn.Linear(8, 8), k=nn.Linear(8, 8), v=nn.Linear(8, 8))
    assert "goes over dimension 1" in told(traced(model, torch.randn(2, 5, 8)), "softmax-axis")


def test_layers_with_nothing_between_them_are_one() -> None:
    model = nn.Sequential(nn.Linear(9, 16), nn.Dropout(0.1), nn.Linear(16, 8), nn.Linear(8, 1))
    for training in (False, True):
        says = told(traced(model, torch.randn(5, 9), training=training), "no-nonlinearity")
        assert "between 0 and 3" in says and "3 layers (Linear, 280 weights)" in says and "from 9 to 1" in says


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 1)),
        nn.Linear(9, 3),
        # A bottleneck bounds the rank: PCA, a factorised layer.
        nn.Sequential(nn.Linear(9, 2), nn.Linear(2, 9)),
        # The same in a network that is not linear.
        nn.Sequential(nn.Linear(9, 2), nn.Linear(2, 9), nn.GELU(), nn.Linear(9, 9)),
        # A frozen projection before a probe.
        nn.Sequential(nn.Linear(9, 16).requires_grad_(False), nn.Linear(16, 2)),
        # A gate is a product of two.
        Net(lambda m, x: m.b(m.a(x) * m.a2(x)), a=nn.Linear(9, 9), a2=nn.Linear(9, 9), b=nn.Linear(9, 9)),
    ],
)
def test_what_is_linear_on_purpose_or_not_linear(model: nn.Module) -> None:
    assert "no-nonlinearity" not in ids(traced(model, torch.randn(5, 9)))


def stack(gain: float) -> nn.Sequential:
    """Eight layers whose weights have gain / sqrt(fan-in) for their deviation."""
    layers: list[nn.Module] = []
    for _ in range(8):
        layer = nn.Linear(32, 32)
        nn.init.normal_(layer.weight, std=gain / math.sqrt(32))
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(32, 2), nn.Sigmoid())


def test_values_that_grow_from_layer_to_layer_name_the_initialisation() -> None:
    torch.manual_seed(0)
    trace = traced(stack(5.66), torch.randn(16, 32))
    says = told(trace, "values-grow")
    assert says.startswith("warning: Values grow about ") and "1 where 32 inputs want about 0.18" in says
    assert "beyond-half" not in ids(trace)
    assert told(traced(stack(0.02), torch.randn(16, 32)), "values-grow").startswith("warning: Values fade")
    assert "values-grow" not in ids(traced(stack(1.41), torch.randn(16, 32)))


def test_an_answer_at_both_ends_and_one_that_never_changes() -> None:
    def forward(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        h = m.a(x)
        return h.sigmoid(), torch.exp(-torch.relu(m.b(x) - m.shift))

    a, b = nn.Linear(8, 2), nn.Linear(8, 1)
    trace = traced(Net(forward, a=a, b=b, shift=0.0), torch.randn(32, 8))
    assert not ids(trace)
    with torch.no_grad():
        a.weight.mul_(1e6)
    trace = traced(Net(forward, a=a, b=b, shift=1e3), torch.randn(32, 8))
    assert "Answer 0 (32x2) is nothing but exact zeros and ones" in told(trace, "answer-at-ends")
    assert "Answer 1 (32x1) is 1 throughout (32 values)" in told(trace, "answer-fixed")


def test_a_head_that_starts_at_zero_and_a_mask_that_is_given_back_are_quiet() -> None:
    head = Net(lambda m, x: m.out(torch.relu(m.a(x))).sigmoid(), a=nn.Linear(8, 8), out=zero(nn.Linear(8, 1)))
    assert "answer-fixed" not in ids(traced(head, torch.randn(32, 8)))
    masked = Net(lambda m, x: (m.a(x), x.new_ones(32, 4)), a=nn.Linear(8, 8))
    assert "answer-fixed" not in ids(traced(masked, torch.randn(32, 8)))


def test_one_mismatch_of_a_loss_is_told_once() -> None:
    model = Net(lambda m, x, y: m.loss(m.fc(x).softmax(1), y), fc=nn.Linear(6, 3), loss=nn.CrossEntropyLoss())
    trace = trace_model(model, (torch.randn(4, 6), torch.tensor([0, 1, 2, 0])), label="net")
    assert ids(trace).count("loss-mismatch") == 1
