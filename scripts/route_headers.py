"""docs/headers.md: what the running app answers to each kind of request, with its headers.

python scripts/route_headers.py     print the page
"""

from __future__ import annotations

import http.client
import re
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from running_app import ROOT, Server, running_app

from inspector.web.static_files import address_of

_HANDSHAKE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)
# Of every answer; what else one carries stands in its own row.
_OURS = (
    "content-security-policy",
    "x-content-type-options",
    "referrer-policy",
    "cross-origin-resource-policy",
    "cross-origin-opener-policy",
)
_TOLD = ("cache-control", "retry-after", "content-disposition", "location", "set-cookie")
_NOTE = "<!-- Written by scripts/build_docs.py from the running app: `make docs` renews it. -->"


@dataclass(frozen=True)
class Asked:
    """what: for the table. line: the request's first line. headers: beside the Host. has_key: with the cookie."""

    what: str
    line: str
    headers: tuple[str, ...] = ()
    has_key: bool = True
    host: str = ""


def _questions(pages: list[str], script: str) -> list[Asked]:
    return [
        Asked("the first page", "GET /"),
        *(Asked(f"the page {name}", f"GET /{name}") for name in pages),
        Asked("a script", f"GET /static/js/{script}"),
        Asked("`/favicon.png`", "GET /favicon.png"),
        Asked("`/_stcore/health`", "GET /_stcore/health"),
        Asked("`/_stcore/host-config`", "GET /_stcore/host-config"),
        Asked("the page's WebSocket", "GET /_stcore/stream", _HANDSHAKE),
        Asked("`/media/`, of nothing", "GET /media/0.png"),
        Asked("`/inspector/upload`, without its token", "PUT /inspector/upload", ("Content-Length: 0",)),
        Asked("`/inspector/exports/`, of nothing", f"GET /inspector/exports/{'0' * 24}/0"),
        Asked("a script of the drawing", f"GET {address_of('drawing/element.js')}"),
        Asked("`/inspector/static/`, of another version", "GET /inspector/static/0/drawing/element.js"),
        Asked("`/inspector/health`", "GET /inspector/health", has_key=False),
        Asked("`/inspector/live`", "GET /inspector/live", has_key=False),
        Asked("`/inspector/ready`", "GET /inspector/ready", has_key=False),
        Asked("`/inspector/metrics`, of nobody", "GET /inspector/metrics", has_key=False),
        Asked("a page, with the token in its address", "GET /overview?token=TOKEN", has_key=False),
        Asked("a page, without the cookie", "GET /overview", has_key=False),
        Asked("a script, without the cookie", f"GET /static/js/{script}", has_key=False),
        Asked("the WebSocket, without the cookie", "GET /_stcore/stream", _HANDSHAKE, has_key=False),
        Asked("by a name that is not ours", "GET /", host="evil.example"),
        Asked("the WebSocket, by a name that is not ours", "GET /_stcore/stream", _HANDSHAKE, host="evil.example"),
        Asked("by a page of another site", "GET /", ("Origin: https://evil.example",)),
        Asked("the WebSocket, by a page of another site", "GET /_stcore/stream", (*_HANDSHAKE, "Origin: null")),
        Asked("with two lengths", "PUT /inspector/upload", ("Content-Length: 1", "Transfer-Encoding: chunked")),
        Asked("Streamlit's agent", "GET /_stcore/agent/openapi.json"),
        Asked("Streamlit's counters", "GET /_stcore/metrics"),
        Asked("an unknown page", "GET /nothing"),
        Asked("what is no request", "NONSENSE"),
    ]


@dataclass(frozen=True)
class Answer:
    """headers: (name in lower case, value)."""

    status: int
    headers: tuple[tuple[str, str], ...]

    def values(self, name: str) -> list[str]:
        return [value for held, value in self.headers if held == name]


def headers_page() -> str:
    """The page, from an app started for it. Raises ValueError where an answer lacks one of our headers, or has two."""
    pages = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
    with tempfile.TemporaryDirectory() as folder, running_app(Path(folder)) as server:
        key = _cookie(server)
        script = _any_script(server, key)
        found = [(asked, _answer(server, asked, key)) for asked in _questions(pages, script)]
    first = found[0][1]
    for asked, answer in found:
        wrong = [name for name in _OURS if answer.values(name) != first.values(name) or len(answer.values(name)) != 1]
        if wrong:
            raise ValueError(f"{asked.what}: {', '.join(wrong)}")
    lines = [
        _NOTE,
        "# Headers",
        "",
        "Every answer of the app carries these, the WebSocket's, refusals and errors included:",
        "",
        *(f"- `{name}: {_without_digest(first.values(name)[0])}`" for name in _OURS),
        "",
        "The digest is that of the script in the installed Streamlit's own page. An `x-request-id` is on every answer",
        "to what is a request. Asked of a running app that asks for a token:",
        "",
        "| Asked | Status | Beside them |",
        "| --- | --- | --- |",
        *(f"| {asked.what} | {answer.status} | {_more(answer)} |" for asked, answer in found),
    ]
    return "\n".join(lines) + "\n"


def _answer(server: Server, asked: Asked, key: str) -> Answer:
    port = int(server.url.rpartition(":")[2])
    host = asked.host or f"127.0.0.1:{port}"
    lines = [f"{asked.line.replace('TOKEN', server.token)} HTTP/1.1", f"Host: {host}", *asked.headers]
    if asked.has_key:
        lines.append(f"Cookie: {key}")
    if not any(line.startswith("Connection:") for line in lines):
        lines.append("Connection: close")
    if asked.line == "NONSENSE":
        lines = [asked.line]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head and (piece := connection.recv(65536)):
            head += piece
    status, *rest = head.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in rest)
    return Answer(int(status.split()[1]), tuple((name.lower(), value) for name, _, value in pairs))


def _cookie(server: Server) -> str:
    """What a browser would send once it has shown the token."""
    answer = _answer(server, Asked("", f"GET /?token={server.token}", has_key=False), "")
    return answer.values("set-cookie")[0].partition(";")[0]


def _any_script(server: Server, key: str) -> str:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    connection.request("GET", "/", headers={"Cookie": key})
    found = re.search(rb"static/js/([\w.-]+[.]js)", connection.getresponse().read())
    if found is None:
        raise ValueError("The first page names no script.")
    return found[1].decode()


def _without_digest(policy: str) -> str:
    return re.sub(r"'sha256-[^']+'", "'sha256-…'", policy)


def _more(answer: Answer) -> str:
    said = []
    for name in _TOLD:
        for value in answer.values(name):
            # A cookie's name ends in the port, its value is drawn.
            value = re.sub(r"^([a-z_]+)-\d+=[^;]+", r"\1-PORT=…", value) if name == "set-cookie" else value
            value = re.sub(r"^(_streamlit_xsrf)=[^;]+", r"\1=…", value) if name == "set-cookie" else value
            said.append(f"`{name}: {value}`")
    return ", ".join(said)


if __name__ == "__main__":
    print(headers_page(), end="")
