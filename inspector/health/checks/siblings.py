"""A layer whose scale is unlike that of its siblings in a repeated block, or of its role in the file.

Three measures. In a block that is repeated ("layers.0.fc", "layers.1.fc", ...) with one shape: a robust z-score of the
logarithm of the root mean square, over the median and the median absolute deviation (the first and the last differ by
nature and do not count). Of four such blocks no spread can be told: there a layer is held against the farthest of the
others, which must agree. Over the file: the root mean square times sqrt(fan-in), which initialisers keep near 1, over
its role's median, by the threshold's factor, or by so many spreads where the others lie close together (You et al.
2017, arXiv:1708.03888, who scale steps by it).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import LAYERS, Role
from inspector.health.subject import Examined, Subject
from inspector.weights.report import TensorStatistics

UNLIKE_SIBLINGS = FindingKind(
    "unlike-siblings", Severity.NOTICE, "A layer's scale is unlike its siblings'", also=(Severity.WARNING,)
)
UNLIKE_ROLE = FindingKind("unlike-role", Severity.NOTICE, "A layer's scale is unlike that of the file's others")

_REMEDIES = {
    UNLIKE_SIBLINGS: "Layers drift apart in training, and a norm behind a layer makes its scale free. A layer that was "
    "copied from elsewhere, scaled twice or damaged in the file is found so too: compare it with an earlier "
    "checkpoint.",
    UNLIKE_ROLE: "Heads and layers that begin near zero, and those before a norm, are free to differ. Otherwise the "
    "layer was scaled twice, or not trained like the others.",
}
_IN_BLOCKS = (*LAYERS, Role.NORM_SCALE)
_NUMBER = re.compile(r"\d+")
# A median absolute deviation of normal values is this part of their standard deviation.
_MAD = 0.6745
# Levels at which a name is taken for one of a series; file names do not nest deeper.
_MOST_NUMBERS = 4

# Where too few are there for a spread: of so many others at least, all within so much of each other, so many times
# beyond the nearest of them.
_FEW, _AGREE, _BEYOND = 3, 4.0, 10.0

Place = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unlike:
    name: str
    rms: float
    usual: float
    z: float
    siblings: int
    warn: bool = False

    @property
    def factor(self) -> float:
        return self.rms / self.usual


def _find(subject: Subject) -> Iterator[Finding]:
    found = _in_blocks(subject)
    for warn in (True, False):
        blocks = sorted((each for each in found.values() if each.warn is warn), key=lambda each: -abs(each.z))
        if blocks:
            worst, limits = blocks[0], subject.thresholds
            several = worst.siblings >= limits.siblings
            score = f" (robust z {worst.z:.1f})" if several else ""
            says = f"the {worst.usual:.3g} of its {worst.siblings:,} siblings{score}"
            measured = (("siblings_rms", worst.usual), ("z", worst.z) if several else ("factor", worst.factor))
            severity = Severity.WARNING if warn else Severity.NOTICE
            threshold = limits.sibling_factor if warn else limits.sibling_z if several else _BEYOND
            yield _finding(UNLIKE_SIBLINGS, severity, blocks, says, measured, threshold)
    rest = [each for each in _by_role(subject) if each.name not in found]
    rest.sort(key=lambda each: -abs(math.log(each.factor)))
    if rest:
        worst = rest[0]
        says = f"what the file's {worst.siblings:,} layers of its kind have for its width"
        measured = (("usual_rms", worst.usual), ("factor", worst.factor))
        yield _finding(UNLIKE_ROLE, Severity.NOTICE, rest, says, measured, subject.thresholds.sibling_factor)


def _in_blocks(subject: Subject) -> Mapping[str, _Unlike]:
    series: dict[Place, list[tuple[int, Examined, float]]] = defaultdict(list)
    for one, t in subject.measured(*_IN_BLOCKS):
        if not _is_scaled(t) or (one.role is not Role.NORM_SCALE and t.numel < subject.thresholds.few):
            continue
        for number in list(_NUMBER.finditer(one.module))[:_MOST_NUMBERS]:
            if len(number[0]) <= 4:
                name = f"{one.name[: number.start()]}#{one.name[number.end() :]}"
                series[name, t.shape].append((int(number[0]), one, t.rms))
    found: dict[str, _Unlike] = {}
    for members in series.values():
        several = len(members) >= subject.thresholds.siblings
        for unlike in _unlike(subject, members) if several else _beyond(subject, members):
            if unlike.name not in found or abs(found[unlike.name].z) < abs(unlike.z):
                found[unlike.name] = unlike
    return found


def _unlike(subject: Subject, members: Sequence[tuple[int, Examined, float]]) -> Iterator[_Unlike]:
    ordered = sorted(members, key=lambda each: each[0])
    logs = np.log([rms for _, _, rms in ordered])
    middle = logs[1:-1]
    centre = float(np.median(middle))
    spread = max(float(np.median(np.abs(middle - centre))) / _MAD, subject.thresholds.sibling_spread)
    scores = (logs - centre) / spread
    # The ends differ by nature: they are said only where their role's scale says so too.
    for (_, one, rms), z in list(zip(ordered, scores.tolist(), strict=True))[1:-1]:
        if abs(z) > subject.thresholds.sibling_z:
            yield _Unlike(
                name=one.name,
                rms=rms,
                usual=math.exp(centre),
                z=z,
                siblings=len(ordered),
                warn=_is_wrong(subject, one, rms, members),
            )


def _beyond(subject: Subject, members: Sequence[tuple[int, Examined, float]]) -> Iterator[_Unlike]:
    """The one of few that lies far beyond all others."""
    ordered = sorted(members, key=lambda each: each[0])
    for place, (_, one, rms) in enumerate(ordered):
        others = sorted(other for _, that, other in members if that is not one)
        if len(others) < _FEW or one.role not in LAYERS or others[-1] > _AGREE * others[0]:
            continue
        # The ends differ by nature.
        most = _BEYOND if 0 < place < len(ordered) - 1 else subject.thresholds.sibling_factor
        if rms > most * others[-1] or rms * most < others[0]:
            usual = float(np.median(others))
            yield _Unlike(
                name=one.name,
                rms=rms,
                usual=usual,
                z=math.log(rms / usual) / subject.thresholds.sibling_spread,
                siblings=len(ordered),
                warn=_is_wrong(subject, one, rms, members),
            )


def _is_wrong(subject: Subject, one: Examined, rms: float, members: Sequence[tuple[int, Examined, float]]) -> bool:
    """Whether a matrix is so far above every one of its siblings that no training takes it there. Far below them it may
    have begun at zero, or decayed under a norm."""
    others = [other for _, that, other in members if that is not one]
    agree = max(others) <= _AGREE * min(others)
    # What is larger than any weight is said to be that.
    far = subject.thresholds.sibling_factor * max(others) < rms < subject.thresholds.large
    return agree and one.role in LAYERS and far


def _by_role(subject: Subject) -> Iterator[_Unlike]:
    groups: dict[Role, list[tuple[Examined, TensorStatistics, float]]] = defaultdict(list)
    for one, t in subject.measured(*_IN_BLOCKS):
        if not _is_scaled(t):
            continue
        if one.role is Role.NORM_SCALE:
            groups[one.role].append((one, t, t.rms))
        elif t.numel >= subject.thresholds.few and len(t.shape) > 1:
            groups[one.role].append((one, t, t.rms * math.sqrt(max(1, t.numel // t.shape[0]))))
    for members in groups.values():
        if len(members) < subject.thresholds.siblings:
            continue
        logs = np.log([scale for _, _, scale in members])
        median = math.exp(float(np.median(logs)))
        limit = _limit(subject, logs)
        for place, (one, t, scale) in enumerate(members):
            # The file's first and last differ by nature.
            inner = 0 < place < len(members) - 1
            most = limit if inner else subject.thresholds.sibling_factor
            if not 1 / most <= scale / median <= most:
                usual = t.rms * median / scale
                yield _Unlike(name=one.name, rms=t.rms, usual=usual, z=0.0, siblings=len(members))


def _limit(subject: Subject, logs: NDArray[np.float64]) -> float:
    """The factor that is too far away: the threshold, or less where all the others are close together."""
    limits = subject.thresholds
    spread = float(np.median(np.abs(logs - np.median(logs)))) / _MAD
    return min(limits.sibling_factor, math.exp(limits.sibling_z * max(spread, limits.role_spread)))


def _is_scaled(t: TensorStatistics) -> bool:
    return t.finite == t.numel and 0 < t.rms < math.inf


def _finding(
    kind: FindingKind,
    severity: Severity,
    layers: Sequence[_Unlike],
    says: str,
    measured: tuple[tuple[str, float], ...],
    threshold: float,
) -> Finding:
    """says: what the worst is compared with."""
    worst, names = layers[0], [each.name for each in layers]
    return kind.found(
        f"{shown(worst.name)} has a root mean square of {worst.rms:.3g}, {_times(worst.factor)} {says}{also(names)}.",
        severity=severity,
        subjects=names,
        evidence=(("rms", worst.rms), *measured, ("tensors", len(layers)), ("threshold", threshold)),
        remedy=_REMEDIES[kind],
    )


def _times(factor: float) -> str:
    return f"{factor:.3g} times" if factor >= 1 else f"1/{1 / factor:.3g} of"


CHECK = Check(kinds=(UNLIKE_SIBLINGS, UNLIKE_ROLE), find=_find)
