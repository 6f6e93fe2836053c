"""A batch norm divides by sqrt(running_var + eps): what a negative, vanished or huge variance does to its channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.norms import BatchNorm, Values, batch_norms
from inspector.health.phrases import listed
from inspector.health.roles import Role
from inspector.health.subject import Subject
from inspector.units import counted
from inspector.weights.rows import row_largest

NEGATIVE = FindingKind("norm-variance-negative", Severity.ERROR, "A running variance is negative")
TINY = FindingKind(
    "norm-variance-tiny", Severity.WARNING, "A running variance is smaller than eps", also=(Severity.NOTICE,)
)
HUGE = FindingKind("norm-variance-huge", Severity.WARNING, "A running variance is huge", also=(Severity.NOTICE,))

# A channel of a norm: (the norm, which of its channels).
Hits = list[tuple[BatchNorm, NDArray[np.intp]]]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeVariance:
    """A norm's running variance of which so many channels are negative. name: the tensor's in the state dict."""

    name: str
    negative: int
    channels: int
    lowest: float


def _find(subject: Subject) -> Iterator[Finding]:
    norms = [norm for norm in batch_norms(subject) if np.all(np.isfinite(norm.var))]
    yield from _negative(norms)
    yield from _tiny(subject, norms)
    yield from _huge(subject, norms)


def _negative(norms: list[BatchNorm]) -> Iterator[Finding]:
    hits = [
        NegativeVariance(
            name=norm.name_of(Role.RUNNING_VAR),
            negative=int(np.count_nonzero(norm.var < 0)),
            channels=norm.channels,
            lowest=float(norm.var.min()),
        )
        for norm in norms
        if np.any(norm.var < 0)
    ]
    if hits:
        yield negative_variances(hits)


def negative_variances(hits: Sequence[NegativeVariance]) -> Finding:
    """What is wrong with at least one such norm."""
    names, lowest = tuple(one.name for one in hits), min(one.lowest for one in hits)
    negative, channels = sum(one.negative for one in hits), sum(one.channels for one in hits)
    return NEGATIVE.found(
        f"{negative:,} of {counted(channels, 'channel')} of {listed(names)} have a negative running variance, down to "
        f"{lowest:.4g}.",
        subjects=names,
        evidence=(("channels", negative), ("lowest", lowest), ("limit", 0.0)),
        remedy="No variance is negative: below -eps the channel answers NaN. Files written by averaging or "
        "extrapolating weights can hold such; run training batches through the network to measure them anew.",
    )


def _tiny(subject: Subject, norms: list[BatchNorm]) -> Iterator[Finding]:
    """By severity: a scale that is still at work amplifies noise up to scale / sqrt(eps); others matter little."""
    eps = subject.thresholds.norm_eps
    working: Hits = []
    resting: Hits = []
    for norm in norms:
        tiny = (norm.var >= 0) & (norm.var < eps)
        if not tiny.any() or norm.stats_default:
            continue
        scale = np.abs(norm.scale) if norm.scale is not None else np.ones(norm.channels)
        at_work = scale >= subject.thresholds.norm_scale_rests * max(float(scale.max()), 1e-300)
        silent = _silent_inputs(subject, norm)
        for hits, mask in ((working, tiny & at_work & ~silent), (resting, tiny & (~at_work | silent))):
            if mask.any():
                hits.append((norm, np.flatnonzero(mask)))
    if working:
        gain = max(float(np.max(_scale_of(n)[at] / np.sqrt(n.var[at] + eps))) for n, at in working)
        zero = sum(int(np.count_nonzero(norm.var[at] == 0)) for norm, at in working)
        yield TINY.found(
            f"{_where(working)} of {_names(working)} have a running variance below {eps:g}"
            + (f", {zero:,} of them exactly 0" if zero else "")
            + f", so that eps decides their gain, up to {gain:.4g}.",
            subjects=_subjects(working),
            evidence=(("channels", _channels(working)), ("zero", zero), ("limit", eps), ("largest gain", gain)),
            remedy="A cast to float16 makes zeros of what is below 6e-8: take the variances from before it. Otherwise "
            "what came in was constant while training. Anything else that comes in now is blown up by that "
            "gain. Harmless where the channel stays constant, and where the layer's own eps is larger.",
        )
    if resting:
        yield TINY.found(
            f"{_where(resting)} of {_names(resting)} have a running variance below {eps:g}, and a scale near zero, or "
            "filters of zeros or a depthwise convolution before them.",
            severity=Severity.NOTICE,
            subjects=_subjects(resting),
            evidence=(("channels", _channels(resting)), ("limit", eps)),
            remedy="Dead channels look like this: nothing varies in them and the norm lets nothing through. "
            "They can be pruned.",
        )


def _huge(subject: Subject, norms: list[BatchNorm]) -> Iterator[Finding]:
    limits = subject.thresholds
    beyond: Hits = []
    unlike: Hits = []
    for place, norm in enumerate(norms):
        if norm.stats_default:
            continue
        large = norm.var > limits.norm_var_huge
        if large.any() and place == 0 and large.mean() > 0.5:
            yield HUGE.found(
                f"{norm.name_of(Role.RUNNING_VAR)}, the first batch norm, has a median of {np.median(norm.var):.4g}.",
                severity=Severity.NOTICE,
                subjects=(norm.name_of(Role.RUNNING_VAR),),
                evidence=(("median", float(np.median(norm.var))), ("limit", limits.norm_var_huge)),
                remedy="Pictures of 0 to 255 that nobody normalised look like this: give it such pictures now, too.",
            )
            continue
        if large.any():
            beyond.append((norm, np.flatnonzero(large)))
            continue
        odd = _unlike_its_layer(norm.var, limits.norm_eps, limits.norm_var_ratio)
        if odd.any():
            unlike.append((norm, np.flatnonzero(odd)))
    if beyond:
        largest = max(float(norm.var.max()) for norm, _ in beyond)
        yield HUGE.found(
            f"{_where(beyond)} of {_names(beyond)} have a running variance up to {largest:.4g}.",
            subjects=_subjects(beyond),
            evidence=(("channels", _channels(beyond)), ("largest", largest), ("limit", limits.norm_var_huge)),
            remedy="The layer before it put out very large numbers while the statistics were taken: training was "
            "diverging, or inputs were not normalised. Harmless where that is the network's usual scale.",
        )
    if unlike:
        ratio = max(float(norm.var.max() / _middle(norm.var, limits.norm_eps)) for norm, _ in unlike)
        yield HUGE.found(
            f"{_where(unlike)} of {_names(unlike)} have a running variance up to {ratio:.4g} times the median of "
            "their layer.",
            subjects=_subjects(unlike),
            evidence=(("channels", _channels(unlike)), ("ratio", ratio), ("limit", limits.norm_var_ratio)),
            remedy="The norm all but mutes such a channel on ordinary inputs. A few batches with extreme values, or a "
            "damaged number, look like this; measure the statistics anew on training data.",
        )


def _unlike_its_layer(var: Values, eps: float, ratio: float) -> Mask:
    """(channels,) bool: far above the median, and apart from how the layer's own variances are spread."""
    living = var[var >= eps]
    if len(living) < 8:
        return np.zeros(len(var), bool)
    middle = float(np.median(living))
    logs = np.log(living)
    # 1.4826: what makes the median absolute deviation a normal distribution's standard deviation.
    spread = 1.4826 * float(np.median(np.abs(logs - np.median(logs))))
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.log(np.maximum(var, eps)) - np.log(middle) > 6 * max(spread, 0.1)
    found: Mask = (var > ratio * middle) & apart
    return found


def _middle(var: Values, eps: float) -> float:
    living = var[var >= eps]
    return float(np.median(living)) if len(living) else eps


def _silent_inputs(subject: Subject, norm: BatchNorm) -> Mask:
    """(channels,) bool: nothing need vary here, since the layer just before has filters of zeros or is depthwise."""
    before = None
    for one in subject.tensors:
        if one.module == norm.module:
            break
        if len(one.tensor.shape) >= 2 and one.floating:
            before = one
    if before is not None and before.role is Role.DEPTHWISE and before.tensor.shape[:2] == (norm.channels, 1):
        # A depthwise convolution hands a dead channel on, which any other would mix with living ones.
        return np.ones(norm.channels, np.bool_)
    rows = before.statistics.rows if before is not None and before.statistics is not None else None
    if rows is None or rows.count != norm.channels:
        return np.zeros(norm.channels, bool)
    found: Mask = row_largest(rows) == 0
    return found


def _scale_of(norm: BatchNorm) -> Values:
    return np.abs(norm.scale) if norm.scale is not None else np.ones(norm.channels)


def _channels(hits: Hits) -> int:
    return sum(len(at) for _, at in hits)


def _where(hits: Hits) -> str:
    return f"{_channels(hits):,} of {counted(sum(norm.channels for norm, _ in hits), 'channel')}"


def _names(hits: Hits) -> str:
    return listed(_subjects(hits))


def _subjects(hits: Hits) -> tuple[str, ...]:
    return tuple(norm.name_of(Role.RUNNING_VAR) for norm, _ in hits)


CHECK = Check(kinds=(NEGATIVE, TINY, HUGE), find=_find)
