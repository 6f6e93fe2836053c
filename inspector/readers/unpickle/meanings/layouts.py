"""Sparse, nested and quantised tensors: what their rebuild functions would make of their parts.

Source: torch/_utils.py (2.15) and the names of earlier releases; torch/nested/_internal/nested_tensor.py.
The shapes are checked as torch checks them when it makes the tensor; indices themselves are data and are not read.
"""

from __future__ import annotations

import math

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import PACKED, packed_shape
from inspector.readers.unpickle.machine.arguments import layout_of, plausible, said, sizes_of, strided, why_no_sizes
from inspector.readers.unpickle.stand_ins import (
    GlobalRef,
    Labelled,
    Mapping,
    Meaning,
    Named,
    NotUnderstood,
    Recipe,
    TensorStub,
    text_of,
)

_INDEX_TYPES = ("int64", "int32")
_COMPRESSED = {
    "sparse_csr": ("row starts", "column indices"),
    "sparse_csc": ("column starts", "row indices"),
    "sparse_bsr": ("row starts", "column indices"),
    "sparse_bsc": ("column starts", "row indices"),
}


def _sparse(args: tuple[object, ...]) -> object:
    if len(args) != 2 or not isinstance(args[1], tuple):
        return NotUnderstood(f"it has {len(args)} arguments where a layout and its parts are due")
    layout, data = layout_of(args[0]), args[1]
    if layout == "sparse_coo":
        return _coo(data)
    if layout in _COMPRESSED:
        return _compressed(layout, data)
    return NotUnderstood(f"its layout {text_of(args[0], 40)} is none that torch stores sparsely")


def _coo(data: tuple[object, ...]) -> object:
    if len(data) not in (3, 4):
        return NotUnderstood(f"it has {len(data)} parts, torch writes 3 or 4")
    indices, values, shape = data[0], data[1], sizes_of(data[2])
    if not isinstance(indices, TensorStub) or not isinstance(values, TensorStub):
        return NotUnderstood("its indices and values are no tensors")
    if shape is None or not plausible(shape):
        return NotUnderstood(why_no_sizes("size", data[2]))
    if len(indices.shape) != 2 or indices.dtype not in _INDEX_TYPES:
        return NotUnderstood(f"its indices are {text_of(indices)}, not a table of integers")
    nnz = indices.shape[1]
    if not values.shape or values.shape[0] != nnz or indices.shape[0] + len(values.shape) - 1 != len(shape):
        return NotUnderstood(f"{text_of(indices)} and {text_of(values)} are no parts of a tensor {text_of(shape)}")
    coalesced = data[3] if len(data) == 4 and isinstance(data[3], bool) else None
    labels = ("indices", "values")
    made = _of_parts("sparse_coo", shape, values, (indices, values), labels, coalesced=coalesced)
    made.extra += said(data[4:])
    return made


def _compressed(layout: str, data: tuple[object, ...]) -> object:
    if len(data) != 4:
        return NotUnderstood(f"it has {len(data)} parts, torch writes 4")
    compressed, plain, values, shape = data[0], data[1], data[2], sizes_of(data[3])
    tensors = (compressed, plain, values)
    if not all(isinstance(t, TensorStub) for t in tensors):
        return NotUnderstood("its indices and values are no tensors")
    if shape is None or not plausible(shape):
        return NotUnderstood(why_no_sizes("size", data[3]))
    found = [t for t in tensors if isinstance(t, TensorStub)]
    starts, inner, kept = found
    batch = len(starts.shape) - 1
    block = 2 if layout in ("sparse_bsr", "sparse_bsc") else 0
    fits = (
        batch >= 0
        and len(inner.shape) == batch + 1
        and len(kept.shape) >= batch + 1 + block
        and batch + 2 <= len(shape)
        and len(shape) == batch + 2 + len(kept.shape) - (batch + 1 + block)
        and inner.shape[batch] == kept.shape[batch]
        and starts.dtype in _INDEX_TYPES
        and inner.dtype == starts.dtype
    )
    if fits:
        by_rows = layout in ("sparse_csr", "sparse_bsr")
        lines = shape[batch] if by_rows else shape[batch + 1]
        width = (kept.shape[batch + 1] if by_rows else kept.shape[batch + 2]) if block else 1
        fits = width > 0 and lines % width == 0 and starts.shape[batch] == lines // width + 1
    if not fits:
        says = ", ".join(text_of(t) for t in found)
        return NotUnderstood(f"{says} are no parts of a {layout.replace('_', ' ')} tensor {text_of(shape)}")
    return _of_parts(layout, shape, kept, (starts, inner, kept), (*_COMPRESSED[layout], "values"))


def _of_parts(
    layout: str,
    shape: tuple[int, ...],
    values: TensorStub,
    parts: tuple[TensorStub, ...],
    labels: tuple[str, ...],
    *,
    coalesced: bool | None = None,
) -> TensorStub:
    return TensorStub(
        storage=None,
        dtype=values.dtype,
        shape=shape,
        layout=layout,
        device=values.device,
        requires_grad=False,
        note=f"{layout.replace('_', ' ')}: {math.prod(values.shape):,} stored values of {math.prod(shape):,}",
        nbytes=sum(math.prod(t.shape) * DTYPES[t.dtype].itemsize for t in parts),
        extra=[Labelled(label, part) for label, part in zip(labels, parts, strict=True)],
        recipe=_recipe(layout, parts, coalesced=coalesced),
    )


def _recipe(
    scheme: str, parts: tuple[TensorStub, ...], *, axis: int = 0, coalesced: bool | None = None
) -> Recipe | None:
    """None when a part is itself made of parts: torch writes no such thing, and a file could nest it at will."""
    if any(part.recipe is not None or part.storage is None for part in parts):
        return None
    return Recipe(scheme=scheme, parts=parts, axis=axis, coalesced=coalesced)


def _sparse_csr(args: tuple[object, ...]) -> object:
    """_rebuild_sparse_csr_tensor(layout, data) of 1.9 to 1.12."""
    if len(args) == 2 and isinstance(args[1], tuple):
        return _sparse(args)
    return _sparse((Named("torch.layout", "torch.sparse_csr"), args))


def _nested(args: tuple[object, ...]) -> object:
    """_rebuild_nested_tensor(buffer, sizes, strides, offsets); 1.13 had no offsets of its own type."""
    if len(args) not in (3, 4) or not all(isinstance(a, TensorStub) for a in args[:3]):
        return NotUnderstood(f"its {len(args)} arguments are not a buffer with sizes and strides")
    parts = [a for a in args if isinstance(a, TensorStub)]
    data, sizes = parts[0], parts[1]
    rows = sizes.shape[0] if len(sizes.shape) == 2 else None
    if rows is None or sizes.dtype != "int64" or sizes.shape != parts[2].shape:
        return NotUnderstood(f"its sizes are {text_of(sizes)} and its strides {text_of(parts[2])}")
    labels = ("values", "sizes", "strides", "offsets")
    return TensorStub(
        storage=None,
        dtype=data.dtype,
        shape=data.shape,
        layout="nested",
        device=data.device,
        note=f"nested tensor: {rows:,} tensors of {sizes.shape[1]} dimensions, their numbers one behind the other",
        nbytes=math.prod(data.shape) * DTYPES[data.dtype].itemsize,
        extra=[Labelled(label, arg) for label, arg in zip(labels, args, strict=False)],
    )


def _jagged(args: tuple[object, ...]) -> object:
    """_rebuild_njt(keywords of NestedTensor)."""
    keywords = args[0] if len(args) == 1 else None
    if not isinstance(keywords, Mapping):
        return NotUnderstood("its argument is no dict of keywords")
    values, offsets = keywords.get("values"), keywords.get("offsets")
    if not isinstance(values, TensorStub) or not isinstance(offsets, TensorStub) or len(offsets.shape) != 1:
        return NotUnderstood("its values and offsets are no tensors")
    rows = max(0, offsets.shape[0] - 1)
    wants_grad = keywords.get("requires_grad")
    return TensorStub(
        storage=None,
        dtype=values.dtype,
        shape=values.shape,
        layout="jagged",
        device=values.device,
        requires_grad=wants_grad if isinstance(wants_grad, bool) else None,
        note=f"nested tensor: {rows:,} rows of different lengths, one behind the other",
        nbytes=math.prod(values.shape) * DTYPES[values.dtype].itemsize,
        extra=[Labelled(str(key)[:60], value) for key, value in keywords.pairs if value is not None],
    )


def _quantized(args: tuple[object, ...]) -> object:
    if not 6 <= len(args) <= 7:
        return NotUnderstood(f"it has {len(args)} arguments, torch writes 6 or 7")
    made = strided(*args[:4], requires_grad=args[5], extra=args[6:])
    if not isinstance(made, TensorStub):
        return made
    if made.dtype in PACKED:
        made.nbytes = math.prod(packed_shape(made.shape, made.dtype))
    scheme = args[4][0] if isinstance(args[4], tuple) and args[4] else None
    if not isinstance(scheme, GlobalRef) or scheme.module != "torch" or not isinstance(args[4], tuple):
        return NotUnderstood(f"its scheme is {text_of(args[4], 60)}")
    rest = args[4][1:]
    if scheme.name in ("per_tensor_affine", "per_tensor_symmetric"):
        return _per_tensor(made, rest)
    if scheme.name.startswith("per_channel"):
        return _per_channel(made, scheme.name, rest)
    return NotUnderstood(f"its scheme {scheme.name[:60]} is none of torch's")


def _per_tensor(made: TensorStub, rest: tuple[object, ...]) -> object:
    if len(rest) != 2 or type(rest[0]) not in (int, float) or type(rest[1]) is not int:
        return NotUnderstood(f"its scale and zero point are {text_of(rest, 60)}")
    scale, zero_point = float(str(rest[0])), rest[1]
    if not -(1 << 63) <= zero_point < 1 << 63:
        return NotUnderstood(f"its zero point is {text_of(zero_point, 40)}")
    made.recipe = Recipe(scheme="per_tensor_affine", scale=scale, zero_point=zero_point)
    made.note = f"quantised per tensor: scale {scale:.6g}, zero point {zero_point}"
    return made


def _per_channel(made: TensorStub, name: str, rest: tuple[object, ...]) -> object:
    if len(rest) != 3 or type(rest[2]) is not int or not 0 <= rest[2] < len(made.shape):
        return NotUnderstood(f"its channels are {text_of(rest[2:], 40)} of {len(made.shape)} dimensions")
    axis = rest[2]
    channels = made.shape[axis]
    made.note = f"quantised per channel: {channels:,} scales along axis {axis}"
    made.extra += [Labelled("scheme", Named("torch.qscheme", name[:60])), Labelled("axis", axis)]
    made.extra += [Labelled("scales", rest[0]), Labelled("zero points", rest[1])]
    counts = [_count(rest[0]), _count(rest[1])]
    if counts != [channels, channels]:
        return NotUnderstood(f"it has {counts[0]} scales and {counts[1]} zero points for {channels:,} channels")
    parts = [part for part in rest[:2] if isinstance(part, TensorStub)]
    if len(parts) == 2:
        made.recipe = _recipe("per_channel_affine", tuple(parts), axis=axis)
    return made


def _count(value: object) -> int | None:
    if isinstance(value, TensorStub):
        return math.prod(value.shape)
    return len(value) if isinstance(value, list | tuple) else None


LAYOUT_MEANINGS: dict[str, Meaning] = {
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_sparse_csr_tensor": _sparse_csr,
    "torch._utils._rebuild_nested_tensor": _nested,
    "torch.nested._internal.nested_tensor._rebuild_njt": _jagged,
    "torch._utils._rebuild_qtensor": _quantized,
}
