"""Names that read otherwise than they are, or that lead out of a folder, are noted; ordinary ones are not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from inspector.findings import Finding, Severity
from inspector.readers import open_checkpoint
from inspector.readers.checks.odd_names import observe_names


def _noted(tmp_path: Path, name: str) -> list[Finding]:
    save_file({name: torch.ones(2, 2), "fc.bias": torch.ones(2)}, tmp_path / "x.safetensors")
    found = open_checkpoint(tmp_path / "x.safetensors").findings
    return [f for f in found if f.id in ("invisible-characters", "path-names")]


@pytest.mark.parametrize(("name", "code"), [("fc.\u202ethgiew", "U+202E"), ("fc.wei\u200bght", "U+200B")])
def test_a_name_with_a_character_that_cannot_be_seen_is_noted(tmp_path: Path, name: str, code: str) -> None:
    (one,) = _noted(tmp_path, name)
    assert (one.id, one.severity, one.subjects) == ("invisible-characters", Severity.NOTICE, (name,))
    assert one.says == f"1 tensor name holds characters that cannot be seen: {name} has {code}."


@pytest.mark.parametrize("name", ["../../etc/cron.d/x", "/etc/passwd", "C:\\boot.ini", "a/../../b", "..\\x"])
def test_a_name_that_leads_out_of_a_folder_is_noted(tmp_path: Path, name: str) -> None:
    (one,) = _noted(tmp_path, name)
    assert (one.id, one.severity) == ("path-names", Severity.NOTICE)
    assert one.says == f"1 tensor name looks like a path out of a folder, first {name}."


@pytest.mark.parametrize("name", ["fc.weight", "bert/encoder/layer_0/kernel", "a..b", "größe.weight", "层.weight"])
def test_ordinary_names_and_foreign_scripts_are_quiet(tmp_path: Path, name: str) -> None:
    assert _noted(tmp_path, name) == []


def test_the_scopes_of_onnx_are_no_paths(tmp_path: Path) -> None:
    save_file({"/layer1/Constant_output_0": torch.ones(2)}, tmp_path / "x.safetensors")
    tensors = open_checkpoint(tmp_path / "x.safetensors").tensors
    assert observe_names(tensors, "onnx") == [] and len(observe_names(tensors, "safetensors")) == 1
