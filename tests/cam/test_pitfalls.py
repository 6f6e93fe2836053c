"""The pitfalls of hooks on other people's models, each beside the plain recipe that falls into it.

`naive` is what most posts and several libraries do: keep the output and a gradient hook of it, call backward, keep no
copies, give nothing back. Each test shows that it is wrong or fails there, and that the engine is not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torchvision
from torch import Tensor, nn

from inspector.cam.engine.maps import heat_maps
from inspector.cam.layers.proposals import find_layer, propose_layers
from inspector.errors import ExplainError


def naive(
    model: nn.Module, batch: Tensor, layer: str, target: int, reshape: Callable[[Tensor], Tensor] = lambda t: t
) -> Tensor:
    """Grad-CAM's raw map (N, h, w), as it is usually written."""
    kept: dict[str, Tensor] = {}

    def keep(_module: nn.Module, _args: object, output: Tensor) -> None:
        kept["output"] = output.detach()  # shares its memory with the live one
        output.register_hook(lambda gradient: kept.__setitem__("gradient", gradient))

    model.eval()
    model.get_submodule(layer).register_forward_hook(keep)
    model(batch)[:, target].sum().backward()
    activation, gradient = reshape(kept["output"]), reshape(kept["gradient"])
    weights = gradient.mean(dim=(2, 3), keepdim=True)
    return torch.from_numpy((weights * activation).sum(dim=1).numpy())  # where most go on


def ours(model: nn.Module, batch: Tensor, layer: str, target: int = 1) -> Tensor:
    return heat_maps(model, batch, layer=layer, targets=target).raw


class Net(nn.Module):
    """conv -> norm -> relu -> conv2 -> relu (the same) -> dropout -> mean -> linear."""

    def __init__(self, *, inplace: bool = False, channels: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=inplace)
        self.conv2 = nn.Conv2d(4, 6, 3, padding=1)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.norm(self.conv(x)))
        return self.head(self.drop(self.relu(self.conv2(x))).mean(dim=(2, 3)))


def net(**options: object) -> Net:
    torch.manual_seed(7)
    return Net(**options).eval()  # type: ignore[arg-type]


@pytest.fixture
def batch() -> Tensor:
    return torch.randn(2, 3, 20, 28, generator=torch.Generator().manual_seed(8))


@pytest.fixture
def right(batch: Tensor) -> Tensor:
    """The map of conv2, where nothing is in the way; there the plain recipe is right too."""
    expected = ours(net(), batch, "conv2")
    torch.testing.assert_close(naive(net(), batch, "conv2", 1), expected, rtol=1e-4, atol=1e-7)
    assert float(expected.abs().max()) > 0
    return expected


def test_an_in_place_relu_behind_the_layer(batch: Tensor, right: Tensor) -> None:
    assert float((naive(net(inplace=True), batch, "conv2", 1) - right).abs().max()) > 1e-3 * float(right.abs().max())
    torch.testing.assert_close(ours(net(inplace=True), batch, "conv2"), right, rtol=0, atol=0)


def test_a_shared_module_called_twice(batch: Tensor) -> None:
    first, last = ours(net(), batch, "relu:0"), ours(net(), batch, "relu:1")
    # The last output meets the gradient that comes last, which is the first call's: four channels against six.
    with pytest.raises(RuntimeError, match="must match"):
        naive(net(), batch, "relu", 1)
    by_name = net()
    by_name.relu2 = nn.ReLU()
    by_name.forward = lambda x: by_name.head(  # type: ignore[method-assign, assignment]
        by_name.relu2(by_name.conv2(by_name.relu(by_name.norm(by_name.conv(x))))).mean(dim=(2, 3))
    )
    torch.testing.assert_close(ours(by_name, batch, "relu2"), last)
    torch.testing.assert_close(ours(by_name, batch, "relu"), first)


def test_a_frozen_model(batch: Tensor, right: Tensor) -> None:
    with pytest.raises(RuntimeError, match="require"):
        naive(net().requires_grad_(False), batch, "conv2", 1)
    torch.testing.assert_close(ours(net().requires_grad_(False), batch, "conv2"), right, rtol=0, atol=0)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_caller_without_gradients(batch: Tensor, right: Tensor, mode: Callable[[], torch.no_grad]) -> None:
    first, second = net(), net()
    with mode():
        with pytest.raises(RuntimeError):
            naive(first, batch, "conv2", 1)
        found = ours(second, batch * 1, "conv2")
    torch.testing.assert_close(found, right, rtol=0, atol=0)


def test_a_model_in_training(batch: Tensor, right: Tensor) -> None:
    model = net().train()
    model.norm.eval()
    flags = [module.training for module in model.modules()]
    mean = model.norm.running_mean.clone()
    torch.testing.assert_close(ours(model, batch, "conv2"), right, rtol=0, atol=0)  # without dropout
    assert [module.training for module in model.modules()] == flags
    assert torch.equal(model.norm.running_mean, mean)
    naive(model, batch, "conv2", 1)
    assert [module.training for module in model.modules()] != flags


def test_the_callers_own_gradients(batch: Tensor) -> None:
    model = net()
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 3.0)
    ours(model, batch, "conv2")
    assert all(bool((parameter.grad == 3).all()) for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())
    naive(model, batch, "conv2", 1)
    assert not all(bool((parameter.grad == 3).all()) for parameter in model.parameters())
    assert any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(batch: Tensor, right: Tensor, dtype: torch.dtype) -> None:
    found = ours(net().to(dtype), batch, "conv2")
    assert found.dtype == torch.float32
    assert float((found - right).abs().max()) < 0.03 * float(right.abs().max())
    # Its input is not cast, and NumPy, where most go on, has no bfloat16.
    with pytest.raises((RuntimeError, TypeError)):
        naive(net().to(dtype), batch, "conv2", 1)


def test_an_all_negative_map_is_not_a_picture(batch: Tensor) -> None:
    """Dividing by the largest value turns the least negative place into the hottest."""
    model = net()
    with torch.no_grad():
        model.head.weight[1] = -model.head.weight[1].abs()
    maps = heat_maps(model, batch, layer="relu", targets=1)
    assert float(maps.raw.max()) <= 0
    assert float(maps.heat.abs().max()) == 0
    low, high = maps.raw.amin(dim=(1, 2), keepdim=True), maps.raw.amax(dim=(1, 2), keepdim=True)
    assert float(((maps.raw - low) / (high - low)).max()) == 1.0  # the plain min-max


def test_a_dataparallel_wrapper(batch: Tensor, right: Tensor) -> None:
    wrapped = nn.DataParallel(net())
    torch.testing.assert_close(ours(wrapped, batch, "conv2"), right, rtol=0, atol=0)
    torch.testing.assert_close(ours(wrapped, batch, "module.conv2"), right, rtol=0, atol=0)
    with pytest.raises(AttributeError):
        naive(wrapped, batch, "conv2", 1)


@pytest.mark.parametrize("shape", ["tuple", "dict"])
def test_answers_in_containers(batch: Tensor, right: Tensor, shape: str) -> None:
    class Wrapped(Net):
        def forward(self, x: Tensor) -> object:  # type: ignore[override]
            scores = super().forward(x)
            return (scores, x) if shape == "tuple" else {"aux": x, "logits": scores}

    torch.manual_seed(7)
    torch.testing.assert_close(ours(Wrapped(), batch, "conv2"), right, rtol=0, atol=0)
    torch.manual_seed(7)
    with pytest.raises((TypeError, KeyError)):
        naive(Wrapped(), batch, "conv2", 1)


def test_channels_last_memory(batch: Tensor, right: Tensor) -> None:
    model = net().to(memory_format=torch.channels_last)
    found = ours(model, batch.to(memory_format=torch.channels_last), "conv2")
    torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-6)


def test_one_channel(batch: Tensor) -> None:
    model = net(channels=1)
    torch.testing.assert_close(
        ours(model, batch[:, :1], "conv2"), naive(net(channels=1), batch[:, :1], "conv2", 1), rtol=1e-4, atol=1e-6
    )
    assert propose_layers(model, (1, 20, 28))[0].grid == (10, 14)


class Tokens(nn.Module):
    """A transformer of one attention: prefix tokens before the patches, answered from the first token or the mean."""

    def __init__(self, prefix: int) -> None:
        super().__init__()
        self.prefix = prefix
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.first = nn.Parameter(torch.randn(1, prefix, 8))
        self.norm1 = nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1)
        y = self.norm1(x)
        x = self.norm(x + self.attention(y, y, y, need_weights=False)[0])
        return self.head(x[:, 0] if self.prefix else x.mean(dim=1))


@pytest.mark.parametrize("prefix", [0, 1, 2, 5])
def test_prefix_tokens_and_a_grid_that_is_not_square(batch: Tensor, prefix: int) -> None:
    torch.manual_seed(3)
    model = Tokens(prefix).eval()
    layer = propose_layers(model, (3, 20, 28))[0]
    # A mean of the patches reads the last map; a class token reads them through the attention alone.
    assert (layer.path, layer.prefix_tokens, layer.grid) == ("norm1" if prefix else "norm", prefix, (5, 7))

    def fold(tokens: Tensor) -> Tensor:
        return tokens[:, prefix:].reshape(2, 5, 7, 8).permute(0, 3, 1, 2)

    def usual(tokens: Tensor) -> Tensor:
        """One token taken off, and the rest made a square."""
        return tokens[:, 1:].reshape(2, 6, 6, 8).permute(0, 3, 1, 2)

    expected = naive(copy.deepcopy(model), batch, "norm1", 1, fold)
    torch.testing.assert_close(ours(model, batch, "norm1"), expected, rtol=1e-4, atol=1e-7)
    if prefix == 2:  # 36 are left by chance: a map of the wrong shape, with a prefix token in its corner
        assert naive(copy.deepcopy(model), batch, "norm1", 1, usual).shape[1:] == (6, 6)
    else:
        with pytest.raises(RuntimeError, match="invalid for input"):
            naive(copy.deepcopy(model), batch, "norm1", 1, usual)


def test_patches_behind_the_last_attention(batch: Tensor) -> None:
    torch.manual_seed(3)
    model = Tokens(1).eval()
    behind = heat_maps(model, batch, layer="norm", targets=1)
    assert float(behind.gradient_peak.max()) == 0.0
    assert float(behind.prefix_peak.min()) > 0  # only the class token reaches the answer
    assert propose_layers(model, (3, 20, 28))[0].path == "norm1"
    assert float(heat_maps(model, batch, targets=1).gradient_peak.min()) > 0
    fold = lambda t: t[:, 1:].reshape(2, 5, 7, 8).permute(0, 3, 1, 2)  # noqa: E731
    assert float(naive(copy.deepcopy(model), batch, "norm", 1, fold).abs().max()) == 0.0  # an empty map, and not a word


def test_swins_rows_columns_and_channels() -> None:
    torch.manual_seed(0)
    model = torchvision.models.SwinTransformer(
        patch_size=[4, 4], embed_dim=8, depths=[1, 1], num_heads=[1, 2], window_size=[4, 4], num_classes=3
    ).eval()
    x = torch.randn(1, 3, 32, 48)
    layer = find_layer(model, "norm", (3, 32, 48))
    assert (layer.layout, layer.grid) == ("NHWC", (4, 6))
    found = ours(model, x, "norm")
    expected = naive(copy.deepcopy(model), x, "norm", 1, lambda t: t.permute(0, 3, 1, 2))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-7)
    assert naive(copy.deepcopy(model), x, "norm", 1).shape != found.shape  # read as channels x height x width


def test_everything_is_given_back_when_the_forward_raises(batch: Tensor) -> None:
    model = net().train()
    model.conv.weight.requires_grad_(False)
    model.register_buffer("calls", torch.zeros(1))

    def fail(*_: object) -> None:
        model.calls += 1
        torch.rand(1)
        raise RuntimeError("the user's own error")

    layer = find_layer(model, "conv2", (3, 20, 28))
    handle = model.head.register_forward_hook(fail)
    random = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="the user's own error"):
        heat_maps(model, batch, layer=layer)
    assert torch.equal(torch.get_rng_state(), random)
    assert model.calls.item() == 0
    assert model.training
    assert not model.conv.weight.requires_grad
    assert model.conv2.weight.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    handle.remove()
    assert not any(module._forward_hooks for module in model.modules())
    assert torch.is_grad_enabled()


def test_two_threads_at_once(batch: Tensor) -> None:
    model = net()
    pictures = [batch, batch.flip(3).repeat(3, 1, 2, 2)]
    expected = [ours(model, one, "relu:1") for one in pictures]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda n: ours(model, pictures[n % 2], "relu:1"), range(16)))
    for number, one in enumerate(found):
        torch.testing.assert_close(one, expected[number % 2], rtol=0, atol=0)
    assert not any(module._forward_hooks for module in model.modules())


def test_a_model_with_two_inputs_is_refused_in_words(batch: Tensor) -> None:
    class Two(Net):
        def forward(self, x: Tensor, other: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(x + other)

    with pytest.raises(ExplainError, match=r"does not accept|needs more than"):
        heat_maps(Two(), batch)

    class Fed(nn.Module):
        """How it is done in Python: the other input is held by a module around it."""

        def __init__(self, model: nn.Module, other: Tensor) -> None:
            super().__init__()
            self.model, self.other = model, other

        def forward(self, x: Tensor) -> Tensor:
            return self.model(x, self.other)

    torch.manual_seed(7)
    found = ours(Fed(Two().eval(), torch.zeros(1)), batch, "model.conv2")
    torch.testing.assert_close(found, ours(net(), batch, "conv2"), rtol=0, atol=0)
