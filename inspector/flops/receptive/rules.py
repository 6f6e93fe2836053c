"""A rule per operator: from the fields of its operands to that of its results; None where there is none to give."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from inspector.flops.formulas import short_name
from inspector.flops.receptive.field import Atoms, Field
from inspector.forward.watch import Operation, tensors_in

Get = Callable[[Any], Field | None]


def _first(get: Get, operation: Operation) -> Field | None:
    return get(operation.args[0])


def elementwise(get: Get, operation: Operation) -> Field | None:
    """Of each axis the largest field among the operands that still have it; gates and constants have none."""
    shape = next(tensors_in(operation.output)).shape
    found: list[Field] = []
    for tensor in tensors_in(operation.args):
        field = get(tensor)
        if field is not None:
            missing = len(shape) - len(field.dims)
            found.append(replace(field, dims=((),) * missing + field.dims))
    if not found:
        return None
    dims = tuple(max((field.dims[n] for field in found), key=len) for n in range(len(shape)))
    present = {axis for atoms in dims for axis, _ in atoms}
    size, step = [], []
    for axis in range(len(found[0].size)):
        have = [f for f in found if any(axis == a for atoms in f.dims for a, _ in atoms)] if axis in present else found
        size.append(max(f.size[axis] for f in have))
        step.append(max(f.step[axis] for f in have))
    return Field(dims, tuple(size), tuple(step))


def _axis_at(field: Field, dim: int) -> int | None:
    """The one axis in a dimension; None where there are several or none."""
    atoms = field.dims[dim]
    return atoms[0][0] if len(atoms) == 1 else None


def _slide(field: Field, shape: Sequence[int], kernel: Sequence[Fraction], stride: Sequence[Fraction]) -> Field | None:
    """A window over the last dimensions. kernel: how many steps it spans, plus one. shape: of the output."""
    count = len(kernel)
    dims, size, step = list(field.dims), list(field.size), list(field.step)
    for n in range(count):
        dim = len(field.dims) - count + n
        axis = _axis_at(field, dim)
        if axis is None:
            if (kernel[n] == 1 and stride[n] == 1) or (shape[dim] == 1 and not field.dims[dim]):
                continue
            return None
        size[axis] += (kernel[n] - 1) * step[axis]
        step[axis] *= stride[n]
        dims[dim] = ((axis, int(shape[dim])),)
    return Field(tuple(dims), tuple(size), tuple(step))


def _each(value: Any, count: int) -> list[int]:
    listed = list(value) if isinstance(value, list | tuple) else [value]
    return listed * count if len(listed) == 1 else listed


def _convolution(get: Get, operation: Operation) -> Field | None:
    picture, weight, _, stride, _, dilation, transposed, *_ = operation.args
    field = get(picture)
    if field is None:
        return None
    count = weight.dim() - 2
    strides, dilations = _each(stride, count), _each(dilation, count)
    spans = [(int(k) - 1) * d + 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
    if transposed:
        kernel = [Fraction(math.ceil(Fraction(span, s))) for span, s in zip(spans, strides, strict=True)]
        return _slide(field, operation.output.shape, kernel, [Fraction(1, s) for s in strides])
    return _slide(field, operation.output.shape, list(map(Fraction, spans)), list(map(Fraction, strides)))


def _pooling(get: Get, operation: Operation) -> Field | None:
    field = _first(get, operation)
    output = next(tensors_in(operation.output))
    if field is None:
        return None
    name = short_name(operation.operator)
    count = 3 if "3d" in name else 2
    kernel = _each(operation.args[1], count)
    stride = _each(operation.args[2], count) if len(operation.args) > 2 and operation.args[2] else kernel
    dilation = [1] * count
    if name.startswith("max") and len(operation.args) > 4:
        dilation = _each(operation.args[4], count)
    spans = [Fraction((k - 1) * d + 1) for k, d in zip(kernel, dilation, strict=True)]
    return _slide(field, output.shape, spans, list(map(Fraction, stride)))


def _adaptive(get: Get, operation: Operation) -> Field | None:
    field = _first(get, operation)
    output = next(tensors_in(operation.output))
    if field is None:
        return None
    count = 3 if "3d" in short_name(operation.operator) else 2
    before, after = operation.args[0].shape[-count:], output.shape[-count:]
    stride = [Fraction(int(n), int(o)) for n, o in zip(before, after, strict=True)]
    # Where it does not divide, a window may reach over one more.
    kernel = [s if s.denominator == 1 else Fraction(math.ceil(s) + 1) for s in stride]
    return _slide(field, output.shape, kernel, stride)


def _upsample(get: Get, operation: Operation) -> Field | None:
    field = _first(get, operation)
    if field is None:
        return None
    name = short_name(operation.operator)
    count = 3 if "3d" in name or "trilinear" in name else 1 if "1d" in name or "_linear" in name else 2
    if not any(field.dims[-count:]):
        # One number for the whole picture, repeated.
        return field
    taps = 4 if "cubic" in name else 2 if "linear" in name else 1
    before, after = operation.args[0].shape[-count:], operation.output.shape[-count:]
    stride = [Fraction(int(n), int(o)) for n, o in zip(before, after, strict=True)]
    return _slide(field, operation.output.shape, [Fraction(taps if s != 1 else 1) for s in stride], stride)


def _reduce(get: Get, operation: Operation) -> Field | None:
    field = _first(get, operation)
    if field is None:
        return None
    output = next(tensors_in(operation.output))
    given = operation.args[1] if len(operation.args) > 1 else None
    listed = range(len(field.dims)) if given is None or given == [] else _each(given, 1)
    dims = sorted({int(dim) % len(field.dims) for dim in listed})
    for dim in dims:
        field = field.without(dim)
    if output.dim() < len(field.dims):
        field = replace(field, dims=tuple(atoms for n, atoms in enumerate(field.dims) if n not in dims))
    return field


def _along(get: Get, operation: Operation) -> Field | None:
    """Softmax: each element hears of all along one dimension, which stays."""
    field = _first(get, operation)
    if field is None:
        return None
    atoms = field.dims[int(operation.args[1])]
    return field.spread([axis for axis, _ in atoms], [length for _, length in atoms])


def _regroup(get: Get, operation: Operation) -> Field | None:
    """Dimensions merged, or parted where they were merged; a part of an axis is no axis."""
    field = _first(get, operation)
    if field is None:
        return None
    shape = operation.output.shape
    before: list[tuple[int, int | None]] = []
    for held, length in zip(field.dims, operation.args[0].shape, strict=True):
        before += [(n, axis) for axis, n in held] if held else [(int(length), None)]
    before = [(length, axis) for length, axis in before if length != 1 or axis is not None]
    dims: list[Atoms] = []
    for wanted in map(int, shape):
        atoms: list[tuple[int, int]] = []
        room = wanted
        while room > 1:
            length, axis = before.pop(0)
            if axis is None:
                shared = math.gcd(length, room)
                if shared == 1:
                    return None
                if shared < length:
                    before.insert(0, (length // shared, None))
                room //= shared
            else:
                if room % length:
                    return None
                atoms.append((axis, length))
                room //= length
                # Numbers beside an axis in one dimension: which position is which is lost.
        if atoms and math.prod(n for _, n in atoms) != wanted:
            return _flattened(field, operation)
        while before and before[0][0] == 1 and wanted == 1:
            length, axis = before.pop(0)
            atoms.append((axis, 1)) if axis is not None else None
        dims.append(tuple(atoms))
    return replace(field, dims=tuple(dims))


def _flattened(field: Field, operation: Operation) -> Field | None:
    """(batch, channels x height x width): one vector for the whole picture, which only a matrix can come after."""
    if operation.output.dim() != 2 or operation.output.shape[0] != operation.args[0].shape[0]:
        return None
    found = field
    for dim in range(1, len(field.dims)):
        found = found.without(dim)
    return replace(found, dims=((), ()))


def _permute(get: Get, operation: Operation) -> Field | None:
    field = _first(get, operation)
    if field is None:
        return None
    name, count = short_name(operation.operator), len(field.dims)
    order = list(range(count))
    if name == "permute":
        order = [int(n) % count for n in operation.args[1]]
    else:
        one, other = (0, min(1, count - 1)) if name == "t" else (int(n) % count for n in operation.args[1:3])
        order[one], order[other] = order[other], order[one]
    return replace(field, dims=tuple(field.dims[n] for n in order))


def _unsqueeze(get: Get, operation: Operation) -> Field | None:
    field = _first(get, operation)
    if field is None:
        return None
    at = int(operation.args[1]) % (len(field.dims) + 1)
    return replace(field, dims=(*field.dims[:at], (), *field.dims[at:]))


def _squeeze(get: Get, operation: Operation) -> Field | None:
    field = _first(get, operation)
    if field is None:
        return None
    given = operation.args[1] if len(operation.args) > 1 else range(len(field.dims))
    shape = operation.args[0].shape
    gone = (
        {int(n) % len(shape) for n in _each(given, 1) if shape[int(n)] == 1}
        if not isinstance(given, range)
        else {n for n in given if shape[n] == 1}
    )
    return replace(field, dims=tuple(atoms for n, atoms in enumerate(field.dims) if n not in gone))


def _product(get: Get, operation: Operation) -> Field | None:
    """A matrix product: positions stay where they are rows, and are put together where they are summed over."""
    left, right = operation.args[-2:] if "add" in short_name(operation.operator) else operation.args[:2]
    fields = []
    for tensor, summed in ((left, -1), (right, -2)):
        field = get(tensor)
        fields.append(None if field is None else field.without(summed % tensor.dim()))
    one, other = fields
    if one is None and other is None:
        return None
    rows = one.dims[:-1] if one is not None else ((),) * (left.dim() - 1)
    column = other.dims[-1] if other is not None else ()
    if one is None:
        assert other is not None
        rows = (*other.dims[:-2], ()) if left.dim() == other.dims.__len__() else rows
        return replace(other, dims=(*rows, column))
    if other is None:
        return replace(one, dims=(*rows, column))
    size = tuple(map(max, one.size, other.size))
    step = tuple(map(min, one.step, other.step))
    return Field((*rows, column), size, step)


def _slice(get: Get, operation: Operation) -> Field | None:
    field = _first(get, operation)
    if field is None:
        return None
    name = short_name(operation.operator)
    dim = int(operation.args[1]) % len(field.dims) if len(operation.args) > 1 else 0
    atoms = field.dims[dim]
    if name == "select":
        return replace(field, dims=(*field.dims[:dim], *field.dims[dim + 1 :]))
    if not atoms:
        return field
    if len(atoms) > 1:
        return None
    pace = int(operation.args[4]) if len(operation.args) > 4 else 1
    axis, length = atoms[0][0], int(operation.output.shape[dim])
    step = tuple(s * pace if n == axis else s for n, s in enumerate(field.step))
    return replace(field, dims=(*field.dims[:dim], ((axis, length),), *field.dims[dim + 1 :]), step=step)


def _cat(get: Get, operation: Operation) -> Field | None:
    tensors = list(operation.args[0])
    fields = [get(tensor) for tensor in tensors]
    dim = int(operation.args[1]) if len(operation.args) > 1 else 0
    known = [field for field in fields if field is not None]
    if len(known) < len(fields) or not known or any(field.dims[dim] for field in known):
        return None
    one = known[0]
    size = tuple(max(f.size[n] for f in known) for n in range(len(one.size)))
    step = tuple(max(f.step[n] for f in known) for n in range(len(one.size)))
    return Field(one.dims, size, step)


def _split(get: Get, operation: Operation) -> Field | None:
    """Parts along the channels; along an axis of the picture they differ in length, and nothing is said."""
    field = _first(get, operation)
    if field is None:
        return None
    dim = int(operation.args[2]) if len(operation.args) > 2 else int(operation.kwargs.get("dim", 0))
    return None if field.dims[dim] else field


def _restride(get: Get, operation: Operation) -> Field | None:
    """Another way of counting through memory keeps no place; where all places are one, there is none to lose."""
    field = _first(get, operation)
    same = operation.args[0].shape == next(tensors_in(operation.output)).shape
    return field if field is not None and same and not any(field.dims) else None


def _pad(get: Get, operation: Operation) -> Field | None:
    field = _first(get, operation)
    if field is None:
        return None
    dims = []
    for atoms, length in zip(field.dims, next(tensors_in(operation.output)).shape, strict=True):
        if len(atoms) > 1 and math.prod(n for _, n in atoms) != length:
            return None
        dims.append(((atoms[0][0], int(length)),) if len(atoms) == 1 else atoms)
    return replace(field, dims=tuple(dims))


def _shuffle(get: Get, operation: Operation) -> Field | None:
    field = _first(get, operation)
    if field is None:
        return None
    factor, down = int(operation.args[1]), short_name(operation.operator) == "pixel_unshuffle"
    kernel, stride = (Fraction(factor), Fraction(factor)) if down else (Fraction(1), Fraction(1, factor))
    return _slide(field, operation.output.shape, [kernel] * 2, [stride] * 2)


# Same positions in and out, though torch does not call them pointwise.
KEEPS = frozenset(
    {
        *("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "cudnn_batch_norm"),
        *("native_layer_norm", "native_group_norm", "native_dropout", "native_channel_shuffle"),
        *("hardswish", "hardsigmoid", "hardtanh", "leaky_relu", "elu", "silu", "mish", "relu", "gelu", "prelu", "celu"),
        *("clone", "_to_copy", "copy_", "detach", "alias", "lift_fresh", "contiguous", "expand"),
    }
)

RULES: dict[str, Callable[[Get, Operation], Field | None]] = {
    "convolution": _convolution,
    "_convolution": _convolution,
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d"), _pooling),
    **dict.fromkeys(
        ("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d"), _adaptive
    ),
    **dict.fromkeys(
        (
            *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact2d"),
            *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
        ),
        _upsample,
    ),
    **dict.fromkeys(("mean", "sum", "amax", "amin"), _reduce),
    **dict.fromkeys(("_softmax", "_log_softmax"), _along),
    **dict.fromkeys(("view", "_unsafe_view", "reshape", "_reshape_alias"), _regroup),
    **dict.fromkeys(("permute", "transpose", "t"), _permute),
    "as_strided": _restride,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    **dict.fromkeys(("mm", "addmm", "bmm", "baddbmm", "matmul"), _product),
    **dict.fromkeys(("slice", "select"), _slice),
    "cat": _cat,
    **dict.fromkeys(("split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "chunk"), _split),
    **dict.fromkeys(("constant_pad_nd", "reflection_pad2d", "replication_pad2d"), _pad),
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle"), _shuffle),
}
