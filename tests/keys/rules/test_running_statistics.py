"""Statistics that the file lacks start as in a new layer, only when the user says so."""

from __future__ import annotations

import torch
from torch import nn

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose


def bare(state):
    return {n: t for n, t in state.items() if not n.endswith(("running_mean", "running_var", "num_batches_tracked"))}


def test_they_start_as_torch_starts_them(saved, target_of, tmp_path):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 3), nn.BatchNorm2d(2))
    goal = target_of({n: tuple(t.shape) for n, t in net.state_dict().items()})
    state = bare(net.state_dict())
    waits = diagnose(saved(state), goal)
    assert waits.plan.needs_accept == ("running-statistics",) and "no-statistics" in [f.id for f in waits.findings]
    plan = diagnose(saved(state), goal, accept=["running-statistics"]).plan
    made = apply_plan(saved(state), plan)
    # A network that was never run has torch's own start values.
    assert all(torch.equal(made[n], t) and made[n].dtype == t.dtype for n, t in net.state_dict().items())
    torch.save(state, tmp_path / "net.pth")
    space: dict[str, object] = {"model": net}
    exec(python_code(plan, file_name=str(tmp_path / "net.pth")), space)
    assert all(torch.equal(space["state"][n], t) for n, t in made.items())


def test_where_some_are_there_the_rest_is_missing(file_of, target_of, tiny_cnn):
    ours = {n: s for n, s in tiny_cnn.items() if not n.startswith("bn1.running")}
    assert set(diagnose(file_of(ours), target_of(tiny_cnn)).plan.missing) == {"bn1.running_mean", "bn1.running_var"}


def test_a_norm_that_is_missing_whole_is_not_made_up(file_of, target_of, tiny_cnn):
    ours = {n: s for n, s in tiny_cnn.items() if "bn" not in n}
    assert "bn1.running_mean" in diagnose(file_of(ours), target_of(tiny_cnn)).plan.missing
