"""Parameters in an exponential that overflow float32."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import observe, only


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("logit_scale", 95.3, Severity.WARNING),
        ("logit_scale", 7.5, Severity.NOTICE),
        ("actor.log_std", 89.0, Severity.WARNING),
        ("layers.0.mixer.A_log", 88.8, Severity.WARNING),
    ],
)
def test_what_has_run_away(tmp_path: Path, name: str, value: float, severity: Severity) -> None:
    found = only(observe(tmp_path, {name: torch.tensor(value)}, "exponent-overflows"))
    assert found.severity is severity and found.subjects == (name,)
    # exp(88.73) is beyond float32's 3.4e38.
    assert ("is infinite in float32" in found.says) == (severity is Severity.WARNING)


@pytest.mark.parametrize(
    ("name", "value"), [("logit_scale", 4.6), ("logit_scale", 100.0), ("log_std", -90.0), ("scale", 95.3)]
)
def test_what_is_usual(tmp_path: Path, name: str, value: float) -> None:
    assert observe(tmp_path, {name: torch.tensor(value)}, "exponent-overflows") == ()
