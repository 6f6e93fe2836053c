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
from inspector.health.columns import Columns, Flags
from inspector.health.phrases import also, shown
from inspector.health.roles import LAYERS, Role
from inspector.health.subject import Examined, Subject

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
_NUMBER = re.compile(r"(\d+)")
# A median absolute deviation of normal values is this part of their standard deviation.
_MAD = 0.6745
# Levels at which a name is taken for one of a series; file names do not nest deeper.
_MOST_NUMBERS = 4

# Where too few are there for a spread: of so many others at least, all within so much of each other, so many times
# beyond the nearest of them.
_FEW, _AGREE, _BEYOND = 3, 4.0, 10.0

# The number that tells it from the others, and which of `Subject.columns` it is.
_Member = tuple[int, int]


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
    found: dict[str, _Unlike] = {}
    for members in _series(subject):
        several = len(members) >= subject.thresholds.siblings
        for unlike in _unlike(subject, members) if several else _beyond(subject, members):
            if unlike.name not in found or abs(found[unlike.name].z) < abs(unlike.z):
                found[unlike.name] = unlike
    return found


def _series(subject: Subject) -> Iterator[list[_Member]]:
    """Those of one shape whose names differ in one number, in the order of their first ones. Fewer than four say
    nothing."""
    columns = subject.columns
    scale = subject.among(Role.NORM_SCALE)
    fit = subject.among(*_IN_BLOCKS) & _is_scaled(columns) & (scale | (columns.numel >= subject.thresholds.few))
    # By what stands between the numbers: (place, numbers) of each.
    kinds: dict[tuple[object, ...], list[tuple[int, list[str]]]] = defaultdict(list)
    for place, (one, t) in zip(np.flatnonzero(fit).tolist(), subject.those(fit), strict=True):
        parts = _NUMBER.split(one.module)
        if len(parts) > 1:
            kinds[(*parts[::2], one.last, t.shape)].append((place, parts[1::2]))
    series: dict[tuple[int, int], list[_Member]] = {}
    for numbered in kinds.values():
        for level in range(min(len(numbered[0][1]), _MOST_NUMBERS)):
            alike: dict[tuple[str, ...], list[tuple[int, str]]] = defaultdict(list)
            for place, numbers in numbered:
                if len(numbers[level]) <= 4:
                    alike[(*numbers[:level], *numbers[level + 1 :])].append((place, numbers[level]))
            for group in alike.values():
                if len(group) > _FEW:
                    series[group[0][0], level] = [(int(number), place) for place, number in group]
    for _, members in sorted(series.items(), key=lambda each: each[0]):
        yield members


def _unlike(subject: Subject, members: Sequence[_Member]) -> Iterator[_Unlike]:
    places = [place for _, place in sorted(members)]
    scales = subject.columns.rms[places]
    logs = np.log(scales)
    middle = logs[1:-1]
    centre = float(np.median(middle))
    spread = max(float(np.median(np.abs(middle - centre))) / _MAD, subject.thresholds.sibling_spread)
    scores = (logs - centre) / spread
    # The ends differ by nature: they are said only where their role's scale says so too.
    for at in (np.flatnonzero(np.abs(scores[1:-1]) > subject.thresholds.sibling_z) + 1).tolist():
        one, t = subject.of_column(places[at])
        yield _Unlike(
            name=one.name,
            rms=t.rms,
            usual=math.exp(centre),
            z=float(scores[at]),
            siblings=len(places),
            warn=_is_wrong(subject, one, t.rms, np.delete(scales, at)),
        )


def _beyond(subject: Subject, members: Sequence[_Member]) -> Iterator[_Unlike]:
    """The one of few that lies far beyond all others."""
    places = [place for _, place in sorted(members)]
    scales = subject.columns.rms[places]
    for at, place in enumerate(places):
        one, t = subject.of_column(place)
        others = np.sort(np.delete(scales, at)).tolist()
        if len(others) < _FEW or one.role not in LAYERS or others[-1] > _AGREE * others[0]:
            continue
        # The ends differ by nature.
        most = _BEYOND if 0 < at < len(places) - 1 else subject.thresholds.sibling_factor
        if t.rms > most * others[-1] or t.rms * most < others[0]:
            usual = float(np.median(others))
            yield _Unlike(
                name=one.name,
                rms=t.rms,
                usual=usual,
                z=math.log(t.rms / usual) / subject.thresholds.sibling_spread,
                siblings=len(places),
                warn=_is_wrong(subject, one, t.rms, np.array(others)),
            )


def _is_wrong(subject: Subject, one: Examined, rms: float, others: NDArray[np.float64]) -> bool:
    """Whether a matrix is so far above every one of its siblings that no training takes it there. Far below them it may
    have begun at zero, or decayed under a norm. others: their root mean squares."""
    most = float(others.max())
    # What is larger than any weight is said to be that.
    far = subject.thresholds.sibling_factor * most < rms < subject.thresholds.large
    return most <= _AGREE * float(others.min()) and one.role in LAYERS and far


def _by_role(subject: Subject) -> Iterator[_Unlike]:
    columns = subject.columns
    scaled = _is_scaled(columns)
    weights = scaled & (columns.numel >= subject.thresholds.few) & (columns.ndim > 1)
    by_fan = columns.rms * np.sqrt(np.maximum(1, columns.numel // np.maximum(1, columns.outputs)))
    groups = []
    for role in _IN_BLOCKS:
        places = np.flatnonzero(subject.among(role) & (scaled if role is Role.NORM_SCALE else weights))
        if len(places) >= subject.thresholds.siblings:
            groups.append((places, (columns.rms if role is Role.NORM_SCALE else by_fan)[places]))
    measured = tuple(subject.measured())
    # As they come in the file.
    for places, scales in sorted(groups, key=lambda each: each[0][0]):
        logs = np.log(scales)
        median = math.exp(float(np.median(logs)))
        most = np.full(len(places), _limit(subject, logs))
        # The file's first and last differ by nature.
        most[[0, -1]] = subject.thresholds.sibling_factor
        ratios = scales / median
        for place in np.flatnonzero((ratios < 1 / most) | (ratios > most)).tolist():
            _, t = measured[int(places[place])]
            usual = t.rms * median / float(scales[place])
            yield _Unlike(name=t.name, rms=t.rms, usual=usual, z=0.0, siblings=len(places))


def _limit(subject: Subject, logs: NDArray[np.float64]) -> float:
    """The factor that is too far away: the threshold, or less where all the others are close together."""
    limits = subject.thresholds
    spread = float(np.median(np.abs(logs - np.median(logs)))) / _MAD
    return min(limits.sibling_factor, math.exp(limits.sibling_z * max(spread, limits.role_spread)))


def _is_scaled(columns: Columns) -> Flags:
    return columns.whole & (columns.rms > 0) & (columns.rms < math.inf)


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
