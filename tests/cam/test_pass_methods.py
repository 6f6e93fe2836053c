"""Methods that run the model again, by hand on linear models and against naive loops."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional

from inspector.cam.engine.maps import Axes, heat_grid, heat_maps
from inspector.cam.methods import METHODS, occlusion
from inspector.cam.report import Options
from inspector.errors import ExplainError
from inspector.progress import Stopped


class Sum(nn.Module):
    """Two classes, each a weighted sum of the picture's pixels: every pixel method is exact here."""

    def __init__(self, side: int = 10) -> None:
        super().__init__()
        self.weights = nn.Parameter(
            torch.randn(2, 3, side, side, dtype=torch.float64, generator=torch.Generator().manual_seed(8))
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("nchw,kchw->nk", x, self.weights)


@pytest.fixture
def picture() -> Tensor:
    return torch.randn(1, 3, 10, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(9))


def raw_of(model: nn.Module, batch: Tensor, method: str, target: int, layer: str | None = None) -> Tensor:
    return heat_maps(model, batch, method=method, targets=target, layer=layer).raw


def test_saliency_and_smooth_grad_of_a_sum_are_its_weights(picture: Tensor) -> None:
    model = Sum()
    expected = model.weights[1].abs().amax(dim=0)[None].detach()
    for method in ("saliency", "smooth-grad"):
        torch.testing.assert_close(raw_of(model, picture, method, 1), expected)


def test_integrated_gradients_of_a_sum_are_its_terms(picture: Tensor) -> None:
    model = Sum()
    torch.testing.assert_close(
        raw_of(model, picture, "integrated-gradients", 0), (model.weights[0].detach() * picture[0]).sum(dim=0)[None]
    )


def test_integrated_gradients_add_up_to_the_rise_of_the_score() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.GELU(), nn.Conv2d(6, 6, 3), nn.Tanh(), nn.Flatten(), nn.Linear(6 * 36, 3)
    ).double()
    x = torch.randn(1, 3, 10, 10, dtype=torch.float64)
    rise = (model(x) - model(torch.zeros_like(x)))[0, 2].item()
    assert raw_of(model, x, "integrated-gradients", 2).sum().item() == pytest.approx(rise, rel=2e-3)


def test_occlusion_of_a_sum_by_hand(picture: Tensor) -> None:
    model = Sum()
    term = (model.weights[1].detach() * picture[0]).sum(dim=0)
    side = 2  # a fifth of ten; the step is one pixel
    fall, covered = torch.zeros(10, 10, dtype=torch.float64), torch.zeros(10, 10, dtype=torch.float64)
    for top in range(9):
        for left in range(9):
            fall[top : top + side, left : left + side] += term[top : top + side, left : left + side].sum()
            covered[top : top + side, left : left + side] += 1
    torch.testing.assert_close(raw_of(model, picture, "occlusion", 1)[0], fall / covered)


@pytest.mark.parametrize("size", [(7, 7), (10, 31), (64, 33), (1, 5), (224, 224)])
def test_every_pixel_is_covered(size: tuple[int, int]) -> None:
    seen = torch.zeros(size)
    side = occlusion._side(*size)
    for top, left in occlusion._places(*size):
        assert 0 <= top <= size[0] - side and 0 <= left <= size[1] - side
        seen[top : top + side, left : left + side] += 1
    assert seen.min() >= 1


class Pooled(nn.Module):
    """A small network that ends in a mean and one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 5, 3, stride=2, padding=1)
        self.last = nn.Conv2d(5, 6, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.relu(self.last(self.relu(self.first(x)))).mean(dim=(2, 3)))


@pytest.fixture
def pooled() -> Pooled:
    torch.manual_seed(5)
    return Pooled().double().eval()


@pytest.fixture
def batch() -> Tensor:
    return torch.randn(2, 3, 16, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(6))


def test_cam_is_grad_cam_where_it_is_defined(pooled: Pooled, batch: Tensor) -> None:
    """After the last ReLU the gradient of the mean is the head's weight over the number of cells."""
    found = heat_maps(pooled, batch, layer="relu:1", method="cam", targets=[0, 3])
    same = heat_maps(pooled, batch, layer="relu:1", method="grad-cam", targets=[0, 3])
    torch.testing.assert_close(found.raw, same.raw * found.raw[0].numel())
    torch.testing.assert_close(found.heat, same.heat)
    with pytest.raises(ExplainError, match="one linear layer on the mean"):
        heat_maps(pooled, batch, layer="first", method="cam")
    with pytest.raises(ExplainError, match="one linear layer on the mean"):
        heat_maps(pooled, batch, layer="last", method="cam")  # the ReLU stands between


def test_ablation_against_a_loop_with_hooks(pooled: Pooled, batch: Tensor) -> None:
    found = heat_maps(pooled, batch, layer="first", method="ablation-cam", targets=[2, 1]).raw
    for n, target in enumerate((2, 1)):
        x = batch[n : n + 1]
        with torch.no_grad():
            activation = pooled.first(x)
            score = pooled(x)[0, target]
            expected = torch.zeros_like(activation[0, 0])
            for k in range(5):

                def switch_off(_module: nn.Module, _args: object, output: Tensor, k: int = k) -> Tensor:
                    output = output.clone()
                    output[:, k] = 0
                    return output

                handle = pooled.first.register_forward_hook(switch_off)
                expected += (score - pooled(x)[0, target]) / abs(score) * activation[0, k]
                handle.remove()
        torch.testing.assert_close(found[n], expected)


def test_ablation_of_tokens_leaves_the_class_token() -> None:
    torch.manual_seed(1)
    model = torchvision.models.VisionTransformer(32, 8, 2, 4, 8, 16, num_classes=5).double().eval()
    nn.init.normal_(model.heads.head.weight)
    x = torch.randn(1, 3, 32, 32, dtype=torch.float64)
    maps = heat_maps(model, x, method="ablation-cam", targets=3)
    module = model.get_submodule(maps.layer.path)
    kept: dict[str, Tensor] = {}
    handle = module.register_forward_hook(lambda _m, _a, output: kept.update(tokens=output.detach().clone()))
    score = model(x)[0, 3].detach()
    handle.remove()
    expected = torch.zeros(4, 4, dtype=torch.float64)
    for k in range(8):
        changed = kept["tokens"].clone()
        changed[:, 1:, k] = 0
        handle = module.register_forward_hook(lambda _m, _a, _o, changed=changed: changed)
        weight = (score - model(x)[0, 3].detach()) / score.abs()
        handle.remove()
        expected += weight * kept["tokens"][0, 1:, k].reshape(4, 4)
    torch.testing.assert_close(maps.raw[0], expected)


def test_score_cam_against_a_loop(pooled: Pooled, batch: Tensor) -> None:
    with torch.no_grad():
        pooled.first.weight[2], pooled.first.bias[2] = 0, 1  # the same everywhere: no mask
    found = heat_maps(pooled, batch, layer="first", method="score-cam", targets=[2, 1]).raw
    for n, target in enumerate((2, 1)):
        with torch.no_grad():
            activation = pooled.first(batch[n : n + 1])[0]
            scores = []
            for k in (0, 1, 3, 4):
                mask = functional.interpolate(activation[None, k : k + 1], (16, 20), mode="bilinear")[0]
                mask = (mask - mask.min()) / (mask.max() - mask.min())
                scores.append(pooled(batch[n : n + 1] * mask)[0, target])
            weights = torch.softmax(torch.stack(scores), dim=0)
            expected = sum(w * activation[k] for w, k in zip(weights, (0, 1, 3, 4), strict=True))
        torch.testing.assert_close(found[n], expected)


def test_smooth_grad_cam_plus_plus_without_curvature_is_grad_cam_plus_plus() -> None:
    """A linear model has one gradient, whatever the noise."""
    torch.manual_seed(7)
    model = nn.Sequential(nn.Conv2d(3, 5, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 3)).double()
    x = torch.randn(2, 3, 9, 9, dtype=torch.float64)
    smooth, plain = (
        heat_maps(model, x, layer="0", method=m, targets=1).raw for m in ("smooth-grad-cam++", "grad-cam++")
    )
    torch.testing.assert_close(smooth, plain)


@pytest.mark.parametrize("method", [m.id for m in METHODS if m.seeded])
def test_seeded_methods_repeat_and_leave_the_random_state(pooled: Pooled, batch: Tensor, method: str) -> None:
    before = torch.random.get_rng_state()
    one, two = (heat_maps(pooled, batch, layer="first", method=method, options=Options(seed=4)).raw for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, heat_maps(pooled, batch, layer="first", method=method, options=Options(seed=5)).raw)
    assert torch.equal(before, torch.random.get_rng_state())


# The methods of vision transformers have tests of their own.
OF_ANY_NETWORK = [m for m in METHODS if m.id not in ("attention-rollout", "gradient-rollout", "le-grad")]
OF_ONE_PASS = ("cam", "saliency", "guided-backpropagation", "guided-grad-cam")


@pytest.mark.parametrize("method", OF_ANY_NETWORK, ids=lambda m: m.id)
def test_everything_is_given_back(pooled: Pooled, batch: Tensor, method: object) -> None:
    pooled.train()
    pooled.head.weight.grad = torch.ones_like(pooled.head.weight)
    before = {name: value.clone() for name, value in pooled.state_dict().items()}
    maps = heat_maps(pooled, batch, layer="relu:1", method=method.id)  # type: ignore[attr-defined]
    assert maps.raw.shape[0] == 2 and maps.heat.shape == (2, 16, 20)
    assert torch.isfinite(maps.raw).all()
    assert maps.method == method.id  # type: ignore[attr-defined]
    assert pooled.training and all(p.requires_grad for p in pooled.parameters())
    assert all(torch.equal(before[name], value) for name, value in pooled.state_dict().items())
    assert torch.equal(pooled.head.weight.grad, torch.ones_like(pooled.head.weight))
    assert pooled.first.weight.grad is None
    assert not any(m._forward_hooks or m._forward_pre_hooks or "forward" in vars(m) for m in pooled.modules())


@pytest.mark.parametrize("method", [m.id for m in OF_ANY_NETWORK if m.passes and m.id not in OF_ONE_PASS])
def test_slow_methods_can_be_stopped(pooled: Pooled, batch: Tensor, method: str) -> None:
    def stop(_done: int, _total: int | None, _note: str) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        heat_maps(pooled, batch, layer="first", method=method, progress=stop)
    assert not any(m._forward_hooks or "forward" in vars(m) for m in pooled.modules())


def test_methods_of_the_picture_stand_once_in_a_grid(pooled: Pooled, batch: Tensor) -> None:
    axes = Axes(layers=["relu:1", "first"], methods=["grad-cam", "saliency"])
    (grid,) = heat_grid(pooled, batch, axes)
    assert grid[0][1] is grid[1][1]
    assert grid[0][1].layer.kind == "input"
    assert grid[0][1].raw.shape == (2, 16, 20)


def test_a_network_without_maps_still_has_its_picture() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 2))
    assert heat_maps(model, torch.randn(1, 3, 8, 8), method="saliency").raw.shape == (1, 8, 8)
