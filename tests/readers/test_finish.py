"""The end of every reader: findings worst first, whatever the format, and one place where a checkpoint is made."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import TensorInfo
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers import open_checkpoint
from inspector.readers.finish import FileContent, finished, with_findings

READERS = Path(__file__).resolve().parents[2] / "inspector" / "readers"
FEW = FindingKind("few", Severity.INFO, "A few")
MANY = FindingKind("many", Severity.ERROR, "Many", also=(Severity.INFO,))


def says(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.says for finding in findings]


def test_findings_are_ranked_and_equals_keep_their_order() -> None:
    tensor = TensorInfo(
        name="module.a", path=("module.a",), shape=(2,), dtype="float32", nbytes=8, storage_id=None, device="cuda:0"
    )
    content = FileContent(
        format="made", format_says="made here", tensors=[tensor], findings=[FEW.found("first"), MANY.found("worst")]
    )
    checkpoint = finished(BufferSource(b"12345678", "x"), content)
    # What is noticed about the storages of any file stands between: a notice.
    assert [f.id for f in checkpoint.findings] == ["many", "saved-device", "few"]
    more = with_findings(checkpoint, [FEW.found("before")], behind=[FEW.found("behind"), MANY.found("worse")])
    assert says(more.findings) == ["worst", "worse", says(checkpoint.findings)[1], "before", "first", "behind"]


def test_what_the_reader_observed_is_not_observed_again() -> None:
    tensor = TensorInfo(name="a", path=("a",), shape=(2,), dtype="float32", nbytes=8, storage_id=None, device="cuda:0")
    content = FileContent(format="made", format_says="made here", tensors=[tensor], observed=True)
    assert finished(BufferSource(b"", "x"), content).findings == ()


def _safetensors(folder: Path) -> Path:
    # A link in the metadata (info) is looked at before the overlap at the end of the data (warning).
    path = folder / "a.safetensors"
    raw = safetensors.torch.save({"module.a": torch.ones(2)}, {"where it is from": "https://example.org/a"})
    path.write_bytes(raw + b"\0" * 64)
    return path


def _pickle(folder: Path) -> Path:
    path = folder / "a.pth"
    torch.save({"module.a": torch.ones(2), "text": "rm -rf /", "when": np.datetime64("2024-01-01")}, path)
    return path


def _folder(folder: Path) -> Path:
    _pickle(folder)
    return folder


@pytest.mark.parametrize("make", [_safetensors, _pickle, _folder])
def test_opened_files_have_their_findings_worst_first(make: Callable[[Path], Path], tmp_path: Path) -> None:
    findings = open_checkpoint(make(tmp_path)).findings
    ranks = [finding.severity.rank for finding in findings]
    assert len(set(ranks)) > 1 and ranks == sorted(ranks, reverse=True)


def test_a_checkpoint_is_made_in_one_place() -> None:
    makers = [
        path.name
        for path in READERS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Checkpoint"
    ]
    assert makers == ["finish.py"]
