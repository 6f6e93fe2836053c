"""One row per file or folder of a survey, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.findings import Finding, Severity


class RowKind(StrEnum):
    """What was found at a path."""

    CHECKPOINT = "checkpoint"
    UNREADABLE = "unreadable"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRow:
    """One file, one folder that is a checkpoint as a whole, or one member of an archive.

    path: relative to the surveyed folder; behind an archive's comes that of a member. member: that part alone.
    kind: OTHER is a file that is no checkpoint and does not look like one; UNREADABLE should have been one (broken,
    refused, over a limit, or something else under a checkpoint's name), or may hold one, or code, that nothing here can
    look at.
    format, producer: "" where unknown. what: which network its weights are, "" unless asked for or unknown. tensors: in
    the file. parameters, buffers: elements of the likeliest weights.
    dangerous, unknown: names that unpickling would import. worst: severity of the worst finding, None without any.
    finding: its id. says: its sentence. An archive has those of its worst member, if that is worse. counts: (severity,
    how many findings). findings: all of its own, worst first. sha256: None unless asked for.
    """

    path: str
    nbytes: int
    kind: RowKind
    format: str = ""
    producer: str = ""
    what: str = ""
    tensors: int = 0
    parameters: int = 0
    buffers: int = 0
    dangerous: int = 0
    unknown: int = 0
    worst: Severity | None = None
    finding: str = ""
    says: str = ""
    counts: tuple[tuple[str, int], ...] = ()
    findings: tuple[Finding, ...] = ()
    member: str = ""
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """rows: in path order. skipped: what was not looked at, and why. seconds: wall time.

    incomplete: what was skipped may be what somebody loads from here, so it counts as an error. archive: the row of
    the archive whose members the rows are, None where they are files of a folder, or its row is among them.
    """

    name: str
    rows: tuple[SurveyRow, ...]
    skipped: tuple[str, ...]
    seconds: float
    incomplete: bool = False
    archive: SurveyRow | None = None

    def worst(self) -> Severity | None:
        """The highest severity of all rows, None when there is none. What nobody looked at is an error."""
        if self.incomplete:
            return Severity.ERROR
        return max((r.worst for r in self.rows if r.worst is not None), key=lambda s: s.rank, default=None)
