"""A look: the model runs once; what is switched between afterwards is the same as if it had been asked anew."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from inspector.cam.engine.maps import heat_maps
from inspector.cam.layers.proposals import propose_layers
from inspector.cam.live import Kind, Look, look
from inspector.cam.methods import METHODS
from inspector.cam.spec import MapSpec
from inspector.cam.targets.readings import PixelScores
from inspector.errors import ExplainError, TargetOutOfRange

ARITHMETIC = tuple(m for m in METHODS if m.arithmetic is not None and m.id != "cam")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.second = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(inplace=True))
        self.head = nn.Linear(6, 5)
        self.forwards = 0

    def forward(self, x: Tensor) -> Tensor:
        self.forwards += 1
        return self.head(self.second(self.first(x)).mean(dim=(2, 3)))


class Pixels(Net):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        self.forwards += 1
        maps = self.second(self.first(x))
        scores = torch.einsum("kc,nchw->nkhw", self.head.weight, maps)
        return {"out": nn.functional.interpolate(scores, size=x.shape[2:], mode="bilinear")}


class Boxes(Net):
    """Two boxes of fixed places, whose scores the map decides."""

    def forward(self, x: Tensor) -> list[dict[str, Tensor]]:
        self.forwards += 1
        scores = torch.sigmoid(self.head(self.second(self.first(x)).mean(dim=(2, 3))))[0, :2]
        corners = torch.tensor([[0.0, 0, 8, 8], [8, 8, 16, 16]])
        return [{"boxes": corners, "labels": torch.tensor([3, 1]), "scores": scores}]


def _taken(kind: type[Net] = Net) -> tuple[Net, Tensor, Look]:
    torch.manual_seed(0)
    model, picture = kind().double().train(), torch.rand(1, 3, 16, 16, dtype=torch.float64)
    layers = propose_layers(model, (3, 16, 16))
    model.forwards = 0
    return model, picture, look(model, picture, layers)


def test_methods_layers_and_classes_cost_one_forward_in_all() -> None:
    model, picture, seen = _taken()
    assert model.forwards == 1
    made = {
        (m.id, layer.path, target): seen.map(m.id, layer, target)
        for m in ARITHMETIC
        for layer in seen.layers
        for target in (0, 3, 4)
    }
    assert model.forwards == 1
    assert model.training and all(p.requires_grad and p.grad is None for p in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())
    for (method, path, target), maps in made.items():
        layer = next(x for x in seen.layers if x.path == path)
        alone = heat_maps(model, picture, layer=layer, targets=target, method=method)
        assert torch.equal(maps.raw, alone.raw), (method, path, target)
        assert int(maps.targets[0]) == target


def test_a_class_seen_before_costs_no_backward_and_the_oldest_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, seen = _taken()
    backwards: list[int] = []
    real = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *a, **k: (backwards.append(1), real(*a, **k))[1])
    for method in ("grad-cam", "hires-cam", "layer-cam"):
        for target in (0, 1, 0):
            seen.map(method, seen.layers[0], target)
    assert len(backwards) == 2
    for target in (2, 3, 4):
        seen.map("grad-cam", seen.layers[0], target)
    assert len(backwards) == 5
    # Four are kept, so 1 has gone: it was used before 0.
    seen.map("grad-cam", seen.layers[0], 0)
    assert len(backwards) == 5
    seen.map("grad-cam", seen.layers[0], 1)
    assert len(backwards) == 6


def test_without_gradients_around_it_still_differentiates() -> None:
    _, _, seen = _taken()
    with torch.no_grad():
        other = seen.map("grad-cam", seen.layers[0], 2)
    assert float(other.gradient_peak[0]) > 0


def test_what_runs_the_model_again_runs_a_copy_and_says_how_often() -> None:
    model, picture, seen = _taken()
    assert seen.passes("grad-cam", seen.layers[0]) == 0
    assert seen.passes("ablation-cam", seen.layers[0]) == 6
    with pytest.raises(ExplainError, match="runs the model again"):
        seen.map("ablation-cam", seen.layers[0], 0)
    made = seen.make(MapSpec(method="ablation-cam", layers=seen.layers[:1]), 1).maps
    assert model.forwards == 1
    assert torch.equal(made.raw, heat_maps(model, picture, layer=seen.layers[0], targets=1, method="ablation-cam").raw)
    assert made.logits.shape == (1, 5)


def test_a_class_the_model_does_not_have_is_refused() -> None:
    _, _, seen = _taken()
    with pytest.raises(TargetOutOfRange):
        seen.map("grad-cam", seen.layers[0], 5)


def test_a_segmentations_columns_are_its_classes_over_their_own_pixels() -> None:
    model, picture, seen = _taken(Pixels)
    assert seen.kind is Kind.PIXELS
    assert sum(seen.shares) == pytest.approx(1.0)
    with torch.no_grad():
        answer = model.eval()(picture)
    scores = answer["out"]
    given = [k for k in range(5) if bool((scores.argmax(1) == k).any())]
    for k in given:
        read = PixelScores.of_class(answer, k)
        assert seen.logits[k] == pytest.approx(float(scores[0, k][scores.argmax(1)[0] == k].mean()))
        alone = heat_maps(model, picture, layer=seen.layers[0], targets=k, read=read)
        assert torch.allclose(seen.map("grad-cam", seen.layers[0], k).raw, alone.raw, atol=1e-12)
    for k in set(range(5)) - set(given):
        with pytest.raises(ExplainError, match="no pixel"):
            seen.map("grad-cam", seen.layers[0], k)


def test_a_detectors_columns_are_its_boxes_the_surest_first() -> None:
    _, _, seen = _taken(Boxes)
    assert seen.kind is Kind.BOXES
    assert [b.score for b in seen.boxes] == sorted((b.score for b in seen.boxes), reverse=True)
    assert {b.label for b in seen.boxes} == {1, 3}
    for column in (0, 1):
        again = seen.make(MapSpec(method="grad-cam", layers=seen.layers[:1]), column).maps
        assert torch.allclose(seen.map("grad-cam", seen.layers[0], column).raw, again.raw, atol=1e-12)


def test_channels_are_ranked_by_what_they_do_to_the_score() -> None:
    _, _, seen = _taken()
    found = seen.channels(seen.layers[0], 2)
    assert [c.contribution for c in found] == sorted((c.contribution for c in found), reverse=True)
    assert sorted(c.index for c in found) == list(range(6))
    # Their signed parts add up to the mean of what HiResCAM adds up (gradient x activation).
    hires = seen.map("hires-cam", seen.layers[0], 2).raw.mean()
    assert sum(c.signed for c in found) == pytest.approx(float(hires), rel=1e-9)


def test_passes_of_what_is_behind_the_layer_are_timed_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _, seen = _taken()
    clock = 0.0

    def spend(seconds: float) -> None:
        nonlocal clock
        clock += seconds

    # A clock that only the model moves: 10 s before the layer, 1 s behind it, whatever the machine does.
    model.first[0].register_forward_hook(lambda *_: spend(10.0))
    model.head.register_forward_hook(lambda *_: spend(1.0))
    monkeypatch.setattr("time.perf_counter", lambda: clock)
    layer = next(layer for layer in seen.layers if layer.path == "second")
    assert seen.forward_seconds == 11.0
    assert seen.passes("ablation-cam", layer) == 6
    assert seen.seconds_of("ablation-cam", layer) == pytest.approx(6 * 1.0 / 16)  # sixteen channels go at once
    assert seen.seconds_of("score-cam", layer) == 6 * 11.0
    assert seen.seconds_of("grad-cam", layer) == 0
