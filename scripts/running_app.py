"""The real app on a free port, with a content store of its own: for browser tests and screenshots."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ("--no-sandbox", "--disable-quic", "--disable-background-networking", "--no-first-run")
# The script has ended and nothing on the page is stale.
SETTLED = """() => {
    const app = document.querySelector('[data-testid=stApp]')
    return app?.getAttribute('data-test-script-state') === 'notRunning'
        && !document.querySelector('[data-testid=stMain] [data-stale=true]')
}"""


@dataclass(frozen=True)
class Server:
    """A running app. log: where its output goes. token: what it asks a visitor for. process: the server itself."""

    url: str
    store: Path
    log: Path
    token: str
    process: subprocess.Popen[bytes]

    def let_in(self, context: BrowserContext) -> None:
        """Give a browser's session the cookie that this server asks for."""
        context.request.get(f"{self.url}/?token={self.token}")


def free_port() -> int:
    """One that nobody listens on just now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running_app(folder: Path, app: str = "app.py", *, port: int = 0, **variables: str) -> Iterator[Server]:
    """Started as the README says, stopped at the end. app: the server's script. port: 0 for any that is free.
    variables: of its environment.

    Raises RuntimeError with its log when it does not start.
    """
    port = port or free_port()
    log = folder / "log.txt"
    token = secrets.token_urlsafe(24)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("INSPECTOR_")},
        "INSPECTOR_STORE": str(folder / "store"),
        "INSPECTOR_ROOT": str(ROOT / "sample_models" / "files"),
        "INSPECTOR_TOKEN": token,
        "OMP_NUM_THREADS": "1",
        # No settings of whoever runs this.
        "HOME": str(folder),
        **variables,
    }
    command = [sys.executable, "-m", "streamlit", "run", app, "--server.port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            _await(f"http://127.0.0.1:{port}", process, log)
            url = f"http://127.0.0.1:{port}"
            yield Server(url=url, store=folder / "store", log=log, token=token, process=process)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url + "/inspector/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    raise RuntimeError(f"The server did not start:\n{log.read_text(errors='replace')[-3000:]}")
