"""Class folders are listed as by torchvision's ImageFolder; what is no picture is said; archives are read in place."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torchvision.datasets import ImageFolder

from inspector.errors import ExplainError, ReadError, UnknownFormat, UsageError
from inspector.evaluate import files
from inspector.evaluate.labels import open_class_folders


def png(value: int = 0, size: int = 4) -> bytes:
    data = io.BytesIO()
    Image.fromarray(np.full((size, size, 3), value, dtype=np.uint8)).save(data, "PNG")
    return data.getvalue()


def _tree(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return root


FILES = {
    "star/b.png": png(1),
    "star/deep/a.JPG": png(2),
    "Circle/10.png": png(3),
    "Circle/2.png": png(4),
    "star/a.png": png(5),
    "star-b/x.webp": png(6),
}


def test_classes_and_pictures_are_those_of_torchvision(tmp_path: Path) -> None:
    root = _tree(tmp_path / "data", FILES)
    found, theirs = open_class_folders(root).listing, ImageFolder(str(root))
    assert list(found.classes) == theirs.classes == ["Circle", "star", "star-b"]
    ours = [(str(root / path), label) for path, label in zip(found.paths, found.labels, strict=True)]
    assert ours == theirs.samples
    assert files.ENDINGS == __import__("torchvision").datasets.folder.IMG_EXTENSIONS


def test_an_empty_class_counts_as_with_allow_empty_and_is_said(tmp_path: Path) -> None:
    root = _tree(tmp_path / "data", {**FILES, "Other/notes.txt": b"x"})
    (root / "Nothing").mkdir()
    found = open_class_folders(root).listing
    theirs = ImageFolder(str(root), allow_empty=True)
    assert list(found.classes) == theirs.classes
    assert list(found.labels) == theirs.targets
    assert found.empty == ("Nothing", "Other")


def test_what_is_no_picture_in_a_class_folder_is_listed(tmp_path: Path) -> None:
    more = {
        "star/notes.txt": b"x",
        "loose.png": png(),
        ".cache/a.png": png(),
        "star/Thumbs.db": b"",
        "star/._a.png": b"",
    }
    root = _tree(tmp_path / "data", {**FILES, **more})
    (root / "linked").symlink_to(root / "star", target_is_directory=True)
    found = open_class_folders(root).listing
    assert found.classes == ("Circle", "star", "star-b")
    assert dict(found.left_out) == {
        ".cache": "is a hidden folder",
        "linked": "is a link to a folder, which is not followed",
        "loose.png": "lies in no class folder",
        "star/notes.txt": "is no picture by its ending",
    }
    assert found.left_out_count == 4


def test_a_link_to_a_file_elsewhere_is_followed_only_for_its_owner(tmp_path: Path) -> None:
    root = _tree(tmp_path / "data", FILES)
    (tmp_path / "secret.png").write_bytes(png(9))
    (root / "star" / "link.png").symlink_to(tmp_path / "secret.png")
    own = open_class_folders(root)
    assert own.read("star/link.png") == png(9)
    assert "star/link.png" not in open_class_folders(root, follow_links=False).listing.paths


def _zip(place: Path, files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(place, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return place


def _tar(place: Path, files: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(place, mode) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return place


@pytest.mark.parametrize("above", ["", "./", "val/", "run/val/"])
@pytest.mark.parametrize("kind", ["zip", "deflated.zip", "tar", "tar.gz", "tar.xz"])
def test_an_archive_is_as_the_folder(tmp_path: Path, kind: str, above: str) -> None:
    files = {above + name: data for name, data in FILES.items()}
    place = tmp_path / f"data.{kind}"
    if kind.endswith("zip"):
        _zip(place, files, zipfile.ZIP_DEFLATED if kind[0] == "d" else zipfile.ZIP_STORED)
    else:
        _tar(place, files, {"tar": "w", "tar.gz": "w:gz", "tar.xz": "w:xz"}[kind])  # type: ignore[arg-type]
    packed, plain = open_class_folders(place), open_class_folders(_tree(tmp_path / "data", FILES))
    ours, theirs = packed.listing, plain.listing
    assert (ours.classes, ours.paths, ours.labels) == (theirs.classes, theirs.paths, theirs.labels)
    for _ in range(2):  # a second look reads it again
        assert [packed.read(path) for path in ours.paths] == [FILES[path] for path in theirs.paths]


def test_a_single_class_folder_in_an_archive_is_a_class(tmp_path: Path) -> None:
    found = open_class_folders(_zip(tmp_path / "a.zip", {"cat/1.png": png(), "cat/2.png": png()})).listing
    assert (found.classes, found.paths) == (("cat",), ("cat/1.png", "cat/2.png"))


def test_names_of_an_archive_lead_nowhere(tmp_path: Path) -> None:
    files = {
        **FILES,
        "../out/a.png": png(),
        "/etc/a.png": png(),
        "star/../../a.png": png(),
        "__MACOSX/star/a.png": png(),
    }
    for place in (_zip(tmp_path / "a.zip", files), _tar(tmp_path / "a.tar", files)):
        found = open_class_folders(place)
        assert set(found.listing.paths) == set(FILES)
        with pytest.raises(ReadError):
            found.read("../out/a.png")
    assert not (tmp_path.parent / "out").exists()


def test_a_hundred_thousand_small_lies_do_not_take_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_PICTURE_NBYTES", 1000)
    found = open_class_folders(_zip(tmp_path / "a.zip", {"a/1.png": b"\0" * 1001, "a/2.png": png()}))
    with pytest.raises(ExplainError, match="are read up to"):
        found.read("a/1.png")
    assert found.read("a/2.png") == png()


def test_a_change_is_another_set(tmp_path: Path) -> None:
    root = _tree(tmp_path / "data", FILES)
    before = open_class_folders(root).listing.digest
    assert open_class_folders(root).listing.digest == before
    (root / "star" / "a.png").write_bytes(png(77))
    assert open_class_folders(root).listing.digest != before


@pytest.mark.parametrize("files", [{"a.png": png()}, {"star/a.txt": b"x"}, {"star/deep/readme": b""}])
def test_no_class_folders_is_said(tmp_path: Path, files: dict[str, bytes]) -> None:
    with pytest.raises(UsageError, match="no pictures in class folders"):
        open_class_folders(_tree(tmp_path / "data", files))


def test_what_is_no_folder_and_no_archive_is_said(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="There is no folder nowhere"):
        open_class_folders(tmp_path / "nowhere")
    (tmp_path / "one.png").write_bytes(png())
    with pytest.raises(UnknownFormat, match="neither a folder nor a zip or tar"):
        open_class_folders(tmp_path / "one.png")
