"""State of another shape than its parameter, where that is proved, and where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.findings import Severity
from inspector.health.checks.moment_shapes import CHECK
from tests.health.trainings import Run, findings


def test_a_head_that_was_replaced_after_the_optimizer_was_saved(tmp_path: Path) -> None:
    run = Run().step(3)
    saved = run.saved()
    saved["model"]["extra.weight"] = torch.randn(4, 3)
    saved["model"]["extra.bias"] = torch.randn(4)
    saved["model"]["head.weight"] = torch.randn(9, 16)
    first = dict(saved["optimizer"]["state"][0])
    saved["optimizer"]["state"][9] = {**first, "exp_avg": torch.zeros(4, 3), "exp_avg_sq": torch.ones(4, 3)}
    saved["optimizer"]["state"][10] = {**first, "exp_avg": torch.zeros(4), "exp_avg_sq": torch.ones(4)}
    saved["optimizer"]["param_groups"][0]["params"] = list(range(11))
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.severity, found.subjects) == (Severity.ERROR, ("head.weight",))
    assert found.says.endswith("for 1 entry: head.weight is 9x16, its state 5x16.")
    saved["model"]["head.weight"] = torch.randn(5, 16)
    assert findings(tmp_path, saved, CHECK) == ()


def test_by_name_one_that_differs_is_enough(tmp_path: Path) -> None:
    saved = Run().step(3).saved()
    names = [name for name, tensor in saved["model"].items() if tensor.is_floating_point() and "running" not in name]
    saved["optimizer"]["param_groups"][0]["param_names"] = names
    assert findings(tmp_path, saved, CHECK) == ()
    saved["model"]["fc.weight"] = torch.randn(3, 16)
    (found,) = findings(tmp_path, saved, CHECK)
    assert found.subjects == ("fc.weight",)


def test_moments_of_one_parameter_that_differ_need_no_weights(tmp_path: Path) -> None:
    saved = Run().step(3).saved()
    saved["optimizer"]["state"][5]["exp_avg"] = torch.zeros(2, 2)
    (found,) = findings(tmp_path, saved["optimizer"], CHECK)
    assert found.subjects == ("entry 5",) and "exp_avg is 2x2, exp_avg_sq is 16" in found.says


def test_an_optimizer_in_another_order_is_not_called_wrong(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(n + 2, n + 3) for n in range(12)))
    parameters = list(model.parameters())
    parameters[6], parameters[7] = parameters[7], parameters[6]
    optimizer = torch.optim.AdamW(parameters)
    model(torch.randn(3, 2)).sum().backward()
    optimizer.step()
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    assert findings(tmp_path, saved, CHECK) == ()
    # 22 of 24 agree, so that one which nothing can explain is an error.
    saved["optimizer"]["state"][7] = {n: torch.ones(3, 3) for n in ("exp_avg", "exp_avg_sq")}
    assert [f.severity for f in findings(tmp_path, saved, CHECK)] == [Severity.ERROR]


def test_an_optimizer_of_another_model_is_not_called_wrong(tmp_path: Path) -> None:
    saved = Run().step(3).saved()
    saved["model"] = {f"{n}.weight": torch.randn(n + 1, 2) for n in range(9)}
    assert findings(tmp_path, saved, CHECK) == ()


def _deep(order: str) -> dict[str, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(n + 2, n + 3) for n in range(9)))
    named = list(model.named_parameters())
    chosen = {
        "model": named,
        "backwards": named[::-1],
        "head first": named[-2:] + named[:-2],
        "vectors first": sorted(named, key=lambda each: each[1].ndim),
        "shuffled": [named[i] for i in torch.randperm(len(named)).tolist()],
    }[order]
    optimizer = torch.optim.SGD([parameter for _, parameter in chosen], lr=0.1, momentum=0.9)
    model(torch.randn(3, 2)).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


@pytest.mark.parametrize("order", ["model", "head first", "vectors first"])
def test_orders_that_scripts_make_are_quiet(tmp_path: Path, order: str) -> None:
    assert findings(tmp_path, _deep(order), CHECK) == ()


@pytest.mark.parametrize("order", ["backwards", "shuffled"])
def test_an_order_that_nobody_lists_parameters_in_is_a_warning(tmp_path: Path, order: str) -> None:
    (found,) = findings(tmp_path, _deep(order), CHECK)
    assert (found.id, found.severity) == ("moments-out-of-order", Severity.WARNING)
    assert ("read from its end all of them agree" in found.says) == (order == "backwards")
    if order == "backwards":
        assert "18 of 18 entries do not fit, the first entry 0, 11 beside 0.weight, 3x2" in found.says
