"""The arguments of rebuild functions, checked: sizes, strides, element types, layouts, devices.

Everything here takes what a pickle handed over, which may be anything, and gives back plain values or a reason.
"""

from __future__ import annotations

import math

from inspector.checkpoint.dtypes import STORAGE_DTYPES, find_dtype
from inspector.readers.unpickle.stand_ins import (
    GlobalRef,
    Group,
    Labelled,
    Mapping,
    Named,
    NotUnderstood,
    Recipe,
    StorageRef,
    TensorStub,
    text_of,
)

_MOST_NUMEL = 1 << 62
_MOST_DIMENSIONS = 64
_LISTS = (list, tuple)
_BYTES_STORAGES = frozenset({"UntypedStorage", "_UntypedStorage"})


def sizes_of(value: object) -> tuple[int, ...] | None:
    """Non-negative integers from a tuple, list or torch.Size; None for anything else."""
    items = value.items if type(value) is Group and value.kind == "torch.Size" else value
    if not isinstance(items, _LISTS) or len(items) > _MOST_DIMENSIONS:
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


def layout_of(value: object) -> str | None:
    """ "sparse_coo" from torch's layout object or its global, None for anything else."""
    if isinstance(value, Named) and value.kind == "torch.layout":
        return value.text.removeprefix("torch.")
    if isinstance(value, GlobalRef) and value.module == "torch" and value.name.startswith(("sparse_", "strided")):
        return value.name
    return None


def device_of(value: object) -> str | None:
    """The text of a torch.device or of a plain text, None for anything else."""
    if isinstance(value, Named) and value.kind == "torch.device":
        return value.text[:60]
    return value[:60] if isinstance(value, str) else None


def plausible(shape: tuple[int, ...]) -> bool:
    """Whether a tensor of these sizes could be counted by torch at all."""
    return math.prod(shape) < _MOST_NUMEL


def is_empty(value: object) -> bool:
    """Whether an optional argument (hooks, state) says nothing."""
    if type(value) is Mapping:
        return not value.pairs and not value.attributes
    return value is None or value == ()


def said(values: tuple[object, ...]) -> list[object]:
    """The optional arguments that say something."""
    return [item for item in values if not is_empty(item)]


def why_no_sizes(what: str, value: object) -> str:
    """In words, what keeps a value from being sizes or strides."""
    items = value.items if isinstance(value, Group) else value
    if not isinstance(items, tuple | list):
        return f"its {what} is {text_of(value, 40)}, no list of numbers"
    if len(items) > _MOST_DIMENSIONS:
        return f"its {what} has {len(items):,} dimensions, torch allows {_MOST_DIMENSIONS}"
    if any(type(i) is int and i < 0 for i in items):
        return f"its {what} {text_of(tuple(items), 60)} has a negative number"
    return f"its {what} {text_of(tuple(items), 60)} has something that is no usable number"


def strided(
    storage: object,
    offset: object,
    size: object,
    stride: object,
    *,
    dtype: str | None = None,
    requires_grad: object = None,
    extra: tuple[object, ...] = (),
) -> TensorStub | NotUnderstood:
    """A dense tensor over a storage, or the reason why these arguments make none."""
    shape, strides = sizes_of(size), sizes_of(stride)
    if not isinstance(storage, StorageRef):
        return NotUnderstood(f"its storage is {text_of(storage, 40)}, no storage")
    if type(offset) is not int or not 0 <= offset < _MOST_NUMEL:
        return NotUnderstood(f"its offset is {text_of(offset, 40)}")
    if shape is None:
        return NotUnderstood(why_no_sizes("size", size))
    if strides is None:
        return NotUnderstood(why_no_sizes("stride", stride))
    if len(shape) != len(strides):
        return NotUnderstood(f"it has {len(shape)} sizes and {len(strides)} strides")
    if not plausible(shape):
        return NotUnderstood(f"its size {text_of(shape, 60)} is more than any memory")
    name = dtype or storage.dtype
    if name is None:
        return NotUnderstood("neither it nor its storage says the type of its elements")
    if storage.view is not None:
        offset += storage.view[0]
    return TensorStub(
        storage=storage,
        dtype=name,
        shape=shape,
        stride=strides,
        offset=offset,
        requires_grad=requires_grad if type(requires_grad) is bool else None,
        device=storage.location or None,
        extra=said(extra),
    )


def with_metadata(made: TensorStub | NotUnderstood, metadata: object) -> TensorStub | NotUnderstood:
    """torch's tensor metadata: lazily conjugated and negated views keep the numbers of what they are views of.

    Source: torch/_utils.py, set_tensor_metadata; torch/csrc/utils/pybind.h knows "conj" and "neg".
    """
    if not isinstance(made, TensorStub) or is_empty(metadata):
        return made
    flags = [key for key, value in metadata.pairs if value is True] if isinstance(metadata, Mapping) else []
    known = [key for key in flags if key in ("conj", "neg")]
    if not isinstance(metadata, Mapping) or len(known) != len(metadata.pairs):
        made.extra.append(Labelled("metadata", metadata))
    if known:
        made.recipe = Recipe(conjugated="conj" in known, negated="neg" in known)
        made.note = " and ".join({"conj": "conjugated", "neg": "negated"}[str(key)] for key in known) + " view"
    return made


def no_data(
    dtype: object, size: object, stride: object, note: str, *, kind: str = "torch.Tensor", device: str | None = "meta"
) -> TensorStub | NotUnderstood:
    """A tensor of which the file has only the shape."""
    name, shape, strides = dtype_of(dtype), sizes_of(size), sizes_of(stride)
    if name is None:
        return NotUnderstood(f"its type of elements is {text_of(dtype, 40)}")
    if shape is None:
        return NotUnderstood(why_no_sizes("size", size))
    if not plausible(shape):
        return NotUnderstood(f"its size {text_of(shape, 60)} is more than any memory")
    if strides is not None and len(strides) != len(shape):
        return NotUnderstood(f"it has {len(shape)} sizes and {len(strides)} strides")
    return TensorStub(storage=None, dtype=name, shape=shape, stride=strides, kind=kind, device=device, note=note)
