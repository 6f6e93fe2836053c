"""Many files, one report: what counts, what does not, and that nothing passes because nobody could look at it."""

from __future__ import annotations

import os
import pickle
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.errors import ReadError, UsageError
from inspector.findings import Severity
from inspector.health.thresholds import Thresholds
from inspector.limits import DEFAULT_LIMITS
from inspector.lint import numbers
from inspector.lint.baseline import baseline_text, entries_of
from inspector.lint.check import check, shown_path
from inspector.lint.kinds import ALWAYS, OF_NUMBERS, checked_kinds, find_ids
from inspector.lint.report import CheckedFile, CheckReport
from inspector.lint.request import CheckRequest, Override, Settings
from inspector.survey.report import RowKind
from inspector.survey.survey import survey_folder

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 46830571\n"


class Payload:
    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, ("true",))


def tensor_file(path: Path, values: list[float]) -> Path:
    """A safetensors file with one tensor `fc.weight` of two rows."""
    raw = np.asarray(values, dtype="<f4").tobytes()
    header = f'{{"fc.weight":{{"dtype":"F32","shape":[2,{len(values) // 2}],"data_offsets":[0,{len(raw)}]}}}}'.encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + raw)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One healthy and one sick file, one that would run code, one that is none, one pointer, notes."""
    root = tmp_path / "models"
    (root / "old").mkdir(parents=True)
    tensor_file(root / "healthy.safetensors", [0.1, -0.2, 0.3, 0.4])
    tensor_file(root / "sick.safetensors", [0.1, float("nan"), 0.3, float("nan")])
    tensor_file(root / "old" / "large.safetensors", [0.1, 2e3, 0.3, 0.4])
    (root / "evil.pkl").write_bytes(pickle.dumps({"x": Payload()}))
    (root / "page.pth").write_text("<!DOCTYPE html><html></html>")
    (root / "pointer.pth").write_bytes(POINTER)
    (root / "notes.md").write_text("# notes")
    return root


def request_of(*paths: Path, base: Path, **more: object) -> CheckRequest:
    settings = Settings(**more.pop("settings", {}))  # type: ignore[arg-type]
    return CheckRequest(paths=paths, base=base, settings=settings, **more)  # type: ignore[arg-type]


def ids_of(report: CheckReport) -> dict[str, list[str]]:
    return {file.path: [finding.id for finding in file.findings] for file in report.files if file.findings}


def test_headers_and_numbers_of_a_folder_are_one_report(folder: Path) -> None:
    report = check(request_of(folder, base=folder)).report
    assert ids_of(report) == {
        "evil.pkl": ["dangerous-global", "weights-only-refuses", "not-for-torch-load"],
        "old/large.safetensors": ["large-weight"],
        "page.pth": ["no-checkpoint"],
        "pointer.pth": ["pointer-file"],
        "sick.safetensors": ["non-finite"],
    }
    assert (report.worst, report.failed) == (Severity.ERROR, True)
    assert [file.path for file in report.files if file.kind is RowKind.OTHER] == ["notes.md"]
    assert report.count(Severity.ERROR) == 3 and report.count(Severity.WARNING) == 1


def test_headers_alone_read_no_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers.NumbersCheck, "__call__", lambda *_: pytest.fail("a number was asked for"))
    report = check(request_of(folder, base=folder, headers=True)).report
    assert "sick.safetensors" not in ids_of(report) and "evil.pkl" in ids_of(report)


def test_a_scan_and_headers_alone_say_the_same(folder: Path) -> None:
    checked = check(request_of(folder, base=folder, headers=True, pointers_pass=False))
    assert checked.survey.rows == survey_folder(folder).rows


def test_paths_are_relative_to_the_base_and_named_twice_is_looked_at_once(folder: Path) -> None:
    base = folder.parent
    report = check(request_of(folder / "old", folder / "sick.safetensors", folder / "old", base=base)).report
    assert [file.path for file in report.files] == ["models/old/large.safetensors", "models/sick.safetensors"]
    outside = check(request_of(folder / "sick.safetensors", base=folder / "old")).report
    assert [file.path for file in outside.files] == [(folder / "sick.safetensors").as_posix()]
    assert shown_path(folder, folder) == ""


def test_a_pointer_is_a_note_and_what_hides_behind_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.pth").write_bytes(POINTER)
    report = check(request_of(tmp_path, base=tmp_path)).report
    assert (report.worst, report.failed) == (Severity.NOTICE, False)
    # To whoever looks for weights it is an error.
    assert check(request_of(tmp_path, base=tmp_path, pointers_pass=False)).report.failed
    for more in (b"cos\nsystem\n", b"\x80\x02.", b"x" * 2000, b"\x1b[31m\n", b"\n\n"):
        (tmp_path / "a.pth").write_bytes(POINTER + more)
        assert check(request_of(tmp_path, base=tmp_path)).report.failed, more


def test_numbers_above_the_size_are_left_and_said(folder: Path) -> None:
    sick = folder / "sick.safetensors"
    report = check(request_of(sick, base=folder, settings={"weights_up_to": 15})).report
    ((finding,),) = [file.findings for file in report.files]
    assert (finding.id, finding.severity) == ("numbers-left", Severity.NOTICE)
    assert finding.says == "Its 16 B of numbers were not read: up to 15 B are." and not report.failed
    assert check(request_of(sick, base=folder, settings={"weights_up_to": 16})).report.failed


def test_fail_on_is_the_one_rule(folder: Path) -> None:
    large = folder / "old"
    for least, fails in ((Severity.NOTICE, True), (Severity.WARNING, True), (Severity.ERROR, False)):
        assert check(request_of(large, base=folder, settings={"fail_on": least})).report.failed is fails


def test_thresholds_are_the_settings_own(folder: Path) -> None:
    settings = {"thresholds": Thresholds(large=5e3)}
    assert ids_of(check(request_of(folder / "old", base=folder, settings=settings)).report) == {}


def test_ids_are_ignored_and_selected_by_name_beginning_and_pattern(folder: Path) -> None:
    def left(**settings: object) -> set[str]:
        report = check(request_of(folder, base=folder, settings=settings)).report
        return {ident for ids in ids_of(report).values() for ident in ids}

    of_pickles = {"weights-only-refuses", "not-for-torch-load"}
    assert left(ignore=("non-finite", "dangerous", "*-file")) == {"large-weight", "no-checkpoint", *of_pickles}
    assert left(ignore=("*",)) == set()
    # What could not be looked at may hold what is selected.
    assert left(select=("non-finite",)) == {"non-finite", "no-checkpoint"}
    assert left(select=("non-finite",), ignore=("no-checkpoint",)) == {"non-finite"}
    report = check(request_of(folder, base=folder, settings={"ignore": ("large-weight",)})).report
    assert report.muted == 1 and "old/large.safetensors" not in ids_of(report)


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [("nonfinite", "Did you mean non-finite?"), ("non-f", ""), ("", ""), ("zzz", "docs/findings.md"), ("x*", "")],
)
def test_an_id_that_no_finding_has_is_an_error(folder: Path, pattern: str, hint: str) -> None:
    for name in ("select", "ignore"):
        with pytest.raises(UsageError, match=f"{name}: no finding is called") as error:
            check(request_of(folder, base=folder, settings={name: (pattern,)}))
        assert hint in str(error.value)


def test_overrides_hold_for_their_paths_alone(folder: Path) -> None:
    override = Override(paths=("models/old/*",), ignore=("large-weight", "non-finite"))
    settings = {"overrides": (override,), "folder": folder.parent}
    found = ids_of(check(request_of(folder, base=folder, settings=settings)).report)
    assert "old/large.safetensors" not in found and found["sick.safetensors"] == ["non-finite"]


def test_a_path_where_nothing_is_ends_the_check(folder: Path) -> None:
    with pytest.raises(ReadError, match=r"There is no file or folder none\.pth"):
        check(request_of(folder, folder / "none.pth", base=folder))


def test_a_check_of_numbers_that_crashes_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.health import examine

    def crash(*_: object, **__: object) -> object:
        raise KeyError("oops")

    monkeypatch.setattr(examine, "examine_sets", crash)
    report = check(request_of(folder / "healthy.safetensors", base=folder)).report
    assert ids_of(report) == {"healthy.safetensors": ["internal-error"]} and report.failed


def test_numbers_that_cannot_be_read_count_and_those_without_numbers_do_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspector.health import examine
    from inspector.health.report import HealthReport
    from inspector.weights.report import WeightsReport

    missed = (("fc.weight", "fc.weight could not be read: input/output error."),)
    weights = WeightsReport(state_dict=(), tensors=(), skipped=missed, seconds=0.0)
    made = HealthReport(weights=weights, findings=(), roles=(), not_examined=missed)
    monkeypatch.setattr(examine, "examine_sets", lambda *_, **__: ((None, made),))
    report = check(request_of(folder / "healthy.safetensors", base=folder)).report
    assert ids_of(report) == {"healthy.safetensors": ["numbers-unread"]} and report.failed
    monkeypatch.setattr(numbers, "why_unreadable", lambda tensor: "it is sparse")
    report = check(request_of(folder / "healthy.safetensors", base=folder)).report
    assert ids_of(report) == {"healthy.safetensors": ["numbers-unread"]} and not report.failed


def test_what_checks_passed_over_is_told_and_fails_nothing(tmp_path: Path) -> None:
    state = {f"emb{n}.weight": torch.arange(600.0).reshape(30, 20).sin() for n in "ab"}
    torch.save(state, tmp_path / "copies.pth")
    settings = {"thresholds": Thresholds(compared_nbytes=4000), "fail_on": Severity.NOTICE}
    report = check(request_of(tmp_path / "copies.pth", base=tmp_path, settings=settings)).report
    (finding,) = (one for file in report.files for one in file.findings if one.id == "checks-passed-over")
    why = "not compared with others: up to 4.00 kB are read again for that"
    assert finding.says == f"Passed over: emba.weight ({why})." and finding.severity is Severity.INFO
    settings["thresholds"] = Thresholds(compared_nbytes=5000)
    report = check(request_of(tmp_path / "copies.pth", base=tmp_path, settings=settings)).report
    assert "checks-passed-over" not in ids_of(report)["copies.pth"]


def test_what_was_left_out_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.lint import check as module

    real = module.survey_places

    def few(*args: object, **more: object) -> object:
        return replace(real(*args, **more), incomplete=True, skipped=("Everything after the first 1 files.",))  # type: ignore[arg-type]

    monkeypatch.setattr(module, "survey_places", few)
    report = check(request_of(folder / "healthy.safetensors", base=folder)).report
    assert ids_of(report) == {".": ["not-examined"]} and report.failed


def test_members_of_an_archive_are_checked_with_their_numbers(folder: Path) -> None:
    import zipfile

    with zipfile.ZipFile(folder / "both.zip", "w") as archive:
        archive.write(folder / "sick.safetensors", "inner/sick.safetensors")
        archive.write(folder / "healthy.safetensors", "inner/healthy.safetensors")
    report = check(request_of(folder / "both.zip", base=folder)).report
    assert ids_of(report) == {"both.zip/inner/sick.safetensors": ["non-finite"]}
    (sick,) = [file for file in report.files if file.findings]
    assert (sick.file, sick.member) == ("both.zip", "inner/sick.safetensors")


def test_processes_side_by_side_give_the_same_report(folder: Path) -> None:
    for number in range(6):
        tensor_file(folder / f"n{number}.safetensors", [0.1, 0.2, 0.3, 0.4])
    alone = check(request_of(folder, base=folder)).report
    together = check(request_of(folder, base=folder, jobs=2)).report
    assert replace(alone, seconds=0.0) == replace(together, seconds=0.0) and len(alone.files) == 13


def test_the_kinds_are_all_that_a_check_can_make(folder: Path) -> None:
    ids = {kind.id for kind in checked_kinds()}
    assert ids >= ALWAYS | OF_NUMBERS and {"dangerous-global", "pointer-file", "spelled-pickle"} <= ids
    found = check(request_of(folder, base=folder)).survey
    assert {finding.id for row in found.rows for finding in row.findings} <= ids
    assert find_ids(("*",), "select") == ids
    assert DEFAULT_LIMITS.members == 300_000


def test_the_file_of_a_member_is_its_archive() -> None:
    file = CheckedFile(path="a/b.zip/c/d.pth", nbytes=1, kind=RowKind.CHECKPOINT, member="c/d.pth")
    assert file.file == "a/b.zip" and replace(file, path="a/b.zip", member="").file == "a/b.zip"


def test_a_few_bytes_that_are_shown_as_many_are_not_read(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "wide.pth"
    torch.save({"fc.weight": torch.zeros(1).expand(1 << 20, 1 << 20)}, path)
    report = check(request_of(path, base=tmp_path)).report
    assert "numbers-unread" in ids_of(report)["wide.pth"] and report.failed
    torch.save({"fc.weight": torch.tensor([0.1, 0.2]).expand(64, 2)}, path)
    assert "numbers-unread" not in ids_of(check(request_of(path, base=tmp_path)).report).get("wide.pth", [])


def test_what_git_keeps_is_passed_over_and_said(tmp_path: Path) -> None:
    for name in (".git", "sub/.git", "other/.git"):
        (tmp_path / name).mkdir(parents=True)
        tensor_file(tmp_path / name / "sick.safetensors", [0.1, float("nan"), 0.3, 0.4])
        if name != "other/.git":
            (tmp_path / name / "HEAD").write_text("ref: refs/heads/main")
    report = check(request_of(tmp_path, base=tmp_path)).report
    # Without a HEAD it is a folder like any other.
    assert ids_of(report) == {"other/.git/sick.safetensors": ["non-finite"]}
    assert report.skipped == (".git: what git keeps for itself.", "sub/.git: what git keeps for itself.")
    assert len(ids_of(check(request_of(tmp_path, base=tmp_path, git=True)).report)) == 3


def test_spectra_count_where_they_are_asked_for(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {f"layers.{i}.mlp.weight": torch.randn(64, 80) / 8 for i in range(3)}
    state["layers.1.mlp.weight"] = torch.randn(64, 3) @ torch.randn(3, 80) / 8
    torch.save(state, tmp_path / "thin.pth")
    asked = check(request_of(tmp_path / "thin.pth", base=tmp_path, spectra=True))
    assert "low-rank" in ids_of(asked.report)["thin.pth"]
    assert "low-rank" not in ids_of(check(request_of(tmp_path / "thin.pth", base=tmp_path)).report).get("thin.pth", [])
    known = tmp_path / "known.json"
    known.write_text(baseline_text(entries_of(known, tmp_path, asked.heard)))
    for spectra in (False, True):
        report = check(request_of(tmp_path / "thin.pth", base=tmp_path, spectra=spectra, baseline=known)).report
        # What was not asked for is not gone.
        assert report.gone == () and "low-rank" not in ids_of(report).get("thin.pth", [])
