"""What Python's prompt shows of a report is a few lines, whatever lies in the file."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from inspector import count_parameters, make_report, open_checkpoint


def test_a_long_value_of_a_file_does_not_fill_the_prompt(tmp_path: Path) -> None:
    config = {"words": "abc " * 30_000, "list": list(range(20_000)), "deep": {"a": [["x" * 5000] * 90]}}
    state = {f"layers.{n}.weight": torch.ones(2, 2) for n in range(300)}
    torch.save({"state_dict": state, "config": config, "json": json.dumps(config)}, tmp_path / "long.pt")
    checkpoint = open_checkpoint(tmp_path / "long.pt")
    shown = [checkpoint, checkpoint.root, checkpoint.state_dicts[0], checkpoint.state_dicts[0].modules]
    shown += [count_parameters(checkpoint), make_report(checkpoint, numbers=False)]
    for one in shown:
        assert len(repr(one)) < 2500, type(one)
        assert repr(one).startswith(f"{type(one).__name__}(")
    assert "long.pt" in repr(checkpoint) and "... 298 more" in repr(checkpoint)


def test_a_short_value_is_shown_whole(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "short.pt")
    checkpoint = open_checkpoint(tmp_path / "short.pt")
    assert "format='torch-zip'" in repr(checkpoint) and "TensorInfo('w')" in repr(checkpoint)
    assert "metadata=()" in repr(checkpoint)
