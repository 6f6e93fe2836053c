"""CIFAR's ResNets and VGGs and the U-Net, against models assembled here from torchvision's parts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

from inspector.architectures.build import build_model
from inspector.architectures.targets import parse_spec, target_of
from inspector.architectures.types import Candidate
from inspector.errors import UsageError

See = Callable[..., Candidate | None]


def renamed(model: nn.Module) -> dict[str, torch.Tensor]:
    """torchvision's names as kuangliu's files have them."""
    return {
        name.replace("downsample", "shortcut").replace("fc.", "linear."): tensor
        for name, tensor in model.state_dict().items()
    }


class Holder(nn.Module):
    """Shows a state dict as its own."""

    def __init__(self, state: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.held = state

    def state_dict(self, *args: object, **kwargs: object) -> dict[str, torch.Tensor]:  # type: ignore[override]
        return self.held


@pytest.mark.parametrize(
    ("block", "blocks", "label"),
    [
        (
            BasicBlock,
            [2, 1, 3, 1],
            "cifar/resnet_wide?num_classes=7&in_channels=3&blocks=2,1,3,1&width=64,64,128,256,512",
        ),
        (
            Bottleneck,
            [1, 2, 1, 1],
            "cifar/resnet_bottleneck?num_classes=7&in_channels=3&blocks=1,2,1,1&inner=64,128,256,512"
            "&width=64,256,512,1024,2048",
        ),
    ],
)
def test_four_stages_answer_as_torchvisions_resnet_without_its_pooling(
    block: type[BasicBlock | Bottleneck], blocks: list[int], label: str, recognised: See
) -> None:
    torch.manual_seed(0)
    model = ResNet(block, blocks, num_classes=7)
    model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    model.maxpool = nn.Identity()  # type: ignore[assignment]
    found = recognised(Holder(renamed(model)))
    assert found is not None and found.exact and found.spec.label == label
    assert [t.name for t in target_of(found.spec).tensors] == list(renamed(model))
    built = build_model(found.spec)
    built.load_state_dict(renamed(model), strict=True)
    picture = torch.randn(2, 3, 32, 32)
    with torch.inference_mode():
        assert torch.allclose(built(picture), model.eval()(picture), atol=1e-5)


def test_option_a_has_no_tensors_and_pads_on_both_sides(check: Callable[..., Candidate]) -> None:
    label = "cifar/resnet?num_classes=10&in_channels=1&blocks=2&width=4,4,8,16"
    model = build_model(parse_spec(label))
    assert not any("shortcut" in name for name in model.state_dict())
    check(model, label, (2, 1, 32, 32))
    block = model.get_submodule("layer2.0")
    with torch.no_grad():
        for name, parameter in block.named_parameters():
            parameter.fill_(0.0 if name.startswith("conv") else 0.5)
        for norm in (block.bn1, block.bn2):
            norm.bias.zero_()
    # With the convolutions at zero the block is its shortcut: 4 channels become 8, two zeros on either side.
    x = torch.rand(1, 4, 6, 6)
    wanted = torch.zeros(1, 8, 3, 3)
    wanted[:, 2:6] = x[:, :, ::2, ::2]
    with torch.inference_mode():
        assert torch.equal(block(x), wanted)


def test_option_b_is_seen_by_its_shortcuts(check: Callable[..., Candidate]) -> None:
    label = "cifar/resnet?num_classes=3&in_channels=3&blocks=1,2,1&shortcut=True&width=4,4,8,16"
    check(build_model(parse_spec(label)), label, (1, 3, 32, 32))


def unet_by_hand(*, transposed: bool) -> dict[str, tuple[int, ...]]:
    """Shapes for widths 4, 8, 16 with 2 channels and 3 classes; batch norms by their five tensors."""
    rows: dict[str, tuple[int, ...]] = {}

    def double(name: str, inner: int, middle: int, out: int) -> None:
        for i, shape in ((0, (middle, inner)), (3, (out, middle))):
            rows[f"{name}.{i}.weight"] = (*shape, 3, 3)
            for leaf in ("weight", "bias", "running_mean", "running_var"):
                rows[f"{name}.{i + 1}.{leaf}"] = (shape[0],)
            rows[f"{name}.{i + 1}.num_batches_tracked"] = ()

    double("inc.double_conv", 2, 4, 4)
    double("down1.maxpool_conv.1.double_conv", 4, 8, 8)
    # Bilinear upsampling keeps the channels, so the lowest level has half of what it had otherwise.
    low = 16 if transposed else 8
    double("down2.maxpool_conv.1.double_conv", 8, low, low)
    if transposed:
        rows |= {"up1.up.weight": (16, 8, 2, 2), "up1.up.bias": (8,)}
        double("up1.conv.double_conv", 16, 8, 8)
        rows |= {"up2.up.weight": (8, 4, 2, 2), "up2.up.bias": (4,)}
        double("up2.conv.double_conv", 8, 4, 4)
    else:
        double("up1.conv.double_conv", 16, 8, 4)
        double("up2.conv.double_conv", 8, 4, 4)
    return rows | {"outc.conv.weight": (3, 4, 1, 1), "outc.conv.bias": (3,)}


@pytest.mark.parametrize("transposed", [True, False])
def test_a_unet_is_solved_built_and_run(transposed: bool, recognised: See) -> None:
    rows = unet_by_hand(transposed=transposed)
    found = recognised(Holder({name: torch.zeros(shape) for name, shape in rows.items()}))
    assert found is not None and found.exact and found.spec.name == "unet"
    assert (found.spec.in_channels, found.spec.num_classes) == (2, 3)
    assert list(rows) == [t.name for t in target_of(found.spec).tensors]
    model = build_model(found.spec)
    assert {name: tuple(t.shape) for name, t in model.state_dict().items()} == rows
    with torch.inference_mode():
        assert model(torch.randn(1, 2, 30, 21)).shape == (1, 3, 30, 21)


def test_widths_that_do_not_fit_together_are_not_built(recognised: See) -> None:
    label = "milesial/unet?num_classes=3&in_channels=2&depth=1&down=4,8&joined=9&middle=4&transposed=True&up=4"
    with pytest.raises(UsageError, match="up1 joins 9 channels"):
        build_model(parse_spec(label))


def test_a_small_vgg(check: Callable[..., Candidate], recognised: See) -> None:
    layers: list[nn.Module] = []
    before = 3
    for width in (5, 6, 0, 7, 0):
        if not width:
            layers.append(nn.MaxPool2d(2, 2))
            continue
        layers += [nn.Conv2d(before, width, 3, padding=1)]
        layers += [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        before = width
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(*layers, nn.AvgPool2d(1, 1))
            self.classifier = nn.Linear(7 * 64, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            answer: torch.Tensor = self.classifier(self.features(x).flatten(1))
            return answer

    found = recognised(Net())
    assert found is not None and (found.spec.library, found.spec.name, found.exact) == ("cifar", "vgg", True)
    check(Net(), found.spec.label, (2, 3, 32, 32))


def test_strangers_are_not_named(recognised: See) -> None:
    mlp = nn.Sequential(*[nn.Linear(8, 8) for _ in range(12)])
    gan = nn.Sequential(
        *[nn.Sequential(nn.ConvTranspose2d(8, 8, 4, 2, 1), nn.BatchNorm2d(8), nn.ReLU()) for _ in range(5)]
    )
    assert recognised(mlp) is None and recognised(gan) is None

    class Detector(nn.Module):
        """Some stages with a ResNet's names, and more that no ResNet has."""

        def __init__(self) -> None:
            super().__init__()
            self.layer1 = nn.Sequential(BasicBlock(24, 24))
            self.neck = nn.ModuleList([nn.Conv2d(24, 24, 3) for _ in range(8)])
            self.linear = nn.Linear(24, 4)

    assert recognised(Detector()) is None
