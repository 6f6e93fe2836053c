"""Backbones as detectors have them: detectron2's ResNet, and torchvision's inside what mmengine saves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.conversions import published
from benchmarks.conversions.pairs.hf_vision import epsilon, hf_resnet, timm_resnet, torchvision_model
from benchmarks.conversions.pairs.self_supervised import under
from benchmarks.conversions.sides import Pair, Side, picture

DETECTRON, MMENGINE = "detectron2", "mmengine"


def _detectron(frozen: bool) -> nn.Module:
    return epsilon(published.DetectronResNet(frozen=frozen, classes=7))


def _save_mmengine(model: Any, folder: Path) -> Path:
    """meta and state_dict, as mmengine's Runner saves a classifier with mmpretrain's names."""
    path = folder / "epoch_300.pth"
    body = {name: tensor for name, tensor in under("backbone.", model).items() if ".fc." not in name}
    state = body | {f"head.fc.{name}": tensor for name, tensor in model.fc.state_dict().items()}
    torch.save({"meta": {"epoch": 300}, "state_dict": state, "message_hub": {}}, path)
    return path


def pairs() -> Iterator[Pair]:
    same = "epsilon of the norms"
    side = Side(library=DETECTRON, build=partial(_detectron, False), own=False)
    for theirs in (Side(library="torchvision", build=torchvision_model("resnet50", num_classes=7)), timm_resnet(True)):
        yield Pair(id="ResNet-50, detectron2", ours=side, theirs=theirs, input=picture(64), same=same)
    yield Pair(id="ResNet-50, detectron2", ours=side, theirs=hf_resnet(True), input=picture(64), same=same)
    frozen = Side(library=f"{DETECTRON}, frozen norms", build=partial(_detectron, True), own=False)
    yield Pair(
        id="ResNet-50, detectron2",
        ours=frozen,
        theirs=Side(library="torchvision", build=torchvision_model("resnet50", num_classes=7)),
        input=picture(64),
        accept=("bookkeeping-buffers",),
        same=same,
    )
    yield Pair(
        id="ResNet-18, mmengine",
        ours=Side(library=MMENGINE, build=torchvision_model("resnet18", num_classes=7), save=_save_mmengine, own=False),
        theirs=Side(library="torchvision", build=torchvision_model("resnet18", num_classes=7)),
        input=picture(64),
        both=False,
        answers={"mixture": "mix"},
        same=same,
    )
