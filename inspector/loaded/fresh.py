"""Is a tensor of the model still what its module's initialiser makes? With the evidence, or "" where nothing says so.

The class of the module is known here, so its own `reset_parameters` is asked first: the constant of a norm, the bound
of a linear layer or convolution, the hidden size of a recurrent one. Proof is the generator's last bits
(`health/generator.py`); where there is none (drawn on a GPU, rounded to 16 bits) a sharp edge at the bound is a sign.

All of a tensor is looked at: a batch moves a few rows of an embedding, wherever they lie. Of one with more than 67
million elements only stretches are, which proves nothing, and is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from inspector.health.generator import (
    Values,
    in_normal_pairs,
    in_redrawn_pairs,
    of_truncated_uniform,
    on_normal_radii,
    on_uniform_lattice,
)
from inspector.health.initialisers import Family, initialisers_of
from inspector.loaded.equal import is_constant
from inspector.loaded.places import Place

# Elements at a time: of most tensors that moved the first few tell it.
_FIRST, _PIECE = 1 << 16, 1 << 20
# Elements that are looked at: all of most tensors, of a larger one in stretches over all of it.
_WHOLE = 1 << 26
_BLOCK = 16  # of normal_, which the generator's tests leave out at the end of what they are given
_FEWEST = 64  # elements by which an edge is told
_CHANCE = 0.01  # of all pieces of a uniform sample, that one lies further from it than is allowed
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
    flat = values.reshape(-1)
    count = flat.numel()
    some = f", by {_WHOLE:,} of {count:,} elements" if count > _WHOLE else ""
    exact = _pieces(flat.numpy()) if values.dtype == torch.float32 else []
    largest = max(map(abs, map(float, torch.aminmax(flat))))
    for bound, who in bounds.items():
        # Only numbers near zero tell the lattice.
        if exact and largest <= bound * (1 + 1e-6) and on_uniform_lattice(exact, bound):
            return Fresh(f"bit for bit numbers of uniform_(±{bound:.4g}), {who}{some}", proved=not some)
    if exact and values.dim() > 1:
        known = _drawn(place, exact, _blocks(flat.numpy()), largest)
        if known:
            return Fresh(f"{known}{some}", proved=not some)
    for bound, who in bounds.items():
        if _uniform_shaped(values, bound):
            return Fresh(f"evenly spread up to ±{bound:.4g}, {who}{some}", proved=False)
    return None


def _starts(count: int, size: int) -> list[int]:
    """Where pieces begin: one behind the other, or evenly over a tensor that is not looked at as a whole."""
    if count <= _WHOLE:
        return list(range(0, count, size))
    last = (count - size - _BLOCK) // _BLOCK
    return [n * last // (_WHOLE // size - 1) * _BLOCK for n in range(_WHOLE // size)]


def _pieces(numbers: Values, more: int = 0) -> list[Values]:
    """Views, a small one first. more: elements that each has of the one behind it."""
    first = [numbers[: _FIRST + more]]
    if len(numbers) > _WHOLE:
        return first + [numbers[at : at + _PIECE + more] for at in _starts(len(numbers), _PIECE)]
    return first + [numbers[at : at + _PIECE + more] for at in range(_FIRST, len(numbers), _PIECE)]


def _blocks(numbers: Values) -> list[Values]:
    """The same for what normal_ makes, whose tests leave out the last block of each piece."""
    # Where the size is no multiple of 16 the last 16 numbers were drawn anew, as a block of their own.
    last = np.append(numbers[max(0, len(numbers) - _BLOCK) :], np.zeros(_BLOCK, np.float32))
    return [*_pieces(numbers, _BLOCK), last]


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


def _drawn(place: Place, pieces: list[Values], blocks: list[Values], largest: float) -> str:
    """Normal numbers of torch's generator, with any deviation, or truncated ones with a usual one; "" for others."""
    # Of the first piece: it only chooses which deviation is tried.
    std = float(pieces[0].std())
    if in_normal_pairs(blocks):
        who = f", nn.{type(place.module).__name__}.reset_parameters" if isinstance(place.module, nn.Embedding) else ""
        normal = [one.scale for one in initialisers_of(place.name, place.shape) if one.family is Family.NORMAL]
        known = any(on_normal_radii(blocks, one) for one in normal if abs(std / one - 1) < 0.2)
        but = "" if known else ", but for a common factor, as weight decay is"
        return f"bit for bit numbers of normal_(0, {std:.4g}){who}{but}"
    for one in initialisers_of(place.name, place.shape):
        if one.family is Family.TRUNCATED:
            for cut in (2.0, 2 / one.scale):
                # What was drawn again may be anything, within the cut.
                within = largest <= cut * one.scale * (1 + 1e-6) and abs(std / one.scale - 1) < 0.2
                if within and (of_truncated_uniform(pieces, one.scale, cut) or in_redrawn_pairs(blocks, cut)):
                    return f"bit for bit numbers of trunc_normal_(std={one.scale:.4g})"
    return ""


def _uniform_shaped(values: Tensor, bound: float) -> bool:
    """Ends at the bound as sharply as so many uniform numbers do, and is even in between, in each piece of it
    (Kolmogorov-Smirnov)."""
    count = values.numel()
    if count < _FEWEST:
        return False
    slack = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-8}.get(values.dtype, 1e-6)
    largest = float(values.abs().max())
    if not bound * (1 - 10 / count - slack) <= largest <= bound * (1 + slack):
        return False
    flat, starts = values.reshape(-1), _starts(count, _FIRST)
    # P(sqrt(n) D > x) = 2 exp(-2 x^2), the first term of Kolmogorov's series.
    furthest = math.sqrt(math.log(2 * len(starts) / _CHANCE) / 2)
    for at in starts:
        ordered = np.sort(flat[at : at + _FIRST].double().numpy()) / bound
        n = len(ordered)
        share = (ordered + 1) / 2
        apart = max(float(np.max(share - np.arange(n) / n)), float(np.max(np.arange(1, n + 1) / n - share)))
        if apart * math.sqrt(n) >= furthest:
            return False
    return True
