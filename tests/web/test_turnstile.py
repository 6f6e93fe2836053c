"""So many pages and uploads at a time, of everybody and of each visitor, and a sentence for whoever is too many."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from inspector.errors import UsageError
from inspector.web.front.draining import Draining
from inspector.web.front.turnstile import House, Turnstile
from inspector.web.front.variables import Limits, limits_from
from inspector.web.front.visitors import Visitors, visitors_secret
from tests.web.asgi_client import Client

VISITORS = Visitors(b"s" * 32, user_header="x-user")
FEW = Limits(
    connections=3, connections_each=2, uploads=2, uploads_each=1, upload_idle_seconds=120, drain_seconds=30
)  # fmt: skip


def cookie(**headers: str) -> str:
    """A browser's, as the server would set it."""
    made = VISITORS.new_cookie({"headers": [(b"host", b"here.test:8501")], "type": "http"}, "/").decode()
    return made.partition(";")[0]


@dataclass
class Door:
    """An application behind the turnstile in which everybody stays until they are let go."""

    limits: Limits = FEW
    draining: Draining = field(default_factory=Draining)
    ends: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        house = House(limits=self.limits, visitors=VISITORS, draining=self.draining, pages={"open"})
        self.turnstile = Turnstile(self._inside, house=house)
        self.go = asyncio.Event()

    async def _inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            await self.go.wait()
        elif scope["path"] == "/inspector/upload":
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.ends.append("cut")
                raise
            await PlainTextResponse("kept")(scope, receive, send)
        else:
            await PlainTextResponse("page")(scope, receive, send)

    def come(self, what: str, who: str = "", address: str = "1.1.1.1") -> tuple[asyncio.Task[None], list[Any]]:
        """Somebody with that cookie; what is sent to them."""
        kind, _, path = what.partition(" ")
        headers = [(b"host", b"here.test:8501"), *([(b"cookie", who.encode())] if who else [])]
        scope: dict[str, Any] = {
            "type": "websocket" if kind == "SOCKET" else "http",
            "method": kind,
            "path": path,
            "headers": headers,
            "client": (address, 5),
            "extensions": {"websocket.http.response": {}},
        }
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        return asyncio.ensure_future(self.turnstile(scope, receive, send)), sent


async def _settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def status(sent: list[Any]) -> int:
    return 101 if sent and sent[0]["type"] == "websocket.accept" else int(sent[0]["status"]) if sent else 0


def says(sent: list[Any]) -> str:
    return b"".join(message.get("body", b"") for message in sent[1:]).decode()


def test_pages_of_one_visitor_and_of_all_are_counted_and_counted_down() -> None:
    async def play() -> None:
        door, anna, bert = Door(), cookie(), cookie()
        came = [door.come("SOCKET /_stcore/stream", who) for who in (anna, anna, anna, bert, bert)]
        await _settled()
        assert [status(sent) for _, sent in came] == [101, 101, 429, 101, 503]
        assert "You have 2 pages of this server open, the most" in says(came[2][1])
        assert "This server has 3 pages open, the most it takes" in says(came[4][1])
        door.go.set()
        await asyncio.gather(*(task for task, _ in came))
        door.go.clear()
        again, sent = door.come("SOCKET /_stcore/stream", anna)
        await _settled()
        assert status(sent) == 101 and len(door.turnstile.pages) == 1
        again.cancel()

    asyncio.run(play())


def test_without_a_cookie_an_address_is_a_visitor_and_a_cookie_of_ones_own_making_is_none() -> None:
    async def play() -> None:
        door, forged = Door(), "inspector_visitor-8501=abc." + "0" * 32
        came = [door.come("SOCKET /x", who) for who in ("", forged, f"{forged}1")]
        came += [door.come("SOCKET /x", "", "2.2.2.2")]
        await _settled()
        assert [status(sent) for _, sent in came] == [101, 101, 429, 101]
        for task, _ in came:
            task.cancel()

    asyncio.run(play())


def test_a_page_sets_the_cookie_once_and_tells_who_is_too_many() -> None:
    async def play() -> None:
        door = Door()
        task, sent = door.come("GET /open")
        await task
        made = dict(sent[0]["headers"])[b"set-cookie"].decode()
        assert made.endswith("; Path=/; HttpOnly; SameSite=Lax") and made.startswith("inspector_visitor-8501=")
        task, sent = door.come("GET /open", made.partition(";")[0])
        await task
        assert b"set-cookie" not in dict(sent[0]["headers"])
        for path in ("/static/x.js", "/inspector/live"):
            task, sent = door.come(f"GET {path}")
            await task
            assert b"set-cookie" not in dict(sent[0]["headers"])
        anna, bert, carl = cookie(), cookie(), cookie()
        held = [door.come("SOCKET /x", who)[0] for who in (anna, anna, bert)]
        await _settled()
        for who, expected in ((anna, 429), (bert, 200), (carl, 503)):
            task, sent = door.come("GET /open", who)
            await task
            assert status(sent) == expected
        assert "This server has 3 pages open" in says(sent) and b"retry-after" in dict(sent[0]["headers"])
        for task in held:
            task.cancel()

    asyncio.run(play())


def test_uploads_of_one_visitor_and_of_all() -> None:
    async def play() -> None:
        door, anna, bert, carl = Door(), cookie(), cookie(), cookie()
        came = [door.come("PUT /inspector/upload", who) for who in (anna, anna, bert, carl)]
        await _settled()
        assert [status(sent) for _, sent in came] == [0, 429, 0, 503]
        assert json.loads(says(came[1][1]))["says"].startswith("You are uploading 1 file already.")
        assert json.loads(says(came[3][1]))["says"].startswith("This server takes 2 uploads at a time, and has them.")
        door.go.set()
        await asyncio.gather(*(task for task, _ in came))
        assert says(came[0][1]) == "kept" and len(door.turnstile.uploads) == 0

    asyncio.run(play())


def test_an_upload_that_fails_gives_its_place_back() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("broken")

    client = Client(Turnstile(broken, house=House(limits=FEW, visitors=VISITORS, draining=Draining())))
    for _ in range(5):
        with pytest.raises(RuntimeError, match="broken"):
            client.ask("PUT", "/inspector/upload")
        with pytest.raises(RuntimeError, match="broken"):
            client.connect("/_stcore/stream")
    assert len(client.app.uploads) == len(client.app.pages) == 0  # type: ignore[attr-defined]


def test_on_its_way_to_the_end_nothing_new_is_taken_and_what_is_under_way_may_end() -> None:
    async def play() -> None:
        door, anna = Door(), cookie()
        upload, sent = door.come("PUT /inspector/upload", anna)
        await _settled()
        drained = asyncio.ensure_future(door.draining.drain(30))
        await _settled()
        for what in ("PUT /inspector/upload", "SOCKET /x", "GET /", "GET /open"):
            task, refused = door.come(what, cookie())
            await task
            assert status(refused) == 503 and "about to end" in says(refused)
        assert not drained.done()
        door.go.set()
        await asyncio.gather(upload, drained)
        assert says(sent) == "kept" and door.ends == []

    asyncio.run(play())


def test_what_is_under_way_too_long_is_cut_and_told_so() -> None:
    async def play() -> None:
        door = Door()
        upload, sent = door.come("PUT /inspector/upload", cookie())
        await _settled()
        await door.draining.drain(0)
        await upload
        assert door.ends == ["cut"] and status(sent) == 503 and "about to end" in json.loads(says(sent))["says"]
        assert door.draining.under_way == 0

    asyncio.run(play())


def test_the_end_waits_for_whatever_else_is_under_way() -> None:
    async def play() -> None:
        draining, jobs = Draining(), [1]
        draining.waits_for.append(lambda: len(jobs))
        drained = asyncio.ensure_future(draining.drain(30))
        await asyncio.sleep(0.15)
        assert not drained.done() and draining.has_begun and not draining.is_over
        jobs.clear()
        await drained
        assert draining.is_over

    asyncio.run(play())


def test_a_user_that_a_proxy_names_is_a_visitor() -> None:
    def scope(**headers: str) -> Scope:
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        return {"type": "http", "headers": pairs, "client": ("1.1.1.1", 5)}

    assert VISITORS.of(scope(**{"x-user": "anna"})) == "user anna"
    assert VISITORS.of(scope()) == "address 1.1.1.1"
    assert Visitors(b"s" * 32).of(scope(**{"x-user": "anna"})) == "address 1.1.1.1"


def test_all_pages_of_one_browser_own_the_same_files() -> None:
    def owner(who: str) -> str:
        return VISITORS.owner(Headers({"host": "here.test:8501", "cookie": who}))

    anna, bert = cookie(), cookie()
    assert owner(anna) == owner(anna) != owner(bert)
    assert len(owner(anna)) == 24 and owner(anna) not in anna
    assert owner("") == owner("inspector_visitor-8501=abc." + "0" * 32) == ""
    # Another user of the same browser has other files.
    named = VISITORS.owner(Headers({"host": "here.test:8501", "cookie": anna, "x-user": "anna"}))
    assert named not in ("", owner(anna))


def test_a_visitor_is_the_same_after_a_restart(tmp_path: Path) -> None:
    first = visitors_secret({}, tmp_path)
    assert visitors_secret({}, tmp_path) == first and len(first) == 32
    assert (tmp_path / "visitors").stat().st_mode & 0o077 == 0
    (tmp_path / "visitors").write_bytes(b"cut")
    assert len(visitors_secret({}, tmp_path)) == 32
    # Servers that share a token know each other's visitors.
    stated = {"INSPECTOR_TOKEN": "one-token-for-all"}
    assert visitors_secret(stated, tmp_path) == visitors_secret(stated, tmp_path / "elsewhere") != first


def test_the_operator_states_the_limits_as_whole_numbers() -> None:
    assert limits_from({}).uploads_each == 4
    assert limits_from({"INSPECTOR_MAX_UPLOADS": " 7 "}).uploads == 7
    for stated in ("0", "-1", "many", "1e3", "1" * 30, "٣"):
        with pytest.raises(UsageError, match="INSPECTOR_MAX_UPLOADS is"):
            limits_from({"INSPECTOR_MAX_UPLOADS": stated})
