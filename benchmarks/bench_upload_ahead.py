"""Seconds from a drop to the answer, with a large file on a line of known speed: from slices of it, and from all of it.

    python benchmarks/bench_upload_ahead.py [--mbytes 2000] [--rate 40]
    python benchmarks/bench_upload_ahead.py --formats

The files are sparse: the header is a real network's, the numbers are zeros. The line is Chromium's own emulation.
Both answers must name the network and its parameters. Requests and bytes are those of the slices.
"""

from __future__ import annotations

import argparse
import re
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from browser import find  # noqa: E402
from running_app import FLAGS, Server, running_app  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_PATIENCE = 600_000  # milliseconds


def sparse_safetensors(path: Path, nbytes: int) -> None:
    """A ResNet-50 beside one tensor that makes it so large."""
    import json

    from torchvision.models import resnet50

    from inspector.checkpoint.dtypes import SAFETENSORS_DTYPES

    codes = {dtype: code for code, dtype in SAFETENSORS_DTYPES.items()}
    header: dict[str, object] = {}
    at = 0
    for name, tensor in resnet50().state_dict().items():
        n = tensor.numel() * tensor.element_size()
        dtype = str(tensor.dtype).removeprefix("torch.")
        header[name] = {"dtype": codes[dtype], "shape": list(tensor.shape), "data_offsets": [at, at + n]}
        at += n
    rest = max(0, nbytes - at) // 4
    header["ballast"] = {"dtype": "F32", "shape": [rest], "data_offsets": [at, at + 4 * rest]}
    raw = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(raw)) + raw)
        file.truncate(8 + len(raw) + at + 4 * rest)


def sparse_torch(path: Path, nbytes: int) -> None:
    """The same by torch.save."""
    import torch
    from torchvision.models import resnet50

    state = dict(resnet50().state_dict())
    own = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    state["ballast"] = torch.zeros(max(0, nbytes - own) // 4)
    torch.save(state, path)


def measure(browser: Browser, server: Server, file: Path, rate: float) -> None:
    """One drop. rate: megabytes per second."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    server.let_in(context)
    page = context.new_page()
    page.set_default_timeout(_PATIENCE)
    page.goto(server.url)
    page.locator(".mi-title h1").wait_for()
    page.wait_for_timeout(1500)
    line = context.new_cdp_session(page)
    line.send("Network.enable")
    line.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 20, "downloadThroughput": rate * 1e6, "uploadThroughput": rate * 1e6},
    )
    page.get_by_test_id("inspector-file").set_input_files(file)
    began = time.perf_counter()
    page.locator(".st-key-provisional").get_by_text("resnet50").first.wait_for()
    first = time.perf_counter() - began
    took = re.search(r"\(([^)]*requests?)\)", page.locator(".st-key-provisional").inner_text())
    page.wait_for_url(re.compile("overview"))
    page.locator(".mi-figure").first.wait_for()
    whole = time.perf_counter() - began
    assert "resnet50" in page.get_by_test_id("stMain").inner_text()
    size = f"{file.stat().st_size / 1e9:.2f} GB"
    slices = took[1] if took else ""
    print(f"| {file.name}, {size} | {rate:g} MB/s | {first:.1f} s | {whole:.1f} s | {slices} |", flush=True)
    context.close()


def count_slices(folder: Path) -> None:
    """Requests and bytes of one ResNet-50 in each format with an index, without a browser."""
    import numpy as np
    import torch
    from gguf import GGUFWriter
    from safetensors.torch import save_file
    from torchvision.models import resnet50

    from inspector.checkpoint.types import Checkpoint
    from inspector.readers.header_look import HeaderLook, Wanted

    net = resnet50().eval()
    state = dict(net.state_dict())
    save_file(state, folder / "a.safetensors")
    torch.save(state, folder / "a.pth")
    torch.save({f"{name}.{i}": t for name, t in state.items() for i in range(10)}, folder / "ten.pth")
    np.savez(folder / "a.npz", **{name: tensor.numpy() for name, tensor in state.items()})
    torch.jit.script(net).save(folder / "script.pt")
    torch.export.save(torch.export.export(net, (torch.zeros(1, 3, 224, 224),)), folder / "a.pt2")
    writer = GGUFWriter(folder / "a.gguf", "llama")
    writer.add_token_list([f"token {i:020}" for i in range(32_000)])
    for name, tensor in state.items():
        writer.add_tensor(name, np.atleast_1d(tensor.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print("| file | tensors | MB | requests | kB |\n| --- | --- | --- | --- | --- |")
    for path in sorted(folder.glob("*.*")):
        size = path.stat().st_size
        look = HeaderLook(size, path.name)
        with path.open("rb") as file:
            outcome: object = None
            while outcome is None or isinstance(outcome, Wanted):
                data = b""
                for offset, n in look.wanted.ranges:
                    file.seek(offset)
                    data += file.read(n)
                outcome = look.take(data)
        tensors = f"{len(outcome.tensors):,}" if isinstance(outcome, Checkpoint) else getattr(outcome, "says", "")
        print(
            f"| {path.name} | {tensors} | {size / 1e6:.0f} | {look.requests} | {look.nbytes / 1e3:,.0f} |", flush=True
        )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mbytes", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=40)
    parser.add_argument("--formats", action="store_true", help="requests and bytes of each format instead")
    options = parser.parse_args()
    if options.formats:
        with tempfile.TemporaryDirectory() as folder:
            count_slices(Path(folder))
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "net.safetensors"), Path(folder, "net.pth")]
        for file, make in zip(files, (sparse_safetensors, sparse_torch), strict=True):
            make(file, options.mbytes * 1_000_000)
        print("| file | line | from slices | from the whole file | slices |\n| --- | --- | --- | --- | --- |")
        with running_app(Path(folder)) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
            for file in files:
                measure(browser, server, file, options.rate)
            browser.close()


if __name__ == "__main__":
    main()
