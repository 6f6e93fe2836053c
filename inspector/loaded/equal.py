"""Are two tensors the same numbers? By bits, by bits after the cast that loading makes, and by digest."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_PIECE = 1 << 22
_FIRST = 1024
# Types that lose digits; weights that went through one of them and back are still the file's.
_SHORT = (torch.bfloat16, torch.float16)


def plain(tensor: Tensor) -> Tensor:
    """On the CPU, dense, without a gradient. Raises NotImplementedError or RuntimeError for what has no numbers."""
    held = tensor.detach()
    if held.is_quantized:
        return held.cpu().int_repr()
    if held.layout != torch.strided:
        held = held.to_dense()
    return held.cpu().resolve_conj().resolve_neg()


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Both plain. A file's [1] is a model's [], as torch loads it."""
    if one.dtype != other.dtype or one.numel() != other.numel():
        return False
    if one.shape != other.shape:
        if one.numel() != 1:
            return False
        other = other.reshape(one.shape)
    if one.dtype.is_complex or one.dtype == torch.bool or one.element_size() not in _BITS:
        return torch.equal(torch.view_as_real(one), torch.view_as_real(other)) if one.dtype.is_complex else torch.equal(one, other)  # fmt: skip  # noqa: E501
    bits = _BITS[one.element_size()]
    return torch.equal(one.contiguous().view(bits), other.contiguous().view(bits))


def cast_between(model: Tensor, file: Tensor) -> str | None:
    """ "" for the same bits; the cast after which they are the same, in words; None where they are not.

    Both plain. Loading copies the file's numbers into the model's type; a model that was cast after loading, and cast
    back, is known too.
    """
    if same_bits(model, file):
        return ""
    if model.numel() != file.numel() or not model.numel() or (model.shape != file.shape and model.numel() != 1):
        return None
    if model.dtype != file.dtype:
        if file.dtype.is_complex and not model.dtype.is_complex:
            return None
        if _is_cast(model, file, (model.dtype,)):
            return f"{_name(file.dtype)} to {_name(model.dtype)}"
    if not (model.is_floating_point() and file.is_floating_point()):
        return None
    for short in _SHORT:
        # The model's own numbers tell at once whether they went through it: then nothing is lost by going again.
        by = (short, model.dtype)
        if short not in (model.dtype, file.dtype) and _is_cast(model, model, by) and _is_cast(model, file, by):
            back = "and back" if model.dtype == file.dtype else f"and on to {_name(model.dtype)}"
            return f"{_name(file.dtype)} to {_name(short)} {back}"
    return None


def _is_cast(model: Tensor, file: Tensor, by: tuple[torch.dtype, ...]) -> bool:
    """Whether the model's numbers are the file's after these casts; the first numbers are looked at first."""
    file = file.reshape(model.shape)
    for one, other in ((_head(model), _head(file)), (model, file)):
        for dtype in by:
            other = other.to(dtype)
        if not _same_numbers(one, other):
            return False
    return True


def _same_numbers(one: Tensor, other: Tensor) -> bool:
    """As bits, but any NaN is as good as any other: casts do not keep their further bits."""
    if same_bits(one, other):
        return True
    if not one.is_floating_point() or not bool(one.isnan().any()):
        return False
    return bool(torch.allclose(one.float(), other.float(), rtol=0, atol=0, equal_nan=True))


def _head(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1)[:_FIRST]


def is_constant(tensor: Tensor) -> bool:
    """Whether all elements are one number: such a tensor tells nothing of where it came from."""
    if tensor.numel() < 2:
        return True
    first = tensor.reshape(-1)[0]
    return bool((_head(tensor) == first).all()) and bool((tensor == first).all())


def digest_of(tensor: Tensor) -> bytes:
    """Of the elements in row-major order, with type and shape; plain. Pieces of 4 MiB are in memory."""
    made = hashlib.blake2b(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), digest_size=20)
    if tensor.element_size() not in _BITS or tensor.dtype.is_complex:
        made.update(torch.view_as_real(tensor).contiguous().numpy().tobytes())
        return made.digest()
    flat = tensor.contiguous().view(-1).view(_BITS[tensor.element_size()])
    for start in range(0, len(flat), _PIECE // tensor.element_size()):
        made.update(flat[start : start + _PIECE // tensor.element_size()].numpy().data)
    return made.digest()


def difference_of(model: Tensor, file: Tensor) -> float | None:
    """Relative L2 distance |m - f| / |f|, in float64 piece by piece; None for other shapes or types, or |f| = 0."""
    if model.shape != file.shape or not (model.is_floating_point() and file.is_floating_point()):
        return None
    apart = size = 0.0
    a, b = model.reshape(-1), file.reshape(-1)
    for start in range(0, len(a), _PIECE // 8):
        one, other = a[start : start + _PIECE // 8].double(), b[start : start + _PIECE // 8].double()
        apart += float((one - other).square().sum())
        size += float(other.square().sum())
    return (apart / size) ** 0.5 if size and apart == apart else None


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
