"""What the known globals of checkpoints mean, without calling any of them.

Each meaning takes the arguments a pickle would call its global with, checks them, and returns an inert record, or
NOT_UNDERSTOOD, whereupon the call stays an inert `Call`. Sources: torch/_utils.py, torch/_tensor.py (2.15 and the
argument lists of earlier releases), numpy's and Python's own `__reduce__` formats.
"""

from __future__ import annotations

import math

from inspector.checkpoint.dtypes import DTYPES, STORAGE_DTYPES, find_dtype
from inspector.readers.unpickle.array_meanings import ARRAY_MEANINGS
from inspector.readers.unpickle.container_meanings import CONTAINER_MEANINGS
from inspector.readers.unpickle.stand_ins import (
    NOT_UNDERSTOOD,
    GlobalRef,
    Group,
    Mapping,
    Meaning,
    Named,
    NotUnderstood,
    StorageRef,
    TensorStub,
)

_MOST_NUMEL = 1 << 62
_MOST_DIMENSIONS = 64


def sizes_of(value: object) -> tuple[int, ...] | None:
    """Non-negative integers from a tuple, list or torch.Size; None for anything else."""
    items = value.items if isinstance(value, Group) and value.kind == "torch.Size" else value
    if not isinstance(items, tuple | list) or len(items) > _MOST_DIMENSIONS:
        return None
    for item in items:
        if type(item) is not int or not 0 <= item < _MOST_NUMEL:
            return None
    return tuple(items)


def dtype_of(value: object) -> str | None:
    """The name of a dtype global ("torch.float32"), None for anything else."""
    if isinstance(value, GlobalRef) and value.module == "torch":
        found = find_dtype(value.name)
        return found.name if found else None
    return None


def storage_dtype(ref: object) -> tuple[str | None, str] | None:
    """(dtype or None for untyped, class name) of a storage class; None if it is no storage class."""
    if not isinstance(ref, GlobalRef) or "Storage" not in ref.name:
        return None
    return STORAGE_DTYPES.get(ref.name), ref.name


def _device(text: str | None) -> str | None:
    return text or None


def _plausible(shape: tuple[int, ...]) -> bool:
    return math.prod(shape) < _MOST_NUMEL


def _strided(
    storage: object,
    offset: object,
    size: object,
    stride: object,
    *,
    dtype: str | None = None,
    requires_grad: object = None,
    extra: tuple[object, ...] = (),
) -> TensorStub | NotUnderstood:
    shape, strides = sizes_of(size), sizes_of(stride)
    if not isinstance(storage, StorageRef) or type(offset) is not int or offset < 0:
        return NOT_UNDERSTOOD
    if shape is None or strides is None or len(shape) != len(strides) or not _plausible(shape):
        return NOT_UNDERSTOOD
    name = dtype or storage.dtype
    if name is None:
        return NOT_UNDERSTOOD
    if storage.view is not None:
        offset += storage.view[0]
    return TensorStub(
        storage=storage,
        dtype=name,
        shape=shape,
        stride=strides,
        offset=offset,
        requires_grad=requires_grad if isinstance(requires_grad, bool) else None,
        device=_device(storage.location),
        extra=[item for item in extra if not _is_empty(item)],
    )


def _is_empty(value: object) -> bool:
    return value is None or value == () or (isinstance(value, Mapping) and not value.pairs and not value.attributes)


def _tensor(args: tuple[object, ...]) -> object:
    return _strided(*args) if len(args) == 4 else NOT_UNDERSTOOD


def _tensor_v2(args: tuple[object, ...]) -> object:
    if not 5 <= len(args) <= 7:
        return NOT_UNDERSTOOD
    return _strided(*args[:4], requires_grad=args[4], extra=args[5:])


def _tensor_v3(args: tuple[object, ...]) -> object:
    if not 7 <= len(args) <= 8:
        return NOT_UNDERSTOOD
    dtype = dtype_of(args[6])
    if dtype is None:
        return NOT_UNDERSTOOD
    return _strided(*args[:4], dtype=dtype, requires_grad=args[4], extra=(args[5], *args[7:]))


def _parameter(args: tuple[object, ...]) -> object:
    if not 2 <= len(args) <= 4 or not isinstance(args[0], TensorStub):
        return NOT_UNDERSTOOD
    data = args[0]
    data.is_parameter = True
    data.kind = "torch.nn.parameter.Parameter"
    data.requires_grad = args[1] if isinstance(args[1], bool) else None
    data.extra.extend(item for item in args[2:] if not _is_empty(item))
    return data


def _layout_name(value: object) -> str | None:
    if isinstance(value, Named) and value.kind == "torch.layout":
        return value.text.removeprefix("torch.")
    if isinstance(value, GlobalRef) and value.module == "torch" and value.name.startswith(("sparse_", "strided")):
        return value.name
    return None


def _sparse(args: tuple[object, ...]) -> object:
    if len(args) != 2 or not isinstance(args[1], tuple):
        return NOT_UNDERSTOOD
    layout, data = _layout_name(args[0]), args[1]
    if layout is None or len(data) < 3:
        return NOT_UNDERSTOOD
    parts = data[:2] if layout == "sparse_coo" else data[:3]
    shape = sizes_of(data[len(parts)]) if len(data) > len(parts) else None
    if shape is None or not _plausible(shape) or not all(isinstance(p, TensorStub) for p in parts):
        return NOT_UNDERSTOOD
    tensors = [p for p in parts if isinstance(p, TensorStub)]
    values = tensors[-1]
    nnz = values.shape[0] if values.shape else 0
    return TensorStub(
        storage=None,
        dtype=values.dtype,
        shape=shape,
        layout=layout,
        device=values.device,
        requires_grad=False,
        note=f"{layout.replace('_', ' ')}: {nnz:,} stored values of {math.prod(shape):,}",
        nbytes=sum(math.prod(t.shape) * DTYPES[t.dtype].itemsize for t in tensors),
        extra=list(tensors),
    )


def _sparse_csr(args: tuple[object, ...]) -> object:
    return _sparse((Named("torch.layout", "torch.sparse_csr"), args[:4]))


def _nested(args: tuple[object, ...]) -> object:
    if not args or not isinstance(args[0], TensorStub):
        return NOT_UNDERSTOOD
    data = args[0]
    return TensorStub(
        storage=None,
        dtype=data.dtype,
        shape=data.shape,
        layout="nested",
        device=data.device,
        note="nested tensor: its rows differ in size",
        nbytes=math.prod(data.shape) * DTYPES[data.dtype].itemsize,
        extra=list(args),
    )


def _quantized(args: tuple[object, ...]) -> object:
    if not 6 <= len(args) <= 7 or not isinstance(args[4], tuple):
        return NOT_UNDERSTOOD
    made = _strided(*args[:4], requires_grad=args[5], extra=args[6:])
    if isinstance(made, TensorStub):
        scheme = args[4][0] if args[4] else None
        name = scheme.name if isinstance(scheme, GlobalRef) else "unknown scheme"
        numbers = [n for n in args[4][1:] if isinstance(n, int | float)]
        if name == "per_tensor_affine" and len(numbers) == 2:
            made.note = f"quantised per tensor: scale {numbers[0]:.6g}, zero point {numbers[1]}"
        else:
            made.note = f"quantised: {name.replace('_', ' ')}"
            made.extra.append(args[4])
    return made


def _no_data(dtype: object, size: object, stride: object, note: str, kind: str = "torch.Tensor") -> object:
    name, shape, strides = dtype_of(dtype), sizes_of(size), sizes_of(stride)
    if name is None or shape is None or not _plausible(shape):
        return NOT_UNDERSTOOD
    return TensorStub(storage=None, dtype=name, shape=shape, stride=strides, kind=kind, device="meta", note=note)


def _meta(args: tuple[object, ...]) -> object:
    return _no_data(args[0], args[1], args[2], "meta tensor: no data in the file") if len(args) >= 3 else NOT_UNDERSTOOD


def _wrapper(args: tuple[object, ...]) -> object:
    if len(args) < 4:
        return NOT_UNDERSTOOD
    cls = args[0].full if isinstance(args[0], GlobalRef) else "unknown class"
    return _no_data(args[1], args[2], args[3], f"{cls}: a wrapper without data in the file", cls)


def _from_type(args: tuple[object, ...]) -> object:
    """_rebuild_from_type_v2(function, type, arguments, state): a tensor subclass around a known rebuild."""
    if len(args) not in (3, 4):
        return NOT_UNDERSTOOD
    function, cls, inner = args[0], args[1], args[2]
    if not isinstance(function, GlobalRef) or function.meaning is None or not isinstance(inner, tuple):
        return NOT_UNDERSTOOD
    if function.meaning is _from_type:  # Nesting is never written by torch, and would recurse as deep as a file likes.
        return NOT_UNDERSTOOD
    function.use.calls += 1
    made = function.meaning(inner)
    if not isinstance(made, TensorStub) or not isinstance(cls, GlobalRef):
        return NOT_UNDERSTOOD
    if cls.full != "torch.Tensor":
        made.kind = cls.full
        made.is_parameter = True if cls.name == "Parameter" else made.is_parameter
    made.extra.extend(item for item in args[3:] if not _is_empty(item))
    return made


def _device_tensor(args: tuple[object, ...]) -> object:
    if len(args) < 3 or not isinstance(args[0], TensorStub):
        return NOT_UNDERSTOOD
    made = args[0]
    made.dtype = dtype_of(args[1]) or made.dtype
    made.device = args[2].text if isinstance(args[2], Named) else str(args[2])[:40]
    return made


MEANINGS: dict[str, Meaning] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor_v2,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_v2": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.nn.Parameter": _parameter,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_sparse_csr_tensor": _sparse_csr,
    "torch._utils._rebuild_nested_tensor": _nested,
    "torch._utils._rebuild_qtensor": _quantized,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta,
    "torch._utils._rebuild_wrapper_subclass": _wrapper,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _device_tensor,
    "torch._tensor._rebuild_from_type": _from_type,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    **CONTAINER_MEANINGS,
    **ARRAY_MEANINGS,
}
