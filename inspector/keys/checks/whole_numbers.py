"""Quantised weights in a real type: whole numbers in every kernel, and a scale beside each that the target lacks.

`packed.py` knows them by their type of few bits, or by a partner's name that one library alone gives. Saved as real
numbers they load as the weights and are off by their scale; a layer's own scale, or a bound of its activations, is
called the same, so the numbers are looked at: no trained weight is whole but where it was rounded.
"""

from __future__ import annotations

from collections.abc import Iterable

from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.level_words import words_in
from inspector.checkpoint.types import TensorInfo
from inspector.errors import InspectorError
from inspector.keys.checks.entry import Context, refusing
from inspector.keys.checks.kernels import MOST_KERNELS, numbers_in
from inspector.keys.checks.numbers import at_hand
from inspector.keys.placing.roles import split_name
from inspector.units import counted

_SCALES = frozenset(
    {"scale", "scales", "scaling", "qscale", "scaler", "mul", "mult", "multiplier", "amax", "absmax", "step", "divisor"}
)
_LEAST_NUMEL = 16


def _scaled(context: Context) -> str:
    kernels = _beside_scales(context)
    if not kernels or not are_whole(context, kernels):
        return ""
    first = next(iter(kernels))
    return (
        f"{counted(len(kernels), 'kernel')} ({first} first) hold{'s' if len(kernels) == 1 else ''} whole numbers "
        f"alone, and {kernels[first]} beside it has no place in {context.target.label}: quantised weights, "
        "which are off by that factor without it. This is not a renaming; multiply each weight by its scale first."
    )


def _beside_scales(context: Context) -> dict[str, str]:
    """{kernel that is placed: the scale left over beside it}: fc1.scale, fc1.weight_scales, fc1.weight.amax."""
    scales = [tensor.name for tensor in context.unused if not _SCALES.isdisjoint(words_in(split_name(tensor.name)[1]))]
    if not scales:
        return {}
    modules: dict[str, list[str]] = {}
    for name in context.goes:
        if name in context.tensors and _is_kernel(context.tensors[name]):
            modules.setdefault(split_name(name)[0], []).append(name)
    found: dict[str, str] = {}
    for scale in scales:
        module = split_name(scale)[0]
        here = [module] if module in context.goes else modules.get(module, [])
        found |= {kernel: scale for kernel in here if kernel not in found}
    return found


def _is_kernel(tensor: TensorInfo) -> bool:
    kind = find_dtype(tensor.dtype)
    real = kind is not None and kind.floating and "complex" not in tensor.dtype
    return len(tensor.shape or ()) > 1 and tensor.numel >= _LEAST_NUMEL and real


def are_whole(context: Context, names: Iterable[str]) -> bool:
    """Whether these kernels hold whole numbers alone, and not only zeros and ones; False where that is not known."""
    kernels = [context.tensors[name] for name in names if _is_kernel(context.tensors[name])]
    kernels = sorted(kernels, key=lambda tensor: tensor.nbytes)[:MOST_KERNELS]
    if not kernels or not at_hand(context, tuple(one.name for one in kernels)):
        return False
    low = high = 0.0
    try:
        for _, held in numbers_in(context, kernels):
            if not bool((held == held.round()).all()):
                return False
            low, high = min(low, float(held.min())), max(high, float(held.max()))
    except InspectorError:
        return False
    # A mask, an identity and a layer that begins at zero hold whole numbers, too.
    return low < 0 or high > 1


REFUSALS = (refusing(_scaled),)
