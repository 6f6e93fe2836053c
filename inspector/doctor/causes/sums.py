"""Sums, products and masks of two tensors whose shapes do not fit."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import combinations

from torch import Tensor, nn

from inspector.doctor.causes.channel_sources import by_layer
from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.shapes import by_multiple
from inspector.doctor.constructors import line_that_returns
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.doctor.values_named import value_of
from inspector.units import human_shape

_POINTWISE = re.compile(
    r"(?:add|sub|rsub|mul|div|pow|where|maximum|minimum|fmax|fmin|eq|ne|lt|le|gt|ge|atan2|lerp|bitwise_\w+|logical_\w+|"
    r"remainder|masked_fill|addcmul|addcdiv|copy)_?"
)


def _fit(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def find_broadcast(scene: Scene) -> Diagnosis | None:
    """A sum or product of two tensors whose shapes do not fit."""
    tensors = scene.operands
    if not _POINTWISE.fullmatch(scene.operator) or len(tensors) < 2:
        return None
    pair = next(
        ((a, b) for i, a in enumerate(tensors) for b in tensors[i + 1 :] if not _fit(tuple(a.shape), tuple(b.shape))),
        None,
    )
    if pair is None:
        return None
    a, b = pair
    says = f"{scene.operator.strip('_')} of two tensors that do not fit in {scene.path}: {scene.told(a)} and "
    says += f"{scene.told(b)}."
    if a.dim() == b.dim() >= 4 and a.shape[0] == b.shape[0]:
        channels, places = a.shape[1] == b.shape[1], a.shape[2:] == b.shape[2:]
        found = by_multiple(scene, says) if not places else None
        if found is not None:
            return found
        if not channels and a.dim() == 4:
            stride = max(1, -(-max(a.shape[2], b.shape[2]) // min(a.shape[2], b.shape[2])))
            wide, narrow = (a, b) if a.shape[1] > b.shape[1] else (b, a)
            shortcut = f"nn.Conv2d({narrow.shape[1]}, {wide.shape[1]}, 1" + (
                f", stride={stride})" if stride > 1 else ")"
            )
            fix = "A shortcut across a change of channels needs a 1x1 convolution."
            found = by_layer(scene, a, b, says, shortcut)
            if found is not None:
                return found
            crosses = scene.recorder.was_given(a) or scene.recorder.was_given(b)
            return Diagnosis(
                cause="sum-of-shapes",
                says=says,
                fix=fix if crosses else f"{fix} Otherwise the layer that makes one of them was given another number.",
                code=shortcut,
                sureness=Sureness.CERTAIN if crosses else Sureness.LIKELY,
            )
        found = _by_output_padding(scene, says) if channels else None
        if found is not None:
            return found
        found = _by_stride(scene, a, b, says) if channels else None
        if found is not None:
            return found
        if channels:
            return Diagnosis(
                cause="sum-of-shapes",
                says=says,
                fix="Height and width differ: the same stride and padding=kernel_size // 2 both ways, or interpolate.",
                code="b = torch.nn.functional.interpolate(b, size=a.shape[2:])",
            )
    other = _other_output(scene, a, b, says)
    if other is not None:
        return other
    fix = "From the last dimension on, sizes have to be equal, or 1, or missing."
    if sorted(a.shape) == sorted(b.shape):
        fix = "The same sizes stand in another order: transpose or permute one of them."
    elif a.dim() != b.dim() and (
        shape := _unsqueezed(a, b, masks="mask" in scene.operator or "where" in scene.operator)
    ):
        small = a if a.dim() < b.dim() else b
        name = scene.variable_of(small) or _called(scene, small) or "x"
        fix = f"The smaller one lacks dimensions: view it as {human_shape(shape)}."
        return Diagnosis(cause="sum-of-shapes", says=says, fix=fix, code=f"{name}{_index_of(small, shape)}")
    return Diagnosis(cause="sum-of-shapes", says=says, fix=fix)


def _other_output(scene: Scene, a: Tensor, b: Tensor, says: str) -> Diagnosis | None:
    """A module that gave several tensors, of which another one would fit: the order of its parts is another."""
    for one, partner in ((b, a), (a, b)):
        maker = scene.recorder.maker(one)
        calls = [c for c in scene.recorder.calls if c.path == maker and c.ended and maker]
        given = calls[-1] if calls else None
        shapes = [output.shape for output in given.outputs] if given is not None else []
        fitting = [i for i, shape in enumerate(shapes) if shape == tuple(partner.shape)]
        at = next((i for i, shape in enumerate(shapes) if shape == tuple(one.shape)), None)
        if len(shapes) < 2 or not fitting or at is None:
            continue
        listed = " and ".join(human_shape(shape) for shape in shapes[:4])
        return Diagnosis(
            cause="sum-of-shapes",
            says=f"{says} {maker} gives {listed}: number {fitting[0]} of them would fit, number {at} is used.",
            fix="Its parts, or the widths of the layers that make them, have changed places.",
            sureness=Sureness.LIKELY,
            change=line_that_returns(dict(scene.model.named_modules()).get(maker)),
        )
    return None


def _called(scene: Scene, tensor: Tensor) -> str:
    """The call in the failing line that gave it: self.gamma(style)."""
    statement = scene.frame.statement if scene.frame is not None else None
    module = dict(scene.model.named_modules()).get(scene.recorder.maker(tensor) or "?")
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement is not None else []
    named = [n for n in calls if scene.frame is not None and value_of(n.func, scene.frame.variables) is module]
    return ast.unparse(named[0]) if len(named) == 1 and module is not None else ""


def _by_stride(scene: Scene, a: Tensor, b: Tensor, says: str) -> Diagnosis | None:
    """A shortcut that keeps the size where the other way has a stride."""
    small, large = (a, b) if a.shape[-1] < b.shape[-1] else (b, a)
    ratio = large.shape[-1] // max(1, small.shape[-1])
    if ratio < 2 or any(-(-n // ratio) != m for m, n in zip(small.shape[2:], large.shape[2:], strict=True)):
        return None
    path = scene.recorder.maker(large)
    module = dict(scene.model.named_modules()).get(path)
    last = [m for m in module.modules() if isinstance(m, nn.Conv2d)] if module is not None else []
    if not last or any(max(m.stride) > 1 for m in last):
        return None
    return Diagnosis(
        cause="sum-of-shapes",
        says=f"{says} {path} has no stride, and the other way has {ratio}.",
        fix=f"Give {path} the same stride.",
        code=f"nn.Conv2d({last[0].in_channels}, {last[0].out_channels}, {last[0].kernel_size[0]}, stride={ratio})",
    )


def _unsqueezed(a: Tensor, b: Tensor, *, masks: bool) -> tuple[int, ...]:
    """The smaller one with ones put in, if it fits so: (B, C) beside (B, C, H, W), (B, N) beside (B, heads, N, N)."""
    small, large = (tuple(t.shape) for t in ((a, b) if a.dim() < b.dim() else (b, a)))
    # A mask goes over what stands last (keys), channels stand second.
    ways = list(combinations(range(len(large)), len(small)))
    if masks:
        ways.sort(key=lambda places: places[-1] != len(large) - 1)
    for places in ways:
        # The batch stays in front.
        if len(small) > 1 and places[0] != 0:
            continue
        if all(n in (1, large[at]) for n, at in zip(small, places, strict=True)):
            made = [1] * len(large)
            for n, at in zip(small, places, strict=True):
                made[at] = n
            return tuple(made)
    return ()


def _index_of(small: Tensor, shape: tuple[int, ...]) -> str:
    """[:, None, None, :] for the ones that were put in."""
    left = list(small.shape)
    parts = []
    for n in shape:
        own = bool(left) and n == left[0]
        parts.append(":" if own else "None")
        left = left[1:] if own else left
    return f"[{', '.join(parts)}]"


def _by_output_padding(scene: Scene, says: str) -> Diagnosis | None:
    """Transposed convolutions that give back less than the strided ones took."""
    layers = {
        path: module
        for path, module in scene.modules_called()
        if isinstance(module, nn.ConvTranspose2d) and max(module.stride) > 1 and not any(module.output_padding)
    }
    if not layers or not scene.trials.runs_padded(tuple(layers), scene.args, scene.kwargs):
        return None
    named = ", ".join(list(layers)[:4])
    return Diagnosis(
        cause="sum-of-shapes",
        says=f"{says} A transposed convolution with a stride gives one size back where several went in.",
        fix=f"output_padding=1 in {named} gives the larger one.",
        code="nn.ConvTranspose2d(..., output_padding=1)",
        tried=(f"output_padding=1 in {named}: runs through",),
    )


CAUSES = (Cause(kinds=("sum-of-shapes", "size-not-divisible"), find=find_broadcast),)
