"""What a store keeps, and that nothing half written, damaged or foreign is taken for a result."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.errors import ExportError, ReadError, UsageError
from inspector.new_files import WRITING
from inspector.sweep.blobs import FolderBlobs
from inspector.sweep.gather import gather
from inspector.sweep.piece import KEY_DIGITS, key_of
from inspector.sweep.store import existing_store, open_store

KEYS = [key_of("squares", n) for n in range(5)]


def held(store_place: Path) -> dict[str, bytes]:
    return dict(open_store(str(store_place)).load("squares", set(KEYS)))


def test_what_is_put_is_there_for_the_next(tmp_path: Path) -> None:
    place = tmp_path / "store"
    store = open_store(str(place))
    store.put("squares", [(KEYS[0], b'{"a":1}'), (KEYS[1], b"[\\t2]")])
    store.put("squares", [(KEYS[2], b"3")])
    store.put("cubes", [(KEYS[3], b"27")])
    assert held(place) == {KEYS[0]: b'{"a":1}', KEYS[1]: b"[\\t2]", KEYS[2]: b"3"}
    assert dict(existing_store(str(place)).load("squares", {KEYS[2]})) == {KEYS[2]: b"3"}


def test_the_same_results_are_one_file_of_the_same_bytes(tmp_path: Path) -> None:
    names = []
    for name in ("a", "b"):
        store = open_store(str(tmp_path / name))
        for _ in range(2):
            store.put("squares", [(KEYS[0], b"0")])
        (part,) = (tmp_path / name / "results").iterdir()
        names.append((part.name, part.read_bytes()))
    assert names[0] == names[1]


@pytest.mark.parametrize("harm", ["cut", "other", "renamed", "bomb"])
def test_a_damaged_part_is_named_and_holds_nothing(tmp_path: Path, harm: str) -> None:
    store = open_store(str(tmp_path / "store"))
    store.put("squares", [(KEYS[0], b"0")])
    store.put("squares", [(KEYS[1], b"1")])
    part = sorted((tmp_path / "store" / "results").iterdir())[0]
    data = part.read_bytes()
    if harm == "cut":
        part.write_bytes(data[:-9])
    elif harm == "other":
        part.write_bytes(gzip.compress(KEYS[0].encode() + b"\t7\n", mtime=0))
    elif harm == "renamed":
        part.rename(part.with_name("squares-" + "0" * 32 + ".gz"))
    else:
        part.write_bytes(gzip.compress(b"0" * (1 << 20)))
    again = open_store(str(tmp_path / "store"))
    assert len(dict(again.load("squares", set(KEYS)))) == 1
    assert len(again.damaged) == 1


def test_what_somebody_still_writes_is_no_part(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    store.put("squares", [(KEYS[0], b"0")])
    (tmp_path / "store" / "results" / ".writing-1234").write_bytes(b"half")
    assert held(tmp_path / "store") == {KEYS[0]: b"0"}
    assert not open_store(str(tmp_path / "store")).damaged


def test_a_folder_with_other_files_is_no_place_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "model.pth").write_bytes(b"x")
    with pytest.raises(UsageError, match="holds other files"):
        open_store(str(tmp_path))
    with pytest.raises(UsageError, match="is no folder"):
        open_store(str(tmp_path / "model.pth"))
    with pytest.raises(ReadError, match="is no store"):
        existing_store(str(tmp_path))
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "store.json").write_text('{"format": "inspector store", "version": 99}')
    with pytest.raises(UsageError, match="no store of this version"):
        open_store(str(tmp_path / "new"))


class _Meanwhile(FolderBlobs):
    """Another driver does something between the question for the mark and that for other files."""

    def __init__(self, root: Path, meanwhile: Callable[[Path], object]) -> None:
        super().__init__(root)
        self._meanwhile = meanwhile

    def holds_others(self) -> bool:
        self._meanwhile(self.root)
        return super().holds_others()


def test_two_drivers_that_make_one_store_at_once_both_have_it(tmp_path: Path) -> None:
    def begin(root: Path) -> None:
        open_store(str(root)).put("squares", [(KEYS[0], b"0")])

    def still_write(root: Path) -> None:
        root.mkdir()
        (root / f"{WRITING}0123").write_bytes(b"")

    for name, meanwhile, kept in (("a", begin, {KEYS[0]: b"0"}), ("b", still_write, {})):
        store = open_store(str(tmp_path / name), _Meanwhile(tmp_path / name, meanwhile))
        assert dict(store.load("squares", set(KEYS))) == kept
        store.put("squares", [(KEYS[1], b"1")])
        assert held(tmp_path / name) == {**kept, KEYS[1]: b"1"}

    def write_another(root: Path) -> None:
        root.mkdir()
        (root / "model.pth").write_bytes(b"x")

    with pytest.raises(UsageError, match="holds other files"):
        open_store(str(tmp_path / "c"), _Meanwhile(tmp_path / "c", write_another))
    assert [place.name for place in (tmp_path / "c").iterdir()] == ["model.pth"]


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(tmp_path / "store"))
    store.put("squares", [(KEYS[0], b"0")])

    for number, says in (
        (errno.ENOSPC, "No space left on device. What it holds is whole; run the same again once there is room."),
        (errno.EROFS, "Read-only file system. What it holds is whole; run the same again once it can be written."),
    ):

        def refuse(*_: object, number: int = number, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr("inspector.sweep.blobs.new_file", refuse)
        with pytest.raises(ExportError, match=f"cannot be written: {says}"):
            store.put("squares", [(KEYS[1], b"1")])
    assert held(tmp_path / "store") == {KEYS[0]: b"0"}


def test_keys_are_of_the_question_and_all_facts() -> None:
    told = [key_of("a", 1, "x"), key_of("a", 1, "y"), key_of("b", 1, "x"), key_of("a", [1, "x"])]
    assert len(set(told)) == 4 and all(len(key) == KEY_DIGITS for key in told)
    assert key_of("a", 1, "x") == told[0]


def test_several_stores_become_one_without_what_is_damaged(tmp_path: Path) -> None:
    first, second, into = (open_store(str(tmp_path / name)) for name in ("a", "b", "c"))
    one, two, three = (KEY_DIGITS * digit for digit in "123")
    first.put("maps", [(one, b'"1"')])
    first.put("maps", [(two, b'"2"')])
    second.put("maps", [(two, b'"2"')])
    second.put("rows", [(three, b'"3"')])
    assert gather((first, second), into) == 3 and gather((first, second), into) == 0
    assert dict(into.load("maps", {one, two})) == {one: b'"1"', two: b'"2"'}
    assert dict(into.load("rows", {three})) == {three: b'"3"'}
    (damaged,) = (tmp_path / "b" / "results").glob("rows-*")
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    again = open_store(str(tmp_path / "d"))
    assert gather((first, second), again) == 2 and second.damaged == [f"results/{damaged.name}"]
    assert not dict(again.load("rows", {three}))
