"""torchvision's own constructors with odd arguments: identified with these, and built to the same outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn
from torchvision.models import VGG, ConvNeXt, DenseNet, VisionTransformer
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet
from torchvision.models.vgg import make_layers

from inspector.architectures.build import build_model
from inspector.architectures.families.specs import confirm_all
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_spec
from inspector.architectures.types import Candidate
from inspector.checkpoint.types import Checkpoint
from inspector.errors import UsageError
from inspector.flops.count import count_costs

Check = Callable[..., Candidate]
See = Callable[..., Candidate | None]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def test_a_resnet_of_other_depths(check: Check) -> None:
    model = ResNet(BasicBlock, [1, 3, 2, 1], num_classes=11)
    label = "torchvision/resnet?num_classes=11&in_channels=3&blocks=1,3,2,1&width=64,64,128,256,512"
    assert "This is a ResNet (1-3-2-1 blocks per stage" in check(model, label, (1, 3, 64, 64)).says


def test_a_resnet_of_other_groups_and_widths(check: Check) -> None:
    model = ResNet(Bottleneck, [1, 1, 2, 1], num_classes=3, groups=8, width_per_group=6)
    label = (
        "torchvision/resnet_bottleneck?num_classes=3&in_channels=3&blocks=1,1,2,1&inner=48,96,192,384"
        "&per_group=6,12,24,48&width=64,256,512,1024,2048"
    )
    check(model, label, (1, 3, 64, 64))


def test_a_narrow_resnet_on_one_channel_comes_back() -> None:
    label = "torchvision/resnet?num_classes=2&in_channels=1&blocks=1&width=8,8,12,20,28"
    model = build_model(parse_spec(label))
    with torch.inference_mode():
        assert model(torch.randn(1, 1, 64, 64)).shape == (1, 2)


def test_a_densenet(check: Check) -> None:
    model = DenseNet(growth_rate=6, block_config=(2, 3, 1), num_init_features=10, bn_size=3, num_classes=5)
    label = "torchvision/densenet?num_classes=5&in_channels=3&growth=6&inner=18&layers=2,3,1&stages=3&start=10,11,14"
    check(model, label, (1, 3, 64, 64))


def test_a_vgg(check: Check, recognised: See) -> None:
    model = VGG(make_layers([6, "M", 8, 10, "M", 12, "M"], batch_norm=True), num_classes=9, init_weights=False)
    model.classifier[0] = nn.Linear(12 * 49, 40)
    model.classifier[3] = nn.Linear(40, 30)
    model.classifier[6] = nn.Linear(30, 9)
    found = recognised(model)
    assert found is not None and (found.spec.name, found.exact) == ("vgg", True)
    check(model, found.spec.label, (1, 3, 64, 64))


def test_a_convnext(check: Check) -> None:
    stages = [CNBlockConfig(12, 16, 2), CNBlockConfig(16, 40, 1), CNBlockConfig(40, None, 3)]
    model = ConvNeXt(stages, num_classes=6)
    label = "torchvision/convnext?num_classes=6&in_channels=3&blocks=2,1,3&stages=3&width=12,16,40"
    check(model, label, (1, 3, 64, 64))


def small_vit() -> nn.Module:
    model = VisionTransformer(
        image_size=48, patch_size=12, num_layers=3, num_heads=2, hidden_dim=128, mlp_dim=96, num_classes=7
    )
    nn.init.normal_(model.heads.head.weight)  # its own start is zero, which every model would answer alike
    built: nn.Module = model
    return built


VIT = "torchvision/vit?num_classes=7&in_channels=3&hidden=128&layers=3&mlp=96&patch=12&positions=17"


def test_a_vision_transformer_and_its_assumed_heads(check: Check) -> None:
    found = check(small_vit(), VIT, (1, 3, 48, 48))
    assert [(one.name, one.value) for one in found.spec.assumed] == [("heads", 2)]
    assert "Assumed, because no shape tells: heads = 2" in found.says


def test_nothing_runs_on_an_assumption_until_it_is_confirmed() -> None:
    spec = parse_spec(VIT)
    with pytest.raises(UsageError, match="depends on what no shape tells: heads = 2") as caught:
        count_costs(spec, (3, 48, 48))
    assert caught.value.hint.endswith(f"{VIT}&heads=2")
    confirmed = parse_spec(f"{VIT}&heads=2")
    assert confirmed.assumed == () and confirmed == confirm_all(spec)
    assert count_costs(confirmed, (3, 48, 48), second_opinion=False).macs > 0


def test_what_the_file_states_is_confirmed(checkpoint: Callable[..., Checkpoint]) -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in small_vit().state_dict().items()}
    stated = replace(checkpoint(shapes), metadata=(("args.num_heads", "4"),))
    found = recognise(stated).best
    assert found is not None and found.spec.assumed == () and dict(found.spec.options)["heads"] == 4
    assert 'heads = 4 ("num_heads" in the file)' in found.says
    # Five heads do not divide a width of 128: that is no head count of this model.
    other = recognise(replace(stated, metadata=(("args.num_heads", "5"),))).best
    assert other is not None and [one.value for one in other.spec.assumed] == [2]


@pytest.mark.parametrize("drop", ["layer2.0.conv1.weight", "fc.bias", "layer1.0.bn1.running_mean"])
def test_a_tensor_that_is_missing_is_missing(drop: str, recognised: See) -> None:
    model = ResNet(BasicBlock, [1, 3, 2, 1], num_classes=11)
    state = {name: tensor for name, tensor in model.state_dict().items() if name != drop}

    class Part(nn.Module):
        def state_dict(self, *args: object, **kwargs: object) -> dict[str, torch.Tensor]:  # type: ignore[override]
            return state

    found = recognised(Part())
    assert found is not None and found.spec.library == "torchvision"
    assert not found.exact and drop in found.missing
