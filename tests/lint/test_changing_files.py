"""Files that change or vanish while an audit goes over them: each a finding or the right answer for the bytes that were
read, the others untouched, the store whole, and the next audit sees what is there by then."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.checkpoint.source import PathSource
from inspector.lint import audit as auditing
from inspector.lint.audit import audit, merge_parts
from inspector.lint.check import check
from inspector.lint.report import CheckReport
from inspector.render.checked import headline
from inspector.survey import row as rows
from inspector.survey.survey import How
from inspector.sweep.store import open_store
from tests.lint.test_check import ids_of, request_of, tensor_file

NAMES = ("net.safetensors", "net.pth", "net.bin")
_WELL = [0.1, 0.2, 0.3, 0.4]
_TENSORS = 30


@pytest.fixture(params=NAMES)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """One of three formats, between two that stay."""
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    for name in ("a.safetensors", "z.safetensors"):
        tensor_file(fleet / name, [0.1, float("nan"), 0.3, 0.4])
    found = fleet / str(request.param)
    write(found, sick=False)
    return found


def write(path: Path, *, sick: bool) -> None:
    """A network of one of the formats, which its name tells: of many tensors, so that there is a middle of reading."""
    generator = torch.Generator().manual_seed(1)
    state = {f"layers.{n}.weight": torch.randn(64, 64 + n, generator=generator) for n in range(_TENSORS)}
    if sick:
        state[f"layers.{_TENSORS - 1}.weight"][3, 4] = float("nan")
    if path.suffix == ".safetensors":
        from safetensors.torch import save_file

        save_file(state, path)
    else:
        torch.save(state, path, _use_new_zipfile_serialization=path.suffix == ".pth")


def rewritten(path: Path) -> None:
    """Into the same file, of the same length."""
    before = path.stat()
    write(path, sick=True)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def replaced(path: Path) -> None:
    other = path.parent.parent / f"other{path.suffix}"
    write(other, sick=True)
    other.replace(path)


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(100))


def deleted(path: Path) -> None:
    path.unlink()


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    tensor_file(path / "inner.safetensors", _WELL)


def a_broken_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def a_pipe(path: Path) -> None:
    """Whoever opens it waits for ever."""
    path.unlink()
    os.mkfifo(path)


CHANGES = (rewritten, replaced, truncated, emptied, grown, deleted, a_folder, a_broken_link, a_pipe)


def before_reading(monkeypatch: pytest.MonkeyPatch, file: Path, change: Callable[[Path], None]) -> None:
    """Between the plan and the work."""
    real = auditing.survey_plan

    def late(*given: object, **more: object) -> object:
        change(file)
        return real(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(auditing, "survey_plan", late)


def after_its_header(monkeypatch: pytest.MonkeyPatch, file: Path, change: Callable[[Path], None]) -> None:
    real = rows.open_checkpoint
    left = [change]

    def late(where: object, **options: object) -> object:
        found = real(where, **options)  # type: ignore[arg-type]
        if Path(str(where)) == file and left:
            left.pop()(file)
        return found

    monkeypatch.setattr(rows, "open_checkpoint", late)


def amid_its_numbers(monkeypatch: pytest.MonkeyPatch, file: Path, change: Callable[[Path], None]) -> None:
    """Before the tenth of its tensors."""
    real = PathSource.read_into
    reads: list[int] = []

    def late(self: PathSource, offset: int, buffer: memoryview) -> None:
        if self.path == str(file):
            reads.append(offset)
            if len(reads) == 10:
                change(file)
        real(self, offset, buffer)

    monkeypatch.setattr(PathSource, "read_into", late)


def in_the_end(monkeypatch: pytest.MonkeyPatch, file: Path, change: Callable[[Path], None]) -> None:
    """When it has been read, and its results are kept; before the plan is."""
    real = auditing.plan_lines

    def late(*given: object) -> object:
        change(file)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(auditing, "plan_lines", late)


def timeless(report: CheckReport) -> CheckReport:
    return replace(report, seconds=0.0)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", [before_reading, after_its_header, amid_its_numbers, in_the_end])
def test_what_changes_is_told_and_the_next_audit_sees_it(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: Callable[..., None], change: Callable[..., None]
) -> None:
    request = request_of(file.parent, base=file.parent)
    plain = check(request).report
    with monkeypatch.context() as patched:
        when(patched, file, change)
        report = audit(request, How(jobs=1, store=open_store(str(tmp_path / "s")))).report
    others = [one for one in report.files if one.file != file.name]
    assert others == [one for one in plain.files if one.file != file.name]
    ids = ids_of(report).get(file.name, [])
    if when is in_the_end:
        # What was read was there.
        assert timeless(report) == timeless(plain)
    else:
        assert {"file-changed", "unreadable-file"} & {*ids}, ids
        assert "internal-error" not in ids
    # The report can be made anew from the store, in which nothing is damaged.
    store = open_store(str(tmp_path / "s"))
    assert timeless(merge_parts(request, [store]).report) == timeless(report) and not store.damaged
    now = check(request).report
    again = audit(request, How(jobs=1, store=store)).report
    assert timeless(again) == timeless(now) and not store.damaged
    assert "file-changed" not in ids_of(again).get(file.name, [])
    if change in (rewritten, replaced):
        assert "non-finite" in ids_of(again)[file.name]


@pytest.mark.parametrize("change", [rewritten, truncated, deleted])
def test_a_shard_of_a_folder_that_changes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    folder = tmp_path / "fleet" / "net"
    folder.mkdir(parents=True)
    for number in (1, 2):
        write(folder / f"model-0000{number}-of-00002.safetensors", sick=False)
    shard = folder / "model-00002-of-00002.safetensors"
    request = request_of(folder.parent, base=folder.parent)
    with monkeypatch.context() as patched:
        after_its_header(patched, folder, lambda _: change(shard))
        report = audit(request, How(jobs=1, store=open_store(str(tmp_path / "s")))).report
    assert "file-changed" in ids_of(report)["net"]
    again = audit(request, How(jobs=1, store=open_store(str(tmp_path / "s")))).report
    assert timeless(again) == timeless(check(request).report)


def test_a_file_that_went_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not as one that a worker of another machine does not see."""
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    tensor_file(fleet / "net.safetensors", _WELL)
    request = request_of(fleet, base=fleet)
    before_reading(monkeypatch, fleet / "net.safetensors", deleted)
    (found,) = audit(request, How(jobs=1, store=open_store(str(tmp_path / "s")))).report.files
    assert [one.says for one in found.findings] == ["It was listed, and is not there any more."]


def test_numbers_that_are_not_kept_are_not_said_to_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    write(fleet / "net.safetensors", sick=False)
    request = request_of(fleet, base=fleet)
    how = How(jobs=1, store=open_store(str(tmp_path / "s")))
    unkept = "What was read of 1 checkpoint that changed meanwhile does not count."
    with monkeypatch.context() as patched:
        after_its_header(patched, fleet / "net.safetensors", rewritten)
        said = headline(audit(request, how).report)
    assert f" {unkept} Passes" in said and "umbers were read" not in said
    tensor_file(fleet / "well.safetensors", _WELL)
    with monkeypatch.context() as patched:
        after_its_header(patched, fleet / "net.safetensors", rewritten)
        said = headline(audit(request, how).report)
    assert f"Numbers were read. {unkept}" in said
    assert unkept not in headline(check(request).report)


def test_workers_of_their_own_meet_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten files in two processes, each changed in another way between the plan and the work."""
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    for number, _ in enumerate(CHANGES):
        write(fleet / f"n{number}.pth", sick=False)
    tensor_file(fleet / "well.safetensors", _WELL)
    request = request_of(fleet, base=fleet)
    real = auditing.survey_plan

    def late(*given: object, **more: object) -> object:
        for number, change in enumerate(CHANGES):
            change(fleet / f"n{number}.pth")
        return real(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(auditing, "survey_plan", late)
    report = audit(request, How(jobs=2, store=open_store(str(tmp_path / "s")))).report
    told = ids_of(report)
    assert {name for name, ids in told.items() if {"file-changed", "unreadable-file"} & {*ids}} == {
        f"n{number}.pth" for number, _ in enumerate(CHANGES)
    }
    monkeypatch.setattr(auditing, "survey_plan", real)
    again = audit(request, How(jobs=2, store=open_store(str(tmp_path / "s")))).report
    assert timeless(again) == timeless(check(request).report)


def test_a_store_between_two_changes_answers_for_each(tmp_path: Path) -> None:
    """There and back again: what was kept of the first is the answer once more where size and time are those."""
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    file = tensor_file(fleet / "net.safetensors", _WELL)
    (tmp_path / "kept").mkdir()
    shutil.copy2(file, tmp_path / "kept" / "net.safetensors")
    request = request_of(fleet, base=fleet)
    how = How(jobs=1, store=open_store(str(tmp_path / "s")))
    first = audit(request, how).report
    file.write_bytes(file.read_bytes()[:-16] + np.asarray([1, np.nan, 1, 1], "<f4").tobytes())
    assert ids_of(audit(request, how).report)["net.safetensors"] == ["non-finite"]
    shutil.copy2(tmp_path / "kept" / "net.safetensors", file)
    assert timeless(audit(request, how).report) == timeless(first)
