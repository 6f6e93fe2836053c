"""Channels of a module as maps: equal to what a plain forward hook copies, else refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchvision import models

from inspector.architectures.targets import parse_target
from inspector.doctor.feature_maps import as_asked, map_features
from inspector.doctor.maps_asked import MapsAsked, Order, Side
from inspector.doctor.maps_report import FeatureMaps
from inspector.doctor.run import Wish
from inspector.errors import ExplainError, LayerNotSpatial, ModelError, NoSuchLayer
from inspector.feature_maps import feature_maps_of

PICTURE = torch.randn(2, 3, 12, 10, generator=torch.Generator().manual_seed(7))


class Pair(nn.Module):
    """Gives a map and its mean."""

    def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return x * 2, {"negative": -x}


class Net(nn.Module):
    """One ReLU for three calls, in place behind a convolution; one channel of the convolution is dead, one constant."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.again = nn.Conv2d(6, 6, 1)
        self.pair = Pair()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(6, 4)
        self.unused = nn.Conv2d(6, 6, 1)
        with torch.no_grad():
            for channel, bias in ((2, 0.0), (4, 1.5)):
                self.conv.weight[channel] = 0
                self.conv.bias[channel] = bias  # type: ignore[index]

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.again(self.relu(self.conv(x))))
        x, _ = self.pair(x)
        return self.head(self.pool(x).flatten(1))


@pytest.fixture
def net() -> Net:
    torch.manual_seed(3)
    return Net()


def hooked(model: nn.Module, module: nn.Module, *args: Tensor) -> tuple[list[Any], list[Any]]:
    """What each call of a module was given and gave, by torch's own hooks."""
    given: list[Any] = []
    gave: list[Any] = []

    def copied(value: Any) -> Any:
        return torch.utils._pytree.tree_map_only(Tensor, lambda tensor: tensor.clone(), value)

    before = module.register_forward_pre_hook(lambda _, args: given.append(copied(args)))
    after = module.register_forward_hook(lambda _, __, output: gave.append(copied(output)))
    model.eval()
    with torch.no_grad():
        model(*args)
    before.remove()
    after.remove()
    return given, gave


def maps(model: nn.Module, path: str, *args: Tensor, **asked: Any) -> FeatureMaps:
    return map_features(model, args or (PICTURE,), {}, MapsAsked(path=path, **asked), label="net")


def by_number(found: FeatureMaps) -> np.ndarray:
    return found.raw[np.argsort(found.shown)]


def test_a_convolution_gives_what_a_hook_sees_although_a_relu_behind_it_works_in_place(net: Net) -> None:
    _, gave = hooked(net, net.conv, PICTURE)
    assert float(gave[0].min()) < 0
    found = maps(net, "conv")
    np.testing.assert_array_equal(by_number(found), gave[0][0].numpy())
    assert found.shape == (2, 6, 12, 10) and found.axes.layout == "NCHW" and found.drawn == (12, 10)
    assert (found.zero, found.constant, found.not_finite) == ((2,), (4,), ())
    assert found.low == gave[0][0].min() and found.high == gave[0][0].max()


def test_each_call_of_a_module_has_its_own_and_the_last_is_meant_without_a_number(net: Net) -> None:
    given, gave = hooked(net, net.relu, PICTURE)
    assert len(gave) == 2 and not torch.equal(gave[0], gave[1])
    for time, place in ((1, 0), (2, 1), (None, 1)):
        found = maps(net, "relu", time=time)
        assert (found.time, found.calls) == (place + 1, 2)
        np.testing.assert_array_equal(by_number(found), gave[place][0].numpy())
    # What went in was changed in place afterwards.
    found = maps(net, "relu", time=1, side=Side.INPUT)
    np.testing.assert_array_equal(by_number(found), given[0][0][0].numpy())
    assert float(found.raw.min()) < 0


def test_one_of_several_tensors_of_a_nested_answer(net: Net) -> None:
    _, gave = hooked(net, net.pair, PICTURE)
    for tensor, expected in ((0, gave[0][0]), (1, gave[0][1]["negative"])):
        found = maps(net, "pair", tensor=tensor)
        assert found.tensors == 2
        np.testing.assert_array_equal(by_number(found), expected[0].numpy())
    with pytest.raises(NoSuchLayer, match="pair gives 2 tensors; there is no number 2"):
        maps(net, "pair", tensor=2)


def test_the_strongest_variance_comes_first_and_no_more_than_asked(net: Net) -> None:
    _, gave = hooked(net, net.conv, PICTURE)
    spread = gave[0][0].double().flatten(1).var(1, correction=0).numpy()
    found = maps(net, "conv", most=3)
    assert found.shown == tuple(np.argsort(-spread, kind="stable")[:3]) and found.raw.shape == (3, 12, 10)
    assert maps(net, "conv", order=Order.NUMBER, most=3).shown == (0, 1, 2)
    assert len(found.channels) == 6


def test_values_that_are_not_finite_are_told_and_leave_the_range_alone(net: Net) -> None:
    with torch.no_grad():
        net.conv.bias[1] = float("nan")  # type: ignore[index]
    found = maps(net, "conv")
    assert found.not_finite == (1,) and found.channels[1].minimum is None and found.shown[-1] == 1
    assert found.low is not None and np.isfinite(found.low)


def test_the_model_is_left_as_it_was(net: Net) -> None:
    net.train()
    net.head.eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    maps(net, "conv")
    assert net.training and net.conv.training and not net.head.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())


def test_large_maps_are_averaged_and_say_so() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 1))
    picture = torch.randn(1, 1, 256, 64)
    found = maps(net, "0", picture)
    whole = net(picture)[0].detach()
    assert found.axes.grid == (256, 64) and found.drawn == (128, 64)
    np.testing.assert_allclose(by_number(found), whole.reshape(2, 128, 2, 64).mean(2).numpy(), atol=1e-6)
    assert found.high == float(whole.max())


def test_lines_of_a_network_over_time() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(2, 5, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(5, 2))
    wave = torch.randn(1, 2, 30)
    _, gave = hooked(net, net[0], wave)
    found = maps(net, "0", wave)
    assert found.axes.layout == "NCL" and found.axes.grid == (1, 28)
    np.testing.assert_array_equal(by_number(found)[:, 0], gave[0][0].numpy())


@pytest.mark.parametrize(
    ("path", "asked", "error", "says"),
    [
        ("head", {}, LayerNotSpatial, "head gives 2x4: no height and width"),
        ("pool", {}, LayerNotSpatial, "pool gives 2x6x1x1: one value for each channel"),
        ("unused", {}, NoSuchLayer, "unused is not called by this pass"),
        ("relu", {"time": 3}, NoSuchLayer, "relu is called 2 times in this pass; there is no call 3"),
        ("cnv", {}, NoSuchLayer, "no module 'cnv'. Close: conv"),
    ],
)
def test_what_is_no_picture_is_refused_in_words(
    net: Net, path: str, asked: dict[str, Any], error: type[ExplainError], says: str
) -> None:
    with pytest.raises(error, match=says):
        maps(net, path, **asked)


def test_axes_that_nobody_can_know_are_refused() -> None:
    tokens = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    with pytest.raises(LayerNotSpatial, match="1 gives 1x9x8: which axis holds the channels"):
        maps(tokens, "1", torch.randn(1, 9, 8))
    windows = nn.Sequential(nn.Unflatten(0, (2, 2)), nn.Flatten(0, 1), nn.Conv2d(3, 2, 1))
    with pytest.raises(LayerNotSpatial, match="which axis is the batch"):
        maps(windows, "0", torch.randn(4, 3, 5, 5))
    with pytest.raises(ModelError, match="fails in 0, so nothing is pictured"):
        maps(nn.Sequential(nn.Conv2d(3, 2, 1)), "0", torch.randn(1, 4, 5, 5))
    with pytest.raises(LayerNotSpatial, match="by shapes alone"):
        maps(nn.Conv2d(3, 2, 1, device="meta"), "", torch.randn(1, 3, 5, 5, device="meta"))


def test_tokens_lie_as_the_patches_of_their_transformer() -> None:
    torch.manual_seed(0)
    net = models.VisionTransformer(
        image_size=48, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=16, num_classes=3
    )
    picture = torch.randn(1, 3, 48, 48)
    layer = "encoder.layers.encoder_layer_1"
    wish = Wish(tensors={"picture": picture}, input_from="noise")
    _, gave = hooked(net, net.get_submodule(layer), picture)
    found = feature_maps_of(net, "vit", None, wish, MapsAsked(path=layer))
    assert found.axes.layout == "NLC" and found.axes.grid == (6, 6) and found.axes.prefix_tokens == 1
    expected = gave[0][0, 1:].reshape(6, 6, 16).permute(2, 0, 1)
    np.testing.assert_allclose(by_number(found), expected.numpy(), atol=1e-5)
    given = feature_maps_of(net, "vit", None, wish, MapsAsked(path=layer, side=Side.INPUT))
    assert given.axes == found.axes and not np.array_equal(given.raw, found.raw)
    # Attention's table of weights has no places.
    with pytest.raises(LayerNotSpatial):
        feature_maps_of(net, "vit", None, wish, MapsAsked(path="heads"))


def test_channels_last_are_read_so() -> None:
    torch.manual_seed(0)
    cube = models.swin_transformer.SwinTransformer([4, 4], 8, [1, 1], [2, 2], [2, 2], num_classes=3)
    net = models.swin_transformer.SwinTransformer([4, 4], 12, [1, 1], [2, 2], [2, 2], num_classes=3)
    picture = torch.randn(1, 3, 32, 32)
    wish = Wish(tensors={"picture": picture})
    _, gave = hooked(net, net.get_submodule("features.1"), picture)
    found = feature_maps_of(net, "swin", None, wish, MapsAsked(path="features.1"))
    assert found.axes.layout == "NHWC" and found.axes.grid == (8, 8)
    np.testing.assert_allclose(by_number(found), gave[0][0].permute(2, 0, 1).numpy(), atol=1e-5)
    # Eight channels of eight by eight: both readings would do.
    with pytest.raises(LayerNotSpatial, match="1x8x8x8: which axis holds the channels"):
        feature_maps_of(cube, "swin", None, wish, MapsAsked(path="features.1"))


def test_a_known_network_without_weights_is_refused() -> None:
    spec = parse_target("torchvision/squeezenet1_1").spec
    net = models.squeezenet1_1(weights=None).to("meta")
    with pytest.raises(LayerNotSpatial, match="there are no weights"):
        feature_maps_of(net, "s", spec, Wish(shape=(3, 64, 64)), MapsAsked(path="features.0"))


def test_calls_are_written_as_explain_writes_them() -> None:
    assert as_asked("relu:0", known=["relu"]) == ("relu", 1)
    assert as_asked("relu", known=["relu"]) == ("relu", None)
    assert as_asked("odd:0", known=["odd:0"]) == ("odd:0", None)
