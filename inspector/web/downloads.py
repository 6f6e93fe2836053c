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

from inspector.web.front.paths import DOWNLOAD_PATH
from inspector.web.store import clean_name, the_store

TOKEN_BYTES = 12
_TOKEN = re.compile(rf"[0-9a-f]{{{2 * TOKEN_BYTES}}}")


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
        return PlainTextResponse("This export is not on the server any more. Write it again.", status_code=404)
    name = clean_name(request.query_params.get("name", "") or found[place].name)
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return FileResponse(found[place], media_type="application/octet-stream", filename=name, headers=headers)
