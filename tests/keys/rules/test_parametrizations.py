"""torch's own modules before and since parametrizations, both ways, by their own state dicts."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations as new
from torch.nn.utils import spectral_norm, weight_norm

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


def pair(kind):
    torch.manual_seed(0)
    layer = lambda: nn.Linear(4, 3)  # noqa: E731
    if kind == "weight":
        return nn.Sequential(weight_norm(layer()), layer()), nn.Sequential(new.weight_norm(layer()), layer())
    return nn.Sequential(spectral_norm(layer()), layer()), nn.Sequential(new.spectral_norm(layer()), layer())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["weight", "spectral"])
@pytest.mark.parametrize("back", [False, True])
def test_both_names_of_one_norm(kind, back, tmp_path, target_of, monkeypatch):
    ours, theirs = pair(kind)[::-1] if back else pair(kind)
    torch.save(dict(ours.state_dict()), tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, target_of({n: tuple(t.shape) for n, t in theirs.state_dict().items()})).plan
    assert plan.complete and [use.id for use in plan.rules] == ["parametrizations"]
    state = apply_plan(checkpoint, plan)
    pairs = {s.source: s.target for s in plan.steps}
    names = {"weight_g": "original0", "weight_v": "original1"} if kind == "weight" else {}
    names = names or {"weight_orig": "original", "weight_u": "_u", "weight_v": "_v"}
    for a, b in pairs.items():
        one, other = (b, a) if back else (a, b)
        if one != other:
            assert names[one.rpartition(".")[2]] == other.rpartition(".")[2]
    assert all(torch.equal(state[b], ours.state_dict()[a]) for a, b in pairs.items())
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": theirs})
    assert all(torch.equal(theirs.state_dict()[n], t) for n, t in state.items())


def test_half_of_it_or_other_shapes_stay_as_they_are(file_of, target_of):
    goal = {"fc.parametrizations.weight.original0": (3, 1), "fc.parametrizations.weight.original1": (3, 4)}
    for ours in ({"fc.weight_g": (3, 1)}, {"fc.weight_g": (1, 4), "fc.weight_v": (3, 4)}):
        plan = diagnose(file_of(ours), target_of(goal)).plan
        assert plan is None or not plan.complete
