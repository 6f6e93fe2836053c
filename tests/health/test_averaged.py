"""Averaged weights beside the trained ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim import swa_utils

from inspector.findings import Severity
from inspector.health.checks.averaged import CHECK
from tests.health.trainings import Run, copied, findings

Saved = dict[str, Any]


def _averaging(steps: int, *, decay: float = 0.9) -> tuple[Run, swa_utils.AveragedModel]:
    run = Run()
    average = swa_utils.AveragedModel(run.model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(decay))
    for _ in range(steps):
        run.step()
        average.update_parameters(run.model)
    return run, average


def _beside(run: Run, average: swa_utils.AveragedModel) -> Saved:
    return run.saved(model_ema=average.state_dict())


def _in_one(run: Run, average: swa_utils.AveragedModel) -> Saved:
    model = {f"model.{name}": tensor for name, tensor in run.model.state_dict().items()}
    held = {f"ema_model.{name}": tensor for name, tensor in average.module.state_dict().items()}
    return copied({"state_dict": {**model, **held}, "optimizer": run.optimizer.state_dict(), "epoch": 5})


def _lit(run: Run, average: swa_utils.AveragedModel) -> Saved:
    model = {f"model.{name}": tensor for name, tensor in run.model.state_dict().items()}
    held = {f"model_ema.{n.replace('.', '')}": p.data for n, p in average.module.named_parameters()}
    counters = {"model_ema.decay": torch.tensor(0.9), "model_ema.num_updates": average.n_averaged}
    return copied({"state_dict": {**model, **held, **counters}, "epoch": 5})


LAYOUTS: list[Callable[[Run, swa_utils.AveragedModel], Saved]] = [_beside, _in_one, _lit]


@pytest.mark.parametrize("save", LAYOUTS)
def test_an_average_that_follows_has_no_finding(
    tmp_path: Path, save: Callable[[Run, swa_utils.AveragedModel], Saved]
) -> None:
    assert findings(tmp_path, save(*_averaging(6)), CHECK) == ()


@pytest.mark.parametrize("save", LAYOUTS)
def test_an_average_that_is_equal_after_training_is_a_warning(
    tmp_path: Path, save: Callable[[Run, swa_utils.AveragedModel], Saved]
) -> None:
    run, average = _averaging(6)
    average.module.load_state_dict(run.model.state_dict())
    (found,) = findings(tmp_path, save(run, average), CHECK)
    assert (found.id, found.severity) == ("average-never-updated", Severity.WARNING)
    assert found.says.startswith("All 9 parameters of the averaged weights in ")


def test_one_element_that_differs_is_an_average(tmp_path: Path) -> None:
    run, average = _averaging(6)
    average.module.load_state_dict(run.model.state_dict())
    # The same numbers in another order: every statistic is equal, and the bytes are not.
    average.module.fc.weight.data = average.module.fc.weight.data.flip(1)
    saved = run.saved(ema={name.removeprefix("module."): t for name, t in average.state_dict().items()})
    assert findings(tmp_path, saved, CHECK) == ()


def test_one_object_under_two_names_is_a_warning_once_it_was_trained(tmp_path: Path) -> None:
    state = Run().step(4).model.state_dict()
    found = findings(tmp_path, {"state_dict": state, "state_dict_ema": dict(state), "epoch": 9}, CHECK)
    assert [f.severity for f in found] == [Severity.WARNING]
    found = findings(tmp_path, {"state_dict": state, "state_dict_ema": dict(state), "epoch": 0}, CHECK)
    assert [f.severity for f in found] == [Severity.NOTICE]


def test_the_first_update_copies_and_is_a_notice(tmp_path: Path) -> None:
    run = Run().step(20)
    average = swa_utils.AveragedModel(run.model)
    average.update_parameters(run.model)
    found = findings(tmp_path, run.saved(swa=average.state_dict()), CHECK)
    assert [(f.severity, dict(f.evidence)["updates"]) for f in found] == [(Severity.NOTICE, 1.0)]


def test_an_average_of_another_run_is_far_away(tmp_path: Path) -> None:
    run, average = _averaging(6)
    saved = _beside(run, average)
    for name, tensor in saved["model_ema"].items():
        if tensor.is_floating_point() and "running" not in name:
            saved["model_ema"][name] = saved["model"][name.removeprefix("module.")] * -2
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.severity) == ("average-far-apart", Severity.WARNING)
    evidence = dict(found.evidence)
    assert evidence["distance"] == pytest.approx(3, abs=1e-6) and evidence["threshold"] == 1.0


def test_nan_in_an_average_is_an_error(tmp_path: Path) -> None:
    run, average = _averaging(3)
    average.module.fc.weight.data[0, 0] = float("nan")
    (found,) = findings(tmp_path, _beside(run, average), CHECK)
    assert (found.id, found.severity, found.subjects) == ("average-non-finite", Severity.ERROR, ("module.fc.weight",))


def _wide(*, noise: float = 0.05) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Six layers with their norms, and an average that lags a little behind."""
    torch.manual_seed(0)
    live: dict[str, torch.Tensor] = {}
    for i in range(6):
        live[f"{i}.conv.weight"] = torch.randn(20, 20, 3, 3) / 13
        live[f"{i}.bn.weight"] = 1 + 0.1 * torch.randn(20)
        live[f"{i}.bn.bias"] = 0.1 * torch.randn(20)
        live[f"{i}.bn.running_mean"] = torch.randn(20)
        live[f"{i}.bn.running_var"] = torch.rand(20) + 0.5
    lag = {name: tensor + noise * tensor.std() * torch.randn_like(tensor) for name, tensor in live.items()}
    return live, lag


def _said(tmp_path: Path, live: Saved, lag: Saved, *, epoch: int = 5) -> list[tuple[str, Severity, tuple[str, ...]]]:
    found = findings(tmp_path, {"state_dict": live, "state_dict_ema": lag, "epoch": epoch}, CHECK)
    return [(f.id, f.severity, f.subjects) for f in found]


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.3])
def test_an_average_that_lags_has_no_finding(tmp_path: Path, noise: float) -> None:
    assert _said(tmp_path, *_wide(noise=noise)) == []


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("3.conv.weight", lambda t: t.transpose(0, 1).contiguous()),
        ("3.conv.weight", torch.zeros_like),
        ("3.bn.bias", lambda t: t.flip(0)),
        ("3.bn.running_mean", lambda t: t.flip(0)),
    ],
)
def test_one_tensor_that_points_elsewhere_is_named(
    tmp_path: Path, name: str, damage: Callable[[torch.Tensor], torch.Tensor], side: int
) -> None:
    both = _wide()
    both[side][name] = damage(both[side][name])
    assert _said(tmp_path, *both) == [("average-unlike", Severity.WARNING, (name,))]


def test_where_all_point_a_little_elsewhere_none_stands_out(tmp_path: Path) -> None:
    live, lag = _wide()
    for i, part in enumerate((0.3, 0.6, 1.0, 1.5, 2.5, 4.0)):
        name = f"{i}.conv.weight"
        lag[name] = live[name] + part * live[name].std() * torch.randn_like(live[name])
    assert [said for said in _said(tmp_path, live, lag) if said[0] == "average-unlike"] == []


def test_an_average_as_initialised_is_a_warning_once_it_was_trained(tmp_path: Path) -> None:
    live, lag = _wide()
    for name, tensor in lag.items():
        if ".bn." in name:
            lag[name] = torch.full_like(tensor, float("weight" in name or "var" in name))
    assert [said[:2] for said in _said(tmp_path, live, lag)] == [("average-never-updated", Severity.WARNING)]
    assert [said[:2] for said in _said(tmp_path, live, lag, epoch=0)] == [("average-never-updated", Severity.NOTICE)]


def test_an_average_of_strange_kernels_is_far_away_however_small_the_distance(tmp_path: Path) -> None:
    live, lag = _wide()
    live["head.bias"] = lag["head.bias"] = torch.full((100,), 9.0)
    for i in range(6):
        lag[f"{i}.conv.weight"] = torch.randn(20, 20, 3, 3) / 13
    found = findings(tmp_path, {"state_dict": live, "state_dict_ema": lag, "epoch": 5}, CHECK)
    assert [f.id for f in found] == ["average-far-apart"]
    assert dict(found[0].evidence)["distance"] < 1
