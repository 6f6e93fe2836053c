"""Files that no one here made. They are not part of the repository: name their folder in INSPECTOR_OUTSIDE_FILES."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.checkpoint.data import read_array
from inspector.checkpoint.digest import with_digest
from inspector.checkpoint.torch_bridge import to_state_dict
from inspector.readers import open_checkpoint

FOLDER = os.environ.get("INSPECTOR_OUTSIDE_FILES", "")
pytestmark = [
    pytest.mark.outside,
    pytest.mark.skipif(not FOLDER, reason="INSPECTOR_OUTSIDE_FILES names no folder"),
]


def test_resnet20_by_akamaster() -> None:
    checkpoint = with_digest(open_checkpoint(Path(FOLDER) / "resnet20-12fca82f.th"))
    assert (checkpoint.format, len(checkpoint.tensors)) == ("torch-legacy", 97)
    assert checkpoint.origin.sha256 is not None and checkpoint.origin.sha256.startswith("12fca82f")
    assert dict(checkpoint.metadata)["best_prec1"].startswith("91.78")
    state = checkpoint.state_dicts[0]
    assert state.path == ("state_dict",) and all(t.name.startswith("module.") for t in state.tensors)
    assert {t.device for t in state.tensors} == {"cuda:0"}
    assert "saved-device" in {f.id for f in checkpoint.findings}
    # Counted by hand in the paper's table: 0.27 M parameters in the convolutions and the head.
    counted = sum(t.numel for t in state.tensors if t.name.endswith((".weight", ".bias")))
    assert counted == 269_722


@pytest.mark.parametrize("name", ["resnet20-12fca82f.th", "lpips_alex_v0.1.pth", "mtcnn_pnet.pt"])
def test_the_same_numbers_as_torch(name: str) -> None:
    path = Path(FOLDER) / name
    loaded = torch.load(path, map_location="cpu", weights_only=True)
    loaded = loaded.get("state_dict", loaded)
    checkpoint = open_checkpoint(path)
    mine = to_state_dict(checkpoint, checkpoint.state_dicts[0])
    assert list(mine) == list(loaded)
    for key, tensor in loaded.items():
        assert mine[key].equal(tensor) and mine[key].stride() == tensor.stride(), key


def test_a_safetensors_file_by_silero() -> None:
    from safetensors.numpy import load_file

    path = Path(FOLDER) / "silero_vad_16k.safetensors"
    expected = load_file(path)
    checkpoint = open_checkpoint(path)
    assert checkpoint.format == "safetensors" and not checkpoint.findings
    assert {t.name for t in checkpoint.tensors} == set(expected)
    for info in checkpoint.tensors:
        assert np.array_equal(read_array(checkpoint, info), expected[info.name]), info.name
