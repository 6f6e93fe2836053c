"""Looking inside in a real browser: a pickled module, tensors and weights, and where the model looks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.browser


def test_a_pickled_module_shows_its_tree_and_runs_nothing(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes_module.pth")
    visitor.visit("Architecture")
    visitor.page.get_by_role("tab", name="Tree").click()
    visitor.page.locator(".mi-tree").wait_for()
    visitor.settle()
    tree = visitor.page.locator(".mi-tree").inner_text()
    for part in ("ShuffleNetV2", "stage2", "InvertedResidual", "Conv2d", "fc"):
        assert part in tree
    # A pickled module is the one kind of file that tells which parameters are trainable.
    assert "346 K\ntrainable" in visitor.text()
    visitor.visit("Contents")
    text = visitor.text()
    assert "Nothing was executed here" in text
    assert "torchvision.models.shufflenetv2.ShuffleNetV2" in text
    visitor.check_calm()


def test_one_tensor_shows_its_numbers(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes_sick.pth")
    visitor.visit("Tensors")
    visitor.page.get_by_role("textbox", name="Filter").fill("stage2.1.branch2.0.weight")
    visitor.page.get_by_text("1 tensor of 338").wait_for()
    visitor.settle()
    visitor.page.get_by_test_id("stDataFrame").locator("canvas").first.click(position={"x": 20, "y": 55}, force=True)
    visitor.page.get_by_role("figure", name="Histogram of stage2.1.branch2.0.weight").first.wait_for()
    visitor.settle()
    text = visitor.text()
    assert "24x24x1x1" in text
    # The sample's maker filled this one with a constant.
    assert "0.05\nminimum" in text
    assert "0.05\nmaximum" in text
    visitor.check_calm()


def test_weights_are_measured_and_the_broken_ones_named(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes_sick.pth")
    visitor.visit("Weights")
    card = visitor.page.locator("[data-finding=non-finite]")
    card.wait_for()
    assert "stage3.2.branch2.5.weight holds 5 NaN" in card.inner_text()
    assert "stage2.1.branch2.0.weight are 0.05" in visitor.page.locator("[data-finding=constant-weight]").inner_text()
    visitor.page.get_by_role("figure", name="Layers by values heat strip").first.wait_for()
    visitor.check_calm()


def test_a_healthy_file_has_no_such_findings(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes.pth")
    visitor.visit("Weights")
    visitor.page.get_by_role("figure", name="Layers by values heat strip").first.wait_for()
    assert visitor.page.locator("[data-finding]").count() == 0


def test_a_picture_goes_in_and_its_heat_map_comes_out(visitor, samples: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    picture = samples.parent / "pictures" / "star_1.png"
    own = tmp_path / "my photo.png"
    own.write_bytes(picture.read_bytes())
    visitor.upload(samples / "shapes.safetensors")
    visitor.visit("Explain")
    page = visitor.page
    page.get_by_test_id("stFileUploader").locator("input[type=file]").set_input_files(own)
    page.get_by_alt_text("Heat map overlay").wait_for()
    visitor.settle()
    assert "star" in page.locator(".mi-scores").inner_text().split("\n")[0]
    assert "suggested" in page.get_by_role("combobox", name="Layer").input_value()

    page.get_by_role("button", name="Download", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Overlay (PNG)").click()
    assert waiting.value.suggested_filename == "my photo-overlay.png"
    overlay = np.asarray(Image.open(waiting.value.path()).convert("RGB"), dtype=np.int64)
    before = np.asarray(Image.open(own).convert("RGB"), dtype=np.int64)
    assert overlay.shape == before.shape
    assert np.abs(overlay - before).mean() > 5

    with page.expect_download() as waiting:
        page.get_by_role("button", name="Maps (NPZ)").click()
    maps = np.load(io.BytesIO(Path(waiting.value.path()).read_bytes()))
    # The map is scaled to 1 at its own cells; between cell centres, at the input's size, a peak may lie a bit lower.
    assert 0.9 < maps["heat"].max() <= 1.0
    assert f"{maps['raw'].max():.3g}\nhighest" in visitor.text()
    visitor.check_calm()


def test_the_picture_stays_when_the_page_changes(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes.safetensors")
    visitor.visit("Explain")
    visitor.page.get_by_role("button", name="circle 1").click()
    visitor.page.get_by_alt_text("Heat map overlay").wait_for()
    visitor.visit("Tensors")
    visitor.visit("Explain")
    visitor.page.get_by_alt_text("Heat map overlay").wait_for()
    visitor.check_calm()


def test_a_network_is_drawn_run_and_counted(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes.safetensors")
    visitor.visit("Architecture")
    page = visitor.page
    page.get_by_role("treeitem", name="stage2").first.wait_for()
    page.get_by_text("From one forward pass").wait_for()
    assert "39.5 M\nMACs" in visitor.text()

    def tab(name: str) -> None:
        page.get_by_role("tab", name=name, exact=True).click()
        visitor.settle()

    tab("Run it")
    page.get_by_text("It runs to its end: 1x3x224x224 in, 1x4 out.").wait_for()
    page.get_by_text("Feature maps of a module").click()
    page.get_by_text("Output of conv5.2 (ReLU), 1x1024x7x7 float32").wait_for()
    assert page.locator(".mi-map img").count() == 64
    tab("Table")
    page.get_by_text("192 modules of 192.").wait_for()
    page.get_by_role("textbox", name="Filter").fill("depthwise nothing")
    page.get_by_text("0 modules of 192.").wait_for()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Markdown").click()
    assert "39,456,544" in Path(waiting.value.path()).read_text()
    tab("Memory")
    page.get_by_text("at the peak").wait_for()
    visitor.check_calm()


def test_an_unknown_network_says_what_its_shapes_tell(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import torch
    from torch import nn

    net = nn.Sequential(*(nn.Sequential(nn.Conv2d(3 if n == 0 else 8, 8, 3), nn.BatchNorm2d(8)) for n in range(4)))
    torch.save({f"body.{name}": value for name, value in net.state_dict().items()}, tmp_path / "mine.pth")
    visitor.upload(tmp_path / "mine.pth")
    visitor.visit("Architecture")
    text = visitor.text()
    assert "From names and shapes" in text and "there are no arrows" in text
    assert "Drawing" not in text
    # The samples' folder is open on this server, and it is this machine's alone.
    assert "Your own code for it" in text
    visitor.check_calm()


NET = """import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.one = nn.Conv2d(3, 8, 3, stride=2)
        self.two = nn.Conv2d(8, 16, 3, stride=2)
        self.last = nn.Linear(16, classes)

    def forward(self, x):
        return self.last(self.two(self.one(x).relu()).relu().mean((2, 3)))
"""


def test_pasted_code_serves_every_page_with_the_file_s_weights(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import torch

    known: dict[str, Any] = {}
    exec(NET, known)
    torch.manual_seed(0)
    torch.save(known["Net"]().state_dict(), tmp_path / "unheard_of.pth")
    visitor.upload(tmp_path / "unheard_of.pth")
    visitor.visit("Architecture")
    page = visitor.page
    page.get_by_text("pasted", exact=True).click()
    box = page.get_by_role("textbox", name="The network's code")
    box.fill(NET)
    box.press("Control+Enter")
    page.get_by_text("Run this code?").wait_for()
    page.get_by_role("button", name="Run it").click()
    page.get_by_text("all 6 tensors of the network come from the file").first.wait_for()
    page.get_by_role("tab", name="Run it").click()
    page.get_by_text("With the file's weights, loaded strictly").wait_for()
    page.get_by_text("It runs to its end").wait_for()
    visitor.settle()
    # The text stands on the next page, and nothing is asked again.
    visitor.visit("Explain")
    page.get_by_text("Your code · Net, pasted").wait_for()
    page.get_by_role("button", name="circle 1", exact=True).click()
    page.get_by_text("highest of it").wait_for()
    visitor.settle()
    assert "Your code with the file's weights, loaded strictly: all 6 tensors" in visitor.text()
    page.get_by_text("Your code · Net, pasted").click()
    box.wait_for()
    assert box.input_value() == NET
    visitor.check_calm()
