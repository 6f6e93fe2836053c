"""One observation about a file or a model: what was measured, why it matters, what to do.

Used alike by readers, keys, weights and health, so that every face can list, sort and filter them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

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

    id, title: of its kind, the same for every file ("wrapper-segment"); docs/findings.md lists them.
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
    title: str = ""


@dataclass(frozen=True, slots=True)
class FindingKind:
    """What can be noticed, declared once as a constant beside its maker.

    id: stable and kebab-case, what whoever filters or gates goes by. severity: the usual one; also: the others that it
    may have. title: a line that holds for every file, without numbers. explains: ids of kinds that are not said as well
    of a tensor that one of this kind names, where one rule goes over all findings (`health/examine.py`).
    """

    id: str
    severity: Severity
    title: str
    also: tuple[Severity, ...] = ()
    explains: tuple[str, ...] = ()

    def found(
        self,
        says: str,
        *,
        severity: Severity | None = None,
        subjects: Iterable[str] = (),
        evidence: Evidence = (),
        remedy: str = "",
    ) -> Finding:
        """One observation of this kind. severity: one of `also` where this case differs from the usual."""
        chosen = self.severity if severity is None else severity
        assert chosen is self.severity or chosen in self.also, f"{self.id} is never {chosen}"
        return Finding(
            id=self.id,
            severity=chosen,
            says=says,
            subjects=tuple(subjects),
            evidence=evidence,
            remedy=remedy,
            title=self.title,
        )


Subject = TypeVar("Subject")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[Subject]):
    """Something that is looked for at one stage: in a file just read, a drafted repair, measured weights.

    kinds: all that it can find. find: yields what it did find.
    """

    kinds: tuple[FindingKind, ...]
    find: Callable[[Subject], Iterable[Finding]]


def run_checks(checks: Iterable[Check[Subject]], subject: Subject) -> tuple[Finding, ...]:
    """What all the checks find, in their order."""
    return tuple(finding for check in checks for finding in check.find(subject))


def first_finding(checks: Iterable[Check[Subject]], subject: Subject) -> Finding | None:
    """What the first of the checks that finds anything finds; the checks behind it are not asked."""
    return next((finding for check in checks for finding in check.find(subject)), None)


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The highest severity among the findings, None when there are none."""
    return max((f.severity for f in findings), key=lambda s: s.rank, default=None)


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first; the order among equals is kept."""
    return tuple(sorted(findings, key=lambda f: -f.severity.rank))
