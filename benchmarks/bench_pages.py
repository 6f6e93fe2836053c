"""How long each page takes for a file of 20,000 tensors, from the click to the settled page, in a real browser.

    python benchmarks/bench_pages.py [--only experts]

Two files: safetensors of a mixture of experts (64 layers, 104 experts each) and a torch zip of 2,222 equal layers
under `module.`, with small tensors, so that names alone cost. The clock runs from the click on the page's link until
its script has ended and nothing is stale; CPU seconds are those of the server and all its processes meanwhile, which a
machine with other work on it changes less. "again" is the same page once more, with what was kept. A page where
something runs on, such as numbers being read, is timed until its first state has settled.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from browser import find  # noqa: E402
from running_app import FLAGS, SETTLED, Server, running_app  # noqa: E402

PATIENCE = 240_000
PAGES = ("Overview", "Contents", "Tensors", "Weights", "Architecture", "Repair", "Convert")
_TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", default="", help="a part of the name of the files to measure")
    only = arguments.parse_args().only
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        for file in make_files(folder):
            if only not in file.name:
                continue
            place = folder / file.stem
            place.mkdir()
            with running_app(place) as server:
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                server.let_in(page.context)
                print(f"\n{file.name}\n\n| page | s | CPU s | again, s | CPU s |\n| --- | --- | --- | --- | --- |")
                for name, seconds in _walk(page, server, file):
                    print(f"| {name} | {' | '.join(f'{one:.1f}' for one in seconds)} |", flush=True)
                page.close()


def make_files(folder: Path) -> list[Path]:
    """20,000 small tensors each, in the names of transformers."""
    import torch
    from safetensors.torch import save_file

    experts: dict[str, Any] = {"model.embed_tokens.weight": torch.randn(16, 4)}
    for layer in range(64):
        at = f"model.layers.{layer}"
        experts |= {f"{at}.self_attn.{name}_proj.weight": torch.randn(4, 4) for name in "qkvo"}
        experts |= {f"{at}.{name}_layernorm.weight": torch.ones(4) for name in ("input", "post_attention")}
        experts[f"{at}.mlp.gate.weight"] = torch.randn(104, 4)
        for expert in range(104):
            inside = f"{at}.mlp.experts.{expert}"
            experts |= {f"{inside}.{name}_proj.weight": torch.randn(8, 4) for name in ("gate", "up")}
            experts[f"{inside}.down_proj.weight"] = torch.randn(4, 8)
    save_file(experts, folder / "experts.safetensors")
    deep: dict[str, Any] = {"module.model.embed_tokens.weight": torch.randn(16, 4)}
    for layer in range(2_222):
        at = f"module.model.layers.{layer}"
        deep |= {f"{at}.self_attn.{name}_proj.weight": torch.randn(4, 4) for name in "qkvo"}
        deep |= {f"{at}.{name}_layernorm.weight": torch.ones(4) for name in ("input", "post_attention")}
        deep |= {f"{at}.mlp.{name}_proj.weight": torch.randn(8, 4) for name in ("gate", "up")}
        deep[f"{at}.mlp.down_proj.weight"] = torch.randn(4, 8)
    torch.save({"state_dict": deep, "epoch": 3}, folder / "deep_module.pth")
    return [folder / "experts.safetensors", folder / "deep_module.pth"]


def _walk(page: Any, server: Server, file: Path) -> Any:
    page.set_default_timeout(PATIENCE)
    page.goto(server.url)
    page.locator(".mi-title h1").wait_for()
    page.wait_for_function(SETTLED)

    def opened() -> None:
        page.get_by_test_id("inspector-file").set_input_files(file)
        page.wait_for_url(re.compile("overview"))
        page.get_by_text("What is this file?").wait_for()

    def visit(name: str) -> None:
        page.get_by_test_id("stSidebarNavLink").filter(has_text=re.compile(f"{name}$")).click()
        page.locator(".mi-title h1").filter(has_text=file.name if name == "Overview" else name).wait_for()

    yield "Open, then Overview", _timed(page, server, opened)
    for name in PAGES:
        first = _timed(page, server, lambda name=name: visit(name))
        page.get_by_test_id("stSidebarNavLink").filter(has_text=re.compile("Files$")).click()
        page.locator(".mi-title h1").filter(has_text="Files").wait_for()
        page.wait_for_function(SETTLED)
        yield name, (*first, *_timed(page, server, lambda name=name: visit(name)))


def _timed(page: Any, server: Server, act: Any) -> tuple[float, float]:
    used, start = _processor_seconds(server.process.pid), time.perf_counter()
    act()
    # The run begins with a message to the server, before which the page looks settled, too.
    page.wait_for_timeout(150)
    page.wait_for_function(SETTLED)
    return time.perf_counter() - start, _processor_seconds(server.process.pid) - used


def _processor_seconds(pid: int) -> float:
    """Of a process and all below it that are still there."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICK + sum(_processor_seconds(int(child)) for child in below)


if __name__ == "__main__":
    main()
