"""Is the whole network one linear map? Layers without anything between them are no more than one of them.

Told from two sides: no operator of the pass is another than what keeps a map affine, and halfway between two inputs
the answer lies halfway between theirs, in evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.utils._pytree import tree_map_only

from inspector.doctor.modes import run_in_mode
from inspector.doctor.record import Recorder
from inspector.doctor.report import CallRecord
from inspector.doctor.signs import in_order_of_end
from inspector.findings import Finding, FindingKind, Severity
from inspector.forward.watch import ForwardError, tensors_in

LINEAR = FindingKind("no-nonlinearity", Severity.WARNING, "Nothing between the layers is nonlinear")
# Products among them: two tensors of the input multiplied fail the second test.
_AFFINE = frozenset(
    {
        "addmm", "mm", "bmm", "baddbmm", "linear", "matmul", "convolution", "t", "view", "_unsafe_view", "reshape",
        "transpose", "permute", "expand", "unsqueeze", "squeeze", "slice", "select", "split", "split_with_sizes",
        "chunk", "unbind", "cat", "stack", "clone", "contiguous", "add", "add_", "sub", "rsub", "mul", "mul_", "div",
        "div_", "neg", "mean", "sum", "native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit",
        "_native_batch_norm_legit_no_training", "avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d",
        "_adaptive_avg_pool3d", "native_dropout", "bernoulli_", "empty_like", "detach", "alias", "constant_pad_nd",
        "pixel_shuffle", "flatten", "_to_copy", "as_strided", "empty", "mv", "addmv", "dot", "flip", "zeros", "fill_",
    }
)  # fmt: skip
_AGREE = 1e-3


def find_linear(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], recorder: Recorder
) -> Iterator[Finding]:
    """Two layers or more in a row, the width between which bounds nothing: a factorised layer is meant so."""
    given = [*tensors_in((tuple(args), dict(kwargs)))]
    if not recorder.names_of_operators <= _AFFINE or not given or not all(t.is_floating_point() for t in given):
        return
    chain = _chain(model, recorder.calls)
    convolutions = any(isinstance(layer, _ConvNd) for _, layer in chain)
    # A separable convolution is two of them on purpose.
    if len(chain) < (3 if convolutions else 2):
        return
    first, last = _widths(chain[0][1])[0], _widths(chain[-1][1])[1]
    inner = [_widths(layer)[1] for _, layer in chain[:-1]]
    if min(inner) < min(first, last) or not _halfway(model, args, kwargs):
        return
    paths = [path for path, _ in chain]
    kinds = " or ".join(sorted({type(layer).__name__ for _, layer in chain}))
    weights = sum(layer.weight.numel() for _, layer in chain)
    yield LINEAR.found(
        f"No activation stands between {paths[0]} and {paths[-1]}, nor anywhere else: {len(paths)} layers ({kinds}, "
        f"{weights:,} weights) in a row are one linear map from {first:,} to {last:,}, which one layer would be. "
        "Halfway between two inputs the answer is exactly halfway between theirs.",
        subjects=tuple(paths[:20]),
        evidence=(("layers", len(paths)), ("weights", weights)),
        remedy="An activation behind each layer but the last: x = torch.relu(...), or nn.ReLU() between them.",
    )


def _chain(model: nn.Module, calls: Sequence[CallRecord]) -> list[tuple[str, Any]]:
    """The longest row of layers with weights that learn, each of which gets what the one before gave."""
    modules = dict(model.named_modules())
    behind: dict[str, list[tuple[str, Any]]] = {}
    best: list[tuple[str, Any]] = []
    last: tuple[str, Any] | None = None
    before: str = ""
    parents = {call.inside for call in calls}
    for call in in_order_of_end(calls):
        layer = modules.get(call.path)
        if call.number in parents or not call.inputs:
            # What holds others gives what the last of them gave.
            row = behind.get(before, [])
        elif isinstance(layer, nn.Linear | _ConvNd):
            source = call.inputs[0].made_by
            row = behind.get(source, [])
            # What a function gave is nobody's: as wide as the layer before.
            if not source and last is not None and _widths(last[1])[1] == _widths(layer)[0]:
                row = behind.get(last[0], [])
            last = (call.path, layer)
            # One weight used again is shared on purpose.
            again = any(other.weight is layer.weight for _, other in row)
            row = row if again or not layer.weight.requires_grad else [*row, last]
        else:
            row = behind.get(call.inputs[0].made_by, [])
        before, behind[call.path] = call.path, row
        best = max(best, row, key=len)
    return best


def _widths(layer: Any) -> tuple[int, int]:
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    return int(layer.in_channels), int(layer.out_channels)


def _halfway(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether f((a + b) / 2) is (f(a) + f(b)) / 2 in evaluation, a being the input and b three times as wide."""
    generator = torch.Generator().manual_seed(0)

    def far(t: Tensor) -> Tensor:
        size = float(t.detach().float().std(correction=0)) or 1.0
        return (torch.randn(t.shape, generator=generator) * 3 * size).to(t)

    whole = (tuple(args), dict(kwargs))
    other = [far(t) for t in tensors_in(whole)]
    parts, middles = iter(other), iter(other)
    there = tree_map_only(Tensor, lambda t: next(parts), whole)
    middle = tree_map_only(Tensor, lambda t: (t + next(middles)) / 2, whole)
    try:
        a, b, m = (run_in_mode(model, *one, training=False) for one in (whole, there, middle))
    except ForwardError:
        return False
    if not a or len({len(a), len(b), len(m)}) > 1 or any(x.shape != y.shape for x, y in zip(a, b, strict=True)):
        return False
    for x, y, z in zip(a, b, m, strict=True):
        apart = float((x.double() - y.double()).abs().max()) if x.numel() else 0.0
        if not apart or float((z.double() - (x.double() + y.double()) / 2).abs().max()) > _AGREE * apart:
            return False
    return True
