"""A norm whose scale and shift stand in each other's place: a scale around 0 and a shift around 1.

Scales begin at 1 and shifts at 0 (Ioffe and Szegedy 2015, 1502.03167; Ba et al. 2016, 1607.06450), and training leaves
most of them near that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.weights.report import TensorStatistics

SWAPPED = FindingKind(
    "norm-scale-and-shift-swapped",
    Severity.WARNING,
    "Scale and shift of a norm are swapped",
    explains=("unlike-role", "unlike-siblings", "norm-scale-near-zero"),
)

# Mean of what is a scale, mean magnitude of what is a shift, and its part of the scale.
_SCALE, _SHIFT, _PART = 0.4, 0.3, 0.3
_LEAST = 8
# So many other norms, most of which are as they ought to be.
_OTHERS, _MOST = 2, 0.5


def _find(subject: Subject) -> Iterator[Finding]:
    pairs = [
        (scale, shift)
        for _, tensors in subject.modules_with(Role.NORM_SHIFT)
        if (pair := _pair(tensors))
        for scale, shift in [pair]
    ]
    swapped = [(scale, shift) for scale, shift in pairs if _is_norm(_numbers(shift), _numbers(scale))]
    right = sum(_is_norm(_numbers(scale), _numbers(shift)) for scale, shift in pairs)
    if not swapped or right < max(_OTHERS, _MOST * len(pairs)):
        return
    scale, shift = swapped[0]
    names = [one.name for one, _ in swapped]
    yield SWAPPED.found(
        f"{shown(scale.name)} has a mean of {_numbers(scale).mean:.3g} and {shown(shift.name)} one of "
        f"{_numbers(shift).mean:.3g}; in {right:,} other norms it is the other way round{also(names)}.",
        subjects=[one.name for pair in swapped for one in pair],
        evidence=(("norms", len(swapped)), ("others", right), ("scale", _numbers(scale).mean)),
        remedy="A conversion put each in the other's place (gamma and beta): swap them back. A shift that grew to 1 "
        "over a scale that decayed to nothing would look the same.",
    )


def _pair(tensors: Sequence[Examined]) -> tuple[Examined, Examined] | None:
    parts = {one.role: one for one in tensors if one.statistics is not None and one.floating}
    scale, shift = parts.get(Role.NORM_SCALE), parts.get(Role.NORM_SHIFT)
    if scale is None or shift is None or scale.tensor.shape != shift.tensor.shape or scale.tensor.numel < _LEAST:
        return None
    return scale, shift


def _numbers(one: Examined) -> TensorStatistics:
    assert one.statistics is not None
    return one.statistics


def _is_norm(scale: TensorStatistics, shift: TensorStatistics) -> bool:
    """Whether they can be a scale and its shift, and not the other way round."""
    if scale.finite < scale.numel or shift.finite < shift.numel or scale.mean < _SCALE:
        return False
    return scale.minimum > 0 and shift.rms < min(_SHIFT, _PART * scale.mean)


CHECK = Check(kinds=(SWAPPED,), find=_find)
