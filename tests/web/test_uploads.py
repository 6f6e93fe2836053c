"""The upload route: right token, right origin, right digest; everything else is refused and leaves nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.applications import Starlette

from inspector.web import uploads
from inspector.web.front import probes
from inspector.web.front.paths import HEALTH_PATH
from inspector.web.front.variables import limits_from
from inspector.web.store import ContentStore
from tests.web.asgi_client import Answer, Client


class Visitor(Client):
    """Puts files as the page does."""

    def put(self, data: bytes, **headers: str) -> Answer:
        usual = {"X-Inspector-Token": uploads.issue_token("me"), "X-File-Name": "a%20b.pth"}
        return self.ask("PUT", uploads.UPLOAD_PATH, data, usual | headers)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ContentStore:
    made = ContentStore(tmp_path, file_nbytes=1000)
    monkeypatch.setattr(uploads, "the_store", lambda: made)
    monkeypatch.setattr(probes, "the_store", lambda: made)
    return made


@pytest.fixture
def client(store: ContentStore, monkeypatch: pytest.MonkeyPatch) -> Visitor:
    monkeypatch.setattr(uploads, "_mounted", False)
    return Visitor(Starlette(routes=uploads.routes()))


ABC = hashlib.sha256(b"abc").hexdigest()


def test_bytes_arrive_and_are_named_by_their_digest(client: Visitor, store: ContentStore) -> None:
    data = bytes(range(200))
    answer = client.put(data, Origin="http://here.test")
    assert answer.status == 200
    digest = hashlib.sha256(data).hexdigest()
    assert json.loads(answer.body) == {"sha256": digest, "name": "a b.pth", "nbytes": 200}
    path = store.get_path(digest)
    assert path is not None and path.read_bytes() == data
    assert store.name_of(digest, "me") == "a b.pth"


@pytest.mark.parametrize(
    "origin",
    ["http://elsewhere.test", "null", "http://here.test.evil.test", "http://x@here.test", "http://[::1", "", "x"],
)
def test_another_origin_is_refused(client: Visitor, store: ContentStore, origin: str) -> None:
    answer = client.put(b"abc", Origin=origin)
    assert answer.status == 403
    assert "another site" in answer.says
    assert store.find(ABC) is None


@pytest.mark.parametrize("token", ["", "me", "me.", "me." + "0" * 64, ".x", "\u00fcmlaut"])
def test_without_a_token_of_this_server_nothing_is_kept(client: Visitor, store: ContentStore, token: str) -> None:
    answer = client.put(b"abc", **{"X-Inspector-Token": token})
    assert answer.status == 403
    assert "older than the server" in answer.says
    assert store.find(ABC) is None


def test_a_token_belongs_to_one_owner() -> None:
    token = uploads.issue_token("me")
    assert uploads.owner_of(token) == "me"
    assert uploads.owner_of("you" + token[2:]) is None


@pytest.mark.parametrize("announced", [{}, {"Content-Length": "1001"}, {"Content-Length": "3"}])
def test_a_file_over_the_limit_is_refused_in_a_sentence(
    client: Visitor, store: ContentStore, announced: dict[str, str]
) -> None:
    answer = client.put(b"x" * 1001, **announced)
    assert answer.status == 413
    assert "larger than this server takes (1.00 kB)" in answer.says
    assert [p for p in store.root.rglob("*") if p.is_file()] == []


def test_an_announced_length_over_the_limit_is_refused_before_it_is_read(client: Visitor, store: ContentStore) -> None:
    assert client.put(b"abc", **{"Content-Length": "1001"}).status == 413
    assert store.find(ABC) is None


def test_only_put_is_served(client: Visitor) -> None:
    assert client.ask("POST", uploads.UPLOAD_PATH, b"abc").status == 405


def test_health_says_ok(client: Visitor) -> None:
    assert json.loads(client.ask("GET", HEALTH_PATH).body) == {"status": "ok", "store": True}


def test_mounting_is_known(client: Visitor) -> None:
    assert uploads.is_mounted()


def test_an_empty_host_is_no_origin_of_ours(client: Visitor, store: ContentStore) -> None:
    assert client.put(b"abc", Origin="null", host="").status == 403


def test_an_announced_length_of_thousands_of_digits_is_too_large_and_no_crash(client: Visitor) -> None:
    assert client.put(b"abc", **{"Content-Length": "9" * 5000}).status == 413


@pytest.mark.parametrize("announced", ["-1", "1e9", "\u0663", "abc"])
def test_a_length_that_is_no_number_is_not_believed(client: Visitor, store: ContentStore, announced: str) -> None:
    assert client.put(b"abc", **{"Content-Length": announced}).status == 200
    assert store.find(ABC) is not None


def test_an_upload_that_stands_still_is_given_up_and_leaves_nothing(
    client: Visitor, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent_body(request: object) -> object:
        yield b"abc"
        await asyncio.sleep(30)

    monkeypatch.setattr(uploads, "own_limits", lambda: replace(limits_from({}), upload_idle_seconds=0.05))
    monkeypatch.setattr(uploads.Request, "stream", silent_body)
    answer = client.put(b"")
    assert answer.status == 408
    assert "Nothing came" in answer.says
    assert [p for p in store.root.rglob("*") if p.is_file()] == []


def test_a_server_without_room_says_so_and_not_that_the_file_is_wrong(
    client: Visitor, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "quota_nbytes", 5)
    assert client.put(b"1234").status == 200
    answer = client.put(b"5678", **{"X-Inspector-Token": uploads.issue_token("you")})
    assert answer.status == 507
    assert "others are looking at" in answer.says
