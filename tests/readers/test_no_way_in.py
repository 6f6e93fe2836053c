"""What is said about a file that names dangerous globals is of no use to whoever sent it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.findings import Finding
from inspector.keys.loading import loader_of
from inspector.readers import open_checkpoint


class _Calls:
    """Unpickles to a call of the function with no arguments."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.function, ("here",)


def _findings(path: Path, value: object) -> list[Finding]:
    torch.save({"w": torch.ones(2), "more": value}, path)
    return [f for f in open_checkpoint(path).findings if f.id in ("dangerous-global", "weights-only-refuses")]


@pytest.mark.parametrize("function", [eval, shutil.rmtree])
def test_no_remedy_lets_a_file_with_dangerous_globals_in(tmp_path: Path, function: Callable[..., object]) -> None:
    found = _findings(tmp_path / "x.pth", _Calls(function))
    assert {f.id for f in found} == {"dangerous-global", "weights-only-refuses"}
    for finding in found:
        text = f"{finding.remedy} {finding.evidence}"
        assert "add_safe_globals" not in text and "trust" not in text, text
        assert "weights_only=False" not in finding.remedy or finding.remedy.startswith("Do not load it")


def test_a_harmless_name_can_still_be_allowed(tmp_path: Path) -> None:
    (found,) = _findings(tmp_path / "x.pth", Path("a"))
    assert "torch.serialization.add_safe_globals" in found.remedy


@pytest.mark.parametrize("dangerous", [True, False])
def test_a_module_with_dangerous_globals_is_exported_and_never_loaded_whole(tmp_path: Path, dangerous: bool) -> None:
    model = nn.Linear(2, 2)
    if dangerous:
        model.hook = _Calls(eval)  # type: ignore[assignment]
    torch.save(model, tmp_path / "m.pth")
    checkpoint = open_checkpoint(tmp_path / "m.pth")
    state = checkpoint.weights
    assert state is not None and state.is_module
    assert (loader_of(checkpoint, state)[0] == "") == dangerous
