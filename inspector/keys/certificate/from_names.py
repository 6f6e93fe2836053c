"""The same without a graph: as modules are defined, a kernel's norm comes right behind it, its input's right before.

That is often wrong (behind a skip connection always), so that such a chain proves where it holds, and where it does
not hold it means nothing by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.architectures.types import Target, TargetTensor
from inspector.keys.certificate.types import Feed, Link, Norm, Wiring

# What stands between is not written in names. ReLU's means order channels as ReLU6's and a leaky one's do.
GUESSED = ("relu", "none", "silu")


def wiring_by_order(target: Target) -> Wiring:
    """Kernel and norm side by side in the target's own order; nothing where the target does not tell it."""
    if not target.ordered:
        return Wiring(links=())
    modules: dict[str, dict[str, TargetTensor]] = {}
    for tensor in target.tensors:
        module, _, leaf = tensor.name.rpartition(".")
        modules.setdefault(module, {})[leaf] = tensor
    row = list(modules.values())
    links = [_link(row, i) for i in range(1, len(row))]
    return Wiring(links=tuple(link for link in links if link is not None))


def _link(row: Sequence[dict[str, TargetTensor]], place: int) -> Link | None:
    """The chain that ends at this module, if it is a norm behind a kernel."""
    norm, kernel = _norm(row[place]), row[place - 1].get("weight")
    if (
        norm is None
        or kernel is None
        or kernel.shape is None
        or len(kernel.shape) < 2
        or "running_mean" in row[place - 1]
    ):
        return None
    shape = row[place]["running_mean"].shape
    if shape != kernel.shape[:1]:
        return None
    before = _norm(row[place - 2]) if place > 1 else None
    wide = (row[place - 2]["running_mean"].shape or (0,))[0] if before is not None else 0
    groups = wide // kernel.shape[1] if wide and wide % kernel.shape[1] == 0 else 0
    fits = groups > 0 and kernel.shape[0] % groups == 0
    feed = Feed(width=wide, norm=before, activations=GUESSED) if fits else None
    bias = row[place - 1].get("bias")
    return Link(
        kernel=kernel.name,
        bias=bias.name if bias is not None else "",
        feeds=(feed or Feed(width=kernel.shape[1], norm=None, why="no norm of its width is defined right before it"),),
        norm=norm,
        groups=groups if fits else 1,
        certain=False,
    )


def _norm(module: dict[str, TargetTensor]) -> Norm | None:
    if "running_mean" not in module or "running_var" not in module:
        return None
    weight, bias = module.get("weight"), module.get("bias")
    affine = weight is not None and bias is not None
    return Norm(
        weight=weight.name if affine and weight else "",
        bias=bias.name if affine and bias else "",
        mean=module["running_mean"].name,
        var=module["running_var"].name,
    )
