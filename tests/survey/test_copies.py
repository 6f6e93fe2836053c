"""Which files are the same bytes: held against reading all of them."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.checkpoint import packed_source
from inspector.checkpoint.source import PathSource
from inspector.limits import DEFAULT_LIMITS
from inspector.survey.copies import SAME_BYTES, in_archive, in_folder, say_copies
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


PACKED = ("stored.zip", "deflated.zip", "plain.tar", "all.tar.gz", "all.tar.xz", "twice.tar.gz.bz2")


def _packed(folder: Path, name: str, place: Path) -> None:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    if name.endswith(".zip"):
        method = zipfile.ZIP_DEFLATED if "deflated" in name else zipfile.ZIP_STORED
        with zipfile.ZipFile(place, "w", method) as archive:
            for path in files:
                archive.write(path, path.relative_to(folder).as_posix())
        return
    raw, mode = io.BytesIO(), {"gz": "w:gz", "xz": "w:xz", "bz2": "w:gz"}.get(name.rpartition(".")[2], "w")
    with tarfile.open(fileobj=raw, mode=mode) as archive:
        for path in files:
            archive.add(path, path.relative_to(folder).as_posix())
    import bz2

    place.write_bytes(bz2.compress(raw.getvalue()) if name.endswith("bz2") else raw.getvalue())


def _in_archive(folder: Path, place: Path) -> Iterator[SurveyRow]:
    for row in _rows(folder):
        yield SurveyRow(path=f"{place.name}/{row.path}", nbytes=row.nbytes, kind=row.kind)


@pytest.mark.parametrize("name", PACKED)
def test_members_of_an_archive_are_compared_compressed_or_not(
    folder: Path, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Those of a compressed tar were not, and nothing said so."""
    place = tmp_path_factory.mktemp("packed") / name
    _packed(folder, name, place)
    source = PathSource(place)
    told = say_copies(tuple(_in_archive(folder, place)), in_archive(source, DEFAULT_LIMITS))
    source.close()
    assert _said(told) == {
        f"{name}/{path}": says.replace("as ", f"as {name}/", 1)
        for path, says in _said(say_copies(_rows(folder), in_folder(folder))).items()
    }


def test_nothing_is_unpacked_where_a_length_or_a_checksum_tells_members_apart(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[str] = []
    stream = packed_source.PackedSource._stream

    def watched(self: packed_source.PackedSource) -> Iterator[bytes]:
        unpacked.append(self.name)
        return stream(self)

    monkeypatch.setattr(packed_source.PackedSource, "_stream", watched)
    place = tmp_path_factory.mktemp("packed") / "deflated.zip"
    _packed(folder, place.name, place)
    source = PathSource(place)
    assert say_copies(tuple(_in_archive(folder, place)), in_archive(source, DEFAULT_LIMITS))
    assert sorted(set(unpacked)) == ["a.bin", "again", "b/a.bin", "long", "third.bin"]
    del unpacked[:]
    for path in ("again", "third.bin", "b/a.bin", "c.bin", "inner", "empty"):
        (folder / path).unlink()
    gz = place.with_name("all.tar.gz")
    _packed(folder, gz.name, gz)
    say_copies(tuple(_in_archive(folder, gz)), in_archive(PathSource(gz), DEFAULT_LIMITS))
    assert unpacked == []


def test_a_checksum_alone_makes_no_copy(tmp_path: Path) -> None:
    """Two contents of one length and one CRC-32: four bytes make any checksum."""
    first, other = b"a" * 60 + bytes(4), b"b" * 60
    wanted = zlib.crc32(first)
    # CRC-32 is linear over bits: the last four bytes that give it, by elimination.
    base = zlib.crc32(other + bytes(4))
    columns = [(zlib.crc32(other + (1 << bit).to_bytes(4, "little")) ^ base, 1 << bit) for bit in range(32)]
    value, left = 0, wanted ^ base
    for place in reversed(range(32)):
        pivot = next((c for c in columns if c[0] >> place & 1), None)
        if pivot is None:
            continue
        columns = [(c[0] ^ pivot[0], c[1] ^ pivot[1]) if c[0] >> place & 1 else c for c in columns if c is not pivot]
        if left >> place & 1:
            left, value = left ^ pivot[0], value ^ pivot[1]
    forged = other + value.to_bytes(4, "little")
    assert zlib.crc32(forged) == wanted and forged != first
    with zipfile.ZipFile(tmp_path / "two.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", first)
        archive.writestr("b", forged)
        archive.writestr("c", first)
    rows = [SurveyRow(path=f"two.zip/{name}", nbytes=64, kind=RowKind.CHECKPOINT) for name in "abc"]
    said = _said(say_copies(rows, in_archive(PathSource(tmp_path / "two.zip"), DEFAULT_LIMITS)))
    assert said == {
        "two.zip/a": "Byte for byte the same as two.zip/c.",
        "two.zip/c": "Byte for byte the same as two.zip/a.",
    }


def test_a_bomb_is_unpacked_once_and_makes_no_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name in "abc":
            info = tarfile.TarInfo(name)
            info.size = 3 << 20
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    (tmp_path / "bomb.tar.gz").write_bytes(raw.getvalue())
    asked: list[int] = []
    unpack = packed_source.PackedSource._unpack
    monkeypatch.setattr(packed_source.PackedSource, "_unpack", lambda self: asked.append(1) or unpack(self))
    monkeypatch.setattr(packed_source, "MOST_NBYTES", 1 << 20)
    rows = [SurveyRow(path=f"bomb.tar.gz/{name}", nbytes=3 << 20, kind=RowKind.CHECKPOINT) for name in "abc"]
    assert _said(say_copies(rows, in_archive(PathSource(tmp_path / "bomb.tar.gz"), DEFAULT_LIMITS))) == {}
    assert len(asked) == 1
