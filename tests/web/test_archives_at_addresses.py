"""An archive of many checkpoints behind an address is the table of its members, and costs what its headers cost."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest
import safetensors.numpy
import torch
from streamlit.testing.v1 import AppTest

from inspector.survey import at_address
from inspector.web import remote_archives, remote_files, uploads
from tests.remote.test_hub import weights
from tests.serving import Handler, Server, serving
from tests.web.finishing import finish
from tests.web.test_files_page import table

MB = 1 << 20


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("INSPECTOR_ADDRESSES", "on")
    monkeypatch.setenv("INSPECTOR_PRIVATE_ADDRESSES", "on")
    remote_files._opened.clear()
    with serving() as told:
        monkeypatch.setenv("HF_ENDPOINT", told.base)
        yield told


def _members() -> dict[str, bytes]:
    saved = io.BytesIO()
    torch.save({"w": torch.zeros(MB)}, saved)
    return {
        "models/a.safetensors": weights(30, 50_000),
        "models/b.pt": saved.getvalue(),
        "models/evil.pth": b"cos\nsystem\n(S'echo hi'\ntR.",
        "models/c.safetensors": weights(20, 50_000),
    }


def _zip(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return raw.getvalue()


def _tar(members: dict[str, bytes], mode: str = "w") -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return raw.getvalue()


def _look(app: AppTest, where: str) -> AppTest:
    app.run()
    app.text_input(key="address-text").set_value(where)
    next(button for button in app.button if button.label == "Look").click()
    app.run()
    finish(app)
    return app


@pytest.mark.parametrize("name", ["m.zip", "m.tar"])
def test_an_archive_at_an_address_is_a_table_by_its_headers(app: AppTest, server: Server, name: str) -> None:
    members = _members()
    server.files[f"/{name}"] = _zip(members) if name.endswith("zip") else _tar(members)
    _look(app, f"{server.base}/{name}")
    assert not app.exception and not app.error
    rows = table(app)
    assert rows[0][:2] == ("Error", "evil.pth")
    assert [one for _, one, _ in rows[1:]] == ["a.safetensors", "b.pt", "c.safetensors"]
    nbytes = len(server.files[f"/{name}"])
    assert nbytes > 12 * MB and server.sent < nbytes / 2 and len(server.log) < 30
    held, sent = app.session_state["shelf"], server.sent
    app.run()
    assert server.sent == sent, "the table is kept"
    # A member is fetched by itself.
    source = remote_archives.open_archive(held.sha256, held.name)
    assert source.size == nbytes
    stored = _taken(app, "models/b.pt")
    assert stored == hashlib.sha256(members["models/b.pt"]).hexdigest()
    assert server.sent - sent < len(members["models/b.pt"]) + 2 * MB


def _taken(app: AppTest, path: str) -> str:
    from inspector.checkpoint.digest import sha256_of
    from inspector.limits import DEFAULT_LIMITS
    from inspector.survey.members import member_source

    held = app.session_state["shelf"]
    source = remote_archives.open_archive(held.sha256, held.name)
    return sha256_of(member_source(source, path, DEFAULT_LIMITS))


def test_what_is_compressed_and_small_comes_at_once_and_what_is_large_is_offered_whole(
    app: AppTest, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Zeros would be refused: they unpack to a thousandfold.
    noise = np.random.default_rng(0).standard_normal(60_000).astype(np.float32)
    members = {f"models/{n}.safetensors": safetensors.numpy.save({"w": noise + n}) for n in range(4)}
    server.files["/m.tar.gz"] = _tar(members, "w:gz")
    server.files["/m.zip"] = _zip(members, zipfile.ZIP_DEFLATED)
    _look(app, f"{server.base}/m.tar.gz")
    assert not app.error and len(table(app)) == 4
    for small in ("_SMALL_NBYTES", "_PACKED_NBYTES"):
        monkeypatch.setattr(at_address, small, 10_000)
    for name, says in (("m.tar.gz", "compressed as a whole"), ("m.zip", "The members of m.zip are compressed")):
        app.switch_page("pages/open.py")
        _look(app, f"{server.base}/{name}")
        assert any(says in error.value.replace("\\", "") for error in app.error), name
        assert app.button(key="fetch-whole")
    app.button(key="fetch-whole").click().run()
    finish(app)
    digest = hashlib.sha256(server.files["/m.zip"]).hexdigest()
    assert uploads.the_store().get_path(digest) is not None
    assert app.session_state["shelf"].sha256 == digest
    finish(app.switch_page("pages/files.py").run())
    assert len(table(app)) == 4


def test_a_line_that_breaks_says_nothing_of_the_files(
    app: AppTest, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/m.zip"] = _zip(_members())
    asked = []

    def breaks(handler: Handler) -> bool:
        asked.append(handler.headers.get("Range", ""))
        if len(asked) > 14:
            handler.answer(404, b"")
        return len(asked) <= 14

    server.odd["/m.zip"] = breaks
    _look(app, f"{server.base}/m.zip")
    assert not app.dataframe
    assert any("404" in error.value for error in app.error)
    # And it is not kept: the next look finds the files.
    server.odd.clear()
    finish(app.run())
    assert len(table(app)) == 4


def test_another_file_at_the_address_is_told(app: AppTest, server: Server) -> None:
    server.files["/m.zip"] = _zip(_members())
    _look(app, f"{server.base}/m.zip")
    server.files["/m.zip"] = _zip(dict(list(_members().items())[:3]))
    held = app.session_state["shelf"]
    with pytest.raises(Exception, match="not the file any more"):
        remote_archives.open_archive(held.sha256, held.name)


def test_what_was_opened_before_is_the_table_again(app: AppTest, server: Server) -> None:
    server.files["/m.zip"] = _zip(_members())
    _look(app, f"{server.base}/m.zip")
    ident = app.session_state["shelf"].sha256
    del app.session_state["shelf"]
    app.switch_page("pages/open.py").run()
    app.button(key=f"recent-{ident}").click().run()
    assert not app.error and app.session_state["shelf"].sha256 == ident


def test_what_is_no_archive_is_told_as_before(app: AppTest, server: Server) -> None:
    server.files["/x.txt"] = b"hello world, this is a text"
    server.files["/x.zip"] = b"PK\x03\x04" + b"\0" * 400
    for name in ("x.txt", "x.zip"):
        _look(app, f"{server.base}/{name}")
        assert app.error and not app.exception and "shelf" not in app.session_state
