"""A catalogue follows its store: nothing twice, nothing lost, whatever was cut, or came at once, or is older."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from inspector.catalogue import questions, update
from inspector.catalogue.open import Catalogue, open_catalogue
from inspector.catalogue.parts import PartFolder, catalogue_of
from inspector.errors import ExportError, ReadError
from inspector.lint.audit import audit
from inspector.path_text import path_of_text
from inspector.survey.survey import How
from inspector.sweep.piece import Part
from inspector.sweep.store import open_store
from tests.catalogue.zoo import EVIL, HOSTILE, bring_up_to_date, make_zoo, run_audit, weights
from tests.lint.test_check import request_of


def counts(folder: PartFolder) -> tuple[int, ...]:
    """Rows of files, tensors and findings."""
    with open_catalogue(folder) as catalogue:
        return tuple(
            catalogue.ask(f"select count(*) from {table}").rows[0][0] for table in ("files", "tensors", "findings")
        )


def paths(catalogue: Catalogue) -> list[str]:
    return [row[0] for row in catalogue.ask("select path from files order by path").rows]


def test_the_same_audit_twice_leaves_the_same_rows(zoo: Path, tmp_path: Path) -> None:
    run_audit(zoo, tmp_path / "s")
    first, folder = bring_up_to_date(tmp_path / "s")
    before = counts(folder)
    assert first.taken == 7 and before[:2] == (7, 37)
    run_audit(zoo, tmp_path / "s")
    again, _ = bring_up_to_date(tmp_path / "s")
    assert again.taken == 0 and counts(folder) == before
    assert len(folder.parts().rows) == 1


def test_what_changed_has_its_new_row_alone_and_what_went_has_none(zoo: Path, tmp_path: Path) -> None:
    run_audit(zoo, tmp_path / "s")
    bring_up_to_date(tmp_path / "s")
    save_file(weights(0, count=2), zoo / "tune1.safetensors")
    (zoo / "tune2.safetensors").unlink()
    run_audit(zoo, tmp_path / "s")
    _, folder = bring_up_to_date(tmp_path / "s")
    with open_catalogue(folder) as catalogue:
        assert paths(catalogue) == [f"zoo/{name}" for name in (
            "base.pth", "base.safetensors", "copy.safetensors", "evil.pkl", "stranger.safetensors", "tune1.safetensors"
        )]  # fmt: skip
        assert catalogue.ask("select tensors from files where path like '%tune1%'").rows == ((2,),)
        assert catalogue.ask("select count(*) from tensors").rows == ((6 + 6 + 6 + 7 + 2,),)
        assert catalogue.parts.index is not None and not catalogue.parts.index.plain


@pytest.mark.parametrize("left", [0, 1])
def test_what_went_is_gone_whichever_of_two_questions_asks_last(zoo: Path, tmp_path: Path, left: int) -> None:
    run_audit(zoo, tmp_path / "s")
    run_audit(zoo, tmp_path / "s", headers=True)
    bring_up_to_date(tmp_path / "s")
    for place in sorted(zoo.iterdir())[left:]:
        place.unlink()
    run_audit(zoo, tmp_path / "s")
    _, folder = bring_up_to_date(tmp_path / "s")
    with open_catalogue(folder) as catalogue:
        assert paths(catalogue) == ["zoo/base.pth"][:left] and catalogue.absent == 0
    # And without the index, worked out from the parts.
    for place in folder.root.glob("current-*"):
        place.unlink()
    with open_catalogue(folder) as catalogue:
        assert len(paths(catalogue)) == left and catalogue.absent == 0


def test_the_catalogue_weighs_a_finding_as_its_own_audit_does(tmp_path: Path) -> None:
    root = tmp_path / "zoo"
    root.mkdir()
    (root / "lfs.safetensors").write_bytes(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 1234\n"
    )
    (root / "evil.pkl").write_bytes(HOSTILE)
    told = audit(request_of(root, base=tmp_path), How(store=open_store(str(tmp_path / "s")))).report
    _, folder = bring_up_to_date(tmp_path / "s")
    with open_catalogue(folder) as catalogue:
        found = catalogue.ask("select path, findings.finding, findings.severity from findings join files using (file)")
        worst = dict(catalogue.ask("select path, severity from files").rows)
    said = {(file.path, one.id, one.severity.value) for file in told.files for one in file.findings}
    assert set(found.rows) == said and ("zoo/lfs.safetensors", "pointer-file", "notice") in said
    assert worst == {"zoo/lfs.safetensors": "notice", "zoo/evil.pkl": "error"}


def test_headers_alone_do_not_hide_what_numbers_said(zoo: Path, tmp_path: Path) -> None:
    run_audit(zoo, tmp_path / "s")
    run_audit(zoo, tmp_path / "s", headers=True, digest=False)
    _, folder = bring_up_to_date(tmp_path / "s")
    assert counts(folder)[:2] == (7, 37)
    with open_catalogue(folder) as catalogue:
        assert catalogue.ask("select count(*) from tensors where digest is not null").rows == ((37,),)
    # A file with other content is what the newest run says, headers or not.
    save_file(weights(5), zoo / "tune1.safetensors")
    run_audit(zoo, tmp_path / "s", headers=True, digest=False)
    bring_up_to_date(tmp_path / "s")
    with open_catalogue(folder) as catalogue:
        assert catalogue.ask("select path from files where not numbers order by path").rows == (
            ("zoo/evil.pkl",),
            ("zoo/tune1.safetensors",),
        )


@pytest.mark.parametrize("headers", [False, True], ids=["the same question", "another question"])
def test_the_audit_that_came_last_counts_though_its_clock_is_behind(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headers: bool
) -> None:
    now = time.time()
    monkeypatch.setattr("inspector.lint.audit.time.time", lambda: now + 7200)
    run_audit(zoo, tmp_path / "s")
    bring_up_to_date(tmp_path / "s")
    monkeypatch.setattr("inspector.lint.audit.time.time", lambda: now)
    (zoo / "tune2.safetensors").unlink()
    store = open_store(str(tmp_path / "s"))
    audit(request_of(zoo, base=zoo.parent, digest=not headers, headers=headers), How(store=store))
    _, folder = bring_up_to_date(tmp_path / "s")
    with open_catalogue(folder) as catalogue:
        assert "zoo/tune2.safetensors" not in paths(catalogue) and len(paths(catalogue)) == 6
    (remark,) = store.remarks
    assert "had a clock 120 minutes ahead of this one" in remark


def test_a_part_that_is_run_again_counts_though_the_clock_of_another_store_is_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which part is the newest is told by another driver's clock, and does not change: what it holds does."""
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "a.safetensors").write_bytes(b"\xff" * 40)
    request = request_of(tmp_path / "zoo", base=tmp_path, headers=True)
    now = time.time()
    stores = [open_store(str(tmp_path / name)) for name in "ab"]

    def run_part(number: int, at: float) -> None:
        monkeypatch.setattr("inspector.lint.audit.time.time", lambda: at)
        audit(request, How(store=stores[number], part=Part(number=number + 1, of=2)))

    run_part(1, now + 7200)
    folder = PartFolder(tmp_path / "c")
    ids = []
    for step in range(4):
        run_part(0, now + step)
        update.update(stores, folder)
        ids.append(folder.parts().runs[0].id)
    # Each of them is the one that counts, whichever id it has.
    assert len(set(ids)) == 4


def test_sources_add_up_in_one_store(zoo: Path, tmp_path: Path) -> None:
    other = make_zoo(tmp_path / "other")
    run_audit(zoo, tmp_path / "s")
    run_audit(other, tmp_path / "s")
    _, folder = bring_up_to_date(tmp_path / "s")
    assert counts(folder)[:2] == (14, 74)
    with open_catalogue(folder) as catalogue:
        places = {row[0] for row in catalogue.ask("select place from files").rows}
        assert places == {str(path) for root in (zoo, other) for path in root.iterdir()}


def test_a_folder_that_is_one_checkpoint_hides_its_shards_and_what_cannot_be_read_has_a_row(tmp_path: Path) -> None:
    root = tmp_path / "models"
    shards = root / "sharded"
    shards.mkdir(parents=True)
    for number in (1, 2):
        save_file({f"w{number}": np.full(3, number, np.float32)}, shards / f"model-0000{number}-of-00002.safetensors")
    index = {"weight_map": {f"w{n}": f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}}
    (shards / "model.safetensors.index.json").write_text(json.dumps(index))
    (root / "broken.safetensors").write_bytes(b"\xff" * 40)
    (root / "gone.pth").symlink_to(tmp_path / "nowhere")
    run_audit(root, tmp_path / "s")
    _, folder = bring_up_to_date(tmp_path / "s")
    with open_catalogue(folder) as catalogue:
        rows = catalogue.ask("select path, kind, tensors, severity from files order by path").rows
        assert rows == (
            ("models/broken.safetensors", "unreadable", 0, "error"),
            ("models/gone.pth", "unreadable", 0, "info"),
            ("models/sharded", "checkpoint", 2, rows[2][3]),
        )
        assert catalogue.absent == 0


def test_names_of_strangers_are_names(tmp_path: Path) -> None:
    root = tmp_path / "evil 'zoo' [*]?"
    root.mkdir()
    name = "a'; drop table files; --\x1b[31m\u202e.pkl"
    (root / name).write_bytes(pickle.dumps({}))
    (root / os.fsdecode(b"latin\xff.pkl")).write_bytes(pickle.dumps({}))
    save_file({EVIL: np.ones(2, np.float32), "long" * 2000: np.ones(2, np.float32)}, root / "names.safetensors")
    store = tmp_path / "st'ore [x]*?=1"
    run_audit(root, store)
    _, folder = bring_up_to_date(store)
    with open_catalogue(folder) as catalogue:
        held = [row[0].rpartition("/")[2] for row in catalogue.ask("select path from files order by path").rows]
        assert held == [name, "latin\\377.pkl", "names.safetensors"]
        names = [row[0] for row in catalogue.ask("select name from tensors order by length(name)").rows]
        assert names[0] == EVIL.replace("\x00", "\\x00")
        assert len(names[1]) == 2000 and names[1].startswith("longlong")
        assert [row[0].rpartition("/")[2] for row in questions.search(catalogue, "'; DROP").rows] == [
            name,
            "names.safetensors",
        ]


def test_a_name_written_as_another_is_shown_hides_no_file(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"z\xff")
    root.mkdir()
    (root / os.fsdecode(b"\xff.pkl")).write_bytes(HOSTILE)
    for name in ("\\udcff.pkl", "\\377.pkl", "\\xff.pkl"):
        (root / name).write_bytes(pickle.dumps({}))
    (root / ("a" * 200)).mkdir()
    deep = root / "/".join(["a" * 200] * 5)
    for name in ("b", "c"):  # Apart where a long path is shortened.
        place = deep / name / "/".join(["d" * 200] * 8)
        place.mkdir(parents=True)
        (place / "x.pkl").write_bytes(pickle.dumps({}))
    run_audit(root, tmp_path / "store", headers=True)
    _, folder = bring_up_to_date(tmp_path / "store")
    with open_catalogue(folder) as catalogue:
        assert catalogue.ask("select count(distinct path), count(distinct place), count(*) from files").rows == (
            (6, 6, 6),
        )
        ((path, place),) = catalogue.ask(
            "select distinct path, place from findings join files using (file) where files.finding = 'dangerous-global'"
        ).rows
    assert path == "z\\377/\\377.pkl" and path_of_text(place) == str(root / os.fsdecode(b"\xff.pkl"))


def test_a_cut_part_is_named_the_others_answer_and_the_next_update_writes_it_anew(zoo: Path, tmp_path: Path) -> None:
    other = make_zoo(tmp_path / "other")
    run_audit(zoo, tmp_path / "s")
    bring_up_to_date(tmp_path / "s")
    run_audit(other, tmp_path / "s")
    _, folder = bring_up_to_date(tmp_path / "s")
    assert len(folder.parts().rows) == 2
    cut = max(
        (folder.place(part.file("tensors")) for part in folder.parts().rows), key=lambda place: place.stat().st_mtime
    )
    whole = cut.read_bytes()
    for damaged in (whole[: len(whole) // 2], b""):
        cut.write_bytes(damaged)
        with open_catalogue(folder) as catalogue:
            assert catalogue.parts.damaged == (cut.name,)
            assert len(catalogue.ask("select * from files").rows) == 7 and catalogue.absent == 7
    again, _ = bring_up_to_date(tmp_path / "s")
    assert cut.name in again.damaged and counts(folder)[:2] == (14, 74)


def test_bytes_that_changed_under_their_length_are_found(zoo: Path, tmp_path: Path) -> None:
    run_audit(zoo, tmp_path / "s")
    run_audit(make_zoo(tmp_path / "other"), tmp_path / "s")
    _, folder = bring_up_to_date(tmp_path / "s")
    index = folder.parts().index
    assert index is not None
    place = folder.place(index.file("current"))
    place.write_bytes(b"\0" * place.stat().st_size)
    with open_catalogue(folder) as catalogue:
        assert catalogue.parts.damaged == (place.name,)
        assert len(catalogue.ask("select * from files").rows) == 14
        assert sorted(row[0] for row in questions.trunks(catalogue).rows) == [1] * 9 + [2]


def test_two_drivers_at_once_leave_every_row_once(zoo: Path, tmp_path: Path) -> None:
    other = make_zoo(tmp_path / "other")
    run_audit(zoo, tmp_path / "s")
    failed: list[BaseException] = []

    def drive(root: Path) -> None:
        try:
            run_audit(root, tmp_path / "s")
            bring_up_to_date(tmp_path / "s", most_parts=1)
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)

    drivers = [threading.Thread(target=drive, args=(root,)) for root in (zoo, other, zoo)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert failed == []
    _, folder = bring_up_to_date(tmp_path / "s")
    assert counts(folder)[:2] == (14, 74)


def test_parts_that_hold_the_same_file_count_once_and_compaction_ends_it(zoo: Path, tmp_path: Path) -> None:
    """As two drivers leave it who each took in what the other did."""
    run_audit(zoo, tmp_path / "s")
    run_audit(make_zoo(tmp_path / "other"), tmp_path / "s")
    folder = catalogue_of(tmp_path / "s")
    halves = [tmp_path / "one", tmp_path / "two"]
    for half in halves:
        shutil.copytree(tmp_path / "s", half)
    names = sorted(path.name for path in (tmp_path / "s" / "results").glob("described-*"))
    assert len(names) >= 3
    for half, name in zip(halves, (names[0], names[-1]), strict=True):
        (half / "results" / name).unlink()
        _, partial = bring_up_to_date(half)
        shutil.copytree(partial.root, folder.root, dirs_exist_ok=True)
    assert len(folder.parts().rows) == 2
    assert counts(folder)[:2] == (14, 74)
    updated, _ = bring_up_to_date(tmp_path / "s", most_parts=1)
    assert updated.compacted == 2 and len(folder.parts().rows) == 1
    assert counts(folder)[:2] == (14, 74)
    index = folder.parts().index
    assert index is not None and index.plain


def test_parts_of_an_earlier_version_are_written_anew(zoo: Path, tmp_path: Path) -> None:
    run_audit(zoo, tmp_path / "s")
    _, folder = bring_up_to_date(tmp_path / "s")
    for note in folder.root.glob("*.json"):
        note.write_text(json.dumps({"version": 0, "what": "nobody knows any more"}))
    with pytest.raises(ReadError, match=r"of an earlier version\. Run the audit again"), open_catalogue(folder):
        pass
    assert bring_up_to_date(tmp_path / "s")[0].taken == 7
    assert counts(folder)[:2] == (7, 37)


def test_a_later_version_is_refused_and_left(zoo: Path, tmp_path: Path) -> None:
    run_audit(zoo, tmp_path / "s")
    _, folder = bring_up_to_date(tmp_path / "s")
    note = next(folder.root.glob("*.json"))
    note.write_text(json.dumps({"version": 99}))
    for ask in (lambda: bring_up_to_date(tmp_path / "s"), lambda: counts(folder)):
        with pytest.raises(ReadError, match="written by a later version"):
            ask()
    assert json.loads(note.read_text()) == {"version": 99}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 2}', '{"version": "1"}', "[" * 100_000])
def test_a_note_that_is_none_is_named(asked: PartFolder, tmp_path: Path, text: str) -> None:
    shutil.copytree(asked.root, tmp_path / "c")
    (tmp_path / "c" / "zzz.json").write_text(text)
    parts = PartFolder(tmp_path / "c").parts()
    assert parts.damaged == ("zzz.json",) and len(parts.rows) == 1


def test_a_note_names_no_file_of_another_folder(asked: PartFolder, tmp_path: Path) -> None:
    shutil.copytree(asked.root, tmp_path / "c")
    folder = PartFolder(tmp_path / "c")
    note = tmp_path / "c" / f"{folder.parts().rows[0].id}.json"
    note.write_text(note.read_text().replace('"name": "files-', '"name": "../c/files-'))
    assert folder.parts().damaged == (note.name,)


def test_what_nobody_refers_to_any_more_is_removed_later(zoo: Path, tmp_path: Path) -> None:
    run_audit(zoo, tmp_path / "s")
    _, folder = bring_up_to_date(tmp_path / "s")
    stray = folder.root / "files-0123.parquet"
    stray.write_bytes(b"half")
    bring_up_to_date(tmp_path / "s")
    assert stray.exists()
    os.utime(stray, (1, 1))
    bring_up_to_date(tmp_path / "s")
    assert not stray.exists() and counts(folder)[:2] == (7, 37)
    assert not list(folder.root.glob(".*"))


def test_parts_in_stores_of_their_own_make_one_catalogue(zoo: Path, tmp_path: Path) -> None:
    stores = []
    for number in (1, 2, 3):
        store = open_store(str(tmp_path / f"s{number}"))
        audit(request_of(zoo, base=zoo.parent, digest=True), How(store=store, part=Part(number=number, of=3)))
        stores.append(store)
    folder = PartFolder(tmp_path / "all")
    update.update(stores, folder)
    assert counts(folder)[:2] == (7, 37)
    # One of them alone knows what it has not looked at.
    update.update(stores[:1], PartFolder(tmp_path / "one"))
    with open_catalogue(PartFolder(tmp_path / "one")) as catalogue:
        assert len(paths(catalogue)) + catalogue.absent == 7 and catalogue.absent


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/proc/1").exists(), reason="needs a folder that refuses")
def test_a_place_that_cannot_be_written_is_a_sentence(zoo: Path, tmp_path: Path) -> None:
    run_audit(zoo, tmp_path / "s")
    (tmp_path / "s" / "catalogue").write_text("a file")
    with pytest.raises((ExportError, ReadError), match="catalogue cannot be"):
        bring_up_to_date(tmp_path / "s")
