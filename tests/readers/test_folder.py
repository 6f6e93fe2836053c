"""Folders: names that lead outside on any system, links, listings; and no path from a file is ever followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inspector.errors import LimitExceeded, ReadError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers.folder import DirectoryFolder, SubFolder, leads_outside

OUTSIDE = [
    "",
    "..",
    ".",
    "../secret",
    "a/../../secret",
    "a/..",
    "./a",
    "/etc/passwd",
    "a//b",
    "a/",
    "C:/Windows/x",
    "C:x",
    "c:\\x",
    "\\\\server\\share\\x",
    "..\\x",
    "a\\..\\b",
    "a\x00.pt",
    "x" * 4097,
]
INSIDE = ["a", "a/b", "model-00001-of-00002.safetensors", ".metadata", "..a", "a..", "a/b:c", "ü/ß", "a b"]


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda p: ascii(p[:20]))
def test_names_that_lead_outside(path: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    assert leads_outside(path)
    for place in (
        DirectoryFolder(folder, DEFAULT_LIMITS),
        SubFolder(DirectoryFolder(tmp_path, DEFAULT_LIMITS), "folder"),
    ):
        assert place.size_of(path) is None
        with pytest.raises(ReadError, match="has no file"):
            place.open(path)


@pytest.mark.parametrize("path", INSIDE)
def test_names_that_stay_inside(path: str) -> None:
    assert not leads_outside(path)


def test_a_directory_lists_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.pt").write_bytes(b"12345")
    (tmp_path / "z").write_bytes(b"1")
    (tmp_path / "empty").mkdir()
    folder = DirectoryFolder(tmp_path, DEFAULT_LIMITS)
    assert dict(folder.files()) == {"b/x.pt": 5, "z": 1}
    assert list(folder.files()) == ["b/x.pt", "z"]
    assert dict(folder.top()) == {"z": 1}
    assert folder.size_of("b/x.pt") == 5
    assert folder.size_of("b") is None
    assert folder.open("b/x.pt").read(1, 3) == b"234"
    inner = SubFolder(folder, "b")
    assert (dict(inner.files()), dict(inner.top()), inner.name) == ({"x.pt": 5}, {"x.pt": 5}, f"{tmp_path.name}/b")
    assert inner.open("x.pt").read(0, 5) == b"12345"


def test_links_to_files_are_followed_and_linked_folders_are_not(tmp_path: Path) -> None:
    """Download caches are made of links to files; a linked folder could lead anywhere."""
    cache, folder = tmp_path / "cache", tmp_path / "snapshot"
    cache.mkdir()
    folder.mkdir()
    (cache / "blob").write_bytes(b"weights")
    (folder / "model.bin").symlink_to(cache / "blob")
    (folder / "sub").symlink_to(cache, target_is_directory=True)
    (folder / "dangling").symlink_to(tmp_path / "nothing")
    (folder / "loop").symlink_to(folder / "loop")
    found = DirectoryFolder(folder, DEFAULT_LIMITS)
    assert dict(found.files()) == {"model.bin": 7}
    assert dict(found.top()) == {"model.bin": 7}
    assert found.size_of("sub/blob") is None
    assert found.size_of("dangling") is None
    with pytest.raises(ReadError):
        found.open("sub/blob")


def test_pipes_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert DirectoryFolder(tmp_path, DEFAULT_LIMITS).size_of("pipe") is None
    assert not DirectoryFolder(tmp_path, DEFAULT_LIMITS).files()


def test_too_many_files_and_a_folder_that_went_away(tmp_path: Path) -> None:
    for n in range(5):
        (tmp_path / str(n)).write_bytes(b"")
    for listing in ("files", "top"):
        with pytest.raises(LimitExceeded, match="more than 4 files"):
            getattr(DirectoryFolder(tmp_path, Limits(members=4)), listing)()
        assert len(getattr(DirectoryFolder(tmp_path, Limits(members=5)), listing)()) == 5
    with pytest.raises(ReadError, match="cannot be listed"):
        DirectoryFolder(tmp_path / "gone", DEFAULT_LIMITS).top()
