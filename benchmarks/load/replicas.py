"""Three servers over one store behind a balancer, many visitors, one server killed each minute: what is lost?

    python -m benchmarks.load.replicas [--visitors 24] [--minutes 5] [--reads 4]

The visitors speak Streamlit's messages over sockets (`benchmarks/load/visitor.py`); their pages hold to one server by
their cookie, their uploads go to the servers in turn. A server is ended with SIGKILL, its broker and workers with it
(as a machine is), and started again 10 seconds later. Asserted: whatever upload was answered is found by every later
page; nothing of another visitor arrives. Printed: from each kill to each page that was thrown off it, uploads that were
cut and sent again, memory of each server.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

import numpy as np
from safetensors.numpy import save
from websockets.exceptions import ConnectionClosed, WebSocketException

from benchmarks.load.__main__ import memory
from benchmarks.load.visitor import TOKEN, Failed, Visitor
from scripts.running_app import Server, free_port, running_app
from tests.e2e.replicas_proxy import Head, Proxy

_TRIES = 60
# A server that ends, at whatever moment: a browser asks again.
_GONE = (WebSocketException, OSError, EOFError)
_PAGES = ("overview", "contents", "tensors")
# Seconds from a broken connection to the page, of each that was thrown off.
_THROWN: list[float] = []


class Replicas:
    """The servers and who kills them. killed: when each port's was, the last time."""

    def __init__(self, folder: Path, ports: list[int], running: ExitStack, settings: dict[str, str]) -> None:
        self.ports, self._running, self._settings, self._folder = ports, running, settings, folder
        self.killed: dict[int, float] = {}
        self.most = dict.fromkeys(ports, (0, 0))
        self.servers: dict[int, Server] = {}
        for port in ports:
            self.start(port)

    def start(self, port: int) -> None:
        folder = self._folder / str(port)
        folder.mkdir(exist_ok=True)
        self.servers[port] = self._running.enter_context(running_app(folder, port=port, **self._settings))

    def kill(self, port: int) -> None:
        """All of it at once; it was started in a session of its own."""
        self.killed[port] = time.monotonic()
        os.killpg(self.servers[port].process.pid, signal.SIGKILL)
        self.servers[port].process.wait()

    def measure(self) -> None:
        for port, server in self.servers.items():
            with suppress(OSError, StopIteration):
                found = memory(server.process.pid)
                self.most[port] = tuple(map(max, self.most[port], (found["web"], found["all"])))  # type: ignore[assignment]


class Told:
    """What all visitors met."""

    def __init__(self) -> None:
        self.back: list[float] = []
        self.shown: list[float] = []
        self.lost: list[str] = []
        self.cut = self.uploads = self.pages = 0


def visit(
    proxy: Proxy, replicas: Replicas, number: int, foreign: list[str], until: float, told: Told, reads: float
) -> None:
    """One visitor with a file of its own after the other; every earlier one is asked for again. reads: seconds that it
    stays on a page, in the mean."""
    visitor = Visitor(proxy.port, number, foreign)
    rng = np.random.default_rng(number)
    # What only this file's content tells: the overview says how many parameters there are.
    rows = 500 + number
    had: list[tuple[str, str]] = []
    # Nobody comes at the same moment as all others.
    time.sleep(float(rng.uniform(0, 2 * reads)))
    while time.monotonic() < until:
        try:
            _show(visitor, {}, "", told, replicas)
            name = f"visitor{number}turn{len(had)}.safetensors"
            had.append((_upload(visitor, save({"w": rng.standard_normal((rows, 500), np.float32)}), name, told), name))
            for digest, known in (had[-1], had[int(rng.integers(len(had)))]):
                for page in _PAGES if time.monotonic() < until else ():
                    _show(visitor, {"file": digest, "name": known}, page, told, replicas)
                    if visitor.errors() or (page == _PAGES[0] and not _says(visitor, f"{500 * rows:,}")):
                        told.lost.append(f"{known} on {page}: {visitor.errors()}")
                    _stay(visitor, min(float(rng.uniform(0.5, 1.5)) * reads, until - time.monotonic()))
        except Exception as error:  # noqa: BLE001 - whatever it is, it counts
            told.lost.append(f"visitor {number}: {type(error).__name__} {error}")
    visitor.close()


def _says(visitor: Visitor, text: str) -> bool:
    return any(text in str(element) for _, element in visitor.page.elements.values())


def _upload(visitor: Visitor, data: bytes, name: str, told: Told) -> str:
    for _ in range(_TRIES):
        try:
            digest = visitor.upload(data, name)
        except (Failed, OSError) as error:
            # As the page does it: what was cut on its way is sent again.
            told.cut += 1
            says = str(error)
            time.sleep(0.5)
            continue
        assert digest == hashlib.sha256(data).hexdigest()
        told.uploads += 1
        return digest
    raise Failed(f"an upload never arrived: {says}")


def _show(visitor: Visitor, query: dict[str, str], page: str, told: Told, replicas: Replicas) -> None:
    """A page by its address; from a server that is killed meanwhile, again from another."""
    began = time.monotonic()
    for _ in range(_TRIES):
        try:
            visitor.open(query, page)
            break
        except _GONE:
            time.sleep(0.2)
    else:
        raise Failed(f"the page {page} never came")
    told.pages += 1
    now = time.monotonic()
    killed = [at for at in replicas.killed.values() if began < at]
    (told.back if killed else told.shown).append(now - min(killed, default=began))


def _stay(visitor: Visitor, seconds: float) -> None:
    """Read what stands there; a connection that breaks is noticed as a browser notices it, and the page asked again."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            assert visitor._socket is not None
            visitor._socket.recv(left)
        except TimeoutError:
            return
        except ConnectionClosed:
            _again(visitor, time.monotonic())
            return


def _again(visitor: Visitor, since: float) -> None:
    query = dict(pair.split("=", 1) for pair in visitor.query.split("&") if pair)
    for _ in range(_TRIES):
        try:
            visitor.open(query, "overview")
        except _GONE:
            time.sleep(0.2)
            continue
        _THROWN.append(time.monotonic() - since)
        return
    raise Failed("the page never came back")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=24)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--reads", type=float, default=4.0)
    asked = parser.parse_args()
    told, turns = Told(), count()
    os.environ[TOKEN] = token = "the-token-of-this-run"
    ports = [free_port() for _ in range(3)]

    def rule(head: Head) -> int:
        # Pages by the visitor's cookie, all else in turn.
        of = hashlib.sha256(head.cookies.encode()).digest()[0] if head.is_page else next(turns)
        return ports[of % len(ports)]

    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        settings = {"INSPECTOR_WORKERS": "1", "INSPECTOR_TOKEN": token, "INSPECTOR_STORE": f"{folder}/store",
                    "INSPECTOR_STORE_SHARED": "on"}  # fmt: skip
        replicas = Replicas(Path(folder), ports, running, settings)
        proxy = Proxy(ports, rule)
        words = [f"visitor{number}turn" for number in range(asked.visitors)]
        until = time.monotonic() + 60 * asked.minutes
        threads = [
            threading.Thread(
                target=visit,
                args=(proxy, replicas, n, [w for w in words if w != words[n]], until, told, asked.reads),
                daemon=True,
            )
            for n in range(asked.visitors)
        ]
        for thread in threads:
            thread.start()
        for turn in count():
            _wait(replicas, min(until, time.monotonic() + 50))
            if time.monotonic() >= until:
                break
            port = ports[turn % len(ports)]
            replicas.kill(port)
            _wait(replicas, min(until, time.monotonic() + 10))
            replicas.start(port)
        for thread in threads:
            thread.join()
        kept = len(list((Path(folder) / "store" / "files").iterdir()))
        proxy.close()
    print(f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors; {asked.visitors} visitors, three servers, "
          f"{turn} killed in {asked.minutes:g} minutes")  # fmt: skip
    print(f"{told.uploads} uploads answered, {kept} files in the store, {told.cut} cut and sent again; lost: "
          f"{len(told.lost)}; {told.pages} pages")  # fmt: skip
    for what, seconds in (("page, its server alive", told.shown), ("page asked for while its server was killed",
                          told.back), ("page thrown off by a kill, back", _THROWN)):  # fmt: skip
        if seconds:
            high = sorted(seconds)[int(0.95 * (len(seconds) - 1))]
            print(f"{what}: {len(seconds)}, median {statistics.median(seconds):.2f} s, 95 % {high:.2f}, longest "
                  f"{max(seconds):.2f}")  # fmt: skip
    for web, everything in replicas.most.values():
        print(f"memory of one server at most: {web / 1e6:.0f} MB the web process, {everything / 1e6:.0f} MB with its "
              "broker and workers")  # fmt: skip
    for says in told.lost[:20]:
        print(f"  {says}")
    return 1 if told.lost or kept < told.uploads else 0


def _wait(replicas: Replicas, until: float) -> None:
    while time.monotonic() < until:
        replicas.measure()
        time.sleep(min(2.0, max(0.0, until - time.monotonic())))


if __name__ == "__main__":
    sys.exit(main())
