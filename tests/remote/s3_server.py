"""A real S3-compatible server on this machine (moto's), whose requests are written down and some of which fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. key: bucket and name. nbytes: of the answer's body."""

    method: str
    key: str
    range: str
    query: dict[str, list[str]]
    if_match: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Refused:
    """What a request is answered with in place of an answer. cut: the right answer without its second half."""

    status: int = 500
    code: str = "InternalError"
    cut: bool = False


class S3Server:
    """fault: what becomes of a request, None for nothing. after: is called with each answered one."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.fault: Callable[[Asked], Refused | None] = lambda _: None
        self.after: Callable[[Asked], None] = lambda _: None
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def forget(self) -> None:
        self.asked.clear()
        self.fault = lambda _: None
        self.after = lambda _: None

    def of(self, method: str, part: str = "") -> list[Asked]:
        """Requests of that kind whose key has the part."""
        return [one for one in self.asked if one.method == method and part in one.key]

    @property
    def listings(self) -> list[Asked]:
        return [one for one in self.asked if "list-type" in one.query]

    def _answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        # A body that is not read stays in the connection, before the next request.
        told: list[Any] = []
        asked = Asked(
            environ["REQUEST_METHOD"],
            environ["PATH_INFO"].lstrip("/"),
            environ.get("HTTP_RANGE", ""),
            parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True),
            environ.get("HTTP_IF_MATCH", ""),
            0,
        )
        refused = self.fault(asked)
        if refused is not None and not refused.cut:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            body = f"<Error><Code>{refused.code}</Code><Message>told to refuse</Message></Error>".encode()
            self.asked.append(asked)
            start(f"{refused.status} Refused", [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))])
            return [body]

        def begin(status: str, headers: list[tuple[str, str]], *_: Any) -> Callable[[bytes], object]:
            told[:] = [status, headers]
            return lambda _: None

        body = b"".join(self._app(environ, begin))
        done = Asked(asked.method, asked.key, asked.range, asked.query, asked.if_match, len(body))
        self.asked.append(done)
        start(told[0], told[1])
        self.after(done)
        return [body[: len(body) // 2]] if refused is not None else [body]


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        return None


def server() -> Iterator[S3Server]:
    found = S3Server()
    yield found
    found.close()
