"""thop beside our own count: on a copy, and never in the way."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import pytest
import torch
from torch import nn

from inspector.flops import second_opinion
from inspector.flops.count import count_model_costs
from inspector.flops.second_opinion import ask_thop


def test_thop_agrees_on_a_convolution_and_says_what_it_counts_otherwise() -> None:
    # Modules that thop has no rule for are those it leaves its buffers in.
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Identity()).to("meta")
    opinion = ask_thop(model, torch.empty(1, 3, 16, 16, device="meta"))
    assert opinion.macs == 8 * 16 * 16 * 27
    assert opinion.tool.startswith("thop ")
    assert "norms, pooling" in opinion.note
    assert not any("total_" in name for name in model.state_dict())


def test_thop_misses_attention_and_ours_does_not() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)
    report = count_model_costs(layer, (2, 10, 32), label="a layer")
    theirs = report.second_opinions[0].macs
    assert theirs is not None
    assert theirs < report.macs


def test_an_import_that_fails_is_a_note_and_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name in ("thop", "distutils", "setuptools"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    opinion = ask_thop(nn.Identity(), torch.empty(1))
    assert opinion.macs is None
    assert "could not be imported: No module named 'setuptools'" in opinion.note


def test_a_missing_distutils_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise ModuleNotFoundError("No module named 'distutils'")

    monkeypatch.setattr(second_opinion, "_import_profile", fail)
    opinion = ask_thop(nn.Identity(), torch.empty(1))
    assert opinion.macs is None
    assert "Python 3.12 removed; installing setuptools brings it back" in opinion.note


def test_a_failure_inside_thop_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise AttributeError("'Odd' object has no attribute 'in_features'")

    monkeypatch.setattr(second_opinion, "_import_profile", lambda: fail)
    opinion = ask_thop(nn.Identity(), torch.empty(1))
    assert opinion.macs is None
    assert "failed on this model: 'Odd' object has no attribute 'in_features'" in opinion.note


def test_the_package_is_not_imported_before_it_is_asked() -> None:
    import subprocess

    code = "import sys, inspector.flops.count; print('thop' in sys.modules, 'setuptools' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "False"
