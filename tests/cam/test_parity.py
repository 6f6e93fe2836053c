"""The same raw maps as other people's libraries, in float64, on torchvision's and timm's architectures.

Documented differences are accounted for: pytorch-grad-cam adds 1e-7 to the sum that XGrad-CAM divides by and 1e-6 to
Grad-CAM++'s denominator, which outweighs faint gradients; torchcam's Grad-CAM++ is not the paper's. Heads are drawn
anew, since a vision transformer's starts at 0 and every map would agree by being 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import util

import pytest
import torch
import torchvision
from torch import Tensor, nn

from inspector.cam.engine.maps import heat_maps
from inspector.cam.engine.tensors import spatial
from inspector.cam.layers.proposals import propose_layers
from inspector.cam.report import LayerProposal

TORCHVISION = (
    "resnet18",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "efficientnet_b0",
    "regnet_y_400mf",
    "mnasnet0_5",
    "densenet121",
    "convnext_tiny",
    "swin_t",
    "vit",
)
TIMM = (
    "resnet10t",
    "convnext_atto",
    "vit_tiny_patch16_224",
    "deit_tiny_distilled_patch16_224",
    "mobilenetv3_small_050",
)
CLASSES, TARGET, SIDE = 7, 3, 96


def make(name: str) -> tuple[nn.Module, Tensor]:
    """A model whose parameters are all drawn, nothing in place, and a picture for it."""
    torch.manual_seed(11)
    side = SIDE
    if name == "vit":
        model: nn.Module = torchvision.models.VisionTransformer(SIDE, 16, 3, 4, 32, 64, num_classes=CLASSES)
    elif name in TORCHVISION:
        model = torchvision.models.get_model(name, weights=None, num_classes=CLASSES)
    else:
        timm = pytest.importorskip("timm")
        model = timm.create_model(name, pretrained=False, num_classes=CLASSES)
        side = model.default_cfg["input_size"][1] if "patch" in name else SIDE
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.1)
        if hasattr(module, "inplace"):
            module.inplace = False  # the peers do not survive it
    return model.double().eval(), torch.randn(2, 3, side, side, dtype=torch.float64)


def folded(layer: LayerProposal) -> Callable[[Tensor], Tensor] | None:
    """What the peers call a reshape transform."""
    return None if layer.layout == "NCHW" else lambda tensor: spatial(tensor, layer)[0]


SAME = {
    "grad-cam": "GradCAM",
    "grad-cam++": "GradCAMPlusPlus",
    "xgrad-cam": "XGradCAM",
    "hires-cam": "HiResCAM",
    "element-wise": "GradCAMElementWise",
    "layer-cam": "LayerCAM",
}


def plus_plus(a: Tensor, g: Tensor) -> Tensor:
    below = 2 * g**2 + a.sum(dim=(2, 3), keepdim=True) * g**3 + 1e-6
    return (torch.where(g != 0, g**2 / below, 0) * g.clamp_min(0)).sum(dim=(2, 3), keepdim=True)


def x_grad(a: Tensor, g: Tensor) -> Tensor:
    return (g * a / (a.sum(dim=(2, 3), keepdim=True) + 1e-7)).sum(dim=(2, 3), keepdim=True)


WITH_EPSILON = {"grad-cam++": plus_plus, "xgrad-cam": x_grad}


@pytest.mark.parametrize("name", TORCHVISION + TIMM)
def test_pytorch_grad_cam(name: str) -> None:
    if util.find_spec("pytorch_grad_cam") is None:
        pytest.skip("needs the extra peers")
    import pytorch_grad_cam
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    model, x = make(name)
    layer = propose_layers(model, (3, x.shape[2], x.shape[3]))[0]
    goals = [ClassifierOutputTarget(TARGET)] * len(x)
    for ours, theirs in SAME.items():
        raw = heat_maps(model, x, layer=layer, targets=TARGET, method=ours).raw
        with getattr(pytorch_grad_cam, theirs)(
            model=model, target_layers=[model.get_submodule(layer.path)], reshape_transform=folded(layer)
        ) as cam:
            cam(x, goals)
            kept = cam.activations_and_grads
            # Tensors that it keeps are detached, in order of the layers; of several calls of one module, the last.
            a, g = kept.activations[-1], kept.gradients[0]
            module = model.get_submodule(layer.path)
            expected = torch.from_numpy(cam.get_cam_image(x, module, goals, a.numpy(), g.numpy(), False))
        size = float(expected.abs().max())
        assert size > 0, ours
        if ours in WITH_EPSILON:
            # Theirs is our formula with an epsilon in it; ours is held against the paper's elsewhere.
            weights = WITH_EPSILON[ours](a, g)
            torch.testing.assert_close((weights * a).sum(dim=1), expected, rtol=0, atol=1e-9 * size)
        else:
            assert float((raw - expected).abs().max()) <= 1e-9 * size, (ours, name)


@pytest.mark.parametrize("name", TORCHVISION)
def test_captum_and_torchcam(name: str) -> None:
    if util.find_spec("captum") is None or util.find_spec("torchcam") is None:
        pytest.skip("needs the extra peers")
    from captum.attr import LayerGradCam
    from torchcam.methods import GradCAM

    model, x = make(name)
    layer = propose_layers(model, (3, x.shape[2], x.shape[3]))[0]
    if layer.layout != "NCHW":
        pytest.skip("their maps are channels first")
    ours = heat_maps(model, x, layer=layer, targets=TARGET)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = LayerGradCam(model, model.get_submodule(layer.path)).attribute(x, target=TARGET)[:, 0].detach()
    size = float(found.abs().max())
    assert size > 0
    assert float((ours.raw - found).abs().max()) <= 1e-9 * size
    with GradCAM(model, layer.path) as extractor:
        (theirs,) = extractor(TARGET, model(x))
    low = ours.raw.clamp_min(0)
    low = low - low.amin(dim=(1, 2), keepdim=True)
    # It adds 1e-8 to what it divides by.
    low = low / (low.amax(dim=(1, 2), keepdim=True) + 1e-8)
    assert float((low - theirs).abs().max()) <= 1e-5


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "convnext_tiny", "squeezenet1_1"])
def test_captums_pixel_methods(name: str) -> None:
    if util.find_spec("captum") is None:
        pytest.skip("needs the extra peers")
    from captum.attr import GuidedBackprop, IntegratedGradients, Saliency

    model, x = make(name)
    expected = Saliency(model).attribute(x, target=TARGET).amax(dim=1)
    found = heat_maps(model, x, targets=TARGET, method="saliency").raw
    torch.testing.assert_close(found, expected.detach(), rtol=1e-9, atol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summed = IntegratedGradients(model).attribute(x, target=TARGET, n_steps=32, method="riemann_middle").sum(dim=1)
        guided = GuidedBackprop(model).attribute(x, target=TARGET).abs().amax(dim=1)
    found = heat_maps(model, x, targets=TARGET, method="integrated-gradients").raw
    torch.testing.assert_close(found, summed.detach(), rtol=1e-8, atol=1e-12)
    if any(isinstance(m, nn.ReLU) for m in model.modules()):
        found = heat_maps(model, x, targets=TARGET, method="guided-backpropagation").raw
        torch.testing.assert_close(found, guided.detach(), rtol=1e-8, atol=1e-14)
