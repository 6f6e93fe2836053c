"""`make site-serve`: site/dist at http://127.0.0.1:8600, as a plain server of files serves it."""

from __future__ import annotations

import argparse
import functools
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
    parser = argparse.ArgumentParser(description="Shows site/dist, which `make site` builds, on this machine alone.")
    parser.add_argument("port", type=int, nargs="?", default=8600, help="8600 without one; 0 takes any that is free")
    port = parser.parse_args().port
    if not (DIST / "index.html").is_file():
        raise SystemExit("There is no site yet: make site")
    made = server(port=port)
    print(f"http://127.0.0.1:{made.server_port}/")
    made.serve_forever()
