"""A server to be hurt, and visitors who open a file in it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import torch
import torchvision
from safetensors.torch import save

from benchmarks.load.visitor import Visitor

ROOT = Path(__file__).resolve().parents[2]


class Server:
    """The app in a process of its own, started again on the same store."""

    def __init__(self, port: int, store: Path, root: Path, memory: str) -> None:
        self.port, self.store, self.root, self._memory = port, store, root, memory
        self.start()

    def start(self) -> None:
        environment = os.environ | {
            "INSPECTOR_STORE": str(self.store), "INSPECTOR_ROOT": str(self.root), "INSPECTOR_MEMORY": self._memory
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", "--server.address", "127.0.0.1", "--server.port",
             str(self.port), "--server.headless", "true"],
            cwd=ROOT, env=environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(15)

    def pids(self, what: str) -> list[int]:
        """Of the broker, or of the workers."""
        found = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in found.splitlines()[1:]]
        brokers = [
            int(pid) for pid, parent, args in rows if int(parent) == self.process.pid and "inspector.jobs" in args
        ]
        if what == "broker":
            return brokers
        forks = [int(pid) for pid, parent, args in rows if int(parent) in brokers]
        return [int(pid) for pid, parent, args in rows if int(parent) in forks]


def file_of(name: str) -> bytes:
    torch.manual_seed(0)
    return save(dict(torchvision.models.get_model(name, weights=None).state_dict()))


def says(visitor: Visitor) -> str:
    """What stands on the page in red or yellow."""
    found = [str(e.body) for kind, e in visitor.page.elements.values() if kind == "alert" and e.format in (1, 2)]
    return " | ".join(text.replace("\\", "").replace("\n", " ") for text in found) or "no error"


def opened(server: Server, data: bytes, name: str) -> Visitor:
    visitor = Visitor(server.port, 0, [])
    visitor.open()
    digest = visitor.upload(data, name)
    visitor.open({"file": digest, "name": name}, "overview")
    return visitor
