"""The folder opened to visitors: everything in it, nothing outside it, and nothing at all unless it is set."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from inspector.errors import RefusedContent
from inspector.web import server_paths
from inspector.web.server_listing import list_root
from inspector.web.store import ContentStore


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "open"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.pth").write_bytes(b"a")
    (folder / "deep" / "b.pth").write_bytes(b"b")
    (folder / ".hidden").write_bytes(b"h")
    (tmp_path / "secret.pth").write_bytes(b"s")
    (tmp_path / "open-too").mkdir()
    (tmp_path / "open-too" / "c.pth").write_bytes(b"c")
    store = ContentStore(tmp_path / "store")
    list_root.clear()
    monkeypatch.setenv("INSPECTOR_ROOT", str(folder))
    monkeypatch.setattr(server_paths, "the_store", lambda: store)
    monkeypatch.setattr(server_paths.session, "owner", lambda: "me")
    return folder


def test_files_of_the_folder_are_listed_and_open(root: Path) -> None:
    assert server_paths.listing().files == ("a.pth", "deep/b.pth")
    stored = server_paths.store_path("deep/b.pth")
    assert stored.path == str(root / "deep" / "b.pth")
    assert stored.names == {"me": "b.pth"}


@pytest.mark.parametrize(
    "path",
    ["../secret.pth", "../none.pth", "deep/../../secret.pth", "../open-too/c.pth", "{tmp}/secret.pth", "", "a\0b"],
)
def test_nothing_outside_is_opened(root: Path, path: str) -> None:
    with pytest.raises(RefusedContent, match="outside the folder"):
        server_paths.store_path(path.format(tmp=root.parent))


@pytest.mark.parametrize("path", ["none.pth", "deep/none.pth", "deep/../none.pth", "deep"])
def test_what_is_gone_is_said_to_be_gone(root: Path, path: str) -> None:
    with pytest.raises(RefusedContent, match=f"There is no file '{path}'.*, or it is gone"):
        server_paths.store_path(path)
    if path != "deep":
        with pytest.raises(RefusedContent, match=r"There is no folder 'none'.*, or it is gone"):
            server_paths.resolve_folder("none")


def test_a_link_out_of_the_folder_is_neither_listed_nor_opened(root: Path) -> None:
    (root / "link.pth").symlink_to(root.parent / "secret.pth")
    (root / "linked").symlink_to(root.parent, target_is_directory=True)
    assert server_paths.listing().files == ("a.pth", "deep/b.pth")
    for path in ("link.pth", "linked/secret.pth", "linked/none.pth"):
        with pytest.raises(RefusedContent, match="outside the folder"):
            server_paths.store_path(path)


def test_a_link_inside_the_folder_works(root: Path) -> None:
    (root / "again.pth").symlink_to(root / "a.pth")
    assert "again.pth" in server_paths.listing().files
    assert server_paths.store_path("again.pth").nbytes == 1


def test_of_ten_thousand_files_the_shallow_are_offered_and_the_others_are_named(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").mkdir()
    for n in range(300):
        (root / "a" / f"{n:03}.pth").write_bytes(b"")
    (root / "z" / "deep").mkdir(parents=True)
    (root / "z" / "deep" / "last.zip").write_bytes(b"last")
    offered = server_paths.listing()
    # Of the large folder the first hundred; behind it nothing is lost.
    assert offered.files[:2] == ("a.pth", "a/000.pth") and offered.files[-2:] == ("deep/b.pth", "z/deep/last.zip")
    assert len(offered.files) == 103 and not offered.lists_all and (offered.count, offered.says) == (303, "303")
    assert offered.folders == ("./", "a/", "deep/", "z/deep/")
    assert offered.archives == ("z/deep/last.zip",) and offered.sets == ("z",)
    assert server_paths.is_folder("a") and not server_paths.is_folder("a/000.pth") and not server_paths.is_folder("..")
    assert server_paths.store_path("a/299.pth").nbytes == 0
    monkeypatch.setattr("inspector.web.server_listing._WALKED", 10)
    list_root.clear()
    assert server_paths.listing().says == "more than 301"


def test_without_a_folder_there_is_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INSPECTOR_ROOT")
    assert server_paths.server_root() is None
    assert server_paths.listing().files == ()
    with pytest.raises(RefusedContent, match="outside the folder"):
        server_paths.store_path("a.pth")


def test_a_large_file_is_read_by_a_worker_and_only_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask(job, *, says):
        asked.append(job.key)
        return run(None, *job.arguments)

    def run(bench, path, nbytes, modified_ns):
        assert (nbytes, modified_ns) == (path.stat().st_size, path.stat().st_mtime_ns)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(server_paths, "_LARGE_NBYTES", 2)
    monkeypatch.setattr(server_paths.jobs, "ask", ask)
    (root / "large.pth").write_bytes(b"large")
    assert server_paths.store_path("a.pth").nbytes == 1 and not asked
    assert server_paths.store_path("large.pth").sha256 == hashlib.sha256(b"large").hexdigest()
    server_paths.store_path("large.pth")
    assert len(asked) == 2 and asked[0] == asked[1]
    (root / "large.pth").write_bytes(b"other")
    os.utime(root / "large.pth", ns=(1, 1))
    server_paths.store_path("large.pth")
    assert asked[2] != asked[0]
