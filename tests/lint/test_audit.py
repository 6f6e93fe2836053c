"""A check over a store: the same report, nothing read twice, parts put together, and what is missing is told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from inspector.catalogue.parts import catalogue_of
from inspector.catalogue.update import update
from inspector.cli.main import run
from inspector.errors import ReadError
from inspector.limits import DEFAULT_LIMITS
from inspector.lint import audit as auditing
from inspector.lint import check as checking
from inspector.lint.audit import audit, merge_parts, runs_of
from inspector.lint.check import check
from inspector.lint.report import CheckReport
from inspector.survey import row as rows
from inspector.survey.row import Reading
from inspector.survey.survey import How
from inspector.sweep.piece import Part
from inspector.sweep.store import open_store
from tests.lint.test_check import folder, ids_of, request_of, tensor_file

__all__ = ["folder"]


@pytest.fixture
def fleet(folder: Path) -> Path:
    """The folder of a check, with a model in shards and more files beside."""
    shards = folder / "sharded"
    shards.mkdir()
    for number in (1, 2):
        save_file({f"w{number}": torch.ones(3)}, shards / f"model-0000{number}-of-00002.safetensors")
    index = {"weight_map": {f"w{n}": f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}}
    (shards / "model.safetensors.index.json").write_text(json.dumps(index))
    for number in range(12):
        tensor_file(folder / f"n{number:02}.safetensors", [0.1, 0.2, 0.3, float(number)])
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what readers opened, in this process."""
    real: Callable[..., object] = rows.open_checkpoint
    names: list[str] = []

    def watched(where: object, **options: object) -> object:
        names.append(Path(str(where)).name)
        return real(where, **options)

    monkeypatch.setattr(rows, "open_checkpoint", watched)
    return names


def how_of(place: Path, *, part: Part | None = None, jobs: int = 1) -> How:
    return How(jobs=jobs, store=open_store(str(place)), part=part or Part())


def timeless(report: CheckReport) -> CheckReport:
    return replace(report, seconds=0.0)


def test_an_audit_reports_what_a_check_does(fleet: Path, tmp_path: Path) -> None:
    request = request_of(fleet, base=fleet)
    plain = check(request).report
    assert timeless(audit(request, how_of(tmp_path / "s")).report) == timeless(plain)
    assert timeless(audit(request, how_of(tmp_path / "p", jobs=2)).report) == timeless(plain)
    assert len(plain.files) == 20 and plain.failed


def test_a_fleet_may_have_more_files_than_an_upload_and_not_any_number(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of(fleet, base=fleet)
    every = len(check(request).report.files)
    small = replace(DEFAULT_LIMITS, members=5)
    monkeypatch.setattr(checking, "reading_of", lambda *_, **__: Reading(limits=small))
    monkeypatch.setattr(auditing, "reading_of", lambda *_, **__: Reading(limits=small))
    cut = check(request).report
    assert len(cut.files) < every and cut.skipped[0] == "Everything after the first 5 files." and cut.failed
    whole = audit(request, how_of(tmp_path / "s")).report
    assert len(whole.files) == every and not whole.skipped
    monkeypatch.setattr(auditing, "_MOST_FILES", 7)
    cut = audit(request, how_of(tmp_path / "s")).report
    assert cut.skipped[0] == "Everything after the first 7 files." and cut.failed


def test_nothing_is_read_twice_but_what_changed(fleet: Path, tmp_path: Path, opened: list[str]) -> None:
    request = request_of(fleet, base=fleet)
    first = audit(request, how_of(tmp_path / "s")).report
    opened.clear()
    assert timeless(audit(request, how_of(tmp_path / "s")).report) == timeless(first)
    assert opened == []
    tensor_file(fleet / "n03.safetensors", [float("nan"), 0.2, 0.3, 3.0, 1.0, 2.0])
    tensor_file(fleet / "new.safetensors", [0.1, 0.2, 0.3, 0.4])
    (fleet / "n05.safetensors").unlink()
    again = audit(request, how_of(tmp_path / "s")).report
    assert opened == ["n03.safetensors", "new.safetensors"]
    assert ids_of(again)["n03.safetensors"] == ["non-finite"] and "n05.safetensors" not in ids_of(again)
    assert timeless(again) == timeless(check(request).report)


def test_another_question_is_asked_anew(fleet: Path, tmp_path: Path, opened: list[str]) -> None:
    audit(request_of(fleet, base=fleet, headers=True), how_of(tmp_path / "s"))
    opened.clear()
    report = audit(request_of(fleet, base=fleet), how_of(tmp_path / "s")).report
    assert opened and ids_of(report)["sick.safetensors"] == ["non-finite"]


@pytest.mark.parametrize("of", [2, 3, 7])
def test_parts_put_together_are_the_whole(fleet: Path, tmp_path: Path, of: int) -> None:
    request = request_of(fleet, base=fleet)
    shares = []
    for number in range(1, of + 1):
        report = audit(request, how_of(tmp_path / f"s{number}", part=Part(number=number, of=of))).report
        shares.append({file.path for file in report.files})
    # Each file in one of them, and no file of a folder that is one checkpoint as a file of its own.
    whole = check(request).report
    assert sorted(path for share in shares for path in share) == sorted(file.path for file in whole.files)
    stores = [open_store(str(tmp_path / f"s{number}")) for number in range(1, of + 1)]
    assert timeless(merge_parts(request, stores).report) == timeless(whole)
    (known,) = runs_of(stores)
    assert (known.of, known.ended) == (of, tuple(range(1, of + 1)))


def test_the_store_inside_the_audited_folder_is_no_file_of_it(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of(fleet, fleet / "old", base=fleet)
    plain = timeless(check(request).report)
    place = fleet / "st"
    place.mkdir()
    (tmp_path / "link").symlink_to(place)
    said = ("st: the store of this audit.",)
    for number in (1, 2):
        audit(request, how_of(tmp_path / "link", part=Part(number=number, of=2)))
        update([open_store(str(place))], catalogue_of(place))
    assert timeless(merge_parts(request, [open_store(str(place))]).report) == replace(plain, skipped=said)
    for _ in range(2):
        assert timeless(audit(request, how_of(place)).report) == replace(plain, skipped=said)

    monkeypatch.chdir(fleet)
    line = ["audit", "old", "--store", str(tmp_path / "s"), "--headers", "--catalogue", "old/kept"]
    assert run(line) == run(line) == 0
    assert "old/kept/catalogue: the catalogue of this audit." in capsys.readouterr().out
    assert run(["audit", "st", "--store", "st"]) == 2
    assert "st is the store of this audit. Name what is to be audited." in capsys.readouterr().err


def test_a_part_that_is_missing_fails_the_whole(fleet: Path, tmp_path: Path) -> None:
    request = request_of(fleet, base=fleet, settings={"ignore": ("non-finite", "dangerous", "no-checkpoint")})
    for number in (1, 3):
        audit(request, how_of(tmp_path / "s", part=Part(number=number, of=3)))
    report = merge_parts(request, [open_store(str(tmp_path / "s"))]).report
    assert report.failed
    assert "Of 3 parts these did not come to their end: 2." in report.skipped
    unread = [path for path, ids in ids_of(report).items() if ids == ["not-examined"]]
    assert unread and len(report.files) >= 20
    audit(request, how_of(tmp_path / "s", part=Part(number=2, of=3)))
    report = merge_parts(request, [open_store(str(tmp_path / "s"))]).report
    assert timeless(report) == timeless(check(request).report)


def test_what_changed_between_the_parts_is_told(fleet: Path, tmp_path: Path) -> None:
    request = request_of(fleet, base=fleet)
    audit(request, how_of(tmp_path / "s", part=Part(number=1, of=2)))
    tensor_file(fleet / "n03.safetensors", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    audit(request, how_of(tmp_path / "s", part=Part(number=2, of=2)))
    report = merge_parts(request, [open_store(str(tmp_path / "s"))]).report
    assert report.failed and "1 file changed between the parts, first n03.safetensors" in " ".join(report.skipped)


def test_a_file_that_changes_while_it_is_read_is_told_and_not_kept(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = rows.open_checkpoint

    def slow(where: object, **options: object) -> object:
        found = real(where, **options)  # type: ignore[arg-type]
        if Path(str(where)).name == "n04.safetensors":
            os.utime(fleet / "n04.safetensors", ns=(1, 1))
        return found

    monkeypatch.setattr(rows, "open_checkpoint", slow)
    request = request_of(fleet, base=fleet)
    report = audit(request, how_of(tmp_path / "s")).report
    assert ids_of(report)["n04.safetensors"] == ["file-changed"]
    # It is in the note of the run, so that the report can be made anew, and read again by the next audit.
    assert ids_of(merge_parts(request, [open_store(str(tmp_path / "s"))]).report)["n04.safetensors"] == ["file-changed"]
    monkeypatch.setattr(rows, "open_checkpoint", real)
    assert "n04.safetensors" not in ids_of(audit(request, how_of(tmp_path / "s")).report)


def test_several_runs_of_one_store_are_told_apart(fleet: Path, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "s"))
    audit(request_of(fleet, base=fleet), How(store=store))
    audit(request_of(fleet / "old", base=fleet), How(store=store))
    with pytest.raises(ReadError, match="The store holds 2 runs"):
        merge_parts(request_of(base=fleet), [store])
    first, second = runs_of([store])
    found = {one.id: merge_parts(request_of(base=fleet), [store], one.id).report for one in (first, second)}
    assert sorted(len(report.files) for report in found.values()) == [1, 20]
    with pytest.raises(ReadError, match="no run 'zzz'"):
        merge_parts(request_of(base=fleet), [store], "zzz")


def test_the_commands(fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "s")
    for part in ("1/2", "2/2"):
        run(["audit", str(fleet), "--store", store, "--part", part, "--headers", "--jobs", "1"])
    capsys.readouterr()
    assert run(["merge-parts", store]) == 1
    out = capsys.readouterr().out
    assert "evil.pkl: error: dangerous-global" in out and "Headers only" in out
    assert run(["merge-parts", str(fleet)]) == 2
    assert run(["audit", str(fleet), "--store", str(fleet)]) == 2
    assert run(["audit", str(fleet), "--store", store, "--part", "3/2"]) == 2
    assert "is no part" in capsys.readouterr().err
