"""Findings that are known and do not count: a file of fingerprints, one for each, that people read and commit.

A fingerprint is of the file's path (relative to the baseline's own folder, so that it holds wherever a check is
started), the finding's id and its subjects. Equal ones of one file are counted through: a third one is new where two
are known.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from inspector.errors import UsageError
from inspector.findings import Finding
from inspector.lint.report import KnownFinding
from inspector.side_files import read_text, shown_name

_VERSION = 1
_MOST = 1_000_000
_SUBJECTS = 3
_WHAT = "baseline"


def fingerprints_of(path: str, findings: Sequence[Finding]) -> tuple[str, ...]:
    """32 hexadecimal digits for each of a file's findings. path: with "/", relative to what it shall hold for."""
    seen: Counter[tuple[object, ...]] = Counter()
    made = []
    for finding in findings:
        key = (finding.id, tuple(sorted(finding.subjects)))
        text = json.dumps([path, finding.id, sorted(finding.subjects), seen[key]])
        seen[key] += 1
        made.append(hashlib.sha256(text.encode("ascii")).hexdigest()[:32])
    return tuple(made)


def path_from(baseline: Path, base: Path, path: str) -> str:
    """A path of the report (relative to base, or absolute) as the baseline has it."""
    try:
        place = os.path.relpath(base / path, baseline.absolute().parent)
    except ValueError:  # Another drive of Windows: nothing leads there.
        return path
    return Path(place).as_posix()


def entries_of(baseline: Path, base: Path, heard: Iterable[tuple[str, Sequence[Finding]]]) -> tuple[KnownFinding, ...]:
    """What a baseline at that place would hold. heard: (path in the report, findings) of each file."""
    found = [(path_from(baseline, base, path), findings) for path, findings in heard]
    return tuple(
        KnownFinding(fingerprint=fingerprint, path=path, id=finding.id, subjects=finding.subjects[:_SUBJECTS])
        for path, findings in found
        for fingerprint, finding in zip(fingerprints_of(path, findings), findings, strict=True)
    )


def read_baseline(path: Path) -> dict[str, KnownFinding]:
    """The entries by fingerprint. Raises ReadError where there is no such file, UsageError where it is no baseline."""
    text = read_text(path, _WHAT, hint="Let a check write one.")
    try:
        held: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_baseline(path, "it is no JSON") from error
    entries = held.get("findings") if isinstance(held, dict) else None
    if not isinstance(held, dict) or held.get("version") != _VERSION or not isinstance(entries, list):
        raise _no_baseline(path, f'it has no "version": {_VERSION} with "findings"')
    if len(entries) > _MOST:
        raise _no_baseline(path, f"it holds more than {_MOST:,} findings")
    found = [_entry(path, entry) for entry in entries]
    return {entry.fingerprint: entry for entry in found}


def _entry(path: Path, entry: Any) -> KnownFinding:
    held = entry if isinstance(entry, dict) else {}
    subjects = held.get("subjects", [])
    texts = [text for name in ("fingerprint", "path", "id") if isinstance(text := held.get(name), str)]
    if len(texts) < 3 or not isinstance(subjects, list):
        raise _no_baseline(path, "an entry lacks its fingerprint, path or id")
    fingerprint, where, ident = texts
    return KnownFinding(
        fingerprint=fingerprint, path=where, id=ident, subjects=tuple(str(subject) for subject in subjects)
    )


def _no_baseline(path: Path, why: str) -> UsageError:
    return UsageError(f"{shown_name(path)} is no baseline: {why}.", hint="Let a check write one.")


def baseline_text(entries: Iterable[KnownFinding]) -> str:
    """The file's text, in the order of paths, so that a commit shows what came and went."""
    ordered = sorted(entries, key=lambda entry: (entry.path, entry.id, entry.fingerprint))
    plain = [
        {"path": entry.path, "id": entry.id, "subjects": list(entry.subjects), "fingerprint": entry.fingerprint}
        for entry in ordered
    ]
    return json.dumps({"version": _VERSION, "findings": plain}, indent=1) + "\n"
