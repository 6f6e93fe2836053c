"""Fixed transforms of sound that a file keeps as weights: Fourier bases, their windows, banks of mel filters.

A window of n samples has n / 2 + 1 bins. Filters of that number over one channel, or twice as many for the real and
imaginary parts, are a basis by their sizes; a name alone, or a row called window, is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Topic

_CALLED = re.compile(r"stft|fft|fourier|basis|spectr|dft", re.I)
_INVERSE = re.compile(r"(?:^|[._])i_?stft|inverse|istft|(?:^|[._])i(?:d|f)ft", re.I)
_MEL = re.compile(r"mel|filter_?bank|(?:^|[._])fb(?:ank)?$", re.I)
_LEAST_WINDOW, _LEAST_BANDS = 32, 8
_MOST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Basis:
    """bins of a window; both: whether real and imaginary parts are in one."""

    bins: int
    window: int
    both: bool


def with_bases(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Convolutions and loose tensors that are a Fourier basis by their sizes are none that the network learns from."""
    return tuple(_made(layer) for layer in layers)


def _made(layer: Layer) -> Layer:
    basis = _basis(layer)
    if basis is None:
        return layer
    bins = f"{basis.bins:,} bins over windows of {basis.window:,}"
    inverse = _INVERSE.search(layer.path) is not None
    parts = ", real and imaginary parts in one" if basis.both else ""
    return replace(
        layer,
        kind=LayerKind.FOURIER,
        inputs=basis.bins * (1 + basis.both) if inverse else 1,
        outputs=1 if inverse else basis.bins * (1 + basis.both),
        kernel=(basis.window,),
        more=f"{'inverse, ' if inverse else ''}{bins}{parts}",
        biased=None,
    )


def _basis(layer: Layer) -> _Basis | None:
    """By its sizes (bins, 1, window); where bins are twice as many, or the window is shorter than the transform, its
    name must say so too."""
    if layer.kind in CONVOLUTIONS and len(layer.kernel) == 1 and not layer.biased:
        sizes = [layer.outputs or 0, layer.inputs or 0, layer.kernel[0]]
        sizes = [sizes[1], sizes[0], sizes[2]] if sizes[0] == 1 else sizes
    elif layer.kind is LayerKind.TENSOR:
        sizes = shape_of(layer)
    else:
        return None
    if len(sizes) != 3 or sizes[1] != 1 or sizes[2] < _LEAST_WINDOW or sizes[0] < _LEAST_WINDOW // 2:
        return None
    filters, _, window = sizes
    if filters == window // 2 + 1 and window % 2 == 0:
        return _Basis(bins=filters, window=window, both=False)
    half, odd = divmod(filters, 2)
    size = 2 * (half - 1)
    called = _CALLED.search(layer.path) is not None
    power = size > 0 and size & (size - 1) == 0
    if not odd and called and (size == window or (power and window < size < 2 * window)):
        return _Basis(bins=half, window=window, both=True)
    return None


def shape_of(layer: Layer) -> list[int]:
    """The sizes of a tensor of its own, [] for a scalar and other layers."""
    sizes = layer.more.split("x")
    return [int(size) for size in sizes] if layer.kind is LayerKind.TENSOR and all(map(str.isdecimal, sizes)) else []


def transforms(layers: Sequence[Layer]) -> Iterator[Claim]:
    """Bases in one claim for each direction; mel filters in another. Their bins agree with a basis or are one more than
    a power of two."""
    bases = [layer for layer in layers if layer.kind is LayerKind.FOURIER]
    for group in ([x for x in bases if x.inputs == 1], [x for x in bases if x.inputs != 1]):
        if not group:
            continue
        first = group[0]
        names = " and ".join(layer.path for layer in group[:_MOST])
        whole = "a Fourier basis" if len(group) == 1 else "Fourier bases (real and imaginary parts, by their number)"
        forwards = first.inputs == 1
        does = "takes one channel of sound" if forwards else "goes back to one channel of sound"
        does = does if len(group) == 1 else does.replace("takes", "take").replace("goes", "go")
        yield Claim(
            topic=Topic.TAKES if forwards else Topic.OWN,
            says=f"{names} {does}: {whole} of {first.more.removeprefix('inverse, ')} (an STFT).",
            evidence=f"{first.evidence}: a transform of n samples has n / 2 + 1 bins, {_sizes(first)}",
            value=1,
            path=first.path,
        )
    bins = {_bins(layer) for layer in bases}
    for layer in layers:
        sizes = shape_of(layer)
        if len(sizes) != 2 or not _MEL.search(layer.path) or min(sizes) < _LEAST_BANDS:
            continue
        most, least = max(sizes), min(sizes)
        if most in bins or (most - 1) & (most - 2) == 0:
            yield Claim(
                topic=Topic.OWN,
                says=f"{layer.path} is a bank of {least:,} filters over {most:,} bins of a spectrum, by its name and "
                "sizes (a mel filter bank).",
                evidence=layer.evidence,
                value=least,
                path=layer.path,
            )


def mel_bands(layers: Sequence[Layer]) -> tuple[str, int] | None:
    """(path, filters) of the only bank of mel filters."""
    found = [one for one in layers if len(shape_of(one)) == 2 and _MEL.search(one.path)]
    return (found[0].path, min(shape_of(found[0]))) if len(found) == 1 else None


def _sizes(layer: Layer) -> str:
    bins = _bins(layer)
    return f"{'2 x ' if bins not in (layer.inputs, layer.outputs) else ''}{bins:,} of {2 * (bins - 1):,}"


def _bins(layer: Layer) -> int:
    filters = max(layer.inputs or 0, layer.outputs or 0)
    return filters // 2 if filters % 2 == 0 and filters > layer.kernel[0] // 2 + 1 else filters


def is_of_sound(layers: Sequence[Layer]) -> bool:
    """Whether a basis or a bank of mel filters is in the file, so that one channel is no grey picture's."""
    return any(layer.kind is LayerKind.FOURIER for layer in layers) or any(
        len(shape_of(layer)) == 2 and _MEL.search(layer.path) for layer in layers
    )
