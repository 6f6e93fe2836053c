"""One observation about a file or a model: what was measured, why it matters, what to do.

Used alike by readers, keys, weights and health, so that every face can list, sort and filter them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

Evidence = tuple[tuple[str, str | int | float | bool], ...]


class Severity(StrEnum):
    """How much a finding matters, least first."""

    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for info to 3 for error."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One observation.

    id: stable and kebab-case ("wrapper-segment", "unknown-global"); documented under docs/.
    subjects: names of the tensors, keys, globals or members it is about; may be empty for the whole file.
    says: one sentence with the measured number in it.
    evidence: (label, value) pairs, machine-readable.
    remedy: what to do about it, "" when nothing needs doing.
    """

    id: str
    severity: Severity
    says: str
    subjects: tuple[str, ...] = ()
    evidence: Evidence = ()
    remedy: str = ""


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The highest severity among the findings, None when there are none."""
    return max((f.severity for f in findings), key=lambda s: s.rank, default=None)


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first; the order among equals is kept."""
    return tuple(sorted(findings, key=lambda f: -f.severity.rank))
