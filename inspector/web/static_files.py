"""Scripts of ours that elements of a page load by address: GET below a digest of them all, so that browsers keep them.

What is served is read once, when the server starts; a request names one of these files and never a path.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from inspector.web.downloads import prefix
from inspector.web.front.paths import STATIC_PATH

_ROOT = Path(__file__).parent / "static"
_FOLDERS = ("drawing", "vendor")
# Another version has another address.
_KEPT = {"cache-control": "public, max-age=31536000, immutable"}


@lru_cache(maxsize=1)
def _scripts() -> dict[str, bytes]:
    """By "folder/name"."""
    found = (path for folder in _FOLDERS for path in sorted((_ROOT / folder).glob("*.js")))
    return {path.relative_to(_ROOT).as_posix(): path.read_bytes() for path in found}


@lru_cache(maxsize=1)
def _digest() -> str:
    whole = hashlib.sha256()
    for name, script in _scripts().items():
        whole.update(f"{name}\0{len(script)}\0".encode() + script)
    return whole.hexdigest()[:16]


def address_of(name: str) -> str:
    """Where a script is. name: "drawing/element.js". Raises KeyError for one that is not served."""
    if name not in _scripts():
        raise KeyError(name)
    return f"{prefix()}{STATIC_PATH}/{_digest()}/{name}"


def static_route() -> Route:
    """What app.py mounts."""
    return Route(f"{prefix()}{STATIC_PATH}/{{digest}}/{{name:path}}", give_script, methods=["GET", "HEAD"])


async def give_script(request: Request) -> Response:
    """The script, for as long as the browser likes; 404 for what is of another version."""
    script = _scripts().get(request.path_params["name"])
    if script is None or request.path_params["digest"] != _digest():
        return PlainTextResponse("Not found", 404)
    return Response(script, media_type="text/javascript", headers=_KEPT)
