"""Is a tensor of the model still what its module's initialiser makes? With the evidence, or "" where nothing says so.

The class of the module is known here, so its own `reset_parameters` is asked first: the constant of a norm, the bound
of a linear layer or convolution, the hidden size of a recurrent one. Proof is the generator's last bits
(`health/generator.py`); where there is none (drawn on a GPU, rounded to 16 bits) a sharp edge at the bound is a sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from inspector.health.generator import (
    in_normal_pairs,
    in_redrawn_pairs,
    of_truncated_uniform,
    on_normal_radii,
    on_uniform_lattice,
)
from inspector.health.initialisers import Family, initialisers_of
from inspector.loaded.equal import is_constant
from inspector.loaded.places import Place

_READ = 1 << 16  # elements; a step of an optimizer shows in any of them
_FEWEST = 64  # elements by which an edge is told
# sqrt(n) times the Kolmogorov-Smirnov distance that a uniform sample passes once in 100.
_KS = 1.63
_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)


@dataclass(frozen=True, slots=True)
class Fresh:
    """says: the evidence. proved: by last bits or as a constant; False by the shape of the distribution."""

    says: str
    proved: bool


def fresh_values(place: Place, values: Tensor) -> Fresh | None:
    """values: the place's own, plain (`equal.plain`). None where nothing says that they are an initialiser's."""
    if not values.numel():
        return None
    constant = _constant(place, values)
    if constant is not None or not values.is_floating_point():
        return constant
    bounds: dict[float, str] = {}
    for bound, who in _bounds(place):
        bounds.setdefault(bound, who)
    numbers = values.reshape(-1)[:_READ].float().numpy()
    exact = [numbers] if values.dtype == torch.float32 else []
    for bound, who in bounds.items():
        if exact and on_uniform_lattice(exact, bound):
            return Fresh(f"bit for bit numbers of uniform_(±{bound:.4g}), {who}", proved=True)
    if exact and values.dim() > 1:
        known = _drawn(place, numbers)
        if known is not None:
            return known
    for bound, who in bounds.items():
        if _uniform_shaped(values, bound):
            return Fresh(f"evenly spread up to ±{bound:.4g}, {who}", proved=False)
    return None


def within_bound(place: Place, values: Tensor) -> bool:
    """Whether a vector beside a fresh weight could be as fresh: inside its initialiser's bound."""
    return any(float(values.abs().max()) <= bound * (1 + 1e-2) for bound, _ in _bounds(place))


def _constant(place: Place, values: Tensor) -> Fresh | None:
    first = values.reshape(-1)[0]
    if values.numel() > 1 and not is_constant(values):
        return None
    number = float(first) if not values.is_complex() else math.nan
    one = place.leaf in ("weight", "running_var") and (isinstance(place.module, _NORMS) or values.dim() <= 1)
    if number == 0 or (number == 1 and one):
        count = "0" if values.dim() == 0 else f"all {number:g}"
        return Fresh(f"{count}, as {type(place.module).__name__}.{place.leaf} begins or is reset to", proved=True)
    return None


def _bounds(place: Place) -> Iterator[tuple[float, str]]:
    """(bound, of whom) of the uniform distributions that `reset_parameters` of torch's own layers draws from."""
    module, name = place.module, type(place.module).__name__
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        yield 1 / math.sqrt(module.hidden_size), f"nn.{name}.reset_parameters"
        return
    weight = getattr(module, "weight", None)
    if isinstance(module, nn.Linear | nn.modules.conv._ConvNd | nn.Bilinear) and isinstance(weight, Tensor):
        fan_in = weight.shape[1] * math.prod(weight.shape[2:])
        if isinstance(module, nn.Bilinear):
            fan_in = weight.shape[1]
        if fan_in:
            yield 1 / math.sqrt(fan_in), f"nn.{name}.reset_parameters"
    if place.tensor.dim() > 1:
        for one in initialisers_of(place.name, place.shape):
            if one.family is Family.UNIFORM:
                yield one.scale, one.says


def _drawn(place: Place, numbers: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Fresh | None:
    """Normal numbers of torch's generator, with any deviation, or truncated ones with a usual one."""
    if in_normal_pairs([numbers]):
        who = f", nn.{type(place.module).__name__}.reset_parameters" if isinstance(place.module, nn.Embedding) else ""
        normal = [one.scale for one in initialisers_of(place.name, place.shape) if one.family is Family.NORMAL]
        known = any(on_normal_radii([numbers], std) for std in normal if abs(numbers.std() / std - 1) < 0.2)
        but = "" if known else ", but for a common factor, as weight decay is"
        return Fresh(f"bit for bit numbers of normal_(0, {numbers.std():.4g}){who}{but}", proved=True)
    for one in initialisers_of(place.name, place.shape):
        if one.family is Family.TRUNCATED:
            for cut in (2.0, 2 / one.scale):
                if abs(numbers.std() / one.scale - 1) < 0.2 and (
                    of_truncated_uniform([numbers], one.scale, cut) or in_redrawn_pairs([numbers], cut)
                ):
                    return Fresh(f"bit for bit numbers of trunc_normal_(std={one.scale:.4g})", proved=True)
    return None


def _uniform_shaped(values: Tensor, bound: float) -> bool:
    """Ends at the bound as sharply as so many uniform numbers do, and is even in between (Kolmogorov-Smirnov)."""
    count = values.numel()
    if count < _FEWEST:
        return False
    slack = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-8}.get(values.dtype, 1e-6)
    largest = float(values.abs().max())
    if not bound * (1 - 10 / count - slack) <= largest <= bound * (1 + slack):
        return False
    ordered = np.sort(values.reshape(-1)[:_READ].double().numpy()) / bound
    n = len(ordered)
    share = (ordered + 1) / 2
    apart = max(float(np.max(share - np.arange(n) / n)), float(np.max(np.arange(1, n + 1) / n - share)))
    return apart * math.sqrt(n) < _KS
