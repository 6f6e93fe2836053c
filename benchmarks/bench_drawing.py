"""How long from dropping a file to its drawing, here and in netron, in one browser; and how long layouts take.

    python benchmarks/bench_drawing.py --netron /path/to/netron

Both are servers on this machine that have drawn a small file before; the clock runs from handing the file to the page's
own file input until the first box stands there. Here that is the Architecture page, asked for as soon as the Overview
has come: the network was recognised, and counted where it is known. A state dict without a graph is drawn where the
network is known, and shown as a tree where it is not. Without --netron only ours is measured.
"""

from __future__ import annotations

import argparse
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from browser import find  # noqa: E402
from running_app import FLAGS, SETTLED, running_app  # noqa: E402

PATIENCE = 60_000
DRAWN_BY_NETRON = "#canvas .node"
DRAWN = "[role=tree][data-drawn], .mi-tree"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--netron", help="the program `netron`; without it only ours is measured")
    netron = arguments.parse_args().netron
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        files = make_files(folder)
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        ours = _ours(browser, folder, files)
        theirs = _theirs(browser, netron, files) if netron else {}
        print("| file | here, s | netron, s |\n| --- | --- | --- |")
        for file in files:
            print(f"| `{file.name}` | {ours[file]:.1f} | {theirs.get(file, float('nan')):.1f} |")
        print("\n| network | layout, ms |\n| --- | --- |")
        for net, (boxes, milliseconds) in _layouts(browser, folder).items():
            print(f"| {net}: {boxes} | {milliseconds} |")


def make_files(folder: Path) -> list[Path]:
    """Networks with random weights, as state dicts and as graphs."""
    import torch
    import torchvision

    torch.manual_seed(0)
    pictures = torch.zeros(1, 3, 224, 224)
    made: list[Path] = []
    for name in ("resnet50", "vit_b_16", "densenet201"):
        model = getattr(torchvision.models, name)(weights=None).eval()
        made += [folder / f"{name}.pth", folder / f"{name}.torchscript.pt"]
        torch.save(model.state_dict(), made[-2])
        torch.jit.save(torch.jit.trace(model, pictures, check_trace=False), made[-1])
    small = torchvision.models.mobilenet_v3_small(weights=None).eval()
    made.append(folder / "mobilenet_v3_small.pt2")
    torch.export.save(torch.export.export(small, (pictures,)), made[-1])
    made.append(folder / "flat2400.onnx")
    made[-1].write_bytes(_flat(480))
    made.append(folder / "llama.safetensors")
    _llama(made[-1])
    return made


def _flat(blocks: int) -> bytes:
    """An ONNX graph of residual blocks whose nodes have no names: five nodes to a block."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, shape_inference

    nodes, weights, last = [], [], "x"
    for at in range(blocks):
        for conv, (source, target) in enumerate(((last, f"a{at}"), (f"b{at}", f"c{at}"))):
            weights.append(numpy_helper.from_array(np.zeros((8, 8, 3, 3), np.float32), f"w{at}.{conv}"))
            nodes.append(helper.make_node("Conv", [source, weights[-1].name], [target], pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"a{at}"], [f"b{at}"]))
        nodes += [
            helper.make_node("Add", [f"c{at}", last], [f"d{at}"]),
            helper.make_node("Relu", [f"d{at}"], [f"e{at}"]),
        ]
        nodes[-4], nodes[-3] = nodes[-3], nodes[-4]
        last = f"e{at}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 32, 32]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "flat", ends[:1], ends[1:], weights)
    return bytes(shape_inference.infer_shapes(helper.make_model(graph)).SerializeToString())


def _llama(path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    names = {f"self_attn.{n}_proj": (64, 64) for n in "qo"} | {f"self_attn.{n}_proj": (32, 64) for n in "kv"}
    names |= {"mlp.gate_proj": (172, 64), "mlp.up_proj": (172, 64), "mlp.down_proj": (64, 172)}
    shapes: dict[str, tuple[int, ...]] = {**names, "input_layernorm": (64,), "post_attention_layernorm": (64,)}
    held = {f"model.layers.{n}.{name}.weight": torch.ones(shape) for n in range(12) for name, shape in shapes.items()}
    held |= {"model.embed_tokens.weight": torch.ones(256, 64), "lm_head.weight": torch.ones(256, 64)}
    save_file(held | {"model.norm.weight": torch.ones(64)}, path)


def _ours(browser: Any, folder: Path, files: list[Path]) -> dict[Path, float]:
    with running_app(folder) as server:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        server.let_in(context)

        def draw(file: Path) -> float:
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(server.url)
            page.locator(".mi-title h1").wait_for()
            page.wait_for_function(SETTLED)
            began = time.perf_counter()
            page.get_by_test_id("inspector-file").set_input_files(file)
            page.wait_for_url(re.compile("overview"))
            page.get_by_test_id("stSidebarNavLink").filter(has_text="Architecture").click()
            page.locator(".mi-title h1").filter(has_text="Architecture").wait_for()
            page.locator(DRAWN).first.wait_for()
            seconds = time.perf_counter() - began
            page.close()
            return seconds

        return _each(draw, folder, files)


def _theirs(browser: Any, netron: str, files: list[Path]) -> dict[Path, float]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with _process([netron, "-p", str(port), "-b"]):
        time.sleep(3)
        context = browser.new_context(viewport={"width": 1280, "height": 900})

        def draw(file: Path) -> float:
            page = context.new_page()
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_timeout(1500)
            if page.get_by_text("Accept").count():
                page.get_by_text("Accept").first.click()
            began = time.perf_counter()
            page.locator("#open-file-dialog").set_input_files(file)
            # Before they are laid out, behind its own name and a spinner: sooner than anybody sees them.
            page.locator(DRAWN_BY_NETRON).first.wait_for(timeout=PATIENCE)
            seconds = time.perf_counter() - began
            page.close()
            return seconds

        return _each(draw, files[0].parent, files)


def _each(draw: Callable[[Path], float], folder: Path, files: list[Path]) -> dict[Path, float]:
    # The first file pays for imports: it is one that is not measured.
    first = folder / "first.onnx"
    first.write_bytes(_flat(4))
    draw(first)
    return {file: draw(file) for file in files}


@contextmanager
def _process(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


def _layouts(browser: Any, folder: Path) -> dict[str, tuple[str, int]]:
    """All boxes open, of 2,000 groups that are of few kinds, and of 2,000 of which no two are alike."""
    found = {}
    with running_app(folder, "tests/e2e/drawing_app.py", INSPECTOR_WORKERS="0") as server:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        server.let_in(context)
        for net in ("large", "different"):
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(f"{server.url}/?net={net}")
            page.locator("[role=tree][data-drawn]").wait_for()
            for depth in (2, 3):
                page.get_by_role("button", name="Open all boxes one level deeper", exact=True).click()
                page.get_by_text(f"depth {depth} of 3").wait_for()
            status = page.locator(".status").inner_text()
            # On a machine with other work the time that one opening may take can be over before the last box.
            found[net] = (status.partition(" Double")[0], int(page.get_by_role("tree").get_attribute("data-layout")))
            page.close()
    return found


if __name__ == "__main__":
    main()
