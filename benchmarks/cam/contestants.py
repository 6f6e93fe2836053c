"""One Grad-CAM map by every tool that is installed, each as its own documentation has it made.

All are given the same module and class. A floor is beside them: the forward and the part of the backward that reaches
the layer, without a map.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from inspector.cam.engine.maps import heat_maps
from inspector.cam.report import LayerProposal

Contestant = Callable[[], Tensor | None]
TARGET = 3
OURS = "inspector"


def untrained(name: str, classes: int | None, device: str = "cpu") -> nn.Module:
    """torchvision's architecture with its own random start."""
    from torchvision.models import get_model

    options = {} if classes is None else {"num_classes": classes}
    return get_model(name, weights=None, **options).eval().to(device)


def loud(model: nn.Module) -> nn.Module:
    """The model with its last linear layer a hundred million times as large.

    Untrained, mobilenet_v3_small gives maps of 1e-12, to whose maximum grad-cam adds 1e-7 before it divides: they come
    out black there. The raw maps agree to rounding.
    """
    last = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    with torch.no_grad():
        last.weight.mul_(1e8)
    return model


def stretched(found: Tensor) -> Tensor:
    """From 0 to 1, as torchcam gives it; the others divide by the maximum alone, or not at all."""
    return (found - found.min()) / (found.max() - found.min())


def contestants(model: nn.Module, layer: LayerProposal, x: Tensor) -> dict[str, Contestant]:
    """What is timed, by name: each runs once per call and gives its map at the layer's grid."""
    module = model.get_submodule(layer.path)

    def forward() -> None:
        with torch.inference_mode():
            model(x)

    def floor() -> None:
        kept: list[Tensor] = []

        def start(_module: nn.Module, _args: object, output: Tensor) -> Tensor:
            kept.append(output.detach().requires_grad_())
            return kept[0].clone()

        handle = module.register_forward_hook(start)
        model.requires_grad_(False)
        torch.autograd.grad(model(x)[0, TARGET], kept)
        model.requires_grad_(True)
        handle.remove()

    entrants: dict[str, Contestant] = {"forward": forward, "floor": floor, OURS: _ours(model, layer, x)}
    for name, make in (("captum", _captum), ("torchcam", _torchcam), ("grad-cam", _grad_cam)):
        try:
            entrants[name] = make(model, module, x)
        except ImportError as error:
            print(f"{name} is not compared: {error}")
    return entrants


def one(who: str, model: nn.Module, layer: LayerProposal, x: Tensor) -> Contestant:
    """This one alone, so that nothing else is imported."""
    module = model.get_submodule(layer.path)
    makers = {"captum": _captum, "torchcam": _torchcam, "grad-cam": _grad_cam}
    return _ours(model, layer, x) if who == OURS else makers[who](model, module, x)


def _ours(model: nn.Module, layer: LayerProposal, x: Tensor) -> Contestant:
    def run() -> Tensor:
        return heat_maps(model, x, layer=layer, targets=TARGET).raw.clamp_min(0)[0]

    return run


def _captum(model: nn.Module, module: nn.Module, x: Tensor) -> Contestant:
    from captum.attr import LayerGradCam

    def run() -> Tensor:
        return LayerGradCam(model, module).attribute(x, target=TARGET, relu_attributions=True)[0, 0].detach()

    return run


def _torchcam(model: nn.Module, module: nn.Module, x: Tensor) -> Contestant:
    from torchcam.methods import GradCAM

    def run() -> Tensor:
        with GradCAM(model, target_layer=module) as extractor:
            return extractor(TARGET, model(x))[0][0].detach()

    return run


def _grad_cam(model: nn.Module, module: nn.Module, x: Tensor) -> Contestant:
    from pytorch_grad_cam import GradCAM
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    def run() -> Tensor | None:
        with GradCAM(model=model, target_layers=[module]) as cam:
            cam(input_tensor=x, targets=[ClassifierOutputTarget(TARGET)])
            weights = cam.activations_and_grads.gradients[0].mean(dim=(2, 3), keepdim=True)
            return (weights * cam.activations_and_grads.activations[0]).sum(dim=1)[0].clamp_min(0).detach()

    return run
