"""What each operation of torch does to where its operands look.

Kernels, strides, paddings and dilations as in Araujo, Norris and Sim, "Computing Receptive Fields of Convolutional
Neural Networks", Distill 2019: a cell looks at the middle of what its kernel covers, paddings included. Sums over an
axis look at its middle; element by element, all operands must look at the same place. What is not here says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from inspector.cam.centres.places import (
    Axis,
    Factor,
    Places,
    Unplaced,
    agreed,
    averaged,
    moved,
    nowhere,
    placed,
    plain,
    reshaped,
    single,
    sliced,
    still,
    times,
    with_tokens,
    without,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One operation. given: its arguments by their names. shapes: of its results. look_up: where a tensor looks."""

    given: Mapping[str, Any]
    shapes: tuple[tuple[int, ...], ...]
    look_up: Callable[[Tensor], Places]

    @property
    def own(self) -> Tensor:
        """The tensor that it is an operation on."""
        return next(value for value in self.given.values() if isinstance(value, Tensor))

    def axis(self, name: str = "dim") -> int:
        """An axis of it, counted from the front."""
        return int(self.given[name]) % max(self.own.dim(), 1)


Rule = Callable[[Call], Places | list[Places]]


def _same(call: Call) -> Places:
    return call.look_up(call.own)


def _fresh(call: Call) -> Places:
    return nowhere(call.shapes[0])


def _elementwise(call: Call) -> Places:
    """Every result, from tensors that are broadcast."""
    tensors = [value for value in call.given.values() if isinstance(value, Tensor)]
    return agreed([call.look_up(tensor) for tensor in tensors], call.shapes[0])


def _convolved(call: Call) -> Places:
    given, tensor = call.given, call.own
    places, sides = call.look_up(tensor), tensor.dim() - 2
    if given["groups"] != 1 and not still(places.axes[1]):
        raise Unplaced
    kernel = given["weight"].shape[2:]
    stride, padding, dilation = (_each(given[name], sides) for name in ("stride", "padding", "dilation"))
    places = averaged(places, [1])
    axes: list[Axis] = [places.axes[0], plain(call.shapes[0][1])]
    start = places.start
    for way in range(sides):
        reach = (kernel[way] - 1) * dilation[way] / 2 - padding[way]
        scale: float = stride[way]
        if given["transposed"]:
            reach, scale = -reach / stride[way], 1 / stride[way]
        factor, start = _swept(
            places.axes[2 + way], tensor.shape[2 + way], start, reach, scale, call.shapes[0][2 + way]
        )
        axes.append(factor)
    return placed(axes, start)


def _pooled(call: Call) -> Places:
    given, tensor = call.given, call.own
    places, sides = call.look_up(tensor), len(call.shapes[0]) - 2
    kernel = _each(given["kernel_size"], sides)
    stride = _each(given["stride"] or kernel, sides)
    padding, dilation = _each(given["padding"], sides), _each(given.get("dilation", 1), sides)
    if len(kernel) != sides:
        raise Unplaced  # one picture without a batch
    axes, start = list(places.axes[:2]), places.start
    for way in range(sides):
        reach = (kernel[way] - 1) * dilation[way] / 2 - padding[way]
        axis, start = _swept(
            places.axes[2 + way], tensor.shape[2 + way], start, reach, stride[way], call.shapes[0][2 + way]
        )
        axes.append(axis)
    return placed(axes, start)


def _pooled_to_size(call: Call) -> Places:
    tensor, shape = call.own, call.shapes[0]
    places = call.look_up(tensor)
    for number in range(tensor.dim() - len(_each(call.given["output_size"], 1)), tensor.dim()):
        old, new = tensor.shape[number], shape[number]
        if new == 1:
            places = averaged(places, [number])
        elif old % new:
            raise Unplaced  # windows of several sizes
        elif old != new:
            width = old // new
            axis, start = _swept(places.axes[number], old, places.start, (width - 1) / 2, width, new)
            places = placed([*places.axes[:number], axis, *places.axes[number + 1 :]], start)
    return places


def _enlarged(call: Call) -> Places:
    """By halves of pixels, or from corner to corner."""
    tensor, shape = call.own, call.shapes[0]
    places = call.look_up(tensor)
    axes, start = list(places.axes[:2]), places.start
    for number in range(2, tensor.dim()):
        old, new = tensor.shape[number], shape[number]
        ratio = old / new
        reach = (ratio - 1) / 2
        if call.given.get("align_corners"):
            ratio, reach = (old - 1) / max(new - 1, 1), 0.0
        axis, start = _swept(places.axes[number], old, start, reach, ratio, new)
        axes.append(axis)
    return placed(axes, start)


def _repeated(call: Call) -> Places:
    """The nearest cell; only whole numbers of repetitions are even."""
    tensor, shape = call.own, call.shapes[0]
    if any(new % old for old, new in zip(tensor.shape[2:], shape[2:], strict=True)):
        raise Unplaced
    return _enlarged(call)


def _padded(call: Call) -> Places:
    tensor, padding = call.own, call.given.get("pad") or call.given["padding"]
    places = call.look_up(tensor)
    axes, start = list(places.axes), places.start
    for pair in range(len(padding) // 2):
        number = tensor.dim() - 1 - pair
        if (padding[2 * pair], padding[2 * pair + 1]) != (0, 0):
            size = call.shapes[0][number]
            axes[number], start = _swept(axes[number], tensor.shape[number], start, -padding[2 * pair], 1, size)
    return placed(axes, start)


def _swept(
    axis: Axis, size: int, start: tuple[float, float], reach: float, scale: float, new: int
) -> tuple[Axis, tuple[float, float]]:
    """An axis of `new` steps of `scale` old ones each, the first at `reach`."""
    if still(axis):
        return plain(new), start
    if (reach, scale, size) == (0, 1, new):
        return axis, start
    factor = single(axis, size)
    return (Factor(new, times(factor.step, scale)),), moved(start, factor.step, reach)


def _multiplied(call: Call) -> Places:
    """Rows times columns: the result looks where the rows do, as attention's output does where its queries do."""
    tensors = [value for value in call.given.values() if isinstance(value, Tensor)]
    left, right = tensors[-2:]
    one, other = call.look_up(left), call.look_up(right)
    rank = left.dim()
    if one.moves:
        summed = averaged(one, [rank - 1])
        return placed([*summed.axes[:-1], plain(call.shapes[0][-1])], summed.start)
    summed = averaged(other, [rank - 2])
    return placed([*summed.axes[: rank - 2], plain(call.shapes[0][-2]), summed.axes[-1]], summed.start)


def _attended(call: Call) -> Places:
    queries = call.look_up(call.given["query"])
    if not still(queries.axes[-1]):
        raise Unplaced
    return Places((*queries.axes[:-1], plain(call.shapes[0][-1])), queries.start)


def _reduced(call: Call) -> Places:
    tensor = call.own
    dims = call.given.get("dim")
    which = _each(dims, 1) if dims not in (None, []) else range(tensor.dim())
    numbers = sorted({number % max(tensor.dim(), 1) for number in which}, reverse=True)
    places = averaged(call.look_up(tensor), numbers)
    if len(call.shapes[0]) != tensor.dim():
        for number in numbers:
            places = without(places, number)
    return places


def _reshaped(call: Call) -> Places:
    return reshaped(call.look_up(call.own), call.own.shape, call.shapes[0])


def _permuted(call: Call) -> Places:
    places, rank = call.look_up(call.own), call.own.dim()
    return Places(tuple(places.axes[number % rank] for number in call.given["dims"]), places.start)


def _transposed(call: Call) -> Places:
    places, rank = call.look_up(call.own), call.own.dim()
    one, other = call.given["dim0"] % rank, call.given["dim1"] % rank
    axes = list(places.axes)
    axes[one], axes[other] = axes[other], axes[one]
    return Places(tuple(axes), places.start)


def _turned(call: Call) -> Places:
    places = call.look_up(call.own)
    return Places(places.axes[::-1], places.start)


def _expanded(call: Call) -> Places:
    return agreed([call.look_up(call.own)], call.shapes[0])


def _sliced(call: Call) -> Places:
    axis, size = call.axis(), call.own.shape[call.axis()]
    start, stop = (call.given.get(name) for name in ("start", "end"))
    first, last, step = slice(start, stop, call.given.get("step", 1)).indices(size)
    return sliced(call.look_up(call.own), axis, size, first, last, step)


def _selected(call: Call) -> Places:
    axis, size = call.axis(), call.own.shape[call.axis()]
    index = call.given["index"] % size
    return without(sliced(call.look_up(call.own), axis, size, index, index + 1), axis)


def _split(call: Call) -> list[Places]:
    axis, size, start = call.axis(), call.own.shape[call.axis()], 0
    found = []
    for shape in call.shapes:
        stop = start + shape[axis]
        found.append(sliced(call.look_up(call.own), axis, size, start, stop))
        start = stop
    return found


def _unbound(call: Call) -> list[Places]:
    axis, size = call.axis(), call.own.shape[call.axis()]
    places = call.look_up(call.own)
    return [without(sliced(places, axis, size, index, index + 1), axis) for index in range(size)]


def _joined(call: Call) -> Places:
    tensors: Sequence[Tensor] = [tensor for tensor in call.given["tensors"] if tensor.dim() > 1 or tensor.numel()]
    axis = int(call.given["dim"]) % len(call.shapes[0])
    several = [call.look_up(tensor) for tensor in tensors]
    own = [one.axes[axis] for one in several]
    moving = [number for number, one in enumerate(own) if not still(one)]
    if len(moving) == 1:
        # Tokens of no place before and behind those that have one.
        lengths = [tensor.shape[axis] for tensor in tensors]
        (number,) = moving
        whole = with_tokens(own[number], sum(lengths[:number]), sum(lengths[number + 1 :]))
        others = [one for place, one in enumerate(several) if place == number or not one.moves]
        if len(others) < len(several):
            raise Unplaced
        axes = list(several[number].axes)
        axes[axis] = whole
        return placed(axes, several[number].start)
    if moving:
        raise Unplaced
    return _phases(several, axis, tensors, call.shapes[0]) or agreed(
        [Places((*one.axes[:axis], (), *one.axes[axis + 1 :]), one.start) for one in several], call.shapes[0]
    )


def _phases(several: Sequence[Places], axis: int, tensors: Sequence[Tensor], shape: Sequence[int]) -> Places | None:
    """Every second row and column, from either start, behind one another: four pictures of half the size that fill each
    other's gaps (Swin's merging, YOLO's focus). None where it is something else."""
    if len(several) != 4 or len({tensor.shape[axis] for tensor in tensors}) != 1:
        return None
    first = several[0]
    inner, outer, both = ((one.start[0] - first.start[0], one.start[1] - first.start[1]) for one in several[1:])
    steps = [factor.step for one in first.axes for factor in one if factor.moves and not factor.tokens]
    halves = {times(step, 0.5) for step in steps}
    if len(steps) != 2 or {inner, outer} != halves or both != moved(inner, outer):
        return None
    if any(one.axes != first.axes for one in several):
        return None
    axes = list(first.axes)
    axes[axis] = (Factor(2, outer), Factor(2, inner), Factor(shape[axis] // 4))
    return placed(axes, first.start)


def _stacked(call: Call) -> Places:
    tensors: Sequence[Tensor] = call.given["tensors"]
    axis = int(call.given["dim"]) % len(call.shapes[0])
    together = agreed([call.look_up(tensor) for tensor in tensors], tensors[0].shape)
    return Places((*together.axes[:axis], plain(len(tensors)), *together.axes[axis:]), together.start)


def _rolled(call: Call) -> Places:
    """But for what comes in again on the other side."""
    places, tensor = call.look_up(call.own), call.own
    start = places.start
    shifts, dims = (_each(call.given[name], 1) for name in ("shifts", "dims"))
    for shift, number in zip(shifts, dims, strict=True):
        if not still(places.axes[number]):
            start = moved(start, single(places.axes[number], tensor.shape[number]).step, -shift)
    return Places(places.axes, start)


def _shuffled(call: Call) -> Places:
    """Channels become places within their cell."""
    tensor, factor = call.own, call.given["upscale_factor"]
    places = call.look_up(tensor)
    if not still(places.axes[1]):
        raise Unplaced
    axes, start = [*places.axes[:-2], *places.axes[-2:]], places.start
    axes[1] = plain(call.shapes[0][1])
    for number in (-2, -1):
        old = tensor.shape[number]
        axes[number], start = _swept(axes[number], old, start, (1 / factor - 1) / 2, 1 / factor, old * factor)
    return placed(axes, start)


def _halved(call: Call) -> Places:
    places, axis = call.look_up(call.own), call.axis()
    if not still(places.axes[axis]):
        raise Unplaced
    return placed([*places.axes[:axis], plain(call.shapes[0][axis]), *places.axes[axis + 1 :]], places.start)


def _each(value: Any, count: int) -> list[int]:
    numbers = list(value) if isinstance(value, Sequence) else [value]
    return numbers * count if len(numbers) == 1 else numbers


_BY_RULE: dict[Rule, str] = {
    _same: "clone alias detach lift lift_fresh _to_copy contiguous native_dropout dropout _softmax _log_softmax "
    "_safe_softmax native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit "
    "_native_batch_norm_legit_no_training cudnn_batch_norm _batch_norm_no_update _fused_rms_norm",
    _fresh: "zeros_like ones_like empty_like full_like rand_like randn_like new_zeros new_ones new_empty new_full",
    # Those that torch does not tag so itself, in one version or another: 2.11 does not tag hardtanh, which is ReLU6.
    _elementwise: "hardswish relu6 hardtanh mish gelu threshold log_sigmoid_forward rrelu rrelu_with_noise prelu "
    "_prelu_kernel leaky_relu elu celu selu silu softplus hardsigmoid hardshrink softshrink clamp clamp_min clamp_max "
    "rsub abs masked_fill where copy fill zero",
    _convolved: "convolution _convolution",
    _pooled: "max_pool2d_with_indices max_pool2d avg_pool2d max_pool1d avg_pool1d max_pool3d_with_indices avg_pool3d",
    _pooled_to_size: "_adaptive_avg_pool2d adaptive_avg_pool2d adaptive_max_pool2d adaptive_avg_pool1d",
    _enlarged: "upsample_bilinear2d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa",
    _repeated: "upsample_nearest2d _upsample_nearest_exact2d",
    _padded: "constant_pad_nd reflection_pad2d replication_pad2d reflection_pad1d replication_pad1d",
    _multiplied: "mm addmm bmm baddbmm",
    _attended: "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_fused_attention_overrideable _scaled_dot_product_attention_math",
    _reduced: "mean sum amax amin max min logsumexp linalg_vector_norm std var var_mean norm",
    _reshaped: "view _unsafe_view reshape _reshape_alias squeeze unsqueeze flatten unflatten",
    _permuted: "permute",
    _transposed: "transpose",
    _turned: "t",
    _expanded: "expand",
    _sliced: "slice",
    _selected: "select",
    _split: "split split_with_sizes",
    _unbound: "unbind",
    _joined: "cat",
    _stacked: "stack",
    _rolled: "roll",
    _shuffled: "pixel_shuffle",
    _halved: "glu",
}
_RULES: dict[str, Rule] = {name: rule for rule, names in _BY_RULE.items() for name in names.split()}


def rule_of(func: torch._ops.OpOverload) -> Rule | None:
    """What the operation does, None where nobody said. One that works in place does what the other does."""
    name = func._schema.name.partition("::")[2]
    rule = _RULES.get(name) or _RULES.get(name.rstrip("_"))
    return _elementwise if rule is None and torch.Tag.pointwise in func.tags else rule
