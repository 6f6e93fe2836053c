"""Multiply-accumulates of one operator call, and which operators are arithmetic that nobody has a formula for.

Convolutions, matrix products and attention kernels use the formulas of `torch.utils.flop_counter`, which count a
multiply-add as two and are halved here. Products that it does not know (matrix by vector, bilinear) are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

aten = torch.ops.aten


def macs_of(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> int | None:
    """MACs of one call; None when there is no formula for this operator.

    operator: the OpOverload that was called. args, kwargs, output: tensors on any device; only shapes are read.
    """
    packet = operator._overloadpacket
    if operator.namespace == "quantized":
        return _quantised(short_name(operator), args, output)
    own = _OWN.get(packet)
    if own is not None:
        return int(own(*args))
    formula = flop_registry.get(packet)
    if formula is None:
        return None
    return int(formula(*args, **kwargs, out_val=output)) // 2


def has_formula(operator: Any) -> bool:
    """Whether `macs_of` knows the operator."""
    return (
        operator.namespace == "quantized"
        or operator._overloadpacket in _OWN
        or operator._overloadpacket in flop_registry
    )


def is_view(operator: Any) -> bool:
    """Whether the call gives the same memory in another form."""
    return bool(operator.is_view) or short_name(operator) in _VIEWS


def is_movement(operator: Any) -> bool:
    """Whether the call only makes, copies or looks at memory, so that it is no arithmetic at all."""
    return is_view(operator) or short_name(operator) in _MOVEMENT


def is_uncounted(operator: Any) -> bool:
    """Whether the call does arithmetic of more than a few operations per element and has no formula here.

    So it is for every operator outside torch's own (custom kernels), and for transforms, samplers, decompositions and
    fused layers of torch.
    """
    if operator.namespace not in ("aten", "prims", "prim"):
        return True
    name = short_name(operator)
    return name.startswith(_UNCOUNTED) and name not in _NORMS


def name_of(operator: Any) -> str:
    """As it is listed: "aten::grid_sampler_2d"."""
    return f"{operator.namespace}::{short_name(operator)}"


def short_name(operator: Any) -> str:
    return str(operator._overloadpacket.__name__)


def _quantised(name: str, args: Sequence[Any], output: Any) -> int | None:
    """Linear and convolution in integers, whose weights are packed. None for others."""
    if name.startswith("linear"):
        return int(output.numel() * args[0].shape[-1])
    if name.startswith("conv") and "transpose" not in name and hasattr(args[1], "unpack"):
        weight = args[1].unpack()[0]
        return int(output.numel() * math.prod(weight.shape[1:]))
    return None


def _recurrent_layer(inputs: torch.Tensor, ahead: torch.Tensor, again: torch.Tensor, *_: Any) -> int:
    """One layer, one direction, of an LSTM on the CPU: both matrices at each step of each of the batch."""
    steps = inputs.numel() // inputs.shape[-1]
    return int(steps * (ahead.numel() + again.numel()))


def _matrix_by_vector(matrix: torch.Tensor, *_: Any) -> int:
    return matrix.numel()


def _add_matrix_by_vector(_: Any, matrix: torch.Tensor, *__: Any) -> int:
    return matrix.numel()


def _outer(_: Any, left: torch.Tensor, right: torch.Tensor, *__: Any) -> int:
    return left.numel() * right.numel()


def _dot(left: torch.Tensor, *_: Any) -> int:
    return left.numel()


def _add_batched(_: Any, left: torch.Tensor, right: torch.Tensor, *__: Any) -> int:
    batch, rows, inner = left.shape
    return int(batch * rows * inner * right.shape[-1])


def _linear(inputs: torch.Tensor, weight: torch.Tensor, *_: Any) -> int:
    return inputs.numel() * (int(weight.shape[0]) if weight.dim() == 2 else 1)


def _integer_product(left: torch.Tensor, right: torch.Tensor, *_: Any) -> int:
    return left.numel() * int(right.shape[-1])


def _trilinear(
    first: torch.Tensor,
    second: torch.Tensor,
    third: torch.Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    *_: Any,
) -> int:
    """The product of three broadcast tensors, summed over some axes: the first two first, then the third.

    nn.Bilinear(m, n, o) on a batch of b comes here with (b, 1, m, 1), (o, m, n), (b, 1, 1, n): b·o·m·n for x·W and
    b·o·n for its product with y.
    """
    shapes: list[list[int]] = []
    for tensor, places in ((first, expand1), (second, expand2), (third, expand3)):
        shape = list(tensor.shape)
        for place in sorted(places):
            shape.insert(place, 1)
        shapes.append(shape)
    full: list[int] = [max(sizes) for sizes in zip(*shapes, strict=True)]
    # The axis that the first and second share is summed away before the third comes in.
    shared: list[int] = [n for n, a, b, c in zip(full, *shapes, strict=True) if a > 1 and b > 1 and c == 1]
    whole = math.prod(full)
    return whole + whole // math.prod(shared)


_OWN: dict[Any, Callable[..., int]] = {
    aten.mv: _matrix_by_vector,
    aten.addmv: _add_matrix_by_vector,
    aten.dot: _dot,
    aten.vdot: _dot,
    aten.addr: _outer,
    aten.addbmm: _add_batched,
    aten.linear: _linear,
    aten._int_mm: _integer_product,
    aten._trilinear: _trilinear,
    aten.mkldnn_rnn_layer: _recurrent_layer,
}

# Beginnings of aten names. Interpolation, pooling and norms are not here: they are element-wise by convention.
_UNCOUNTED = (
    "_fft_",
    "fft_",
    "stft",
    "istft",
    "grid_sampler",
    "_cdist",
    "_pdist",
    "_euclidean_dist",
    "linalg_",
    "_linalg_",
    "cholesky",
    "lu_",
    "triangular_solve",
    "ormqr",
    "geqrf",
    "histc",
    "bincount",
    "_embedding_bag",
    "_ctc_loss",
    "mkldnn_",
    "_mkldnn",
    "_cudnn_rnn",
    "miopen_",
    "quantized_",
    "_native_multi_head_attention",
    "_transformer_encoder_layer",
    "_grouped_mm",
    "_scaled_grouped_mm",
    "_scaled_dot_product",
    "_sparse_mm",
    "_weight_int",
    "_thnn_fused",
)

# Among torch's linear algebra, but two operations per element, as the norms of layers are.
_NORMS = frozenset({"linalg_vector_norm"})

# They give a view, though torch does not declare them as views.
_VIEWS = frozenset({"_reshape_alias", "_unsafe_view", "unsafe_split", "unsafe_split_with_sizes"})

_MOVEMENT = frozenset(
    {
        "_to_copy",
        "arange",
        "as_strided",
        "as_strided_",
        "cat",
        "clone",
        "constant_pad_nd",
        "contiguous",
        "copy",
        "copy_",
        "detach",
        "embedding",
        "device",
        "empty",
        "empty_like",
        "empty_strided",
        "fill_",
        "flip",
        "full",
        "full_like",
        "gather",
        "index",
        "index_select",
        "lift_fresh",
        "linspace",
        "native_channel_shuffle",
        "new_empty",
        "new_zeros",
        "ones",
        "ones_like",
        "pixel_shuffle",
        "pixel_unshuffle",
        "repeat",
        "roll",
        "scalar_tensor",
        "set_",
        "split_with_sizes",
        "stack",
        "sym_size",
        "zero_",
        "zeros",
        "zeros_like",
    }
)
