"""Sixteen bits of the other type."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only

TYPES = [(torch.float16, torch.bfloat16), (torch.bfloat16, torch.float16)]


@pytest.mark.parametrize(("true", "said"), TYPES)
@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_bits_of_the_other_type_are_an_error(
    tmp_path: Path, true: torch.dtype, said: torch.dtype, spread: float
) -> None:
    torch.manual_seed(0)
    weight = (torch.randn(64, 48) * spread).to(true)
    found = only(observe(tmp_path, {"fc.weight": weight.view(said)}, "bits-of-another-type", "unlike-role"))
    assert (found.id, found.severity) == ("bits-of-another-type", Severity.ERROR)
    # Half of normal numbers are below 0.6745 deviations.
    assert number(found, "median as the other") == pytest.approx(0.6745 * spread, rel=0.1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_right_type_is_quiet(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    normal, uniform = torch.randn(64, 48), torch.rand(64, 48)
    kinds = {
        "small": normal * 1e-4,
        "usual": normal * 0.02,
        "large": normal * 3,
        "uniform": uniform - 0.5,
        "scale": 1 + 0.05 * normal,
        "signs": normal.sign() * (1 + 0.2 * uniform),
        "wide": normal.sign() * torch.exp(3 * torch.randn(64, 48)),
    }
    state = {f"{name}.weight": kind.to(dtype) for name, kind in kinds.items()}
    assert observe(tmp_path, state, "bits-of-another-type") == ()
