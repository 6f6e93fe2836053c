"""Peak memory foreseen on the meta device: by hand, and against what torch's allocator hands out."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from inspector.errors import ModelError, UsageError
from inspector.flops.blank import to_meta
from inspector.flops.memory import peak_memory
from inspector.flops.memory_report import MemoryReport


def foresee(model: nn.Module, *shape: int, **how: object) -> MemoryReport:
    x = torch.empty(shape, device="meta")
    return peak_memory(to_meta(model, label="a model"), (x,), label="a model", **how)  # type: ignore[arg-type]


def test_two_layers_by_hand() -> None:
    model = nn.Sequential(nn.Linear(10, 100, bias=False), nn.ReLU(), nn.Linear(100, 5, bias=False))
    weights, given = 4 * (1000 + 500), 4 * 8 * 10
    found = foresee(model, 8, 10)
    # The first layer's output and the ReLU's are there together.
    assert found.peak_nbytes == weights + given + 4 * (800 + 800)
    assert found.at == "1" and (found.parameter_nbytes, found.input_nbytes) == (weights, given)
    assert found.rest_nbytes == 4 * 1600
    half = foresee(model, 8, 10, precision="bfloat16")
    assert half.peak_nbytes == found.peak_nbytes // 2


def test_an_optimizer_keeps_two_numbers_for_each_weight() -> None:
    model = nn.Linear(1000, 1000, bias=False)
    adam, plain = (foresee(model, 1, 1000, optimizer=name) for name in ("adam", "sgd"))
    # Adam's two moments, and one count.
    assert adam.optimizer_nbytes == 2 * 4_000_000 + 4
    assert plain.optimizer_nbytes == 0
    assert adam.gradient_nbytes == plain.gradient_nbytes == 4_000_000
    assert adam.at == "the optimizer's step"
    assert 16_000_000 < adam.peak_nbytes < 25_000_000


def test_attention_has_no_table_of_scores() -> None:
    class Attends(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.scaled_dot_product_attention(x, x, x)

    found = foresee(Attends(), 1, 1, 4096, 8)
    assert found.peak_nbytes < 4 * 4096 * 8 * 4


@pytest.mark.parametrize("optimizer", ["", "adam"])
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_within_a_tenth_of_what_the_allocator_hands_out(name: str, optimizer: str) -> None:
    model = torchvision.models.get_model(name).train(bool(optimizer))
    x = torch.rand(2, 3, 128, 128)
    found = foresee(model, *x.shape, optimizer=optimizer)
    stepper = torch.optim.Adam(model.parameters()) if optimizer else None

    def step() -> None:
        if stepper is None:
            with torch.no_grad():
                model(x)
            return
        model(x).mean().backward()
        stepper.step()
        stepper.zero_grad(set_to_none=True)

    step()
    now = found.parameter_nbytes + found.buffer_nbytes + found.optimizer_nbytes + found.input_nbytes
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step()
    peak = now
    events = [e for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"]  # type: ignore[union-attr]
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    assert found.peak_nbytes == pytest.approx(peak, rel=0.1)


def test_what_cannot_be_foreseen_is_a_sentence() -> None:
    class Branch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(ModelError, match="the value of a tensor is read"):
        foresee(Branch(), 2, 3)
    with pytest.raises(UsageError, match='No optimizer is named "lion"'):
        foresee(nn.Linear(2, 2), 1, 2, optimizer="lion")
    with pytest.raises(UsageError, match="No precision is named"):
        foresee(nn.Linear(2, 2), 1, 2, precision="int4")
    with pytest.raises(UsageError, match="takes a gradient"):
        foresee(nn.ReLU(), 1, 2, optimizer="adam")
