"""Streamlit's page is told where its server is, and that script alone joins those that may run."""

from __future__ import annotations

import base64
import hashlib

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from inspector.web.front.headers import headers_for
from inspector.web.front.index_page import IndexPage, script_for, with_script
from tests.web.asgi_client import Client

PAGE = '<html><script type="module" src="x.js"></script></html>'


async def _answer(request: Request) -> Response:
    if request.headers.get("accept-encoding") or request.headers.get("if-none-match"):
        return PlainTextResponse("packed or kept")
    if request.path_params["path"] == "files":
        return PlainTextResponse(PAGE)
    return HTMLResponse(PAGE, headers={"etag": '"old"'})


def _client() -> Client:
    route = Route("/{path:path}", _answer, methods=["GET", "POST"])
    pages = frozenset({"overview", "files"})
    return Client(Starlette(routes=[route], middleware=[Middleware(IndexPage, pages=pages, base="")]), host="a")


@pytest.mark.parametrize("path", ["/", "/overview", "/overview/"])
def test_a_page_begins_with_where_its_server_is(path: str) -> None:
    answer = _client().ask("GET", path, headers={"accept-encoding": "gzip", "if-none-match": '"old"'})
    text = answer.body.decode()
    assert text == with_script(PAGE.encode(), "").decode()
    assert text.index("BACKEND_BASE_URL:window.location.origin") < text.index("x.js")
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert "etag" not in answer.headers


def test_nothing_else_is_touched() -> None:
    assert _client().ask("GET", "/static/x.html").body.decode() == PAGE
    assert _client().ask("GET", "/files").body.decode() == PAGE
    assert with_script(b"<p>no script</p>", "") == b"<p>no script</p>"


def test_its_script_may_run_and_a_base_path_cannot_end_it() -> None:
    policy = dict(headers_for(with_script(PAGE.encode(), "/base")))[b"content-security-policy"].decode()
    digest = base64.b64encode(hashlib.sha256(script_for("/base")).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    assert b"</script" not in script_for("</script>")
