"""One's own code on the page: never for others, and only the content that was agreed to."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st

from inspector.errors import RefusedContent, UsageError
from inspector.web import own_code
from inspector.web.front.keys import code_key
from inspector.web.front.start import offer_of_code

MODEL = "from torch import nn\nbuild = lambda: nn.Linear(3, 2)\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "open"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    (tmp_path / "outside.py").write_text(MODEL)
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    monkeypatch.setenv("INSPECTOR_ROOT", str(folder))
    monkeypatch.delenv("INSPECTOR_CODE", raising=False)
    return folder


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch):
    def set_up(address: str = "127.0.0.1", **headers: str) -> bool:
        given = {"Host": "localhost:8501"} | {n.replace("_", "-"): v for n, v in headers.items()}
        monkeypatch.setattr(own_code, "_headers", lambda: given)
        monkeypatch.setattr(st, "get_option", lambda name: address if name == "server.address" else None)
        return own_code.is_allowed()

    return set_up


def test_on_this_machine_alone_it_is_offered(root, serve):
    assert serve()
    assert serve("::1", Host="[::1]:8501")
    assert serve("localhost", Host="127.0.0.1")


@pytest.mark.parametrize("address", ["", "0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_a_server_that_others_reach_never_offers_it(root, serve, address):
    assert not serve(address)


@pytest.mark.parametrize("host", ["example.org", "192.168.1.5:8501", "", "localhost.example.org", "127.0.0.1.nip.io"])
def test_a_request_under_another_name_is_not_ours(root, serve, host):
    assert not serve(Host=host)


@pytest.mark.parametrize("header", ["X_Forwarded_For", "Forwarded", "X_Real_IP", "Via", "x_forwarded_host"])
def test_behind_a_proxy_it_is_not_offered(root, serve, header):
    assert not serve(**{header: "127.0.0.1"})


def test_it_can_be_forbidden_and_without_a_folder_needs_the_code_key(root, serve, monkeypatch):
    monkeypatch.setenv("INSPECTOR_CODE", "off")
    assert not serve()
    monkeypatch.setenv("INSPECTOR_CODE", "on")
    assert serve() and not serve("0.0.0.0")
    monkeypatch.delenv("INSPECTOR_ROOT")
    assert not serve() and own_code.is_offered()
    monkeypatch.setattr(st, "session_state", {own_code._UNLOCKED: True})
    assert serve() and not serve("0.0.0.0") and not serve(Via="1.1 proxy")
    monkeypatch.setenv("INSPECTOR_CODE", "off")
    assert not serve()


def test_the_terminal_names_the_code_key_only_where_a_page_would_ask_for_it(root, serve, monkeypatch):
    serve()
    assert offer_of_code() == ""  # The token at the door is enough.
    monkeypatch.delenv("INSPECTOR_ROOT")
    assert offer_of_code().endswith(code_key().secret) and len(code_key().secret) == 12
    monkeypatch.setenv("INSPECTOR_CODE", "off")
    assert offer_of_code() == ""
    monkeypatch.delenv("INSPECTOR_CODE")
    serve("0.0.0.0")
    assert offer_of_code() == ""


@pytest.mark.parametrize("where", ["../outside.py", "link.py", "/etc/passwd.py", "missing.py"])
def test_only_files_of_the_folder(root, where):
    with pytest.raises(RefusedContent):
        own_code.find_source(f"code:{where}:build")


def test_modules_are_refused_since_their_files_are_anywhere(root):
    with pytest.raises(UsageError, match="code comes from a file"):
        own_code.find_source("code:os.path:join")


def test_another_byte_asks_again(root, serve, monkeypatch):
    serve()
    monkeypatch.setattr(st, "session_state", {})
    source = own_code.find_source("code:model.py:build")
    assert not own_code.is_agreed(source)
    st.session_state[own_code._AGREED] = {(str(source.path), source.sha256): "a word"}
    assert own_code.is_agreed(source)
    (root / "model.py").write_text(MODEL + "#")
    changed = own_code.find_source("code:model.py:build")
    assert not own_code.is_agreed(changed)
    # The same content elsewhere imports other neighbours.
    (root / "deep").mkdir()
    (root / "deep" / "model.py").write_text(MODEL)
    assert not own_code.is_agreed(own_code.find_source("code:deep/model.py:build"))
