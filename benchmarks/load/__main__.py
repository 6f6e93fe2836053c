"""Does the server hold many visitors? Uploads, pages, statistics, maps, repairs, exports; some leave in the middle.

    python -m benchmarks.load [--visitors 20] [--minutes 10] [--port 8700]

Starts a server of its own with an empty store. Each visitor opens files of its own (a network of the samples' kind, or
a ResNet with random weights of 45 to 100 MB), goes through the pages as a person does, and checks what it reads: its
own file's name and digest, its download's bytes. Asserted: no time-out, no error, no refusal, nothing of another
visitor in any message. Printed: medians and 95th percentiles of each step, first maps, memory before, at most, after.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import torch
import torchvision
from safetensors.torch import save

from benchmarks.load.visitor import Failed, Visitor

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_models" / "files" / "shapes_dp.pth.tar"
PICTURES = ("circle 1", "circle 2", "square 1", "square 2", "star 1", "star 2", "triangle 1", "triangle 2")
LINK = re.compile(r'href="([^"]+)" download')


class Log:
    """What all visitors measured."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.failures: list[str] = []
        self._lock = threading.Lock()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.took(name, time.monotonic() - start)

    def took(self, name: str, seconds: float) -> None:
        with self._lock:
            self.seconds[name].append(seconds)

    def failed(self, says: str) -> None:
        with self._lock:
            self.failures.append(says)


def own_file(number: int, turn: int, rng: random.Random) -> tuple[bytes, str]:
    """(bytes, name) of a checkpoint that nobody else has."""
    kind = rng.choice(("shuffle", "shuffle", "resnet18", "resnet50"))
    name = f"visitor{number}turn{turn}token{rng.randrange(10**12):012d}"
    with _making:
        state = dict(_state(kind))
    # Another file by its last numbers: networks that are drawn anew took as much of the processors as the server.
    bias = next(reversed(state))
    state[bias] = state[bias] + 1e-3 * torch.randn(state[bias].shape, generator=torch.manual_seed(rng.randrange(10**9)))
    return save(state), f"{name}.safetensors"


_making = threading.Lock()


@lru_cache
def _state(kind: str) -> dict[str, torch.Tensor]:
    if kind == "shuffle":
        model: torch.nn.Module = torchvision.models.shufflenet_v2_x0_5(weights=None, num_classes=4)
    else:
        model = torchvision.models.get_model(kind, weights=None)
    return {f"module.{key}": value for key, value in model.state_dict().items()}


def visit(port: int, number: int, foreign: list[str], until: float, log: Log) -> None:
    """One visitor, again and again with another file."""
    rng, turn = random.Random(number), 0
    while time.monotonic() < until:
        data, name = own_file(number, turn, rng)
        visitor = Visitor(port, number, foreign)
        try:
            _tour(visitor, data, name, rng, log, until)
        except Failed as error:
            log.failed(f"visitor {number}, {name}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it counts
            log.failed(f"visitor {number}, {name}: {type(error).__name__} {error}")
        finally:
            visitor.close()
        turn += 1


def _tour(visitor: Visitor, data: bytes, name: str, rng: random.Random, log: Log, until: float) -> None:
    with log.step("open"):
        visitor.open()
    with log.step(f"upload of {round(len(data) / 1e6, -1):.0f} MB"):
        digest = visitor.upload(data, name)
    if digest != hashlib.sha256(data).hexdigest():
        raise Failed("the upload's digest is another")
    with log.step("overview"):
        visitor.open({"file": digest, "name": name}, "overview")
    if not any(name in text for text in visitor.page.texts("html")):
        raise Failed("the page does not call the file by its name")
    _check(visitor)
    for page in rng.sample(("contents", "tensors", "architecture", "convert"), 3):
        _think(rng, until)
        with log.step(page):
            visitor.go(page)
        _check(visitor)
    with log.step("statistics"):
        visitor.go("weights")
        visitor.until(lambda page: any(kind == "dataframe" for kind, _ in page.elements.values()))
    _check(visitor)
    if rng.random() < 0.2:
        return  # left in the middle
    with log.step("explain, no picture"):
        visitor.go("explain")
    for place, picture in enumerate(rng.sample(PICTURES, 3)):
        which = "first" if place == 0 else "next"
        with log.step(f"{which} map and its table"):
            visitor.click(picture)
        if not visitor.has_map():
            raise Failed("there is no map")
        log.took(f"{which} map", visitor.map_seconds)
        _check(visitor)
        _think(rng, until)
    with log.step("the same map again"):
        visitor.click(picture)
    with log.step("repair"):
        visitor.go("repair")
    _check(visitor)
    with log.step("export"):
        visitor.click("Write and verify")
        if not _links(visitor):
            visitor.until(lambda _: bool(_links(visitor)))
    _check(visitor)
    links = _links(visitor)
    with log.step("download"):
        written = visitor.download(links[0].replace("&amp;", "&"))
    if abs(len(written) - len(data)) > 0.1 * len(data):
        raise Failed(f"the download has {len(written)} bytes, the upload had {len(data)}")


def _links(visitor: Visitor) -> list[str]:
    return [found for text in visitor.page.texts("html") for found in LINK.findall(text)]


def _think(rng: random.Random, until: float) -> None:
    time.sleep(min(rng.uniform(1.0, 6.0), max(0.0, until - time.monotonic())))


def _check(visitor: Visitor) -> None:
    if visitor.errors():
        raise Failed("; ".join(visitor.errors()))


def memory(pid: int) -> dict[str, int]:
    """Bytes that are a process's own: {"web": ..., "all": ...} of the server and everything below it."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children[int(fields[1])].append(int(entry.name))
    waiting, found = [pid], []
    while waiting:
        found.append(waiting.pop())
        waiting += children[found[-1]]
    return {"web": _rss(pid), "all": sum(_pss(one) for one in found)}


def _rss(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def _pss(pid: int) -> int:
    """What is shared is counted in shares, so that the sum is what is taken."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--port", type=int, default=8700)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for kind in ("shuffle", "resnet18", "resnet50"):
        _state(kind)
    log = Log()
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"INSPECTOR_STORE": folder}
        server = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", "--server.address", "127.0.0.1", "--server.port",
             str(asked.port), "--server.headless", "true"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _run(asked, server.pid, log)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    return 1 if log.failures else 0


def _run(asked: argparse.Namespace, pid: int, log: Log) -> None:
    time.sleep(15)
    # A first visit imports what every page needs.
    warm = Visitor(asked.port, -1, [])
    warm.open()
    warm.close()
    before = memory(pid)
    most = dict(before)
    words = [f"visitor{number}turn" for number in range(asked.visitors)]
    until = time.monotonic() + 60 * asked.minutes
    threads = [
        threading.Thread(
            target=visit, args=(asked.port, number, [w for w in words if w != words[number]], until, log)
        )
        for number in range(asked.visitors)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1.0)
        most = {what: max(most[what], now) for what, now in memory(pid).items()}
    time.sleep(60)
    after = memory(pid)
    print(f"{asked.visitors} visitors, {asked.minutes:g} minutes, {os.cpu_count()} processors")
    print(f"{'step':<24}{'times':>7}{'median':>9}{'95 %':>9}{'longest':>9}")
    for name, seconds in sorted(log.seconds.items()):
        high = sorted(seconds)[min(len(seconds) - 1, int(0.95 * len(seconds)))]
        print(f"{name:<24}{len(seconds):>7}{statistics.median(seconds):>8.2f}s{high:>8.2f}s{max(seconds):>8.2f}s")
    for what in before:
        print(f"memory, {what}: {before[what] / 1e6:.0f} MB, at most {most[what] / 1e6:.0f}, a minute after the last "
              f"left {after[what] / 1e6:.0f}")  # fmt: skip
    print(f"failures: {len(log.failures)}")
    for says in log.failures[:20]:
        print("  " + says)


if __name__ == "__main__":
    sys.exit(main())
