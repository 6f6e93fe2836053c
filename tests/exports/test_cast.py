"""What a cast costs is measured while the numbers go through, and a cast that costs nothing says that."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from inspector.cli.main import run
from inspector.exports.convert import export_as_is
from inspector.exports.report import ExportReport
from inspector.readers import open_checkpoint


def _converted(tmp_path: Path, weight: np.ndarray, dtype: str) -> ExportReport:
    save_file({"a.weight": weight, "a.steps": np.array([3])}, tmp_path / "in.safetensors")
    checkpoint = open_checkpoint(tmp_path / "in.safetensors")
    assert checkpoint.weights is not None
    out = tmp_path / "out.safetensors"
    return export_as_is(checkpoint, checkpoint.weights, out, writer="safetensors", dtype=dtype)


def test_the_losses_of_a_cast_are_counted(tmp_path: Path) -> None:
    # 70,000 is above float16's 65,504; 1e-9 below half of its smallest, 2**-24; 1/3 is rounded, 0.5 is not.
    weight = np.array([70_000, -80_000, np.inf, np.nan, 1e-9, 0.0, 1 / 3, 0.5], np.float32)
    report = _converted(tmp_path, weight, "float16")
    error = abs(float(np.float16(weight[6])) - float(weight[6])) / float(weight[6])
    assert report.cast is not None
    assert (report.cast.overflows, report.cast.underflows, report.cast.tensors) == (2, 1, 1)
    assert report.cast.largest_relative_error == pytest.approx(error, rel=1e-6)
    says = f"1 tensor cast to float16; largest rounding error {error:.2g} (relative), 2 overflows, 1 underflow."
    assert report.cast.says == says and report.lost == ()
    assert load_file(tmp_path / "out.safetensors")["a.weight"].dtype == np.float16


def test_nothing_is_called_equal_bit_for_bit_after_a_cast(tmp_path: Path) -> None:
    lossy = _converted(tmp_path, np.full(3, 0.1, np.float32), "float16")
    assert {p.says.rpartition("2 tensors ")[2] for p in lossy.verification.proofs} == {
        "equal after the cast to float16."
    }


def test_a_cast_that_loses_nothing_says_so_and_none_has_no_report(tmp_path: Path) -> None:
    wider = _converted(tmp_path, np.full(3, 0.1, np.float16), "float32")
    assert (
        wider.cast is not None and wider.cast.says == "1 tensor cast to float32; every number is exactly what it was."
    )
    same = _converted(tmp_path, np.full(3, 0.1, np.float32), "float32")
    assert same.cast is None and all("bit for bit equal" in p.says for p in same.verification.proofs)


def test_the_command_shows_the_cast_beside_what_is_left_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_file({"a.weight": np.full(3, 0.1, np.float32)}, tmp_path / "in.safetensors")
    command = ["convert", str(tmp_path / "in.safetensors"), "--output", str(tmp_path / "o.safetensors")]
    assert run([*command, "--dtype", "float16", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["export"]
    assert printed["lost"] == [] and printed["cast"]["tensors"] == 1 and printed["cast"]["overflows"] == 0
    assert run([*command, "--dtype", "float16", "--overwrite"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Cast 1 tensor cast to float16; largest rounding error" in shown and "Left behind" not in shown
