"""What goes wrong while three visitors work: what its own visitor reads, and whether the others noticed anything.

    python -m benchmarks.load.faults [--port 8710] [--memory 5GB]

Each fault is made once, by a visitor of its own or with a signal to a process of the server's, while three others go
through the pages (`benchmarks/load/__main__.py`). Asserted: the others meet no error.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch
import torchvision

from benchmarks.load import large
from benchmarks.load.__main__ import Log, visit
from benchmarks.load.server import Server, file_of, opened, says
from benchmarks.load.visitor import TOKEN, Failed, Visitor


def signalled(kind: str, number: int) -> Callable[[Server], str]:
    """A signal to all workers, or to the broker, while a map is made."""

    def fault(server: Server) -> str:
        visitor = opened(server, file_of("resnet50"), "mine.safetensors")
        threading.Timer(0.4, lambda: [os.kill(pid, number) for pid in server.pids(kind)]).start()
        visitor.go("explain")
        first = says(visitor)
        visitor.go("explain")
        visitor.click("star 1")
        return f"{first}; then: {says(visitor)}, {'a map' if visitor.has_map() else 'no map'}"

    return fault


def server_killed(server: Server) -> str:
    visitor = opened(server, file_of("resnet18"), "mine.safetensors")
    query = visitor.query
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    time.sleep(3)
    left = [pid for what in ("broker", "workers") for pid in server.pids(what)]
    server.start()
    again = Visitor(server.port, 0, [])
    again.query = query
    again.open(dict(pair.split("=", 1) for pair in query.split("&") if pair), "overview")
    there = any("mine.safetensors" in text for text in again.page.texts("html"))
    return f"processes left behind: {len(left)}; by its link the file is {'there' if there else 'gone'} again"


def at_size(side: int) -> Callable[[Server], str]:
    """ResNet-152 at a size of the visitor's own."""

    def fault(server: Server) -> str:
        visitor = opened(server, file_of("resnet152"), "mine.safetensors")
        visitor.go("explain")
        visitor.click("star 1")
        for label in ("Shorter side (0: keep)", "Centre crop (0: none)"):
            visitor.values[visitor.page.find("number_input", label).id] = {"double_value": float(side)}
        visitor._run()
        return f"{says(visitor)}, {'a map' if visitor.has_map() else 'no map'}"

    return fault


def half_a_file(server: Server) -> str:
    buffer = io.BytesIO()
    torch.save(torchvision.models.resnet18(weights=None).state_dict(), buffer)
    visitor = opened(server, buffer.getvalue()[: len(buffer.getvalue()) // 2], "half.pth")
    return next(
        (
            found[0]
            for text in visitor.page.texts("html")
            if (found := re.search(r"\d+ of \d+ tensors are whole", text))
        ),
        says(visitor),
    )


def zip_bomb(server: Server) -> str:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(600_000_000))
        archive.writestr("archive/version", "3")
    visitor = opened(server, buffer.getvalue(), "bomb.pth")
    return says(visitor)


def own_code(lines: str) -> Callable[[Server], str]:
    """A factory of the visitor's own, run from the Repair page after the question."""

    def fault(server: Server) -> str:
        name = f"model{abs(hash(lines)) % 10**6}.py"
        (server.root / name).write_text(f"def build():\n    {lines}\n", encoding="utf-8")
        visitor = opened(server, file_of("resnet18"), "mine.safetensors")
        visitor.go("repair")
        visitor.choose("button_group", "Compare with", "your own code")
        visitor.values[visitor.page.find("text_input", "Factory").id] = {"string_value": f"code:{name}:build"}
        visitor._run()
        visitor.click("Run it")
        return says(visitor)

    return fault


def cut_upload(server: Server) -> str:
    visitor = Visitor(server.port, 0, [])
    visitor.open()
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(
            f"PUT /inspector/upload HTTP/1.1\r\nHost: {visitor.address}\r\nX-Inspector-Token: {visitor.token}\r\n"
            f"Cookie: {visitor.cookies}\r\nX-File-Name: cut.pth\r\nContent-Length: 50000000\r\n\r\n".encode()
            + bytes(1_000_000)
        )
    time.sleep(2)
    return "nothing is kept"


def contradictory(server: Server) -> str:
    visitor = Visitor(server.port, 0, [])
    visitor.open()
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(
            f"PUT /inspector/upload HTTP/1.1\r\nHost: {visitor.address}\r\nX-Inspector-Token: {visitor.token}\r\n"
            f"Cookie: {visitor.cookies}\r\nX-File-Name: two.pth\r\n"
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5\r\nhello\r\n0\r\n\r\n".encode()
        )
        line.settimeout(10)
        return line.recv(200).split(b"\r\n")[0].decode()


FAULTS: tuple[tuple[str, Callable[[Server], str]], ...] = (
    ("workers killed", signalled("workers", signal.SIGKILL)),
    ("workers segfault", signalled("workers", signal.SIGSEGV)),
    ("broker killed", signalled("broker", signal.SIGKILL)),
    ("ResNet-152 at 1024", at_size(1024)),
    ("ResNet-152 at 2048", at_size(2048)),
    ("half a file", half_a_file),
    ("own code takes 50 GB", own_code("return bytearray(50_000_000_000)")),
    ("own code never ends", own_code("while True: pass")),
    ("own code segfaults", own_code("import ctypes; ctypes.string_at(0)")),
    ("picture of 108 megapixels", large.telephone_picture),
    ("model of 4 GB", large.large_model),
    ("sparse file of 20 GB", large.sparse_file),
    ("disk full", large.disk_full),
    ("zip bomb", zip_bomb),
    ("upload cut", cut_upload),
    ("length and chunks", contradictory),
    ("server killed", server_killed),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8710)
    parser.add_argument("--memory", default="5GB")
    parser.add_argument("--only", default="", help="one of them by its name")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    bad = 0
    os.environ[TOKEN] = secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as folder, large.small_disk(Path(folder)) as store:
        root = Path(folder, "root")
        root.mkdir()
        server = Server(asked.port, store, root, asked.memory)
        try:
            for name, fault in FAULTS:
                if asked.only not in name:
                    continue
                log = Log()
                others = _others(asked.port, log, 25.0) if name != "server killed" else []
                time.sleep(3)
                try:
                    read = fault(server)
                except Failed as error:
                    read = f"FAILED: {error}"
                for thread in others:
                    thread.join()
                bad += len(log.failures) + read.startswith("FAILED")
                done = sum(len(seconds) for seconds in log.seconds.values())
                print(
                    f"{name}: {read}\n    the others: {done} steps, {len(log.failures)} failed {log.failures[:2] or ''}"
                )
                sys.stdout.flush()
            left = [p.name for p in Path(store, "incoming").iterdir()]
            print(f"half uploads left in the store: {len(left)}")
        finally:
            server.process.kill()
    return 1 if bad else 0


def _others(port: int, log: Log, seconds: float) -> list[threading.Thread]:
    until = time.monotonic() + seconds
    words = [f"visitor{number}turn" for number in (1, 2, 3)]
    threads = [
        threading.Thread(target=visit, args=(port, number, [w for w in words if w != words[number - 1]], until, log))
        for number in (1, 2, 3)
    ]
    for thread in threads:
        thread.start()
    return threads


if __name__ == "__main__":
    sys.exit(main())
