"""A check as SARIF 2.1.0, which code scanning services take.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0 (os, 2020): artifactLocation 3.4, result 3.27,
reportingDescriptor 3.49. What GitHub wants beyond it: docs.github.com, "SARIF support for code scanning" (a rule's id,
a level, a relative URI, a line, fingerprints; 25,000 results). A checkpoint has no lines: all are on the first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from inspector.findings import Finding, FindingKind, Severity
from inspector.installed import own_version
from inspector.lint.report import CheckedFile, CheckReport
from inspector.path_text import path_of_text
from inspector.render.json import as_json
from inspector.render.visible import one_line
from inspector.units import counted, shorten_middle

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_MOST = 25_000
_MOST_SUBJECTS = 10
_MESSAGE = 4_000
_PLACEHOLDER = re.compile(r"\{(\d+)\}")
_ROOT = "%SRCROOT%"
_FINGERPRINT = "inspectorFinding/v1"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTICE: "note", Severity.INFO: "note"}


def as_sarif(report: CheckReport, kinds: Sequence[FindingKind]) -> str:
    """The document as text. kinds: all that a check can find; they become the rules."""
    found = [(file, number) for file in report.files for number in range(len(file.findings))]
    # Where there is no room for all, the worst stay.
    kept = (
        sorted(found, key=lambda one: -one[0].findings[one[1]].severity.rank)[:_MOST] if len(found) > _MOST else found
    )
    rules = {kind.id: number for number, kind in enumerate(kinds)}
    run = {
        "tool": {
            "driver": {
                "name": "Model Inspector",
                "semanticVersion": _semantic(own_version()),
                "rules": [_rule(kind) for kind in kinds],
            }
        },
        "columnKind": "utf16CodeUnits",
        "invocations": [_invocation(report, len(found) - len(kept))],
        # Each once: an archive's finding may lie in its members alone, a folder be named by two rows.
        "artifacts": list({file.file: _artifact(file) for file in _with_findings(report)}.values()),
        "results": [_result(file, number, rules) for file, number in kept],
    }
    return as_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _with_findings(report: CheckReport) -> Iterable[CheckedFile]:
    """Files behind their members, so that what is said of a file itself stays."""
    yield from (file for file in report.files if file.findings and file.member)
    yield from (file for file in report.files if file.findings and not file.member)


def uri_of(path: str) -> str:
    """A relative reference of RFC 3986, or a file: URI for an absolute path; bytes that are no UTF-8 are kept."""
    try:
        raw = os.fsencode(path_of_text(path))
    except UnicodeEncodeError:  # No name of a file of this system.
        raw = path.encode("utf-8", "backslashreplace")
    quoted = quote(raw, safe="/")
    if path.startswith("/"):
        return f"file://{quoted}"
    return f"file:///{quoted}" if path[1:3] == ":/" else quoted


def _rule(kind: FindingKind) -> dict[str, Any]:
    severities = sorted({kind.severity, *kind.also}, key=lambda severity: -severity.rank)
    text = (
        f"{kind.title}. Severity: {', '.join(severity.value for severity in severities)}. Each result says what was "
        f"measured and what to do. A project leaves it out with --ignore {kind.id} or in inspector.toml."
    )
    return {
        "id": kind.id,
        "shortDescription": {"text": f"{kind.title}."},
        "help": {"text": text},
        "defaultConfiguration": {"level": _LEVELS[kind.severity]},
    }


def _result(file: CheckedFile, number: int, rules: dict[str, int]) -> dict[str, Any]:
    finding = file.findings[number]
    location = {
        "physicalLocation": {"artifactLocation": _location(file.file), "region": {"startLine": 1}},
        "logicalLocations": list(_subjects(file, finding)),
    }
    made: dict[str, Any] = {
        "ruleId": finding.id,
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(file, finding)},
        "locations": [{key: value for key, value in location.items() if value}],
        "partialFingerprints": {_FINGERPRINT: file.fingerprints[number]},
        "properties": {"severity": finding.severity.value},
    }
    if finding.id in rules:
        made["ruleIndex"] = rules[finding.id]
    return made


def _message(file: CheckedFile, finding: Finding) -> str:
    where = f"{file.member}: " if file.member else ""
    text = shorten_middle(one_line(f"{where}{finding.says} {finding.remedy}".strip()), _MESSAGE)
    # Names are no placeholders (3.11.5) and no links (3.11.6).
    return _PLACEHOLDER.sub(r"{{\1}}", text).replace("](", "] (")


def _subjects(file: CheckedFile, finding: Finding) -> Iterable[dict[str, str]]:
    """Tensors, keys, globals; in front of them the member of an archive."""
    subjects = [shorten_middle(one_line(subject), _MESSAGE) for subject in (file.member, *finding.subjects) if subject]
    for subject in list(dict.fromkeys(subjects))[:_MOST_SUBJECTS]:
        yield {"fullyQualifiedName": subject, "kind": "member"}


def _location(path: str) -> dict[str, str]:
    uri = uri_of(path)
    return {"uri": uri} if uri.startswith("file:") else {"uri": uri, "uriBaseId": _ROOT}


def _artifact(file: CheckedFile) -> dict[str, Any]:
    made: dict[str, Any] = {"location": _location(file.file)}
    if not file.member:
        made["length"] = file.nbytes
    if file.sha256:
        made["hashes"] = {"sha-256": file.sha256}
    return made


def _invocation(report: CheckReport, left_out: int) -> dict[str, Any]:
    notes = [one_line(f"Not looked at: {what}") for what in report.skipped]
    if left_out:
        notes.append(f"{counted(left_out, 'finding')} left out: {_MOST:,} are taken.")
    made: dict[str, Any] = {"executionSuccessful": True, "exitCode": int(report.failed)}
    if notes:
        made["toolExecutionNotifications"] = [{"message": {"text": note}, "level": "note"} for note in notes]
    return made


def _semantic(version: str) -> str:
    numbers = version.split("+")[0].split(".")
    return ".".join([*(number for number in numbers if number.isdigit()), "0", "0", "0"][:3])
