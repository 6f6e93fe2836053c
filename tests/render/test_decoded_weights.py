"""What was measured in place of stored elements is said wherever the numbers stand."""

from __future__ import annotations

import io

import pytest
import torch
from rich.console import Console

from inspector.health.report import HealthReport
from inspector.readers import open_checkpoint
from inspector.render.json import as_json
from inspector.render.text import weights_text
from inspector.web.measuring import decoding_says, statistics_csv, statistics_frame
from inspector.weights.measure import measure_weights
from inspector.weights.report import WeightsReport

pytestmark = pytest.mark.filterwarnings("ignore")


def report(**state: torch.Tensor) -> WeightsReport:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return measure_weights(open_checkpoint(buffer.getvalue()))


def printed(found: WeightsReport) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(weights_text(found))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_text_says_once_what_was_measured_of_many() -> None:
    found = report(a=torch.ones(2, 2) * 1j, b=torch.ones(3) * 1j, c=torch.ones(3), d=torch.eye(3).to_sparse())
    lines = printed(found).splitlines()
    assert "Measured of a and 1 other tensor: real and imaginary parts" in lines
    assert "Measured of d: 3 stored values of 9 elements (sparse COO)" in lines
    assert "Measured" not in printed(report(c=torch.ones(3)))


def test_table_file_and_page_say_it_by_tensor() -> None:
    found = report(a=torch.ones(2, 2) * 1j, c=torch.ones(3))
    health = HealthReport(weights=found, findings=(), roles=())
    assert statistics_frame(health)["Measured as"].tolist() == ["real and imaginary parts", ""]
    assert statistics_csv(health).splitlines()[1].endswith(",real and imaginary parts")
    says = [decoding_says(t) for t in found.tensors]
    assert says == ["Measured: 8 numbers, real and imaginary parts.", ""]
    assert '"says": "real and imaginary parts"' in as_json(found)
