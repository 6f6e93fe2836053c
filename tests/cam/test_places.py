"""The cells of a proposed layer are where the picture says, and the maps there are what autograd says.

The first oracle knows nothing of layouts: it changes the picture in one place, runs the model, and looks which cells of
the layer's output, read as the proposal says, have moved. The second adds zeros to the layer's output and asks for
their gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import util

import pytest
import torch
import torchvision
from torch import Tensor, nn

from inspector.cam.engine.capture import first_tensor, replace_tensor
from inspector.cam.engine.maps import Axes, heat_grid
from inspector.cam.engine.tensors import spatial
from inspector.cam.layers.proposals import propose_layers
from inspector.cam.report import LayerProposal
from inspector.cam.targets.readings import logits_of

PLACES = 8


def settled(model: nn.Module, shape: tuple[int, int, int]) -> nn.Module:
    """In evaluation mode, with batch norms that have seen something: fresh ones let signals vanish."""
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    model.eval()
    for norm in norms:
        norm.momentum, norm.training = 1.0, True
    if norms:
        with torch.no_grad():
            model(torch.randn(2, *shape, generator=torch.Generator().manual_seed(9)))
    return model.eval()


def moved(model: nn.Module, layers: list[LayerProposal], shape: tuple[int, int, int]) -> list[tuple[float, float]]:
    """(share of changes whose strongest cell is their own, correlation of place and centre of change) per layer."""
    channels, height, width = shape
    draw = torch.Generator().manual_seed(1)
    picture = torch.randn(1, channels, height, width, generator=draw)
    places = [((n + 0.5) / PLACES, ((5 * n + 3) % PLACES + 0.5) / PLACES) for n in range(PLACES)]
    side = max(8, min(height, width) // 8)
    pictures = [picture]
    for down, right in places:
        changed = picture.clone()
        top, left = int(max(0, down * height - side / 2)), int(max(0, right * width - side / 2))
        patch = changed[:, :, top : top + side, left : left + side]
        patch += 2 * torch.randn(1, channels, 1, 1, generator=draw) + torch.randn(patch.shape, generator=draw)
        pictures.append(changed)
    kept: dict[tuple[str, int], list[Tensor]] = {}
    calls: dict[str, int] = {}

    def keep(path: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _args: object, output: object) -> None:
            number = calls.get(path, 0)
            calls[path] = number + 1
            tensor = first_tensor(output)
            assert tensor is not None
            kept.setdefault((path, number), []).append(tensor.clone())

        return hook

    handles = [model.get_submodule(p).register_forward_hook(keep(p)) for p in {layer.path for layer in layers}]
    with torch.no_grad():
        for one in pictures:
            calls.clear()
            model(one)
    for handle in handles:
        handle.remove()
    found = []
    for layer in layers:
        maps = torch.cat([spatial(output, layer)[0] for output in kept[layer.path, layer.call]]).double()
        change = (maps[1:] - maps[:1]).abs().sum(dim=1)
        weight = (change - change.amin(dim=(1, 2), keepdim=True)) ** 2
        weight = weight / weight.sum(dim=(1, 2), keepdim=True)
        rows, columns = layer.grid
        down = (torch.arange(rows, dtype=torch.float64) + 0.5) / rows
        right = (torch.arange(columns, dtype=torch.float64) + 0.5) / columns
        centre = torch.stack([(weight.sum(dim=2) * down).sum(dim=1), (weight.sum(dim=1) * right).sum(dim=1)])
        wanted = torch.tensor(places, dtype=torch.float64).T
        along = min(float(torch.corrcoef(torch.stack([centre[n], wanted[n]]))[0, 1]) for n in range(2))
        own = 0
        for most, place in zip(weight.flatten(1).argmax(dim=1).tolist(), places, strict=True):
            cell = ((most // columns + 0.5) / rows, (most % columns + 0.5) / columns)
            reach = (1.5 / rows + side / height / 2, 1.5 / columns + side / width / 2)
            own += all(abs(a - b) <= most_off for a, b, most_off in zip(cell, place, reach, strict=True))
        found.append((own / PLACES, along))
    return found


def check(model: nn.Module, shape: tuple[int, int, int], most: int = 4) -> tuple[LayerProposal, ...]:
    """A map of few cells behind much mixing says little of where: there the strongest cell decides."""
    settled(model, shape)
    layers = propose_layers(model, shape)[:most]
    for layer, (own, along) in zip(layers, moved(model, list(layers), shape), strict=True):
        assert own >= 0.75 or along >= 0.9, (layer.path, layer.layout, layer.grid, own, along)
    check_gradients(model.double(), layers[0], shape)
    return layers


def check_gradients(model: nn.Module, layer: LayerProposal, shape: tuple[int, int, int]) -> None:
    """Three methods at one layer in float64, the model's own scores, and the model as it was."""
    for module in model.modules():
        if isinstance(module, nn.Linear) and not module.weight.any():
            nn.init.normal_(module.weight, std=0.1)  # a head that starts at 0 has no gradient to compare
    picture = torch.randn(1, *shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    kept: dict[str, Tensor] = {}
    calls = 0

    def add(_module: nn.Module, _args: object, output: object) -> object:
        nonlocal calls
        calls += 1
        tensor = first_tensor(output)
        if calls - 1 != layer.call or tensor is None:
            return None
        kept["output"], kept["zeros"] = tensor.detach().clone(), torch.zeros_like(tensor, requires_grad=True)
        return replace_tensor(output, tensor, tensor + kept["zeros"])

    handle = model.get_submodule(layer.path).register_forward_hook(add)
    logits = logits_of(model(picture))
    handle.remove()
    (slope,) = torch.autograd.grad(logits[0, 1], [kept["zeros"]])
    a, g = (spatial(tensor, layer)[0] for tensor in (kept["output"], slope))
    assert float(g.abs().sum(dim=1).gt(0).double().mean()) > 0.5, "cells speak for or against the class"
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random = torch.get_rng_state()
    with torch.no_grad():
        own = logits_of(model(picture))
    expected = {
        "grad-cam": (g.mean(dim=(2, 3), keepdim=True) * a).sum(dim=1),
        "hires-cam": (g * a).sum(dim=1),
        "layer-cam": (g.clamp_min(0) * a).sum(dim=1),
    }
    axes = Axes(layers=[layer], classes=[1], methods=list(expected))
    for cell in heat_grid(model, picture, axes)[0][0]:
        right = expected[cell.method]
        assert float((cell.raw - right).abs().max()) <= 1e-9 * float(right.abs().max()), cell.method
        torch.testing.assert_close(cell.logits, own, rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        assert torch.equal(logits_of(model(picture)), own)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert not any(module.training or module._forward_hooks for module in model.modules())
    assert torch.equal(random, torch.get_rng_state())


@pytest.mark.parametrize(
    "name",
    [
        "convnext_tiny",
        "densenet121",
        "googlenet",
        "mnasnet0_5",
        "mobilenet_v2",
        "regnet_y_400mf",
        "resnet18",
        "shufflenet_v2_x0_5",
        "squeezenet1_1",
        "swin_t",
    ],
)
def test_torchvision(name: str) -> None:
    torch.manual_seed(0)
    options = {"init_weights": False} if name == "googlenet" else {}
    check(torchvision.models.get_model(name, weights=None, num_classes=11, **options), (3, 128, 192))


def test_torchvisions_vision_transformer() -> None:
    torch.manual_seed(0)
    model = torchvision.models.VisionTransformer(64, 8, 3, 4, 32, 64, num_classes=7)
    first, *_ = check(model, (3, 64, 64))
    assert (first.layout, first.prefix_tokens, first.grid) == ("NLC", 1, (8, 8))


TIMM = {
    # name: (input, layout of the suggested layer, prefix tokens)
    "test_convnext": ((3, 96, 160), "NCHW", 0),  # 12 x 20 x 32 of its MLPs are no 32 channels of 20 x 32
    "csatv2": ((3, 96, 160), "NCHW", 0),  # 8 heads x 15 tokens x 32 are no map
    "test_vit": ((3, 160, 160), "NLC", 1),
    "deit_tiny_distilled_patch16_224": ((3, 224, 224), "NLC", 2),
    "vit_pwee_patch16_reg1_gap_256": ((3, 256, 256), "NLC", 1),
    "cait_xxs24_224": ((3, 224, 224), "NLC", 1),
    "swin_tiny_patch4_window7_224": ((3, 224, 224), "NHWC", 0),
    "mobilevitv2_050": ((3, 128, 192), "NCHW", 0),
    "gmixer_12_224": ((3, 224, 224), "NLC", 0),
}


@pytest.mark.parametrize("name", TIMM)
def test_timm(name: str) -> None:
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    if not timm.is_model(name):
        pytest.skip("not in this version")
    shape, layout, prefix = TIMM[name]
    first, *_ = check(timm.create_model(name, pretrained=False, num_classes=11), shape, most=2)
    assert (first.layout, first.prefix_tokens) == (layout, prefix)


def _config(**changes: object) -> dict[str, object]:
    return {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "image_size": 96,
        "patch_size": 16,
        "num_labels": 11,
        **changes,
    }


STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1], "num_labels": 11}
WINDOWS = {"image_size": 64, "embed_dim": 16, "depths": [2, 2, 2], "num_heads": [2, 2, 4], "window_size": 4}
TRANSFORMERS: dict[str, tuple[str, dict[str, object], tuple[int, int, int], str]] = {
    # what: (class, configuration, input, the suggested layer)
    "ViT": ("ViT", _config(image_size=(64, 96)), (3, 64, 96), "vit.layers.1.layernorm_before"),
    "DeiT": ("DeiT", _config(), (3, 96, 96), "deit.layers.1.layernorm_before"),
    "Dinov2": (
        "Dinov2WithRegisters",
        _config(image_size=112, patch_size=14),
        (3, 84, 112),
        "dinov2_with_registers.encoder.layer.1.norm1",
    ),
    "ResNet": ("ResNet", {**STAGES, "embedding_size": 8, "layer_type": "basic"}, (3, 128, 192), "resnet.encoder"),
    "ConvNext": ("ConvNext", STAGES, (3, 128, 192), "convnext.encoder"),
    "Swin": ("Swin", {**WINDOWS, "num_labels": 11}, (3, 64, 96), "swin.layernorm"),
    "Swinv2": ("Swinv2", {**WINDOWS, "num_labels": 11}, (3, 64, 96), "swinv2.layernorm"),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(name: str) -> None:
    if util.find_spec("transformers") is None:
        pytest.skip("needs transformers")
    import transformers

    kind, config, shape, expected = TRANSFORMERS[name]
    torch.manual_seed(0)
    make = getattr(transformers, f"{kind}ForImageClassification")
    first, *_ = check(make(getattr(transformers, f"{kind}Config")(**config)), shape)
    assert first.path == expected
