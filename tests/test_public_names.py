"""The package's public names exist, are lazy, and the docstring's example runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torchvision
from safetensors.torch import load_file

import inspector


@pytest.mark.parametrize("name", inspector.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(inspector, name).__module__.startswith("inspector.")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        inspector.nonsense  # noqa: B018


@pytest.mark.parametrize("name", ["explain", "count_costs", "overlay"])
def test_a_name_that_takes_a_package_says_how_to_get_it(name: str) -> None:
    blocked = "".join(f"sys.modules[{p!r}] = None; " for p in ("torch", "torchvision", "cv2", "PIL"))
    code = f"import sys; {blocked}\ntry: from inspector import {name}\nexcept ImportError as error: print(error)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.startswith(f"inspector.{name}: This needs ") and "Run: pip install " in out


def test_the_example_in_the_docstring(tmp_path: Path) -> None:
    model = torchvision.models.resnet18(num_classes=3)
    torch.save({f"module.{k}": v for k, v in model.state_dict().items()}, tmp_path / "model.pth.tar")
    checkpoint = inspector.open_checkpoint(tmp_path / "model.pth.tar")
    best = inspector.recognise(checkpoint).best
    assert best is not None
    target = inspector.target_of_candidate(best)
    report = inspector.diagnose(checkpoint, target)
    assert report.plan is not None
    out = tmp_path / "model.safetensors"
    inspector.export_repaired(checkpoint, report.plan, target, out, writer="safetensors")
    found = load_file(out)
    assert found.keys() == model.state_dict().keys()
    assert all(torch.equal(found[k], v) for k, v in model.state_dict().items())
