"""The report about a file: its numbers are those of the file, and it says what was not looked at."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest

from inspector import make_report, open_checkpoint
from inspector.architectures.types import ArchitectureSpec
from inspector.file_report import make
from inspector.file_report.report import FileReport
from inspector.findings import Severity
from inspector.render.page_report.page import report_html
from inspector.units import human_macs
from tests.file_report.made import SAMPLES, write_safetensors


@pytest.fixture(scope="module")
def repaired() -> FileReport:
    return make_report(open_checkpoint(SAMPLES / "shapes_dp.pth.tar"))


def test_a_repair_comes_with_its_rules_its_proofs_and_its_lines(repaired: FileReport) -> None:
    assert repaired.file.sha256 == hashlib.sha256((SAMPLES / "shapes_dp.pth.tar").read_bytes()).hexdigest()
    found = repaired.repair
    assert found is not None and found.complete and not found.loads
    assert [(rule.id, rule.count) for rule in found.rules] == [("wrapper-segment", 338)]
    assert (found.matched, found.missing, found.unexpected, found.left_over) == (0, 338, 338, ())
    assert [p.passed for p in found.proofs] == [True] * 6 and found.not_verified == ""
    assert "load_state_dict(state, strict=True)" in found.code
    assert sum(one.tensors for one in found.placed) == 338


def test_modules_add_up_to_the_tensors(repaired: FileReport) -> None:
    facts = repaired.parameters
    assert facts is not None
    total = facts.modules[0]
    assert sum(t.elements for t in facts.dtypes) == total.parameters + total.buffers
    assert sum(math.prod(t.shape) for t in repaired.tensors) == total.parameters + total.buffers
    assert repaired.model is not None and repaired.model.label == "torchvision/shufflenet_v2_x0_5?num_classes=4"


def test_the_tiles_of_the_page_have_the_macs_of_the_overview(repaired: FileReport) -> None:
    from inspector.flops.count import count_costs

    assert repaired.model is not None
    costs = count_costs(ArchitectureSpec(library="torchvision", name="shufflenet_v2_x0_5", num_classes=4))
    assert (repaired.model.macs, repaired.model.macs_input) == (costs.macs, (3, 224, 224))
    assert f"<b>{human_macs(costs.macs)}</b><span class=soft>MACs at 224x224</span>" in report_html(repaired)
    headers = make_report(open_checkpoint(SAMPLES / "shapes.pth"), numbers=False)
    assert headers.model is not None and headers.model.macs is None and "MACs at" not in report_html(headers)


def test_a_file_that_loads_has_nothing_to_prove_and_says_so() -> None:
    report = make_report(open_checkpoint(SAMPLES / "shapes.pth"), numbers=False)
    assert report.repair is not None and report.repair.loads and report.repair.rules == ()
    assert report.repair.not_verified == "Nothing was changed, so there is no repair to verify."


def test_without_numbers_no_byte_of_a_tensor_counts(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "a.safetensors", {"fc.weight": np.full((2, 2), np.nan, np.float32)})
    report = make_report(open_checkpoint(path), numbers=False)
    assert (report.file.sha256, report.numbers_read, report.fingerprint) == ("", False, None)
    assert [t.numbers for t in report.tensors] == [None]
    assert ("numbers", "Not read: 1 tensor.") in report.not_examined
    assert report.severity is not Severity.ERROR


def test_numbers_are_those_of_the_tensor(tmp_path: Path) -> None:
    values = np.array([[1, -2, 0], [4, np.nan, np.inf]], np.float32)
    report = make_report(open_checkpoint(write_safetensors(tmp_path / "a.safetensors", {"fc.weight": values})))
    found = report.tensors[0].numbers
    finite = np.array([1, -2, 0, 4], np.float64)
    assert found is not None
    assert (found.minimum, found.maximum, found.mean) == (-2, 4, 0.75)
    assert found.std == pytest.approx(finite.std(), rel=1e-6)
    assert found.rms == pytest.approx(math.sqrt((finite**2).mean()), rel=1e-6)
    assert (found.nan, found.infinite, found.zero) == (1, 1, 1)
    assert report.findings[0].severity is report.severity is Severity.ERROR


def test_what_is_all_nan_has_no_mean(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "a.safetensors", {"fc.weight": np.full((2, 2), np.nan, np.float32)})
    found = make_report(open_checkpoint(path)).tensors[0].numbers
    assert found is not None and (found.minimum, found.mean, found.rms, found.nan) == (None, None, None, 4)


def test_a_file_too_large_to_prove_says_what_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "PROVED_NBYTES", 1_000)
    report = make_report(open_checkpoint(SAMPLES / "shapes_dp.pth.tar"), numbers=False)
    assert report.repair is not None and report.repair.proofs == ()
    assert "more than 1.00 kB. `inspector repair` proves" in report.repair.not_verified


def test_the_fingerprint_keeps_its_size(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tensors = {f"l{n}.weight": rng.normal(size=(2, 4)).astype(np.float32) for n in range(1_001)}
    report = make_report(open_checkpoint(write_safetensors(tmp_path / "a.safetensors", tensors)))
    strip = report.fingerprint
    assert strip is not None and len(strip.names) == 334  # 1,001 in threes
    assert strip.names[0] == "l0.weight and 2 more"
    assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in strip.shares)
    assert len(report.tensors) == 1_001
