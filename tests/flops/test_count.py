"""MACs by module: against arithmetic done by hand, and against the figures that torchvision publishes."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torchvision.models import get_model_weights
from torchvision.ops import DeformConv2d

from inspector.architectures.types import ArchitectureSpec
from inspector.errors import ModelError, UsageError
from inspector.flops.count import count_costs, count_model_costs
from inspector.flops.report import CostReport, ModuleCost


class Applied(nn.Module):
    """A module that does what a function says."""

    def __init__(self, function: Callable[[Tensor], Tensor], *inner: nn.Module) -> None:
        super().__init__()
        self.inner = nn.ModuleList(inner)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, *self.inner)


def count(model: nn.Module, *shape: int) -> CostReport:
    return count_model_costs(model.eval(), shape, label="a model", second_opinion=False)


def module(report: CostReport, path: str) -> ModuleCost:
    return next(m for m in report.modules if m.path == path)


# Each expected figure is the multiply-adds written out: outputs x terms per output.
BY_HAND = [
    ("conv", nn.Conv2d(3, 8, 3, padding=1, bias=True), (2, 3, 16, 16), 2 * 8 * 16 * 16 * 3 * 3 * 3),
    ("strided conv", nn.Conv2d(3, 8, 3, stride=2), (1, 3, 17, 17), 8 * 8 * 8 * 27),
    ("grouped conv", nn.Conv2d(8, 16, 3, groups=4), (1, 8, 10, 10), 16 * 8 * 8 * 2 * 9),
    ("depthwise conv", nn.Conv2d(8, 8, 5, groups=8), (1, 8, 10, 10), 8 * 6 * 6 * 25),
    ("conv1d", nn.Conv1d(4, 6, 3), (1, 4, 12), 6 * 10 * 12),
    ("conv3d", nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4), 3 * 27 * 2 * 8),
    # Transposed: every input element meets the whole kernel of its group.
    ("transposed conv", nn.ConvTranspose2d(4, 6, 3, stride=2), (1, 4, 8, 8), 8 * 8 * 4 * 6 * 9),
    ("linear", nn.Linear(64, 32), (4, 64), 4 * 32 * 64),
    ("linear on tokens", nn.Linear(64, 32, bias=False), (4, 7, 64), 4 * 7 * 32 * 64),
    ("lstm", nn.LSTM(8, 16, num_layers=2, batch_first=True), (2, 10, 8), 20 * 64 * (8 + 16) + 20 * 64 * (16 + 16)),
    ("gru", nn.GRU(8, 16), (10, 2, 8), 20 * 48 * (8 + 16)),
    ("functional conv", Applied(lambda x: functional.conv2d(x, x.new_empty(5, 3, 3, 3))), (1, 3, 8, 8), 5 * 36 * 27),
    ("functional linear", Applied(lambda x: functional.linear(x, x.new_empty(9, 6))), (4, 6), 4 * 9 * 6),
    ("matmul", Applied(lambda x: x @ x.mT), (5, 7), 5 * 5 * 7),
    ("bmm", Applied(lambda x: torch.bmm(x, x.mT)), (3, 5, 7), 3 * 5 * 5 * 7),
    ("baddbmm", Applied(lambda x: torch.baddbmm(x.new_empty(3, 5, 5), x, x.mT)), (3, 5, 7), 3 * 5 * 5 * 7),
    ("addbmm", Applied(lambda x: torch.addbmm(x.new_empty(5, 5), x, x.mT)), (3, 5, 7), 3 * 5 * 5 * 7),
    ("einsum", Applied(lambda x: torch.einsum("bik,bjk->bij", x, x)), (3, 5, 7), 3 * 5 * 5 * 7),
    ("matrix by vector", Applied(lambda x: torch.mv(x, x[0])), (5, 7), 35),
    ("dot", Applied(lambda x: torch.dot(x, x)), (11,), 11),
    (
        "attention function",
        Applied(lambda x: functional.scaled_dot_product_attention(x, x, x)),
        (2, 4, 10, 16),
        2 * 2 * 4 * 10 * 10 * 16,
    ),
    # In-projection 3·E·E, two products of L·L·E over all heads, out-projection E·E, for each of the batch.
    (
        "multi-head attention",
        Applied(lambda x, a: a(x, x, x)[0], nn.MultiheadAttention(32, 4, batch_first=True)),
        (2, 10, 32),
        2 * (10 * 32 * 96 + 2 * 10 * 10 * 32 + 10 * 32 * 32),
    ),
    (
        "encoder layer",
        nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True),
        (2, 10, 32),
        2 * (10 * 32 * 96 + 2 * 10 * 10 * 32 + 10 * 32 * 32 + 2 * 10 * 32 * 64),
    ),
    # x·W for each output and y, then the product with y.
    (
        "bilinear",
        Applied(lambda x, b: b(x, x.new_empty(3, 7)), nn.Bilinear(5, 7, 11)),
        (3, 5),
        3 * 11 * 5 * 7 + 3 * 11 * 7,
    ),
]


@pytest.mark.parametrize(("model", "shape", "macs"), [c[1:] for c in BY_HAND], ids=[c[0] for c in BY_HAND])
def test_macs_are_those_counted_by_hand(model: nn.Module, shape: tuple[int, ...], macs: int) -> None:
    report = count(model, *shape)
    assert report.macs == macs
    assert report.flops == 2 * macs
    assert report.uncounted == ()


def test_attention_costs_the_same_with_gradients_off_and_in_eval_mode() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True).eval().requires_grad_(False)
    assert count(layer, 2, 10, 32).macs == 2 * (10 * 32 * 96 + 2 * 10 * 10 * 32 + 10 * 32 * 32 + 2 * 10 * 32 * 64)


def test_work_is_given_to_the_innermost_running_module_and_summed_upwards() -> None:
    block = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Conv2d(4, 5, 1))
    model = Applied(lambda x, b: b(x).flatten(2) @ x.flatten(2).mT, block)
    report = count(model, 1, 3, 6, 6)
    first, second, product = 36 * 12, 36 * 20, 5 * 3 * 36
    assert [m.path for m in report.modules] == ["", "inner.0", "inner.0.0", "inner.0.1", "inner.0.2"]
    assert [m.own_macs for m in report.modules] == [product, 0, first, 0, second]
    assert [m.macs for m in report.modules] == [first + second + product, first + second, first, 0, second]
    assert [m.depth for m in report.modules] == [0, 2, 3, 3, 3]
    assert module(report, "inner.0.2").input_shape == (1, 4, 6, 6)
    assert module(report, "inner.0.2").output_shape == (1, 5, 6, 6)
    assert module(report, "inner.0").parameters == 12 + 4 + 20 + 5
    # Leaf outputs: two convolutions and the activation, float32.
    assert report.activation_nbytes == 4 * 36 * (4 + 4 + 5)


def test_a_shared_linear_is_one_row_with_two_calls_and_its_parameters_once() -> None:
    shared = nn.Linear(8, 8)
    report = count(nn.Sequential(shared, nn.ReLU(), shared), 4, 8)
    row = module(report, "0")
    assert (row.calls, row.macs, row.parameters) == (2, 2 * 4 * 64, 72)
    assert report.parameters == 72
    assert sum(m.own_macs for m in report.modules) == report.macs


def test_operators_without_a_formula_are_listed_apart_from_element_wise_work() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.offset = nn.Conv2d(3, 18, 3)
            self.deform = DeformConv2d(3, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            spectrum = torch.fft.rfft2(x).abs()
            sampled = functional.grid_sample(x, x.new_empty(1, 4, 4, 2), align_corners=False)
            return self.deform(x, self.offset(x)).mean() + spectrum.mean() + sampled.mean()

    report = count(Odd(), 1, 3, 16, 16)
    assert report.macs == 18 * 14 * 14 * 27
    assert dict(report.uncounted) == {"aten::_fft_r2c": 1, "aten::grid_sampler_2d": 1, "torchvision::deform_conv2d": 1}
    assert dict(report.other_operations) == {"aten::abs": 1, "aten::mean": 3, "aten::add": 2}


def test_views_and_copies_are_no_operations() -> None:
    report = count(Applied(lambda x: torch.cat([x.permute(0, 2, 3, 1).reshape(1, -1)] * 2).clone()), 1, 3, 4, 4)
    assert (report.macs, report.uncounted, report.other_operations) == (0, (), ())


def test_the_model_is_left_exactly_as_it_was() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    report = count_model_costs(model, (1, 3, 8, 8), label="a model")
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert all(m.training and not m._forward_hooks and not m._forward_pre_hooks for m in model.modules())
    assert report.second_opinions[0].macs is not None


def test_a_wrong_number_of_channels_names_the_layer_and_both_shapes() -> None:
    spec = ArchitectureSpec(library="torchvision", name="resnet18")
    with pytest.raises(ModelError, match=r"conv1 \(Conv2d, weight 64x3x7x7\), which got 1x1x64x64") as caught:
        count_costs(spec, (1, 64, 64))
    assert "torchvision/resnet18 does not take an input of 1x1x64x64" in caught.value.says
    assert caught.value.hint == "conv1 takes 3 channels, not 1."


def test_a_picture_too_small_names_the_layer_where_nothing_is_left() -> None:
    spec = ArchitectureSpec(library="torchvision", name="alexnet")
    with pytest.raises(ModelError, match=r"forward pass failed in features\.12 \(MaxPool2d\), which got 1x256x1x1"):
        count_costs(spec, (3, 31, 31))


def test_a_wrong_size_for_a_vision_transformer_says_what_was_expected() -> None:
    spec = ArchitectureSpec(library="torchvision", name="vit_b_32")
    with pytest.raises(ModelError, match="Expected 224 but got 256"):
        count_costs(spec, (3, 256, 256))


def test_a_detector_is_refused_because_its_work_depends_on_the_picture() -> None:
    spec = ArchitectureSpec(library="torchvision", name="fasterrcnn_mobilenet_v3_large_320_fpn")
    with pytest.raises(ModelError, match=r"depends on what is in its input: aten::nonzero .* in rpn"):
        count_costs(spec, (3, 96, 96))


@pytest.mark.parametrize("look", [lambda x: x[x > 0], lambda x: x.unique(), lambda x: x * x.sum().item()])
def test_what_depends_on_values_is_named_instead_of_the_input_being_blamed(look: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(ModelError, match=r"The cost of a model depends on what is in its input: .*aten::"):
        count(Applied(look), 1, 3, 4, 4)


def test_hooks_are_gone_after_a_failure() -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    with pytest.raises(ModelError, match="0 \\(Linear, weight 4x4\\), which got 1x5"):
        count(model, 1, 5)
    assert not model[0]._forward_pre_hooks


def test_an_input_without_elements_is_refused() -> None:
    with pytest.raises(UsageError, match="0x3x4x4 has no elements"):
        count(nn.Identity(), 0, 3, 4, 4)


def test_batch_multiplies_macs_and_adaptation_follows_the_spec() -> None:
    spec = ArchitectureSpec(library="torchvision", name="resnet18", num_classes=10, in_channels=1)
    one = count_costs(spec, (1, 64, 64), second_opinion=False)
    three = count_costs(spec, (1, 64, 64), batch=3, second_opinion=False)
    assert three.macs == 3 * one.macs
    assert module(one, "fc").macs == 512 * 10
    assert module(one, "conv1").macs == 64 * 32 * 32 * 49


# One of each kind of architecture: plain, residual, dense, depthwise, branches, transformer, shifted windows, tensors
# in the constructor (RegNet), and one whose published figure has a single digit.
PUBLISHED = [
    "alexnet",
    "resnet18",
    "densenet121",
    "mobilenet_v3_small",
    "shufflenet_v2_x0_5",
    "googlenet",
    "vit_b_32",
    "swin_t",
    "regnet_y_400mf",
    "convnext_tiny",
]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_macs_and_parameters_of_torchvision(name: str) -> None:
    weights = get_model_weights(name)["IMAGENET1K_V1"]
    size = weights.transforms().crop_size[0]
    report = count_costs(ArchitectureSpec(library="torchvision", name=name), (3, size, size), second_opinion=False)
    published = weights.meta["_ops"]
    # Within 1 %, or half of the third decimal that is published.
    assert math.isclose(report.macs / 1e9, published, rel_tol=0.01, abs_tol=0.0005)
    if name != "googlenet":  # its published parameters are without the two auxiliary classifiers
        assert report.parameters == weights.meta["num_params"]
    assert report.uncounted == ()
    assert sum(m.own_macs for m in report.modules) == report.macs
