"""Firefox by WebDriver BiDi, which it speaks itself, with as much of Playwright's page as tests ask for. What it asks
of another machine goes to a proxy that refuses it and writes it down."""

from __future__ import annotations

import asyncio
import json
import shutil
import socketserver
import subprocess
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

NAMES = ("firefox", "firefox-esr")
PATIENCE = 600
_LISTENS = "WebDriver BiDi listening on "
_SETTINGS = {"browser.shell.checkDefaultBrowser": False, "browser.startup.page": 0}
# What Firefox asks its maker by itself, whatever page is open.
_ITS_OWN = ("mozilla.com", "mozilla.org", "firefox.com", "update.googleapis.com")


def find() -> str | None:
    """Path of a Firefox that is already here."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class _Refusing(socketserver.ThreadingTCPServer):
    """A proxy that lets nothing through. asked: the first line of each request."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Refusal)


class _Refusal(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, _Refusing)
        self.server.asked.append(self.rfile.readline(4096).decode("latin-1").strip())
        self.wfile.write(b"HTTP/1.1 403 Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


class Firefox:
    """One window without a screen."""

    def __init__(self, path: str, profile: Path) -> None:
        self._proxy = _Refusing()
        threading.Thread(target=self._proxy.serve_forever, daemon=True).start()
        settings = {
            **_SETTINGS,
            "network.proxy.type": 1,
            "network.proxy.http": "127.0.0.1",
            "network.proxy.http_port": self._proxy.server_address[1],
            "network.proxy.ssl": "127.0.0.1",
            "network.proxy.ssl_port": self._proxy.server_address[1],
        }
        lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in settings.items())
        (profile / "user.js").write_text("".join(lines))
        self._requests: list[str] = []
        self.process = subprocess.Popen(
            [path, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        address = next(line for line in self.process.stderr if line.startswith(_LISTENS))
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        # A thread of its own: Playwright's loop runs in the one of the tests.
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._socket: WebSocketClientConnection = self._wait(self._connect(address.removeprefix(_LISTENS).strip()))
        self._ask("session.new", capabilities={})
        self._context = self._ask("browsingContext.getTree")["contexts"][0]["context"]
        self._ask("session.subscribe", events=["network.beforeRequestSent"])

    def goto(self, address: str) -> None:
        """Returns once it is loaded."""
        self._ask("browsingContext.navigate", context=self._context, url=address, wait="complete")

    def evaluate(self, function: str, argument: Any = None) -> Any:
        """function: of JavaScript, of one argument; both ways as JSON."""
        calls = f"async (text) => JSON.stringify((await ({function})(JSON.parse(text))) ?? null)"
        given = [{"type": "string", "value": json.dumps(argument)}]
        return json.loads(self._called(calls, given)["value"])

    def set_input_files(self, selector: str, paths: Sequence[str]) -> None:
        """Into the one element of this selector."""
        found = self._called("(one) => document.querySelector(one)", [{"type": "string", "value": selector}])
        element = {"sharedId": found["sharedId"]}
        self._ask("input.setFiles", context=self._context, element=element, files=list(paths))

    def elsewhere(self, address: str) -> list[str]:
        """What was asked of anybody but the server at this address."""
        # Firefox's own pages carry a font in an address.
        by_page = [url for url in self._requests if not url.startswith((address, f"blob:{address}", "data:", "about:"))]
        hosts = [line.split()[1].rsplit(":", 1)[0] for line in self._proxy.asked if line.startswith("CONNECT ")]
        plain = [line for line in self._proxy.asked if not line.startswith("CONNECT ")]
        return [*by_page, *plain, *(host for host in hosts if not host.endswith(_ITS_OWN))]

    def close(self) -> None:
        """Ends it."""
        self._ask("browser.close")
        self.process.wait(60)
        self._proxy.shutdown()
        self._proxy.server_close()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _called(self, function: str, arguments: list[dict[str, Any]]) -> dict[str, Any]:
        answer = self._ask(
            "script.callFunction", functionDeclaration=function, arguments=arguments, awaitPromise=True,
            target={"context": self._context},
        )  # fmt: skip
        assert answer["type"] == "success", answer["exceptionDetails"]["text"]
        result: dict[str, Any] = answer["result"]
        return result

    def _wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._wait(self._send(method, parameters))
        assert answer["type"] == "success", f"{method}: {answer.get('message')}"
        result: dict[str, Any] = answer["result"]
        return result

    async def _connect(self, address: str) -> WebSocketClientConnection:
        made = await websocket_connect(f"{address}/session", max_message_size=1 << 30)
        self._taking = asyncio.create_task(self._take(made))
        return made

    async def _take(self, socket: WebSocketClientConnection) -> None:
        while (text := await socket.read_message()) is not None:
            told = json.loads(text)
            if told["type"] == "event":
                self._requests.append(told["params"]["request"]["url"])
            elif waiting := self._waiting.pop(told["id"], None):
                waiting.set_result(told)

    async def _send(self, method: str, parameters: dict[str, Any]) -> Any:
        number = id(parameters)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        return await self._waiting[number]
