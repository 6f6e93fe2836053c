"""Running statistics that nothing ever updated, beside frozen norms, group norms and networks that are new."""

from __future__ import annotations

from pathlib import Path

import torch
import torchvision
from torch import nn

from inspector.findings import Severity
from tests.health.observed import observe
from tests.health.steps import steps

ID = "norm-never-updated"


def _network(norm: type[nn.Module] = nn.BatchNorm2d) -> nn.Sequential:
    torch.manual_seed(0)
    parts = [(nn.Conv2d(3 if i == 0 else 8, 8, 3), norm(8), nn.ReLU()) for i in range(2)]
    return nn.Sequential(*[module for part in parts for module in part])


def _trained(model: nn.Module) -> nn.Module:
    return steps(model, torch.randn(4, 3, 12, 12), count=3, lr=0.1)


def test_a_trained_network_is_quiet(tmp_path: Path) -> None:
    assert observe(tmp_path, _trained(_network()).state_dict(), ID) == ()


def test_statistics_that_were_lost_are_a_warning(tmp_path: Path) -> None:
    """As in averaged weights without update_bn."""
    model = _trained(_network())
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
    (found,) = observe(tmp_path, model.state_dict(), ID)
    assert found.severity is Severity.WARNING
    assert found.subjects == ("1.running_mean", "4.running_mean")
    assert "2 batch norms of 2 (1, 4) have running means of 0" in found.says


def test_batches_counted_without_an_update_are_a_warning(tmp_path: Path) -> None:
    model = _network()
    model[1].momentum = 0.0  # type: ignore[assignment]
    model(torch.randn(2, 3, 12, 12))
    (found,) = observe(tmp_path, model.state_dict(), ID)
    assert (found.severity, found.subjects) == (Severity.WARNING, ("1.running_mean",))


def test_new_networks_are_quiet(tmp_path: Path) -> None:
    model = _network()
    assert observe(tmp_path, model.state_dict(), ID) == ()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1.0, 0.02)  # DCGAN's
    assert observe(tmp_path, model.state_dict(), ID) == ()


def test_frozen_norms_and_group_norms_are_quiet(tmp_path: Path) -> None:
    frozen = {k: v for k, v in _trained(_network()).state_dict().items() if "num_batches" not in k}
    assert observe(tmp_path, frozen, ID) == ()
    new = torchvision.ops.FrozenBatchNorm2d(8).state_dict()
    assert observe(tmp_path, {f"bn.{k}": v for k, v in new.items()}, ID) == ()
    group = _trained(_network(lambda n: nn.GroupNorm(2, n)))  # type: ignore[arg-type]
    assert observe(tmp_path, group.state_dict(), ID) == ()


def test_a_branch_that_never_ran_is_a_note(tmp_path: Path) -> None:
    state = _trained(_network()).state_dict()
    state |= {f"branch.{k}": v for k, v in nn.BatchNorm2d(8).state_dict().items()}
    (found,) = observe(tmp_path, state, ID)
    assert (found.severity, found.subjects) == (Severity.NOTICE, ("branch.running_mean",))


def test_a_counter_of_zero_beside_statistics_is_a_note_where_others_counted(tmp_path: Path) -> None:
    state = _trained(_network()).state_dict()
    state["1.num_batches_tracked"] *= 0
    (found,) = observe(tmp_path, state, ID)
    assert (found.severity, found.subjects) == (Severity.NOTICE, ("1.num_batches_tracked",))
    state["4.num_batches_tracked"] *= 0  # None counted: converted from a library without counters.
    assert observe(tmp_path, state, ID) == ()


def test_a_norm_that_counted_far_fewer_batches_is_a_notice(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[part for _ in range(5) for part in (nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))])
    state = steps(model, torch.randn(4, 3, 12, 12), count=30, lr=0.01).state_dict()
    assert observe(tmp_path, state, ID) == ()
    state["3.num_batches_tracked"].fill_(4)
    assert observe(tmp_path, state, ID) == ()
    state["3.num_batches_tracked"].fill_(3)
    (found,) = observe(tmp_path, state, ID)
    assert (found.severity, found.subjects) == (Severity.NOTICE, ("3.num_batches_tracked",))
    assert found.says == "1 batch norm of 5 (3) counted 3 batches; 4 others counted 30."
