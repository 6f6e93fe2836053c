"""Cells are drawn where they look: the centres of receptive fields, held against gradients, which know no strides."""

from __future__ import annotations

import json
import types
from dataclasses import asdict

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from inspector.cam.centres import operations
from inspector.cam.engine.maps import heat_maps
from inspector.cam.explain import explain
from inspector.cam.exporting.request import command_line, request_for
from inspector.cam.layers.proposals import find_layer, propose_layers
from inspector.cam.report import Centres, LayerProposal, Options, Preprocessing
from inspector.render.json import as_json

PLAIN = Preprocessing(
    resize=None, crop=None, mean=(0.0,) * 3, std=(1.0,) * 3, channels=3, interpolation="bilinear", source="",
    assumed=False,
)  # fmt: skip


class Same(nn.Conv2d):
    """Padding as TensorFlow has it: the odd pixel below and to the right."""

    def forward(self, x: Tensor) -> Tensor:
        pads: list[int] = []
        for side, kernel, stride in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True):
            extra = max((-(-side // stride) - 1) * stride + kernel - side, 0)
            pads += [extra // 2, extra - extra // 2]
        return functional.conv2d(functional.pad(x, pads), self.weight, self.bias, self.stride, 0, self.dilation)


class Residual(nn.Module):
    """Two ways to one place, or to two."""

    def __init__(self, short: nn.Module) -> None:
        super().__init__()
        self.long, self.short = nn.Conv2d(4, 4, 3, 2, 1), short

    def forward(self, x: Tensor) -> Tensor:
        return self.long(x) + self.short(x)


class Joined(nn.Module):
    """Branches of one grid behind one another."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], dim=1)


class Phases(nn.Module):
    """Rows and columns of either parity behind one another."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], dim=1)


def headed(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LazyLinear(3))


NETWORKS = {
    "padded strides": lambda: [nn.Conv2d(3, 4, 7, 2, 3), nn.AvgPool2d(3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1)],
    "no padding": lambda: [nn.Conv2d(3, 4, 5, 2), nn.Conv2d(4, 4, 3, 2)],
    "even kernels": lambda: [nn.Conv2d(3, 4, 4, 2, 1), nn.Conv2d(4, 4, 2, 2)],
    "dilations": lambda: [nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 1, 2, dilation=2)],
    "oblong": lambda: [nn.Conv2d(3, 4, (3, 5), 2, (1, 0))],
    "padding of one side": lambda: [Same(3, 4, 3, 2), Same(4, 4, 5, 2), nn.ZeroPad2d((0, 2, 3, 0)), nn.Conv2d(4, 4, 3)],
    "rounded up": lambda: [nn.Conv2d(3, 4, 3, 2, 1), nn.AvgPool2d(3, 2, ceil_mode=True)],
    "enlarged": lambda: [nn.Conv2d(3, 4, 3, 4, 1), nn.ConvTranspose2d(4, 4, 4, 2, 1)],
    "residual": lambda: [nn.Conv2d(3, 4, 3, 1, 1), Residual(nn.Conv2d(4, 4, 1, 2))],
    "joined": lambda: [nn.Conv2d(3, 4, 3, 2, 1), Joined(nn.Conv2d(4, 4, 3, 2, 1), nn.Conv2d(4, 4, 5, 2, 2))],
    "every second pixel": lambda: [nn.Conv2d(3, 4, 3, 2, 1), Phases(), nn.Conv2d(16, 4, 1)],
}  # fmt: skip


def looked_at(layer: nn.Module, shape: tuple[int, int], cell: tuple[int, int]) -> tuple[float, float]:
    """The middle of the pixels that a cell depends on, (down, across): of gradients where all weights are alike."""
    with torch.no_grad():
        for weight in layer.parameters():
            weight.fill_(1.0)
    x = torch.zeros(1, 3, *shape, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x)[0, :, cell[0], cell[1]].sum(), [x])
    rows, columns = gradient[0, 0].nonzero().T
    return float(rows.min() + rows.max() + 1) / 2, float(columns.min() + columns.max() + 1) / 2


@pytest.mark.parametrize("name", NETWORKS)
def test_a_cell_is_said_to_look_where_its_gradient_lies(name: str) -> None:
    model = headed(*NETWORKS[name]()).eval()
    shape = (72, 88)
    model(torch.zeros(1, 3, *shape))
    layer = find_layer(model, "0", (3, *shape))
    assert layer.centres is not None
    for cell in ((layer.grid[0] // 2, layer.grid[1] // 2), (layer.grid[0] // 2 - 1, layer.grid[1] // 2 + 1)):
        said = tuple(f + s * c for f, s, c in zip(layer.centres.first, layer.centres.step, cell, strict=True))
        # What is enlarged repeats a cell; what it looks at moves in steps.
        assert said == pytest.approx(looked_at(model[0], shape, cell), abs=1.5 if name == "enlarged" else 1e-6)


@pytest.mark.parametrize(
    ("name", "first", "step"),
    [
        ("resnet18", 0.5, 32),
        ("mobilenet_v3_small", 0.5, 32),
        ("shufflenet_v2_x0_5", 0.5, 32),
        ("squeezenet1_1", 15.5, 16),
        ("densenet121", 14.5, 32),
        ("swin_t", 16, 32),
        ("convnext_tiny", 16, 32),
    ],
)
def test_known_architectures(name: str, first: float, step: float) -> None:
    model = torchvision.models.get_model(name, weights=None).eval()
    layer = propose_layers(model, (3, 224, 160))[0]
    assert layer.centres == Centres(first=(first, first), step=(step, step))


def test_an_activation_moves_nothing_whatever_the_installed_torch_tags_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "torch", types.SimpleNamespace(Tag=types.SimpleNamespace(pointwise=object())))
    for activation in ("hardtanh_", "leaky_relu", "elu", "silu", "softplus", "hardsigmoid", "clamp_min", "gelu"):
        rule = operations.rule_of(getattr(torch.ops.aten, activation).default)
        assert rule is operations.rule_of(torch.ops.aten.hardswish.default) is not None, activation


def test_patches_of_a_transformer_look_at_their_own_middle() -> None:
    model = torchvision.models.VisionTransformer(64, 16, 2, 2, 16, 32, num_classes=3).eval()
    layer = propose_layers(model, (3, 64, 64))[0]
    assert (layer.layout, layer.prefix_tokens) == ("NLC", 1)
    assert layer.centres == Centres(first=(8.0, 8.0), step=(16.0, 16.0))


class Turned(nn.Module):
    """Something that moves places about and is not known."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :, torch.randperm(x.shape[2])]


@pytest.mark.parametrize(
    "odd",
    [
        Residual(nn.AvgPool2d(2)),
        Joined(nn.Conv2d(4, 4, 3, 2, 1), nn.MaxPool2d(2)),
        nn.Sequential(nn.Conv2d(4, 4, 3, 2, 1), Turned()),
    ],
)
def test_ways_that_disagree_and_unknown_steps_move_nothing(odd: nn.Module) -> None:
    model = headed(nn.Conv2d(3, 4, 3, 2, 1), odd).eval()
    x = torch.rand(1, 3, 64, 64)
    model(x)
    layer = find_layer(model, "0", (3, 64, 64))
    assert layer.centres is None
    own, evenly = (heat_maps(model, x, layer=layer, options=Options(aligned=not e)).heat for e in (False, True))
    assert torch.equal(own, evenly)


def test_a_layout_that_somebody_gave_is_not_moved() -> None:
    model = headed(nn.Conv2d(3, 16, 3, 4, 1)).eval()
    model(torch.zeros(1, 3, 64, 64))
    assert find_layer(model, "0", (3, 64, 64)).centres is not None
    assert find_layer(model, "0=NHWC", (3, 64, 64)).centres is None


class Spot(nn.Module):
    """The answer is one cell of a map whose cells look at 0.5, 8.5, ...; spread evenly they would be at 4, 12, ..."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Sequential(*(nn.Conv2d(c, 4, 3, 2, 1) for c in (3, 4, 4)))

    def forward(self, x: Tensor) -> Tensor:
        cell = self.map(x)[:, :, 4, 3].square().sum(dim=1)
        return torch.stack([cell, -cell], dim=1)


def spot() -> tuple[Spot, LayerProposal, Tensor]:
    torch.manual_seed(3)
    model = Spot().eval()
    return model, find_layer(model, "map", (3, 64, 64)), torch.rand(1, 3, 64, 64)


def test_heat_lies_where_the_answer_came_from_and_not_half_a_cell_below() -> None:
    model, layer, x = spot()
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(model(x)[0, 0], [x])
    rows, columns = gradient[0].abs().sum(dim=0).nonzero().T
    middle = float(rows.min() + rows.max() + 1) / 2, float(columns.min() + columns.max() + 1) / 2
    assert middle == (32.5, 24.5)
    own, evenly = (
        heat_maps(model, x.detach(), layer=layer, targets=0, method="hires-cam", options=Options(aligned=not e))
        for e in (False, True)
    )
    assert torch.equal(own.raw, evenly.raw)
    places = torch.arange(64) + 0.5
    centres = [(float((h.sum(dim=1) * places).sum() / h.sum()), float((h.sum(dim=0) * places).sum() / h.sum()))
               for h in (own.heat[0], evenly.heat[0])]  # fmt: skip
    assert centres[0] == pytest.approx(middle, abs=1e-4)
    assert centres[1] == pytest.approx((36, 28), abs=1e-4)


def test_the_mean_with_mirrored_copies_lies_about_the_middle() -> None:
    model, _, _ = spot()
    x = torch.rand(1, 3, 64, 64)
    picture = Image.fromarray((x[0].permute(1, 2, 0).numpy() * 255).astype(np.uint8))
    made = explain(
        model,
        picture,
        preprocessing=PLAIN,
        layer="map",
        target=0,
        method="hires-cam",
        options=Options(augmented=True, aligned=True),
    )
    assert made.layer.centres == Centres(first=(0.5, 4.0), step=(8.0, 8.0))
    # Column 3 and its mirror image, 7 - 3.
    assert made.raw[4].nonzero()[0].tolist() == [3, 4]


def test_the_manifest_and_the_command_say_how_cells_are_placed() -> None:
    model, _, x = spot()
    picture = Image.fromarray((x[0].permute(1, 2, 0).numpy() * 255).astype(np.uint8))
    made = explain(model, picture, preprocessing=PLAIN, layer="map", options=Options(aligned=True))
    said = json.loads(as_json({"explanation": made}))["explanation"]
    assert said["layer"]["centres"] == {"first": [0.5, 0.5], "step": [8.0, 8.0]}
    assert said["options"]["aligned"] is True
    asked = request_for(made, file="f", picture="p", colour_map="viridis", opacity=0.5, threads=1)
    assert "--aligned" in command_line(asked, "out")
    assert asdict(made.layer)["centres"]["first"] == (0.5, 0.5)
