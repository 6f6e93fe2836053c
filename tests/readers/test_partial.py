"""functools.partial in whole pickled modules is no alarm by itself, and one as soon as it could wrap something else."""

from __future__ import annotations

import functools
import os
import pickle
from pathlib import Path

import torch
import torchvision

from inspector.checkpoint.types import GlobalVerdict
from inspector.readers import open_checkpoint


def _verdicts(path: Path) -> dict[str, GlobalVerdict]:
    return {use.name: use.verdict for use in open_checkpoint(path).globals}


def test_a_whole_vision_transformer_raises_no_alarm(tmp_path: Path) -> None:
    with torch.device("meta"):
        model = torchvision.models.vit_b_16()
    torch.save(model, tmp_path / "m.pth")
    found = open_checkpoint(tmp_path / "m.pth")
    assert "functools.partial" in {u.name for u in found.globals}
    assert {u.verdict for u in found.globals} == {GlobalVerdict.KNOWN}
    assert not {f.id for f in found.findings} & {"dangerous-global", "unknown-global"}


def test_a_partial_of_something_dangerous_stays_dangerous(tmp_path: Path) -> None:
    path = tmp_path / "p.pkl"
    path.write_bytes(pickle.dumps(functools.partial(os.system, "touch never")))
    verdicts = _verdicts(path)
    assert verdicts["functools.partial"] is GlobalVerdict.DANGEROUS
    assert GlobalVerdict.DANGEROUS in {v for name, v in verdicts.items() if name.endswith(".system")}


def test_a_partial_beside_an_unknown_name_stays_dangerous(tmp_path: Path) -> None:
    path = tmp_path / "p.pkl"
    path.write_bytes(b"cfunctools\npartial\n(cmystery\nthing\ntR.")
    assert _verdicts(path)["functools.partial"] is GlobalVerdict.DANGEROUS
