"""Numbers of a pass: by hand, beside plain hooks, the first bad value, dead channels, saturation, training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchvision import models

from inspector.doctor.report import Trace
from inspector.doctor.statistics import statistics_of
from inspector.doctor.trace import trace_model

INF, NAN = math.inf, math.nan


def traced(model: nn.Module, *args: Any, **options: Any) -> Trace:
    return trace_model(model, args, label="net", **options)


def ids(trace: Trace) -> list[tuple[str, str]]:
    return [(finding.id, finding.severity.value) for finding in trace.findings]


def test_statistics_by_hand() -> None:
    found = statistics_of(torch.tensor([0.0, 0.0, 1.0, 3.0]))
    assert found is not None
    assert (found.minimum, found.maximum, found.mean, found.zeros) == (0.0, 3.0, 1.0, 0.5)
    assert found.deviation == pytest.approx(math.sqrt((1 + 1 + 0 + 4) / 4))
    assert not found.constant and not found.nans


def test_statistics_of_what_is_not_finite_are_of_the_rest() -> None:
    found = statistics_of(torch.tensor([NAN, INF, -INF, -INF, 2.0, 4.0]))
    assert found is not None
    assert (found.nans, found.infinities, found.negative_infinities) == (1, 1, 2)
    assert (found.minimum, found.maximum, found.mean, found.deviation) == (2.0, 4.0, 3.0, 1.0)
    nothing = statistics_of(torch.full((3,), NAN))
    assert nothing is not None and nothing.mean is None and nothing.constant and nothing.nans == 3


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]
)
def test_statistics_of_every_type(dtype: torch.dtype) -> None:
    values = torch.tensor([0, 1, 1, 1]).to(dtype)
    found = statistics_of(values)
    assert found is not None and (found.minimum, found.maximum, found.mean, found.zeros) == (0.0, 1.0, 0.75, 0.25)


def test_statistics_where_there_are_no_values() -> None:
    assert statistics_of(torch.empty(0)) is None
    assert statistics_of(torch.empty(3, device="meta")) is None
    large = statistics_of(torch.full((1000,), 1e30))
    assert large is not None and large.constant and large.mean == pytest.approx(1e30) and large.deviation == 0


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "vit"])
def test_values_are_those_that_plain_hooks_see(name: str) -> None:
    torch.manual_seed(0)
    vit = name == "vit"
    model = models.VisionTransformer(64, 16, 2, 2, 16, 16) if vit else getattr(models, name)(weights=None)
    model, x = model.eval(), torch.randn(1, 3, 64, 64)
    trace = traced(model, x, modes=False)
    seen: list[tuple[str, tuple[int, ...], float, float]] = []

    def hook(path: str) -> Callable[..., None]:
        def note(module: nn.Module, args: Any, output: Any) -> None:
            one = output[0] if isinstance(output, tuple) else output
            values = one.detach().numpy().astype(np.float64)
            seen.append((path, tuple(one.shape), float(values.mean()), float(values.std())))

        return note

    handles = [module.register_forward_hook(hook(path)) for path, module in model.named_modules()]
    # Attention's fused kernel, which nobody can look into, rounds otherwise.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            model(x)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
        for handle in handles:
            handle.remove()
    ours = {(c.path, c.time): c.outputs[0] for c in trace.calls}
    times: dict[str, int] = {}
    assert len(seen) == len(trace.calls)
    for path, shape, mean, deviation in seen:
        times[path] = times.get(path, 0) + 1
        output = ours[path, times[path]]
        assert output.shape == shape and output.statistics is not None
        assert output.statistics.mean == pytest.approx(mean, rel=1e-4, abs=1e-6)
        assert output.statistics.deviation == pytest.approx(deviation, rel=1e-4, abs=1e-6)


class Log(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.log()


def test_the_first_module_with_nan_is_the_innermost() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Tanh(), Log()), nn.Linear(4, 4))
    trace = traced(model, torch.randn(8, 4), modes=False)
    assert trace.first_bad == "1.1"
    assert ids(trace) == [("output-not-finite", "error")]
    nans = trace.findings[0].evidence[0]
    assert nans[0] == "nans" and 0 < int(nans[1]) <= 32


def test_a_mask_of_infinities_is_a_notice_and_no_failure() -> None:
    class Mask(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.masked_fill(torch.ones(4, 4).triu(1).bool(), -INF)

    trace = traced(nn.Sequential(Mask(), nn.Softmax(-1)), torch.randn(4, 4), modes=False)
    assert ids(trace) == [("output-not-finite", "notice")]


def test_all_zeros_and_one_value_everywhere() -> None:
    dead = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64))
    nn.init.constant_(dead[0].bias, -100.0)
    nn.init.zeros_(dead[2].weight)
    nn.init.constant_(dead[2].bias, 3.0)
    trace = traced(dead, torch.randn(4, 4), modes=False)
    assert trace.first_bad == "1"
    assert ids(trace) == [("output-all-zeros", "warning"), ("output-constant", "info")]
    # A layer that begins at zero says so itself.
    head = nn.Linear(4, 64)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    assert ids(traced(head, torch.randn(1, 4), modes=False)) == [("output-all-zeros", "info")]
    assert traced(nn.Linear(4, 64), torch.randn(1, 4), modes=False).findings == ()


def test_channels_that_are_never_positive_are_counted() -> None:
    model = nn.Sequential(nn.Conv2d(1, 20, 1), nn.ReLU())
    nn.init.zeros_(model[0].bias)
    nn.init.ones_(model[0].weight)
    with torch.no_grad():
        model[0].weight[:19] = -1.0
    trace = traced(model, torch.rand(1, 1, 8, 8) + 0.1, modes=False)
    (dead,) = trace.dead
    assert (dead.path, dead.dead, dead.channels, dead.positions) == ("1", 19, 20, 64)
    (finding,) = trace.findings
    assert (
        finding.id == "dead-channels"
        and "19 of 20 channels of 1" in finding.says
        and "little evidence" in finding.remedy
    )
    # Of few values nothing is said.
    assert traced(model, torch.rand(1, 1, 4, 4), modes=False).dead == ()


def test_functional_relus_count_as_well_and_tokens_have_their_channels_last() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 20)

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(self.fc(x))

    torch.manual_seed(0)
    model = Block()
    with torch.no_grad():
        model.fc.weight[:3] = 0
        model.fc.bias[:3] = -1
    (dead,) = traced(model, torch.randn(2, 50, 4), modes=False).dead
    assert (dead.dead, dead.channels, dead.positions) == (3, 20, 100)


def test_saturation_by_hand() -> None:
    x = torch.tensor([[-8.0, 8.0, 0.0, 0.5]]).expand(100, 4)
    trace = traced(nn.Sequential(nn.Sigmoid(), nn.Identity()), x, modes=False)
    # sigmoid'(8) = 0.0003, less than a hundredth of a quarter.
    assert [(s.function, s.share, s.count) for s in trace.saturations] == [("sigmoid", 0.5, 400)]
    trace = traced(nn.Sequential(nn.Tanh(), nn.Identity()), 10 * torch.ones(100, 4), modes=False)
    assert trace.saturations[0].share == 1.0
    assert [f.id for f in trace.findings] == ["saturated"]
    assert traced(nn.Softmax(-1), torch.randn(4, 4), modes=False).saturations == ()


def test_values_beyond_half_precision() -> None:
    model = nn.Linear(1, 1)
    nn.init.constant_(model.weight, 70_000.0)
    trace = traced(model, torch.ones(1, 1), modes=False)
    assert trace.greatest is not None and trace.greatest[1] == pytest.approx(70_000, rel=1e-4)
    assert [f.id for f in trace.findings] == ["beyond-half"]


def test_what_differs_between_training_and_evaluation_by_hand() -> None:
    model = nn.Sequential(nn.BatchNorm1d(1), nn.Dropout(0.0))
    x = torch.tensor([[1.0], [3.0]])
    modes = traced(model, x).modes
    assert modes is not None and modes.modules == (("BatchNorm1d", 1),) and not modes.random
    # Evaluation: x over sqrt(1 + 1e-5); training: -1 and 1 over the same nearly.
    assert modes.difference == pytest.approx(2.0, rel=1e-4)
    assert modes.relative == pytest.approx(math.sqrt(8) / math.sqrt(10), rel=1e-4)
    plain = traced(nn.Linear(2, 2), torch.ones(1, 2)).modes
    assert plain is not None and plain.modules == () and plain.difference == 0


def test_dropout_that_is_never_switched_off() -> None:
    class Forgot(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.dropout(self.fc(x), 0.5)

    trace = traced(Forgot(), torch.ones(4, 8))
    assert trace.modes is not None and trace.modes.random
    assert "random-in-evaluation" in [f.id for f in trace.findings]
    assert "random-in-evaluation" not in [f.id for f in traced(nn.Dropout(0.5), torch.ones(4, 8)).findings]


class Centre(nn.Module):
    """Keeps its running mean as a buffer that it sets anew."""

    centre: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(4))
        self.passes: list[tuple[bool, int]] = []

    def forward(self, x: Tensor) -> Tensor:
        self.passes.append((self.training, x.shape[0]))
        if self.training:
            self.centre = self.centre + x.mean(0)
        return x - self.centre


def test_evaluation_is_run_once_alone_and_once_behind_others_before_training_changes_anything() -> None:
    model = Centre()
    trace = traced(model, torch.ones(2, 4))
    # As asked, alone, with other random numbers, behind two others, in training.
    assert model.passes == [(False, 2), (False, 2), (False, 2), (False, 4), (True, 2)]
    assert "samples-mixed" not in [f.id for f in trace.findings]


def test_a_tensor_that_cannot_be_summed_is_no_failure_of_evaluation() -> None:
    class Sparse(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.to_sparse_csr()

    class Dense(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.to_dense()

    trace = traced(nn.Sequential(nn.Linear(4, 4), Sparse(), Dense(), nn.Softmax(0)), torch.ones(2, 4))
    assert trace.modes is not None and trace.modes.failure is None
    assert "samples-mixed" not in [f.id for f in trace.findings]


def test_training_that_would_fail_is_told_where_evaluation_runs() -> None:
    modes = traced(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), torch.ones(1, 4)).modes
    assert modes is not None and modes.failure is not None and modes.failure.cause == "batch-norm-of-one"


@pytest.mark.parametrize(
    "name",
    ["alexnet", "resnet18", "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "mnasnet0_5"],
)
@pytest.mark.parametrize("training", [False, True])
def test_healthy_networks_give_no_findings(name: str, training: bool) -> None:
    torch.manual_seed(0)
    model = getattr(models, name)(weights=None)
    trace = traced(model, torch.randn(2, 3, 64, 64), training=training, modes=name == "resnet18")
    assert trace.failure is None and trace.findings == ()
    assert all(call.ended for call in trace.calls)
