"""Modules that are awkward to watch: each runs through, is told call by call, and is left as it was."""

from __future__ import annotations

import pickle
import warnings
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune
from torch.utils.checkpoint import checkpoint

from inspector.doctor.report import Trace
from inspector.doctor.trace import trace_model


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x))


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(self.a(x))


class Recursive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x: Tensor, times: int = 3) -> Tensor:
        return self(self.a(x), times - 1) if times else x


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


class Several(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Any]:
        return OrderedDict(a=x, b=[x + 1, Pair(x, x * 2)])


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return 2 * ctx.saved_tensors[0] * grads[0]


class Custom(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = Square.apply(x)
        return out


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = checkpoint(self.a, x, use_reentrant=False)
        return out


class Functional(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.softmax(x @ x.transpose(-1, -2), -1)


class Catching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wrong, self.right = nn.Linear(5, 5), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        try:
            out: Tensor = self.wrong(x)
        except RuntimeError:
            out = self.right(x)
        return out


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.a(x, x, x)[0]
        return out


def pruned() -> nn.Module:
    layer = nn.Linear(4, 4)
    prune.l1_unstructured(layer, "weight", 0.5)
    return layer


def weight_normed() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nn.utils.weight_norm(nn.Linear(4, 4))


def scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.Sequential(nn.Linear(4, 4), torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU())))


ZOO = {
    "tied": (Tied, (2, 4), ["", "a", "b"]),
    "twice": (Twice, (2, 4), ["", "a", "a"]),
    "recursive": (Recursive, (2, 4), ["", "a", "", "a", "", "a", ""]),
    "several outputs": (Several, (2, 4), [""]),
    "custom autograd": (Custom, (2, 4), [""]),
    "checkpointing": (Checkpointed, (2, 4), ["", "a"]),
    "functional only": (Functional, (2, 3, 4), [""]),
    "an error that it catches": (Catching, (2, 4), ["", "wrong", "right"]),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()), (2, 4), ["", "0", "1"]),
    "pruned": (pruned, (2, 4), [""]),
    "weight norm": (weight_normed, (2, 4), [""]),
    "parametrised": (lambda: parametrizations.orthogonal(nn.Linear(4, 4)), (2, 4), None),
    "scripted": (scripted, (2, 4), ["", "0"]),
    "LSTM": (lambda: nn.LSTM(4, 3, 2, bidirectional=True), (5, 2, 4), [""]),
    "attention": (Attention, (2, 3, 4), None),
    "transformer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (2, 3, 4), None),
    "data parallel's shell": (lambda: nn.DataParallel(nn.Linear(4, 4)), (2, 4), ["", "module"]),
}


def traced(model: nn.Module, *args: Any, **options: Any) -> Trace:
    torch.manual_seed(0)
    return trace_model(model, args, label="zoo", **options)


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("training", [False, True])
def test_it_runs_through_and_says_what_ran(name: str, training: bool) -> None:
    build, shape, paths = ZOO[name]
    torch.manual_seed(0)
    model = build().eval()
    x = torch.randn(shape)
    trace = traced(model, x, training=training, modes=not training)
    assert trace.failure is None
    assert [f.id for f in trace.findings] == []
    if paths is not None:
        assert [call.path for call in trace.calls] == paths
    assert not any(m._forward_hooks for m in model.modules() if not isinstance(m, torch.jit.ScriptModule))
    assert pickle.loads(pickle.dumps(trace)) == trace


def test_outputs_are_those_of_the_model_alone() -> None:
    torch.manual_seed(0)
    model, x = Twice().eval(), torch.randn(2, 4)
    trace = traced(model, x)
    first, second = (c.outputs[0].statistics for c in trace.calls if c.path == "a")
    with torch.no_grad():
        once = model.a(x)
        assert first is not None and first.mean == pytest.approx(float(once.double().mean()))
        assert second is not None and second.mean == pytest.approx(float(model.a(once).double().mean()))
    assert [c.time for c in trace.calls if c.path == "a"] == [1, 2]


def test_several_outputs_are_each_told() -> None:
    (call,) = traced(Several(), torch.ones(2, 4)).calls
    assert [o.statistics.mean for o in call.outputs if o.statistics] == [1.0, 2.0, 1.0, 2.0]


def test_torchscript_is_said_to_run_out_of_sight() -> None:
    trace = traced(scripted(), torch.ones(2, 4))
    assert trace.skipped == ("1 is TorchScript: its modules run out of sight, its operators do not.",)


def test_an_input_without_values_is_run_by_shapes_alone() -> None:
    trace = traced(nn.Linear(4, 2, device="meta"), torch.empty(1, 4, device="meta"))
    assert trace.failure is None and trace.greatest is None
    assert trace.calls[0].outputs[0].statistics is None and trace.skipped


def test_a_forward_that_gives_no_tensor_is_a_finding() -> None:
    class Silent(nn.Module):
        def forward(self, x: Tensor) -> None:
            x + 1

    assert [f.id for f in traced(Silent(), torch.ones(1)).findings] == ["gives-nothing"]
