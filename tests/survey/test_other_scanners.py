"""What picklescan, modelscan and modelaudit call dangerous is an error of a scan, or a note that says why it is inert.

The table is benchmarks/scanners/cases.py, with its sources; benchmarks/bench_scanners.py asks the scanners themselves.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scanners import cases
from inspector.findings import Severity
from inspector.readers import open_checkpoint
from inspector.readers.opening import open_source
from inspector.survey.survey import survey_folder


def worst_of(files: dict[str, bytes], folder: Path) -> dict[str, Severity | None]:
    """The worst severity of each file's rows, those of its members included."""
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    found: dict[str, Severity | None] = dict.fromkeys(files)
    for row in survey_folder(folder).rows:
        name = next(name for name in files if row.path == name or row.path.startswith(f"{name}/"))
        known = found[name]
        if row.worst is not None and (known is None or row.worst.rank > known.rank):
            found[name] = row.worst
    return found


@pytest.mark.parametrize("protocol", [0, 4])
def test_every_name_that_another_scanner_lists_is_an_error(protocol: int, tmp_path: Path) -> None:
    files = {
        f"{number}.pkl": cases.calling(module, name, protocol=protocol)
        for number, (module, name) in enumerate(cases.names().values())
    }
    worst = worst_of(files, tmp_path)
    told = dict(zip(cases.names(), worst.values(), strict=True))
    assert [name for name, severity in told.items() if severity is not Severity.ERROR] == []


def test_every_file_that_another_scanner_calls_dangerous_is_an_error(tmp_path: Path) -> None:
    worst = worst_of(cases.dangerous(), tmp_path)
    assert [name for name, severity in worst.items() if severity is not Severity.ERROR] == []


@pytest.mark.parametrize("name", cases.inert())
def test_what_nothing_runs_is_a_note_that_says_so(name: str, tmp_path: Path) -> None:
    content, ident = cases.inert()[name]
    worst = worst_of({name: content}, tmp_path)[name]
    assert worst in (Severity.INFO, Severity.NOTICE)
    if ident in ("stray-members", "program-inside"):  # Of archives, and so of a scan.
        row = next(row for row in survey_folder(tmp_path).rows if row.path == name)
        assert dict(row.counts)
    else:
        assert ident in {finding.id for finding in open_checkpoint(tmp_path / name).findings}


def test_ordinary_files_are_no_warning(tmp_path: Path) -> None:
    worst = worst_of(cases.quiet(), tmp_path)
    loud = [name for name, severity in worst.items() if severity in (Severity.WARNING, Severity.ERROR)]
    assert loud == []


def test_nothing_of_them_is_kept_open(tmp_path: Path) -> None:
    """A scan of thousands of archives must not run out of descriptors."""
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else 0
    worst_of({**cases.dangerous(), **cases.quiet()}, tmp_path)
    if before:
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2
    open_source(b"").close()
