"""Which files are the same bytes: held against reading all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.survey.copies import SAME_BYTES, in_folder, say_copies
from inspector.survey.report import RowKind, SurveyRow

LONG = 3 << 16


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = bytearray(LONG)
    inner[LONG // 2] = 1
    files = {"a.bin": b"x" * 9, "b/a.bin": b"x" * 9, "c.bin": b"x" * 8 + b"y", "long": bytes(LONG), "inner": inner}
    files |= {"again": bytes(LONG), "third.bin": b"x" * 9, "empty": b"", "none": b""}
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def _rows(folder: Path) -> list[SurveyRow]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    found = [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in paths]
    return [SurveyRow(path=path, nbytes=nbytes, kind=RowKind.CHECKPOINT) for path, nbytes in found]


def _said(rows: tuple[SurveyRow, ...]) -> dict[str, str]:
    return {row.path: f.says for row in rows for f in row.findings if f.id == SAME_BYTES.id}


def test_the_same_bytes_and_no_others(folder: Path) -> None:
    assert _said(say_copies(_rows(folder), in_folder(folder))) == {
        "a.bin": "Byte for byte the same as b/a.bin and 1 other.",
        "b/a.bin": "Byte for byte the same as a.bin and 1 other.",
        "third.bin": "Byte for byte the same as a.bin and 1 other.",
        "again": "Byte for byte the same as long.",
        "long": "Byte for byte the same as again.",
    }


def test_beyond_the_limit_nothing_is_said(folder: Path) -> None:
    assert set(_said(say_copies(_rows(folder), in_folder(folder), most=LONG))) == {"a.bin", "b/a.bin", "third.bin"}


def test_what_is_gone_or_a_link_is_no_copy(folder: Path) -> None:
    rows = _rows(folder)
    (folder / "a.bin").unlink()
    (folder / "third.bin").unlink()
    (folder / "third.bin").symlink_to(folder / "b" / "a.bin")
    assert set(_said(say_copies(rows, in_folder(folder)))) == {"again", "long"}
