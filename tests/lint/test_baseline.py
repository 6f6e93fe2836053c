"""Known findings do not count, new ones do, and what is gone is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.errors import ReadError, UsageError
from inspector.findings import FindingKind, Severity
from inspector.lint.baseline import baseline_text, entries_of, fingerprints_of, path_from, read_baseline
from inspector.lint.check import check
from inspector.lint.report import CheckReport
from inspector.lint.request import CheckRequest, Settings
from tests.lint.test_check import ids_of, tensor_file

BAD = FindingKind("bad-numbers", Severity.ERROR, "Numbers are bad")
NAN = float("nan")


def _sick(path: Path) -> Path:
    return tensor_file(path, [0.1, NAN, 0.3, 0.4])


def _checked(folder: Path, *paths: Path, base: Path | None = None, **more: object) -> CheckReport:
    request = CheckRequest(paths=paths or (folder,), base=base or folder, **more)  # type: ignore[arg-type]
    return check(request).report


def _learned(folder: Path, where: Path, base: Path | None = None) -> Path:
    checked = check(CheckRequest(paths=(folder,), base=base or folder, learn=True))
    assert not checked.report.failed
    where.write_text(baseline_text(entries_of(where, base or folder, checked.heard)))
    return where


def test_what_is_known_does_not_count_and_what_is_new_does(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    _sick(folder / "a.safetensors")
    baseline = _learned(folder, tmp_path / "known.json")
    report = _checked(folder, baseline=baseline)
    assert not report.failed and report.known == 1 and report.gone == () and ids_of(report) == {}
    _sick(folder / "b.safetensors")
    report = _checked(folder, baseline=baseline)
    assert report.failed and report.known == 1 and ids_of(report) == {"b.safetensors": ["non-finite"]}


def test_a_baseline_holds_wherever_the_check_is_started(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    _sick(folder / "a.safetensors")
    baseline = _learned(folder, tmp_path / "known.json")
    for base in (tmp_path, folder, tmp_path.parent):
        assert not _checked(folder, base=base, baseline=baseline).failed
    (held,) = json.loads(baseline.read_text())["findings"]
    assert held["path"] == "models/a.safetensors" and held["subjects"] == ["fc.weight"]


def test_what_is_gone_is_said_where_it_was_looked_for(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    (folder / "old").mkdir(parents=True)
    for name in ("a", "b", "old/c"):
        _sick(folder / f"{name}.safetensors")
    baseline = _learned(folder, tmp_path / "known.json")
    tensor_file(folder / "a.safetensors", [0.1, 0.2, 0.3, 0.4])
    (folder / "old" / "c.safetensors").unlink()
    report = _checked(folder, baseline=baseline)
    assert [entry.path for entry in report.gone] == ["models/a.safetensors", "models/old/c.safetensors"]
    assert not report.failed
    # Nobody looked at the others, read their numbers or asked for this id.
    assert [e.path for e in _checked(folder, folder / "a.safetensors", baseline=baseline).gone] == [
        "models/a.safetensors"
    ]
    assert _checked(folder, folder / "b.safetensors", baseline=baseline).gone == ()
    assert _checked(folder, baseline=baseline, headers=True).gone == ()
    for settings in (Settings(ignore=("non-finite",)), Settings(select=("large-weight",)), Settings(weights_up_to=1)):
        gone = _checked(folder, baseline=baseline, settings=settings).gone
        assert [e.path for e in gone] == (["models/old/c.safetensors"] if settings.weights_up_to else [])


def test_a_fingerprint_is_of_path_id_and_subjects() -> None:
    one = BAD.found("3 of 12.", subjects=("a", "b"))
    again = BAD.found("5 of 12, since a seed.", subjects=("b", "a"), severity=None)
    assert fingerprints_of("p", (one,)) == fingerprints_of("p", (again,))
    others = [("q", one), ("p", BAD.found("3 of 12.", subjects=("a",)))]
    prints = {fingerprints_of(path, (finding,)) for path, finding in others}
    assert fingerprints_of("p", (one,)) not in prints and len(prints) == 2
    # Two are known: a third of the same kind is new.
    two, three = fingerprints_of("p", (one, one)), fingerprints_of("p", (one, one, one))
    assert three[:2] == two and len(set(three)) == 3
    assert len(fingerprints_of("\udcff\n\x1b", (BAD.found("x", subjects=("\udcff",)),))) == 1


def test_names_of_any_letters_come_back(tmp_path: Path) -> None:
    heard = [("a\n\udcff\x1b[31m.pth", (BAD.found("x", subjects=("\udcfe", "::", "\u202e")),))]
    where = tmp_path / "known.json"
    entries = entries_of(where, tmp_path, heard)
    where.write_bytes(baseline_text(entries).encode("ascii"))
    assert tuple(read_baseline(where).values()) == entries


def test_paths_are_relative_to_the_baseline(tmp_path: Path) -> None:
    assert path_from(tmp_path / "ci" / "known.json", tmp_path, "models/a.pth") == "../models/a.pth"
    assert path_from(tmp_path / "known.json", tmp_path / "models", "a.pth") == "models/a.pth"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("[]", 'it has no "version": 1'),
        ('{"version": 2, "findings": []}', 'it has no "version": 1'),
        ('{"version": 1, "findings": {}}', 'it has no "version": 1'),
        ('{"version": 1, "findings": [1]}', "an entry lacks"),
        ('{"version": 1, "findings": [{"fingerprint": "x", "path": "p"}]}', "an entry lacks"),
        ('{"version": 1, "findings": [{"fingerprint": "x", "path": "p", "id": 3}]}', "an entry lacks"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"known\.json is no baseline") as error:
        read_baseline(path)
    assert says in str(error.value)
    with pytest.raises(ReadError, match="There is no file"):
        read_baseline(tmp_path / "none.json")
