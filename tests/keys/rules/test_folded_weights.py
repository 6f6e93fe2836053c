"""Weight norm, spectral norm and pruning worked out: by torch's own layers, which must answer the same."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from inspector.errors import KeysDoNotFit
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint


def old_weight_norm(layer, dim=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.utils.weight_norm(layer, dim=dim)


def pruned(layer):
    prune.random_unstructured(layer, "weight", 0.5)
    return layer


def spectral(layer):
    made = parametrizations.spectral_norm(layer)
    made.train()(torch.randn(2, *((3, 5, 5) if isinstance(layer, nn.Conv2d) else (3,))))
    return made


# What torch makes of a layer, and whether its plain weight can be had exactly.
WAYS = {
    "old": old_weight_norm,
    "old, other dimension": lambda layer: old_weight_norm(layer, 1),
    "old, one length": lambda layer: old_weight_norm(layer, None),
    "new": parametrizations.weight_norm,
    "new, other dimension": lambda layer: parametrizations.weight_norm(layer, dim=1),
    "spectral, old": lambda layer: spectral_old(layer),
    "spectral": spectral,
    "pruned": pruned,
}


def spectral_old(layer):
    made = nn.utils.spectral_norm(layer)
    made.train()(torch.randn(2, *((3, 5, 5) if isinstance(layer, nn.Conv2d) else (3,))))
    return made


def layer_of(kind):
    return nn.Conv2d(3, 4, 3) if kind == "conv" else nn.Linear(3, 4)


def shapes(state):
    return {n: tuple(t.shape) for n, t in state.items()}


def held_by(plan, folder, monkeypatch):
    class Loaded:
        def load_state_dict(self, state, strict):
            self.held = state

    model = Loaded()
    monkeypatch.chdir(folder)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    return model.held


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("kind", ["conv", "linear"])
@pytest.mark.parametrize("way", WAYS)
def test_the_layer_computes_the_same_with_what_is_worked_out(way, kind, prefix, tmp_path, target_of, monkeypatch):
    torch.manual_seed(0)
    model = nn.Sequential(WAYS[way](layer_of(kind)), nn.BatchNorm1d(3)).eval()
    torch.save({prefix + n: t for n, t in model.state_dict().items()}, tmp_path / "a.pth")
    plain = nn.Sequential(layer_of(kind), nn.BatchNorm1d(3)).eval()
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(plain.state_dict()))
    report = diagnose(checkpoint, goal)
    plan = report.plan
    assert plan.complete and not plan.needs_accept and report.says.endswith("Exact to rounding.")
    assert verify_plan(checkpoint, plan, goal).holds
    plain.load_state_dict(apply_plan(checkpoint, plan))
    picture = torch.randn(2, *((3, 5, 5) if kind == "conv" else (3,)))
    assert torch.allclose(plain[0](picture), model[0](picture), rtol=1e-5, atol=1e-6)
    held = held_by(plan, tmp_path, monkeypatch)
    assert set(held) == set(goal_names(goal))
    assert all(torch.equal(held[n], t) for n, t in apply_plan(checkpoint, plan).items())


def goal_names(goal):
    return [t.name for t in goal.tensors]


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("way", ["old", "new"])
def test_a_plain_weight_becomes_direction_and_length(way, dim, tmp_path, target_of, monkeypatch):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    torch.save(plain.state_dict(), tmp_path / "a.pth")
    normed = nn.Conv2d(3, 4, 3)
    normed = old_weight_norm(normed, dim) if way == "old" else parametrizations.weight_norm(normed, dim=dim)
    model = nn.Sequential(normed, nn.BatchNorm2d(4)).eval()
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(model.state_dict()))
    plan = diagnose(checkpoint, goal).plan
    assert plan.complete and verify_plan(checkpoint, plan, goal).holds
    model.load_state_dict(apply_plan(checkpoint, plan))
    picture = torch.randn(2, 3, 5, 5)
    assert torch.allclose(model(picture), plain(picture), rtol=1e-5, atol=1e-6)
    held = held_by(plan, tmp_path, monkeypatch)
    assert all(torch.equal(held[n], t) for n, t in apply_plan(checkpoint, plan).items())


def test_what_has_no_direction_is_refused(tmp_path, target_of):
    state = {"c.weight_g": torch.ones(4, 1), "c.weight_v": torch.zeros(4, 3), "c.bias": torch.zeros(4)}
    torch.save(state, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, target_of({"c.weight": (4, 3), "c.bias": (4,)})).plan
    with pytest.raises(KeysDoNotFit, match="length zero"):
        apply_plan(checkpoint, plan)
    torch.save({"c.weight": torch.zeros(4, 3), "c.bias": torch.zeros(4)}, tmp_path / "b.pth")
    checkpoint = open_checkpoint(tmp_path / "b.pth")
    plan = diagnose(checkpoint, target_of(shapes(state))).plan
    with pytest.raises(KeysDoNotFit, match="length zero"):
        apply_plan(checkpoint, plan)


def test_a_mask_of_other_numbers_is_refused(tmp_path, target_of):
    state = {"c.weight_orig": torch.ones(4, 3), "c.weight_mask": torch.full((4, 3), 0.5), "c.bias": torch.zeros(4)}
    torch.save(state, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, target_of({"c.weight": (4, 3), "c.bias": (4,)})).plan
    with pytest.raises(KeysDoNotFit, match="other numbers than 0 and 1"):
        apply_plan(checkpoint, plan)


@pytest.mark.parametrize(
    ("ours", "goal"),
    [
        ({"c.weight_g": (3, 1), "c.weight_v": (4, 3)}, {"c.weight": (4, 3)}),  # a length too few
        ({"c.weight_g": (4, 1), "d.weight_v": (4, 3)}, {"c.weight": (4, 3)}),  # of two layers
        ({"c.weight_v": (4, 3)}, {"c.weight": (4, 3)}),
        ({"c.weight_orig": (4, 3), "c.weight_u": (4,)}, {"c.weight": (4, 3)}),  # no v: not defined
        ({"c.weight": (4, 3)}, {"c.weight_orig": (4, 3), "c.weight_u": (4,), "c.weight_v": (3,)}),
    ],
)
def test_what_is_not_whole_or_not_clear_is_left_alone(ours, goal, file_of, target_of):
    more = {"c.bias": (4,)}
    plan = diagnose(file_of(ours | more), target_of(goal | more), accept=["extra-tensors"]).plan
    assert plan is None or not plan.complete


def test_both_sides_alike_are_untouched(file_of, target_of):
    for way in WAYS.values():
        net = shapes(way(nn.Linear(3, 4)).state_dict())
        assert diagnose(file_of(net), target_of(net)).plan.rules == ()
    assert not parametrize.is_parametrized(nn.Linear(3, 4))


@pytest.mark.parametrize("layer", [nn.Conv2d, nn.ConvTranspose2d])
def test_over_which_dimension_a_square_kernel_is_normed_its_vectors_show(layer, tmp_path, target_of):
    torch.manual_seed(0)
    model = nn.Sequential(nn.utils.spectral_norm(layer(4, 4, 3)))
    for _ in range(3):
        model.train()(torch.randn(2, 4, 5, 5))
    torch.save(model.eval().state_dict(), tmp_path / "a.pth")
    plain = nn.Sequential(layer(4, 4, 3)).eval()
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(plain.state_dict()))
    plan = diagnose(checkpoint, goal).plan
    if layer is nn.ConvTranspose2d:
        with pytest.raises(KeysDoNotFit, match="do not show"):
            apply_plan(checkpoint, plan)
        return
    plain.load_state_dict(apply_plan(checkpoint, plan))
    picture = torch.randn(2, 4, 5, 5)
    assert torch.allclose(plain(picture), model(picture), rtol=1e-5, atol=1e-6)
