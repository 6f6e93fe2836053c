"""Standard deviations that inputs are divided by, and that are zero or negative: features that never varied."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.subject import Examined, Subject
from inspector.units import counted, human_place

DIVISOR = FindingKind("deviation-not-positive", Severity.WARNING, "A standard deviation is zero or negative")

_STD = re.compile(r"((?:\w+_)?)(std|stds|stddev|stdev|std_dev|sigma|scale_std)", re.IGNORECASE)
_MEANS = ("mean", "means", "mu", "avg")


def _find(subject: Subject) -> Iterator[Finding]:
    found = []
    for one, t in subject.measured_called(_STD.fullmatch):
        if not _is_std(subject, one) or not t.finite or t.minimum > 0 or t.minimum == t.maximum:
            continue
        array = subject.array(one)
        places = np.flatnonzero(array <= 0) if array is not None else np.zeros(0, np.intp)
        if len(places):
            found.append((one.name, len(places), t.numel, human_place(int(places[0]), t.shape), t.minimum))
    if not found:
        return
    name, count, numel, first, lowest = found[0]
    names = [each[0] for each in found]
    yield DIVISOR.found(
        f"{count:,} of {counted(numel, 'number')} of {shown(name)} {'is' if count == 1 else 'are'} not above zero, the "
        f"first at {first}{also(names)}.",
        subjects=names,
        evidence=(("numbers", sum(each[1] for each in found)), ("lowest", lowest), ("tensors", len(found))),
        remedy="Inputs are divided by it: a feature that never varied while it was measured becomes infinite or NaN, "
        "or huge where a small epsilon is added. Put 1 there, or leave the feature out.",
    )


def _is_std(subject: Subject, one: Examined) -> bool:
    """By its name, and a mean of its shape beside it."""
    match = _STD.fullmatch(one.last)
    if match is None or not one.tensor.shape:
        return False
    means = (subject.beside(one, f"{match[1]}{word}") for word in _MEANS)
    return any(mean is not None and mean.tensor.shape == one.tensor.shape for mean in means)


CHECK = Check(kinds=(DIVISOR,), find=_find)
