"""Kernels over pictures for films: with consent, and a film of equal frames gets the picture's answer."""

from __future__ import annotations

import torch
from torch import nn

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


def shapes(net):
    return {n: tuple(t.shape) for n, t in net.state_dict().items()}


def nets():
    torch.manual_seed(0)
    flat = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 5, (3, 1))).eval()
    film = nn.Sequential(nn.Conv3d(3, 4, 3), nn.BatchNorm3d(4), nn.Conv3d(4, 5, (2, 3, 1))).eval()
    return flat, film


def test_a_film_of_equal_frames_gets_the_pictures_answer(tmp_path, target_of, monkeypatch):
    flat, film = nets()
    torch.save(flat.state_dict(), tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(film))
    waiting = diagnose(checkpoint, goal).plan
    assert waiting.needs_accept == ("inflated-kernels",) and not waiting.complete
    plan = diagnose(checkpoint, goal, accept=["inflated-kernels"]).plan
    made = apply_plan(checkpoint, plan)
    film.load_state_dict(made)
    picture = torch.randn(1, 3, 8, 8)
    frames = film(picture[:, :, None].expand(-1, -1, 6, -1, -1))
    assert torch.allclose(frames, flat(picture)[:, :, None].expand_as(frames), atol=1e-5)
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": (again := nets()[1])})
    assert all(torch.equal(again.state_dict()[n], t) for n, t in made.items())


def test_other_shapes_of_as_many_axes_are_another_network(file_of, target_of):
    for kernel in ((4, 3, 2, 3, 5), (4, 2, 2, 3, 3), (5, 3, 2, 3, 3)):
        ours, goal = {"c.weight": (4, 3, 3, 3), "f.weight": (2, 4)}, {"c.weight": kernel, "f.weight": (2, 4)}
        assert diagnose(file_of(ours), target_of(goal), accept=["inflated-kernels"]).plan is None
    # One more tensor of another shape, and nothing is adapted.
    ours = {"c.weight": (4, 3, 3, 3), "f.weight": (2, 4)}
    goal = {"c.weight": (4, 3, 2, 3, 3), "f.weight": (2, 6)}
    assert diagnose(file_of(ours), target_of(goal), accept=["inflated-kernels"]).plan is None


def test_films_stay_films(file_of, target_of):
    film = shapes(nets()[1])
    assert diagnose(file_of(film), target_of(film)).plan.rules == ()
