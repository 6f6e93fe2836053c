"""Weights stored in a wider type than their numbers need: every one of them is also a number of the shorter type.

By chance 2^-16 of float32 numbers are bfloat16 numbers, so that a few dozen of them leave no doubt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from inspector.checkpoint.dtypes import DTYPES
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import listed
from inspector.health.subject import Subject
from inspector.units import counted, human_bytes
from inspector.weights.report import TensorStatistics

NARROWER_TYPE = FindingKind("narrower-type", Severity.INFO, "A shorter type would hold the same numbers")


def _find(subject: Subject) -> Iterator[Finding]:
    limits = subject.thresholds
    groups: dict[tuple[str, str], list[TensorStatistics]] = defaultdict(list)
    seen: set[tuple[object, ...]] = set()
    for one, t in subject.those(subject.columns.numel >= limits.least_numel):
        if t.fits not in DTYPES:
            continue
        place = (one.tensor.storage_id, one.tensor.offset, t.shape)
        if one.tensor.storage_id and place in seen:
            continue
        seen.add(place)
        if t.distinct is None or t.distinct >= limits.least_values:
            groups[t.dtype, t.fits].append(t)
    for (dtype, fits), tensors in groups.items():
        yield _finding(subject, dtype, fits, tensors)


def _finding(subject: Subject, dtype: str, fits: str, tensors: Sequence[TensorStatistics]) -> Finding:
    names = [t.name for t in tensors]
    numel = sum(t.numel for t in tensors)
    saved = numel * (DTYPES[dtype].itemsize - DTYPES[fits].itemsize)
    what = "Every number" if len(names) == 1 else "All numbers"
    return NARROWER_TYPE.found(
        f"{what} of {counted(len(names), f'{dtype} tensor')} ({listed(names)}) fit {fits}: saved so, the file is "
        f"{human_bytes(saved)} smaller and loses nothing.",
        subjects=names,
        evidence=(
            *(("tensors", len(names)), ("numel", numel), ("saved_nbytes", saved), ("type", fits)),
            ("threshold_numel", subject.thresholds.least_numel),
        ),
        remedy=f"They were trained or saved in {fits} once. Keep the wide type where training goes on in it; else "
        "convert it to that type.",
    )


CHECK = Check(kinds=(NARROWER_TYPE,), find=_find)
