"""What a check found: a row per file, and whether it fails."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.findings import Finding, Severity, worst
from inspector.survey.report import RowKind, Survey

#: Raised when a field changes its meaning or goes.
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """One file, one folder that is a checkpoint as a whole, or one member of an archive.

    path: relative to the request's base where it lies in it, with "/"; behind an archive's comes that of the member.
    member: that part alone. findings: those that count, worst first. fingerprints: of the findings, in their order.
    known: how many more are in the baseline. muted: how many more are ignored or not selected.
    """

    path: str
    nbytes: int
    kind: RowKind
    format: str = ""
    member: str = ""
    findings: tuple[Finding, ...] = ()
    fingerprints: tuple[str, ...] = ()
    known: int = 0
    muted: int = 0
    sha256: str | None = None

    @property
    def file(self) -> str:
        """The path of the file on disk: of a member that of its archive."""
        return self.path[: -len(self.member) - 1] if self.member else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFinding:
    """One entry of a baseline. path: relative to the baseline's own folder, with "/"."""

    fingerprint: str
    path: str
    id: str
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """files: in path order, files that are no checkpoints included. gone: what the baseline holds and is not there any
    more, of what was looked at. skipped: what was not looked at, and why. headers: no numbers were read.

    settings: the file of settings, "" without one. baseline: the file of known findings, "" without one. weights_up_to:
    bytes of numbers in one file that were still read, None for any. seconds: wall time.
    """

    files: tuple[CheckedFile, ...]
    fail_on: Severity
    headers: bool = False
    weights_up_to: int | None = None
    settings: str = ""
    baseline: str = ""
    gone: tuple[KnownFinding, ...] = ()
    skipped: tuple[str, ...] = ()
    seconds: float = 0.0
    version: int = VERSION

    @property
    def worst(self) -> Severity | None:
        """The highest severity of all that counts, None when nothing does."""
        return worst(finding for file in self.files for finding in file.findings)

    @property
    def failed(self) -> bool:
        """Whether something counts that is at least as severe as `fail_on`: the one rule for the exit code."""
        return self.worst is not None and self.worst.rank >= self.fail_on.rank

    def count(self, severity: Severity) -> int:
        """Findings of that severity that count."""
        return sum(finding.severity is severity for file in self.files for finding in file.findings)

    @property
    def known(self) -> int:
        """Findings that are in the baseline."""
        return sum(file.known for file in self.files)

    @property
    def muted(self) -> int:
        """Findings that are ignored or not selected."""
        return sum(file.muted for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """report: what counts. survey: what was looked at, with all findings. heard: (path, findings) of each file, those
    of the baseline among them, without what is ignored or not selected."""

    report: CheckReport
    survey: Survey
    heard: tuple[tuple[str, tuple[Finding, ...]], ...]
