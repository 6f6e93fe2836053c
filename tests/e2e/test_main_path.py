"""The main job in a real browser: a file that does not load goes in, a file that loads comes out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torchvision.models import get_model

pytestmark = pytest.mark.browser


def _export(visitor, label: str, folder: Path) -> Path:  # type: ignore[no-untyped-def]
    page = visitor.page
    page.get_by_test_id("stButtonGroup").get_by_role("radio", name=label, exact=True).click()
    visitor.settle()
    page.get_by_role("button", name="Write and verify").click()
    # By its file name: the button of the export before stays until the page has run again.
    button = page.get_by_test_id("downloads").get_by_role("link").filter(has_text=f"_repaired{label}")
    button.wait_for()
    visitor.settle()
    with page.expect_download() as waiting:
        button.click()
    download = waiting.value
    assert download.suggested_filename == f"shapes_dp_repaired{label}"
    target = folder / download.suggested_filename
    download.save_as(target)
    return target


def _logits(state: dict[str, Tensor]) -> Tensor:
    model = get_model("shufflenet_v2_x0_5", num_classes=4).eval()
    model.load_state_dict(state, strict=True)
    with torch.inference_mode():
        return model(torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(7)))


def test_a_dataparallel_checkpoint_goes_in_and_a_loadable_file_comes_out(
    visitor, samples: Path, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes_dp.pth.tar")
    overview = visitor.text()
    assert "legacy torch.save" in overview
    assert "shufflenet_v2_x0_5 with 4 classes" in overview
    assert 'once "module." is dropped' in overview
    assert "346 K" in overview

    visitor.visit("Repair")
    page = visitor.page
    rules = page.locator("[data-table=rules]").inner_text()
    assert 'drop the segment "module"' in rules
    assert "338" in rules
    assert "module.conv1.0.weight" in rules
    proofs = page.locator("[data-table=proofs]").inner_text()
    assert "fails" not in proofs
    assert "strict=True" in proofs
    visitor.check_calm()

    pth = _export(visitor, ".pth", tmp_path)
    safetensors = _export(visitor, ".safetensors", tmp_path)
    visitor.check_calm()

    clean = _logits(torch.load(samples / "shapes.pth", weights_only=True))
    assert torch.equal(_logits(torch.load(pth, weights_only=True)), clean)
    assert torch.equal(_logits(load_file(safetensors)), clean)


def test_the_file_stays_when_the_page_changes_and_after_a_reload(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes_dp.pth.tar")
    hand = visitor.page.get_by_test_id("stSidebar").locator(".mi-hand")
    for name in ("Tensors", "Contents", "Architecture", "Open", "Overview"):
        visitor.visit(name)
        assert "shapes_dp.pth.tar" in hand.inner_text()
        assert "file=" in visitor.page.url
    visitor.page.reload()
    hand.wait_for()
    visitor.settle()
    assert "shapes_dp.pth.tar" in hand.inner_text()
    assert "shufflenet_v2_x0_5" in visitor.text()


def test_forgetting_removes_the_bytes(visitor, server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "mine.pth"
    torch.save({"fc.weight": torch.arange(6.0).reshape(2, 3)}, file)
    before = set((server.store / "files").iterdir())
    visitor.upload(file)
    assert len(set((server.store / "files").iterdir()) - before) == 1
    visitor.page.get_by_role("button", name="Forget this file").click()
    visitor.page.get_by_test_id("inspector-file").wait_for(state="attached")
    visitor.settle()
    assert set((server.store / "files").iterdir()) == before
    assert visitor.page.get_by_test_id("stSidebar").locator(".mi-hand").count() == 0


def test_a_sample_is_one_click(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.open("/")
    visitor.page.get_by_role("button", name="Whole pickled module").click()
    visitor.page.wait_for_url("**/overview*")
    visitor.settle()
    text = visitor.text()
    assert "shapes_module.pth" in text
    assert "shufflenet_v2_x0_5" in text
    # Today's torch.load refuses a whole module.
    assert 'Fails as it is: torch.load says "Unsupported global' in text
    visitor.check_calm()


def test_a_path_on_the_server_opens(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.open("/")
    box = visitor.page.get_by_role("combobox", name="Or a file or folder on this server")
    box.click()
    box.press_sequentially("shapes.safetensors", delay=30)
    visitor.page.get_by_role("option", name="shapes.safetensors").wait_for()
    # Enter opens it: there is nothing to click.
    box.press("Enter")
    visitor.page.wait_for_url("**/overview*")
    visitor.settle()
    assert "shapes.safetensors" in visitor.text()
    assert "safetensors" in visitor.page.locator(".mi-fileline").inner_text()
    visitor.check_calm()


def test_an_unknown_model_is_repaired_against_a_pasted_list(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "own.pth"
    torch.save({"state_dict": {"module.net.weight": torch.ones(2, 3), "module.net.bias": torch.zeros(2)}}, file)
    visitor.upload(file)
    visitor.visit("Repair")
    visitor.page.get_by_role("textbox", name="One key per line").fill("net.weight\nnet.bias")
    visitor.page.get_by_role("textbox", name="One key per line").press("Control+Enter")
    visitor.page.locator("[data-table=proofs]").wait_for()
    visitor.settle()
    assert 'All 2 tensors fit once "module." is dropped' in visitor.text()
    visitor.page.get_by_role("button", name="Write and verify").click()
    button = visitor.page.get_by_test_id("downloads").get_by_role("link")
    button.wait_for()
    with visitor.page.expect_download() as waiting:
        button.click()
    assert sorted(load_file(waiting.value.path())) == ["net.bias", "net.weight"]
    visitor.check_calm()
