"""Reports of a check as its renderers get them, with file names that mean something to each of the formats."""

from __future__ import annotations

import os

from inspector.findings import FindingKind, Severity
from inspector.lint.baseline import fingerprints_of
from inspector.lint.report import CheckedFile, CheckReport
from inspector.survey.report import RowKind

BAD = FindingKind("bad-numbers", Severity.ERROR, "Numbers are bad", also=(Severity.WARNING,))
ODD = FindingKind("odd-name", Severity.NOTICE, "A name is odd")
MADE = FindingKind("how-made", Severity.INFO, "How it is made")
KINDS = (BAD, MADE, ODD)

#: A line break that begins a command of a workflow, an older one, an escape of a terminal, quotes, what every format
#: quotes by, bytes that are no UTF-8, a turned direction, an option, and a URI of another kind.
HOSTILE = (
    "a\n::error file=x::owned.pth",
    "::stop-commands::x.pth",
    "##[add-mask]x.pth",
    "a%0A::warning::b.pth",
    "red\x1b[31m.pth",
    "q\"u'o<t>&e]]>.pth",
    "tab\there\r.pth",
    os.fsdecode(b"raw\xff\xfe.pth"),
    "turned\u202ehtp.pth",
    "--output=x.pth",
    "javascript:alert(1).pth",
    "[a](http://x.example){0}|`*_#.pth",
    "\x00\x01\ufffe.pth",
    "ümläut 名.pth",
)


def report_of(*files: CheckedFile, fail_on: Severity = Severity.WARNING, **more: object) -> CheckReport:
    return CheckReport(files=files, fail_on=fail_on, seconds=0.25, **more)  # type: ignore[arg-type]


def bad_file(path: str, says: str = "3 of 12 are NaN.", *, member: str = "", subject: str = "") -> CheckedFile:
    finding = BAD.found(says, subjects=(subject,) if subject else (), remedy="Go back.")
    findings = (finding,)
    return CheckedFile(
        path=f"{path}/{member}" if member else path,
        nbytes=12,
        kind=RowKind.CHECKPOINT,
        format="torch-zip",
        member=member,
        findings=findings,
        fingerprints=fingerprints_of(path, findings),
    )


def hostile_report() -> CheckReport:
    files = [bad_file(name, f"{name} is bad.", subject=name) for name in HOSTILE]
    return report_of(*files, *(bad_file("a.zip", member=name) for name in HOSTILE), skipped=(HOSTILE[0],))
