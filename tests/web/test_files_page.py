"""Many files at once: an archive or a folder of the server as a table, and each of them opened from it."""

from __future__ import annotations

import io
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from inspector.checkpoint.digest import digest_of
from inspector.checkpoint.source import BufferSource
from inspector.cli.main import run
from inspector.errors import ReadError, RefusedContent, UsageError
from inspector.jobs.bench import Bench
from inspector.jobs.job import Job
from inspector.jobs.kinds import surveys
from inspector.limits import DEFAULT_LIMITS
from inspector.survey.members import member_source, survey_source
from inspector.survey.networks import network_of
from inspector.survey.report import RowKind, Survey
from inspector.survey.row import Reading
from inspector.web import jobs, server_paths, shelf, uploads
from inspector.web.store import Stored
from inspector.web.tar_chunks import tar_chunks
from tests.compare.files import write
from tests.web.finishing import finish

HOSTILE = b"cos\nsystem\n(S'echo hi'\ntR."


def tar(members: dict[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return raw.getvalue()


@pytest.fixture
def members(tmp_path: Path) -> dict[str, bytes]:
    """Two checkpoints, a hostile one, a text, and a further one in an archive of its own."""
    rng = np.random.default_rng(0)
    made = [
        write(tmp_path / f"{n}.safetensors", {"w.weight": rng.standard_normal((4, n)).astype(np.float32)}).read_bytes()
        for n in (2, 3, 5)
    ]
    return {
        "photos/run/a.safetensors": made[0],
        "photos/run/b.safetensors": made[1],
        "photos/old/evil.pth": HOSTILE,
        "photos/read me.txt": b"hello",
        "photos/more.tar": tar({"c.safetensors": made[2], "note.txt": b"x"}),
    }


def stored(raw: bytes, name: str) -> Stored:
    return uploads.the_store().put_bytes(raw, name=name, owner="me")


def table(app: AppTest) -> list[tuple[str, str, str]]:
    (frame,) = (element.value for element in app.dataframe)
    return list(zip(frame["Worst"], frame["File"], frame["What it is"], strict=True))


def on_files(app: AppTest) -> AppTest:
    app.switch_page("pages/files.py").run()
    finish(app)
    assert not app.exception
    return app


def test_every_member_has_a_row_and_the_worst_is_first(app: AppTest, members: dict[str, bytes]) -> None:
    app.session_state["owner"] = "me"
    file = stored(tar(members), "photos.tar")
    app.session_state["shelf"] = shelf.Shelf(name="photos.tar", sha256=file.sha256)
    on_files(app.run())
    assert "<h1>photos.tar</h1>" in " ".join(e.proto.body for e in app.get("html"))
    rows = table(app)
    assert rows[0][:2] == ("Error", "old/evil.pth")
    # The inner archive is one checkpoint, which has no row of its own beside it.
    assert [name for _, name, _ in rows[1:]] == [
        *("more.tar", "run/a.safetensors", "run/b.safetensors", "more.tar/note.txt", "read me.txt"),
    ]
    assert {name: what for _, name, what in rows}["run/a.safetensors"] == "safetensors, 1 tensor"
    says = next(e.proto.body for e in app.get("html") if "mi-answer" in e.proto.body)
    assert "4 checkpoints, 2 other files. 1 file has an error." in says


def _click(app: AppTest, place: int, column: str = "") -> None:
    cells = [(place, column)] if column else []
    selection = {"rows": [] if column else [place], "columns": [], "cells": cells}
    app.session_state["files-table-All-"] = {"selection": selection}
    app.run()
    assert not app.exception


def test_a_pointer_of_git_lfs_is_an_error_that_says_what_to_run(
    app: AppTest, members: dict[str, bytes], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 46830571\n"
    kept = {path: data for path, data in members.items() if path.endswith("safetensors")}
    app.session_state["owner"] = "me"
    file = stored(tar({**kept, "photos/model.bin": pointer}), "photos.tar")
    app.session_state["shelf"] = shelf.Shelf(name="photos.tar", sha256=file.sha256)
    on_files(app.run())
    assert table(app)[0] == ("Error", "model.bin", "Git LFS pointer, not the weights")
    (frame,) = (element.value for element in app.dataframe)
    assert '"git lfs pull" fetches those, 46,830,571 bytes' in frame["Worst finding"][0]
    says = next(e.proto.body for e in app.get("html") if "mi-answer" in e.proto.body)
    assert "1 Git LFS pointer" in says and "git lfs pull" in says and "1 file has an error" in says
    alone = tmp_path / "alone" / "model.bin"
    alone.parent.mkdir()
    alone.write_bytes(pointer)
    assert run(["scan", str(alone.parent), "--fail-on", "error"]) == 1
    assert "git lfs pull" in " ".join(capsys.readouterr().out.split())
    assert run(["open", str(alone)]) == 2
    assert "git lfs pull" in " ".join(capsys.readouterr().err.split())


def test_a_shelf_that_is_gone_is_asked_for_on_files_and_leaves_every_other_address(
    app: AppTest, members: dict[str, bytes]
) -> None:
    app.session_state["owner"] = "me"
    file = stored(tar(members), "photos.tar")
    app.session_state["shelf"] = shelf.Shelf(name="photos.tar", sha256=file.sha256)
    on_files(app.run())
    assert app.query_params["shelf"] == file.sha256
    uploads.the_store().forget(file.sha256, "me")
    app.run()
    assert not app.exception and app.session_state["shelf"] is None
    assert any("photos.tar" in one.value.replace("\\", "") for one in app.markdown)
    assert app.query_params["shelf"] == file.sha256
    app.switch_page("pages/open.py").run()
    assert not app.exception and not {"shelf", "shelf-name", "folder"}.intersection(app.query_params)


def test_a_name_opens_its_file_and_the_way_back_finds_the_row(app: AppTest, members: dict[str, bytes]) -> None:
    app.session_state["owner"] = "me"
    members["photos/run/copy.safetensors"] = members["photos/run/a.safetensors"]
    file = stored(tar(members), "photos.tar")
    app.session_state["shelf"] = shelf.Shelf(name="photos.tar", sha256=file.sha256)
    on_files(app.run())
    names = [name for _, name, _ in table(app)]
    says = next(e.proto.body for e in app.get("html") if "mi-answer" in e.proto.body)
    assert "2 files are byte for byte the same as another." in says
    marked = app.dataframe[0].value.set_index("File")["Same as"]
    twins = {"run/a.safetensors": "run/copy.safetensors", "run/copy.safetensors": "run/a.safetensors"}
    assert {name: twin for name, twin in marked.items() if twin} == twins
    place = names.index("run/copy.safetensors")
    # Any other cell of its row, and the row's own box, show what was found in it.
    for column in ("Bytes", ""):
        _click(app, place, column)
        assert "hand" not in app.session_state or app.session_state["hand"] is None
        found = " ".join(e.proto.body for e in app.get("html"))
        assert "Byte for byte the same as photos.tar/photos/run/a.safetensors." in found
    _click(app, place, "File")
    assert app.session_state["hand"].name == "copy.safetensors"
    on_files(app)
    assert any(button.key == "open-row" for button in app.button)
    assert any("run/copy" in text.value.replace("\\", "") for text in app.markdown)


@pytest.mark.parametrize("path", ["photos/run/b.safetensors", "photos/more.tar/c.safetensors", "photos/old/evil.pth"])
def test_a_member_is_its_own_bytes(members: dict[str, bytes], path: str) -> None:
    source = member_source(BufferSource(tar(members), "photos.tar"), path, DEFAULT_LIMITS)
    wanted = members.get(path) or member_source(
        BufferSource(members["photos/more.tar"], "more.tar"), "c.safetensors", DEFAULT_LIMITS
    ).read(0, source.size)
    assert source.read(0, source.size) == wanted


@pytest.mark.parametrize("path", ["photos", "../x", "photos/run/none", "photos/run/a.safetensors/x", ""])
def test_what_is_not_in_it_is_refused(members: dict[str, bytes], path: str) -> None:
    with pytest.raises(ReadError, match="no such file"):
        member_source(BufferSource(tar(members), "photos.tar"), path, DEFAULT_LIMITS)


def test_an_archive_of_many_goes_to_the_table_and_one_checkpoint_does_not(
    app: AppTest, members: dict[str, bytes]
) -> None:
    app.run()
    assert shelf.holds_many(stored(tar(members), "x.tar"), "x.tar")
    alone = stored(members["photos/run/a.safetensors"], "a.safetensors")
    assert not shelf.holds_many(alone, "a.safetensors")
    assert not shelf.holds_many(stored(tar({"a.safetensors": members["photos/run/a.safetensors"]}), "y.tar"), "y.tar")
    assert not shelf.holds_many(stored(b"no archive", "z.txt"), "z.txt")


def test_rows_come_with_progress_and_with_the_name_of_the_network(members: dict[str, bytes]) -> None:
    seen: list[tuple[int, int | None]] = []
    _, *rows = survey_source(
        BufferSource(tar(members), "photos.tar"),
        "photos.tar",
        Reading(what=network_of, every=True),
        progress=lambda done, total, note: seen.append((done, total)),
    )
    assert seen == [(n, 5) for n in range(5)]
    quiet = [row.path for row in rows if row.kind is RowKind.OTHER]
    assert quiet == ["photos.tar/photos/read me.txt", "photos.tar/photos/more.tar/note.txt"]
    assert [r.path for r in survey_source(BufferSource(tar(members), "photos.tar"), "photos.tar", Reading())[1:]] == [
        row.path for row in rows if row.kind is not RowKind.OTHER
    ]


@pytest.fixture
def root(tmp_path: Path, members: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "open"
    for name, data in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (tmp_path / "secret.pth").write_bytes(HOSTILE)
    (folder / "link.pth").symlink_to(tmp_path / "secret.pth")
    monkeypatch.setenv("INSPECTOR_ROOT", str(folder))
    return folder


def test_a_folder_of_the_server_is_a_table_and_nothing_outside_is_read(
    app: AppTest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECTOR_ROOT", str(root))
    app.session_state["shelf"] = shelf.Shelf(name="photos", folder="./")
    on_files(app.run())
    rows = {name: (worst, what) for worst, name, what in table(app)}
    assert rows["link.pth"] == ("Warning", "could not be read")
    assert rows["photos/old/evil.pth"][0] == "Error"
    with pytest.raises(RefusedContent, match="outside the folder"):
        shelf.resolve_folder("../")


def test_a_piece_of_a_name_is_the_one_file_that_has_it_and_of_several_none(root: Path) -> None:
    offered = ("./", "photos/", "photos/run/a.safetensors", "photos/run/b.safetensors", "photos/old/evil.pth")
    assert server_paths.named("EVIL", offered) == "photos/old/evil.pth"
    # What is there under that very path, listed or not, needs no guess.
    assert server_paths.named("photos/run", offered) == "photos/run"
    assert server_paths.named("photos/more.tar", offered) == "photos/more.tar"
    assert server_paths.named("nothing like it", offered) == "nothing like it"
    with pytest.raises(UsageError, match=r"2 of what is listed contain 'safetensors': photos/run/a.safetensors, "):
        server_paths.named("safetensors", offered)


def test_a_folder_whose_look_outlasts_a_run_of_the_page_is_looked_at_once(
    app: AppTest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page asks again once the work has ended; what was not kept was begun anew, forever."""
    looks = []
    real = surveys.of_folder

    def slow(bench: Bench, folder: Path) -> Survey:
        looks.append(folder)
        time.sleep(1)
        return real(bench, folder)

    monkeypatch.setattr(surveys, "of_folder", slow)
    app.session_state["shelf"] = shelf.Shelf(name="photos", folder="./")
    on_files(app.run())
    assert len(table(app)) == 7 and len(looks) == 1
    app.run()
    assert len(looks) == 1
    (root / "photos" / "read me.txt").write_bytes(b"other")
    app.run()
    finish(app)
    assert len(looks) == 2


def test_a_result_that_is_not_kept_cannot_be_awaited() -> None:
    with pytest.raises(UsageError, match="not kept"):
        jobs.await_job(Job(kind="timing"), title="Timing")


def test_a_folder_becomes_the_tar_that_a_browser_would_send(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / ("é" * 120)).write_bytes(b"x" * 700)
    (folder / "a.bin").write_bytes(b"")
    (folder / "link").symlink_to(folder / "a.bin")
    nbytes, chunks = tar_chunks(folder)
    raw = b"".join(chunks)
    assert len(raw) == nbytes
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        assert archive.getnames() == ["a.bin", f"deep/{'é' * 120}"]
        found = archive.extractfile(f"deep/{'é' * 120}")
        assert found is not None and found.read() == b"x" * 700


def test_what_was_opened_is_remembered_beyond_the_session(app: AppTest, members: dict[str, bytes]) -> None:
    """A reload is a new session of the same visitor."""
    app.session_state["owner"] = "me"
    app.run()
    first = stored(members["photos/run/a.safetensors"], "a.safetensors")
    picture = stored(b"a picture", "dog.jpg")
    uploads.the_store().claim(first.sha256, name="a.safetensors", owner="me")
    app.run()
    labels = [button.label.replace("\\", "") for button in app.button]
    assert "a.safetensors" in labels and "dog.jpg" not in labels
    assert uploads.the_store().owned("somebody else") == []
    assert {one.sha256 for one in uploads.the_store().owned("me")} == {first.sha256, picture.sha256}
    uploads.the_store().forget(first.sha256, "me")
    assert [one.sha256 for one in uploads.the_store().owned("me")] == [picture.sha256]


def test_chunks_are_stored_as_bytes_are(app: AppTest) -> None:
    app.run()
    one = uploads.the_store().put_chunks(iter((b"ab", b"c")), name="n", owner="me", announced=3)
    path = uploads.the_store().get_path(one.sha256)
    assert path is not None and path.read_bytes() == b"abc" and digest_of(path) == one.sha256


@pytest.mark.parametrize("opened", [True, False])
def test_an_empty_page_leads_to_the_servers_folder_where_there_is_one(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: bool
) -> None:
    if opened:
        monkeypatch.setenv("INSPECTOR_ROOT", str(tmp_path))
    app.run()
    app.switch_page("pages/files.py").run()
    assert not app.exception
    labels = [link.proto.label for link in app.get("page_link")]
    assert "Drop a folder or an archive" in labels
    assert ("Choose a folder on this server" in labels) is opened
