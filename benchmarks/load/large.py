"""Faults of size: a picture, a model, a file, a disk."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.load.server import Server, file_of, opened, says
from benchmarks.load.visitor import Visitor

_DISK_NBYTES = 12_000_000_000
_LEFT_NBYTES = 20_000_000


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A store on a disk of its own, where this may be mounted; else a folder, and the disk is never full."""
    store = folder / "store"
    store.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_DISK_NBYTES}", "tmpfs", str(store)], capture_output=True, check=False
    )
    try:
        yield store
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "-l", str(store)], check=False)


def telephone_picture(server: Server) -> str:
    """108 megapixels, as telephones make them."""
    buffer = io.BytesIO()
    noise = Image.effect_noise((1500, 1125), 80).convert("RGB")
    noise.resize((12000, 9000)).save(buffer, "JPEG", quality=85)
    visitor = opened(server, file_of("resnet18"), "mine.safetensors")
    visitor.go("explain")
    visitor.take("Or one of your own", buffer.getvalue(), "telephone.jpg")
    return f"{says(visitor)}, {'a map' if visitor.has_map() else 'no map'} of {len(buffer.getvalue()) / 1e6:.0f} MB"


def _sparse(path: Path, nbytes: int) -> None:
    """A whole .safetensors of so many bytes of zeros, of which none is on the disk."""
    rows = nbytes // (4 * 1_000_000)
    header: dict[str, Any] = {
        f"layers.{n}.weight": {
            "dtype": "F32", "shape": [1000, 1000], "data_offsets": [4_000_000 * n, 4_000_000 * (n + 1)]
        }
        for n in range(rows)
    }  # fmt: skip
    raw = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        file.truncate(8 + len(raw) + 4_000_000 * rows)


def large_model(server: Server) -> str:
    """4 GB go up and are read in full."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.safetensors")
        _sparse(path, 4_000_000_000)
        visitor = Visitor(server.port, 0, [])
        visitor.open()
        with path.open("rb") as file:
            digest = visitor.upload(file, path.name, path.stat().st_size)
    visitor.open({"file": digest, "name": "large.safetensors"}, "overview")
    visitor.go("weights")
    visitor.until(lambda page: any(kind == "dataframe" for kind, _ in page.elements.values()))
    return f"{says(visitor)}, its numbers are there"


def sparse_file(server: Server) -> str:
    """20 GB: more than the server takes; and in the folder that it opens, where it is looked at."""
    path = server.root / "sparse.safetensors"
    _sparse(path, 20_000_000_000)
    visitor = Visitor(server.port, 0, [])
    visitor.open()
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        # What a browser announces before the first byte.
        line.sendall(
            f"PUT /inspector/upload HTTP/1.1\r\nHost: {visitor.address}\r\nX-Inspector-Token: {visitor.token}\r\n"
            f"Cookie: {visitor.cookies}\r\nX-File-Name: sparse.safetensors\r\n"
            f"Content-Length: {path.stat().st_size}\r\n\r\n".encode()
        )
        line.settimeout(10)
        head, _, body = line.recv(2000).partition(b"\r\n\r\n")
    said = f"{head.split(maxsplit=2)[1].decode()} {body.decode()}"
    visitor.values[visitor.page.find("selectbox", "Or a file on this server").id] = {"string_value": path.name}
    visitor._run()
    visitor.click("Open it")
    found = any("20" in text and "GB" in text for text in visitor.page.texts("html"))
    path.unlink()
    return f"{said}; by its path: {'opened' if found else says(visitor)}"


def disk_full(server: Server) -> str:
    """The disk fills up between opening a file and writing it."""
    if not server.store.is_mount():
        return "not tried: no disk of its own could be mounted"
    visitor = opened(server, file_of("resnet18"), "mine.safetensors")
    visitor.go("convert")
    filler = server.store / "filler"
    free = os.statvfs(server.store).f_bavail * os.statvfs(server.store).f_frsize
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - _LEFT_NBYTES)
    try:
        visitor.click("Write and verify")
        visitor.until(lambda page: any(kind == "alert" for kind, _ in page.elements.values()), 30)
        first = says(visitor)
    finally:
        filler.unlink()
    visitor.click("Write and verify")
    visitor.until(lambda page: any("download" in text for text in page.texts("html")), 60)
    return f"{first}; with room again: written"
