"""`make site-serve`: site/dist at http://127.0.0.1:8600, as a plain server of files serves it."""

from __future__ import annotations

import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DIST = Path(__file__).resolve().parent / "dist"


class Handler(SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".js": "text/javascript",
        ".packed": "application/octet-stream",
        ".webmanifest": "application/manifest+json",
        ".sha256": "text/plain",
    }

    def log_message(self, *_: object) -> None:
        return None


def server(folder: Path = DIST, port: int = 0) -> ThreadingHTTPServer:
    """Not started yet; port 0 takes any that is free."""
    return ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=str(folder)))


if __name__ == "__main__":
    if not (DIST / "index.html").is_file():
        raise SystemExit("There is no site yet: make site")
    made = server(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8600)
    print(f"http://127.0.0.1:{made.server_port}/")
    made.serve_forever()
