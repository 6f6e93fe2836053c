"""Queries, keys and values in one matrix, of which two are the same: one was taken twice when they were joined.

Training moves them apart in the first step, so that equal ones are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Subject
from inspector.weights.rows import column_means, row_means

EQUAL_PROJECTIONS = FindingKind(
    "equal-projections",
    Severity.WARNING,
    "Queries, keys or values of a joined matrix are the same",
    explains=("duplicate-filters",),
)

_FUSED = ("in_proj", "c_attn", "qkv", "query_key_value")
_QKV = ("the queries", "the keys", "the values")
# Fewest rows of a third.
_FEW = 8


def _find(subject: Subject) -> Iterator[Finding]:
    """Queries, keys and values that are kept in one matrix, one below the other or, in GPT-2's, side by side."""
    found: list[tuple[str, str, str]] = []
    for one, t in subject.measured(Role.LINEAR):
        rows = t.rows
        if rows is None or t.finite < t.numel or t.minimum == t.maximum or not _is_fused(one.name):
            continue
        for axis, sums in ((0, row_means(rows)), (1, column_means(rows))):
            if len(sums) % 3 or len(sums) < 3 * _FEW or len(t.shape) != 2:
                continue
            parts = np.split(sums, 3)
            same = [(i, j) for i, j in ((0, 1), (0, 2), (1, 2)) if np.allclose(parts[i], parts[j], rtol=1e-5, atol=0)]
            array = subject.array(one) if same else None
            if array is None:
                continue
            blocks = np.split(array, 3, axis=axis)
            found += [(one.name, _QKV[i], _QKV[j]) for i, j in same if np.array_equal(blocks[i], blocks[j])]
    if found:
        name, first, second = found[0]
        names = list(dict.fromkeys(name for name, _, _ in found))
        yield EQUAL_PROJECTIONS.found(
            f"In {shown(name)} {first} and {second} are the same, number by number{also(names)}.",
            subjects=names,
            evidence=(("matrices", len(names)), ("pairs", len(found))),
            remedy="Training moves them apart in the first step: when they were joined into one matrix, one was taken "
            "twice. Join them again from the original.",
        )


def _is_fused(name: str) -> bool:
    lowered = name.lower()
    return any(word in lowered for word in _FUSED)


CHECK = Check(kinds=(EQUAL_PROJECTIONS,), find=_find)
