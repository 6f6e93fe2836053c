"""Whether a gradient has reached a layer, by the vectors beside it.

A bias, and a norm's shift, begin at exactly zero in nearly every network, and any gradient moves a zero; a weight is
only moved by a step larger than half its last bit. Behind a scale that is near zero (LayerScale, 2103.17239; a norm
that begins at zero, 1706.02677; SkipInit, 2002.10444) steps are smaller than that for a long time, and the weights
stay what they were, bit for bit, though the training works.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

import numpy as np

from inspector.health.distributions import ROUNDING, stored_as
from inspector.health.generator import in_normal_pairs, on_uniform_lattice
from inspector.health.initialisers import default_bias_bound
from inspector.health.roles import LAYERS, Role
from inspector.health.subject import Examined, Subject
from inspector.weights.report import TensorStatistics

# Fewer biases tell nothing by their last bits.
_BIASES = 64
# Uniform numbers have a root mean square of 0.58 of their bound; that of few is never below the first part of it (once
# in 400,000 of 4), that of 16 and more never below the second.
_NOT_UNIFORM, _FEW, _MANY = (0.02, 0.25), 4, 16
# A vector that has moved by less tells of gradients that may be too small to move a float32 weight.
_BARELY = 1e-4
# What is behind a norm's scale below it has gradients as small.
_SMALL_SCALE = 1e-2


class Reached(StrEnum):
    """What lies beside a layer's weights. NOTHING: no vector, so that nothing can be told. AT_REST: every vector is as
    it began. BARELY: one has moved by next to nothing, or is a scale of next to nothing. TRAINED: they have moved."""

    NOTHING = "nothing"
    AT_REST = "at rest"
    BARELY = "barely"
    TRAINED = "trained"


def gradient_reached(subject: Subject, module: str) -> Reached:
    """By the biases of the module, the norm that follows it under the same parent, and the scales of its block."""
    if not subject.layer_scales and not _modules_with_vectors(subject) & {module, subject.following.get(module, "")}:
        return Reached.NOTHING
    found = [reached for one in _beside(subject, module) if (reached := _of(subject, one)) is not None]
    for worst in (Reached.BARELY, Reached.TRAINED, Reached.AT_REST):
        if worst in found:
            return worst
    return Reached.NOTHING


def begins_like_this(subject: Subject, bias: Examined, t: TensorStatistics) -> bool:
    """Whether a bias is within its layer's bound and, where it can be told, as torch's generator makes it."""
    return _of_bias(subject, bias, t) is Reached.AT_REST


def _modules_with_vectors(subject: Subject) -> frozenset[str]:
    """Thousands of layers have nothing beside them that could tell."""
    known: frozenset[str] | None = subject.own_memo.get("modules with vectors")
    if known is None:
        telling = (Role.BIAS, Role.NORM_SCALE, Role.NORM_SHIFT)
        known = frozenset(one.module for one in subject.tensors if one.role in telling)
        subject.own_memo["modules with vectors"] = known
    return known


def _beside(subject: Subject, module: str) -> Iterator[Examined]:
    yield from (one for one in subject.by_module.get(module, ()) if one.role is Role.BIAS)
    behind = subject.by_module.get(subject.following.get(module, ""), ())
    yield from (one for one in behind if one.role in (Role.NORM_SCALE, Role.NORM_SHIFT))
    block = _block_of(module)
    if block:
        yield from (one for one in subject.layer_scales if one.name.startswith(f"{block}."))


def _block_of(module: str) -> str:
    """ "blocks.3" of "blocks.3.mlp.fc1", "" where no number is in the name."""
    segments = module.split(".")
    last = max((i for i, segment in enumerate(segments) if segment.isdecimal()), default=-1)
    return ".".join(segments[: last + 1])


def _of(subject: Subject, one: Examined) -> Reached | None:
    t = one.statistics
    if t is None or not t.numel or t.finite != t.numel or not one.floating:
        return None
    if one.role is Role.BIAS:
        return _of_bias(subject, one, t)
    if one.role is Role.NORM_SHIFT:
        return _by_size(t.rms)
    if t.minimum == t.maximum:
        return Reached.AT_REST
    shift = next((other for other in subject.by_module[one.module] if other.role is Role.NORM_SHIFT), None)
    # Scales drawn at random around 1 (DCGAN) have a shift of nothing but zeros beside them.
    if shift is not None and shift.statistics is not None and shift.statistics.rms == 0:
        return Reached.AT_REST
    return Reached.BARELY if t.rms < _SMALL_SCALE else Reached.TRAINED


def _by_size(moved: float) -> Reached:
    return Reached.AT_REST if moved == 0 else Reached.BARELY if moved < _BARELY else Reached.TRAINED


def _of_bias(subject: Subject, bias: Examined, t: TensorStatistics) -> Reached:
    """By how far it has come from zeros, or from the random numbers that torch's layers begin with."""
    if t.minimum == t.maximum:
        return Reached.AT_REST
    weight = next((o for o in subject.by_module[bias.module] if o.role in LAYERS or o.role is Role.EMBEDDING), None)
    if weight is None or stored_as(t) not in ROUNDING:
        return Reached.AT_REST
    bounds = [*_bounds(bias, weight)]
    if max(abs(t.minimum), abs(t.maximum)) > max(bounds) * (1 + ROUNDING[stored_as(t)]):
        return Reached.TRAINED
    known = t.numel >= _BIASES and stored_as(t) == "float32"
    stretches = subject.stretches(bias) if known else ()
    # Vision transformers begin theirs with normal numbers of 1e-6.
    if stretches and (any(on_uniform_lattice(stretches, one) for one in bounds) or in_normal_pairs(stretches)):
        return Reached.AT_REST
    if t.rms < _NOT_UNIFORM[t.numel >= _MANY] * min(bounds) and t.numel >= _FEW:
        return _by_size(t.rms)
    # It began with uniform numbers: how far it has moved from them cannot be told.
    near = sum(int(np.count_nonzero(np.abs(run) < min(bounds) / 8)) for run in stretches)
    return Reached.BARELY if near >= _MANY else Reached.AT_REST


def _bounds(bias: Examined, weight: Examined) -> Iterator[float]:
    """Of the uniform numbers that it may have begun with."""
    yield default_bias_bound(weight.tensor.shape)
    if weight.role is Role.RECURRENT:
        # Gates of torch's recurrent layers; the bound goes by the hidden size.
        yield from (1 / math.sqrt(bias.tensor.numel / gates) for gates in (1, 3, 4))
