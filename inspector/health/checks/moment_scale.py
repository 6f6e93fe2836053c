"""An optimizer's averages that are too large for what they were made of, or for those of all other parameters.

Adam's m = (1 - b1) sum b1^i g_i and v = (1 - b2) sum b2^i g_i^2 are of the same gradients (Kingma and Ba 2014,
1412.6980, algorithm 1). By Cauchy and Schwarz, over the weights b1^i / b2^(i/2) and b2^(i/2) g_i,

    m^2 <= v (1 - b1)^2 / (1 - b2) * sum over i below t of (b1^2 / b2)^i

whatever the gradients were: |m| <= 7.27 sqrt(v) with the usual betas (their section 2.1 has 1 - b1 over the root of
1 - b2 for a single gradient, 3.16). No optimizer bounds SGD's momentum; it is held against the others' and the weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.distributions import stored_as
from inspector.health.phrases import listed
from inspector.health.subject import Subject
from inspector.health.training.numbers import plain_numbers
from inspector.health.training.optimizers import Entry, Optimizer
from inspector.units import counted
from inspector.weights.report import TensorStatistics

OUT_OF_SCALE = FindingKind(
    "moments-out-of-scale", Severity.WARNING, "An optimizer's averages are far too large", also=(Severity.NOTICE,)
)

# Those of which torch 2.15 computes both averages as above, in every step.
_ADAMS = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "SparseAdam"})
# Betas may have been others before (OneCycleLR moves the first between 0.85 and 0.95, which doubles the bound).
_SLACK = 10.0
# Smaller squares are no float32 any more, while their roots are.
_LEAST_SQUARE = 1e-30
# Rounding to 16 bits holds squares back.
_WIDE = ("float32", "float64")
# One average over the largest of all others, of so many; and the step that it makes over the weight's root mean square.
_BEYOND, _OTHERS, _STEP = 1e3, 4, 10.0
# |m| / sqrt(v) that noise alone is far above.
_STILL = 1e-4


def _find(subject: Subject) -> Iterator[Finding]:
    for optimizer in subject.training.optimizers:
        if optimizer.kind.name in _ADAMS:
            yield from _beyond_squares(subject, optimizer)
            yield from _large_squares(subject, optimizer)
        elif optimizer.kind.name == "SGD":
            yield from _large_momentum(subject, optimizer)


def bound_of(beta1: float, beta2: float, steps: float) -> float:
    """The most that |m| / sqrt(v) can be after so many steps; infinite where betas are none."""
    if not (0 <= beta1 < 1 and 0 <= beta2 < 1):
        return math.inf
    if beta2 == 0:  # v is the last gradient's square alone, and m remembers others.
        return math.inf if beta1 else 1.0
    ratio = beta1 * beta1 / beta2
    many = steps if math.isclose(ratio, 1) else -math.expm1(steps * math.log(ratio)) / (1 - ratio) if ratio else 1.0
    return (1 - beta1) * math.sqrt(many / (1 - beta2))


def _beyond_squares(subject: Subject, optimizer: Optimizer) -> Iterator[Finding]:
    found: list[tuple[float, float, str]] = []
    for key, entry in optimizer.entries.items():
        first, second = _moment(subject, entry, "exp_avg"), _moment(subject, entry, "exp_avg_sq")
        betas = _betas(optimizer, key)
        if first is None or second is None or len(betas) != 2 or second.mean < _LEAST_SQUARE:
            continue
        if stored_as(first) not in _WIDE or stored_as(second) not in _WIDE or second.minimum < 0:
            continue
        # Of each number, and so of their squares' sums and of the largest.
        largest = max(abs(first.minimum), abs(first.maximum)) / math.sqrt(second.maximum)
        ratio = max(largest, first.rms / math.sqrt(second.mean))
        # Without a count, any number of steps.
        bound = bound_of(*betas, max(1.0, optimizer.steps.get(key, 1e9)))
        if ratio > _SLACK * bound:
            found.append((ratio, bound, entry.label))
    if found:
        found.sort(reverse=True)
        ratio, bound, label = found[0]
        names = [each for _, _, each in found]
        yield OUT_OF_SCALE.found(
            f"{optimizer.called} holds averaged gradients of {counted(len(names), 'parameter')} that no gradients can "
            f"have made beside their squares: {ratio:.3g} times the root of these, where {bound:.3g} is the most: "
            f"{listed(names)}.",
            subjects=names,
            evidence=(("parameters", len(names)), ("ratio", ratio), ("bound", bound), ("slack", _SLACK)),
            remedy=f"The first step of {label} after resuming is as many times too long. One of the two was scaled, or "
            "is another run's: drop the optimizer's state and warm up again.",
        )


def _large_squares(subject: Subject, optimizer: Optimizer) -> Iterator[Finding]:
    """One whose squares are far above all others', though it hardly moves: only one in which nothing else is."""
    roots: dict[str, tuple[float, float]] = {}
    for key, entry in optimizer.entries.items():
        first, second = _moment(subject, entry, "exp_avg"), _moment(subject, entry, "exp_avg_sq")
        if first is not None and second is not None and second.mean > 0:
            roots[key] = math.sqrt(second.mean), first.rms / math.sqrt(second.mean)
    alone = _alone({key: root for key, (root, _) in roots.items()})
    if alone is None or not 0 < roots[alone[0]][1] < _STILL:
        return
    key, times = alone
    label, (root, ratio) = optimizer.entries[key].label, roots[key]
    yield OUT_OF_SCALE.found(
        f"{optimizer.called} holds averages of squares of {label} whose root is {root:.3g}, {times:.3g} times the "
        f"largest of {len(roots) - 1:,} other parameters, and {1 / ratio:.3g} times its averaged gradients.",
        severity=Severity.NOTICE,
        subjects=[label],
        evidence=(("root", root), ("times", times), ("ratio", ratio), ("threshold", _BEYOND)),
        remedy="Adam divides by it, so that the parameter stands still until it has decayed. One gradient that "
        "exploded in this layer alone leaves it so for some thousands of steps; otherwise it was scaled or damaged.",
    )


def _large_momentum(subject: Subject, optimizer: Optimizer) -> Iterator[Finding]:
    sizes: dict[str, float] = {}
    for key, entry in optimizer.entries.items():
        buffer = _moment(subject, entry, "momentum_buffer")
        if buffer is not None and buffer.rms > 0:
            sizes[key] = buffer.rms
    alone = _alone(sizes)
    if alone is None:
        return
    key, times = alone
    rate = max((group.lr or 0.0 for group in optimizer.groups if key in group.keys), default=0.0)
    if rate <= 0:  # At the end of a schedule; what it was is not known to all.
        rate = max((group.initial_lr or 0.0 for group in optimizer.groups if key in group.keys), default=0.0)
    step, weight = rate * sizes[key], _weight_rms(subject, optimizer, key)
    if step < _STEP * (weight if weight is not None else 1.0):
        return
    label = optimizer.entries[key].label
    held = f", beside weights of {weight:.3g}" if weight is not None else ""
    yield OUT_OF_SCALE.found(
        f"{optimizer.called} holds a momentum of {label} of {sizes[key]:.3g}, {times:.3g} times the largest of "
        f"{len(sizes) - 1:,} other parameters: a step of {step:.3g}{held}.",
        subjects=[label],
        evidence=(
            *(("rms", sizes[key]), ("times", times), ("step", step)),
            *(("threshold", _BEYOND), ("threshold_step", _STEP)),
        ),
        remedy="The first step after resuming throws the layer away. It was scaled, damaged, or that layer's gradient "
        "exploded: take an earlier checkpoint, or drop the optimizer's state and warm up again.",
    )


def _alone(sizes: dict[str, float]) -> tuple[str, float] | None:
    """(the largest, times the next), where it is that far beyond enough others; else None."""
    if len(sizes) <= _OTHERS:
        return None
    *_, last, first = sorted(sizes, key=lambda key: sizes[key])
    times = sizes[first] / sizes[last] if np.isfinite(sizes[first]) else 0.0
    return (first, times) if times > _BEYOND else None


def _weight_rms(subject: Subject, optimizer: Optimizer, key: str) -> float | None:
    path = optimizer.weights
    name = optimizer.names.get(key)
    state = next((one for one in subject.checkpoint.state_dicts if one.path == path), None)
    if name is None or state is None:
        return None
    found = next((one for one in state.tensors if one.name == name), None)
    t = subject.measured_by_path.get(found.path) if found is not None else None
    return t.rms if t is not None and t.rms > 0 else None


def _moment(subject: Subject, entry: Entry, name: str) -> TensorStatistics | None:
    """Its numbers, where all are finite."""
    tensor = entry.tensors.get(name)
    t = subject.measured_by_path.get(tensor.path) if tensor is not None else None
    return t if t is not None and t.numel and t.finite == t.numel else None


def _betas(optimizer: Optimizer, key: str) -> tuple[float, ...]:
    """Of the parameter's group; () where the file does not tell."""
    group = next((one for one in optimizer.groups if key in one.keys), None)
    return plain_numbers(group.settings.get("betas")) if group is not None else ()


CHECK = Check(kinds=(OUT_OF_SCALE,), find=_find)
