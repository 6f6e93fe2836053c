"""Exported files on their way to the visitor, read from the disk as they go: GET with the name that nobody can guess.

Streamlit's own download button holds the whole file in memory, and keeps it. Here a request names one of the random
folders under the store's exports, and one of the files in it; the answer is never shown by the browser, only saved.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from inspector.web.front.paths import DOWNLOAD_PATH
from inspector.web.store import clean_name, the_store

TOKEN_BYTES = 12
# Each piece is read in another thread and waits twice for its turn among those that work: beside two busy threads 50 MB
# took 14 s in Starlette's pieces of 64 KB, and 1.7 s in these.
_PIECE_NBYTES = 1 << 20
_TOKEN = re.compile(rf"[0-9a-f]{{{2 * TOKEN_BYTES}}}")


class AsStored:
    """Wraps the whole application: exports go as they lie on the disk. For every browser, which all say that they take
    gzip, Streamlit would compress them: 0.1 s of the processor for each MB of numbers, which stay as large."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and str(scope["path"]).startswith(f"{prefix()}{DOWNLOAD_PATH}/"):
            headers = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
            scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)


class _Export(FileResponse):
    chunk_size = _PIECE_NBYTES


def prefix() -> str:
    """What stands before every path of this server: "" or "/base"."""
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def download_route() -> Route:
    """What app.py mounts."""
    return Route(f"{prefix()}{DOWNLOAD_PATH}/{{token}}/{{place:int}}", give_export, methods=["GET", "HEAD"])


def address_of(token: str, place: int, name: str) -> str:
    """Where one file of an export is. place: its number among the folder's files by name. name: for the visitor."""
    return f"{prefix()}{DOWNLOAD_PATH}/{token}/{place}?name={quote(name, safe='')}"


def exported_files(folder: Path) -> list[Path]:
    """The files of an export in the order that `address_of` counts."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


async def give_export(request: Request) -> Response:
    """The file as an attachment, whole or by ranges; 404 for whatever is not (or no longer) there."""
    token, place = str(request.path_params["token"]), int(request.path_params["place"])
    found: list[Path] = []
    if _TOKEN.fullmatch(token):
        folder = the_store().exports / token
        found = exported_files(folder) if folder.is_dir() else []
    if not 0 <= place < len(found):
        return PlainTextResponse("The written file is not on the server any more. Write it again.", status_code=404)
    name = clean_name(request.query_params.get("name", "") or found[place].name)
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return _Export(found[place], media_type="application/octet-stream", filename=name, headers=headers)
