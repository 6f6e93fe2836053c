"""The same maps as other libraries by methods with passes of their own, by projections and by attention.

Documented differences are accounted for: pytorch-grad-cam stores scores in float32 (hence 1e-5 and not 1e-9), divides
Ablation-CAM's weights by the score with its sign, enlarges Score-CAM's masks corner to corner, and centres the columns
of EigenCAM, whose sign it leaves to chance; torchcam's LeGrad takes the mean over blocks where ours takes the sum.
"""

from __future__ import annotations

import functools
import warnings

import pytest
import torch
import torchvision
from torch import Tensor, nn

from inspector.cam.engine.maps import heat_maps
from inspector.cam.engine.projection import first_component
from inspector.cam.layers.proposals import propose_layers

TARGET, SIDE = 2, 64
MODELS = ("resnet18", "squeezenet1_1", "shufflenet_v2_x0_5")


def make(name: str) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(5)
    if name == "vit":
        model: nn.Module = torchvision.models.VisionTransformer(SIDE, 16, 3, 4, 32, 64, num_classes=5)
        nn.init.normal_(model.heads.head.weight, std=0.1)  # torchvision starts it at 0
    else:
        model = torchvision.models.get_model(name, weights=None, num_classes=5)
    for module in model.modules():
        if hasattr(module, "inplace"):
            module.inplace = False
    return model.double().eval(), torch.randn(1, 3, SIDE, SIDE, dtype=torch.float64)


def theirs(cam: object, x: Tensor, target: int, module: nn.Module, activation: Tensor) -> Tensor:
    """Their map before ReLU and scaling."""
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    weights = cam.get_cam_weights(x, module, [ClassifierOutputTarget(target)], activation.numpy(), None)
    return (torch.from_numpy(weights).double()[:, :, None, None] * activation).sum(dim=1)


def output_of(model: nn.Module, module: nn.Module, x: Tensor) -> Tensor:
    kept: list[Tensor] = []
    handle = module.register_forward_hook(lambda _m, _a, output: kept.append(output.detach()))
    with torch.no_grad():
        model(x)
    handle.remove()
    return kept[0]


@pytest.mark.parametrize("name", MODELS)
def test_ablation_cam(name: str) -> None:
    cams = pytest.importorskip("pytorch_grad_cam")
    model, x = make(name)
    with torch.no_grad():
        target = int(model(x)[0].argmax())
    layer = propose_layers(model, (3, SIDE, SIDE))[0]
    module = model.get_submodule(layer.path)
    activation = output_of(model, module, x)
    assert float(activation.min()) == 0, "theirs sets a channel to 0 only where 0 is the least"
    with torch.no_grad():
        sign = float(model(x)[0, target].sign())
    found = heat_maps(model, x, layer=layer, targets=target, method="ablation-cam").raw
    with cams.AblationCAM(model=model, target_layers=[module]) as cam:
        expected = theirs(cam, x, target, module, activation) * sign
    assert float((found - expected).abs().max()) <= 1e-5 * max(1.0, float(expected.abs().max()))
    assert float(expected.abs().max()) > 0


@pytest.mark.parametrize("name", MODELS)
def test_score_cam(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cams = pytest.importorskip("pytorch_grad_cam")
    model, x = make(name)
    layer = propose_layers(model, (3, SIDE, SIDE))[0]
    module = model.get_submodule(layer.path)
    activation = output_of(model, module, x)
    between_centres = functools.partial(nn.Upsample, mode="bilinear", align_corners=False)
    monkeypatch.setattr(nn, "UpsamplingBilinear2d", between_centres)
    found = heat_maps(model, x, layer=layer, targets=TARGET, method="score-cam").raw
    with cams.ScoreCAM(model=model, target_layers=[module]) as cam:
        expected = theirs(cam, x, TARGET, module, activation)
    size = float(expected.abs().max())
    assert size > 0
    # Channels that are the same everywhere are no masks to us; theirs take a share of the softmax: the map is scaled.
    assert float((found / found.abs().max() - expected / size).abs().max()) <= 1e-5


@pytest.mark.parametrize("name", MODELS)
def test_eigen_projection(name: str) -> None:
    pytest.importorskip("pytorch_grad_cam")
    from pytorch_grad_cam.utils.svd_on_activations import get_2d_projection

    model, x = make(name)
    layer = propose_layers(model, (3, SIDE, SIDE))[0]
    activation = output_of(model, model.get_submodule(layer.path), x)
    centred = activation - activation.mean(dim=(2, 3), keepdim=True)
    found = first_component(centred)
    expected = torch.from_numpy(get_2d_projection(activation.numpy())).double()
    sign = float((found * expected).sum().sign())
    assert float((found - sign * expected).abs().max()) <= 1e-6 * float(expected.abs().max())


@pytest.mark.parametrize("name", MODELS)
def test_finer_cam(name: str) -> None:
    methods = pytest.importorskip("torchcam.methods")
    model, x = make(name)
    layer = propose_layers(model, (3, SIDE, SIDE))[0]
    found = heat_maps(model, x, layer=layer, targets=TARGET, method="finer-cam").raw[0].clamp_min(0)
    with methods.FinerCAM(model, layer.path, input_shape=(3, SIDE, SIDE)) as extractor:
        (expected,) = extractor(class_idx=TARGET, scores=model(x))
    low = found - found.min()
    assert float((low / (low.max() + 1e-8) - expected[0]).abs().max()) <= 1e-5


def test_le_grad() -> None:
    methods = pytest.importorskip("torchcam.methods")
    model, x = make("vit")
    found = heat_maps(model, x, targets=TARGET, method="le-grad").raw[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with methods.LeGrad(model, list(model.encoder.layers)) as extractor:
            extractor.model(x)
            maps = [m[0].detach() for m in extractor.compute_cams(TARGET, normalized=False)]
    # One map for each block; ours adds them up.
    expected = torch.stack(maps).sum(dim=0)
    assert float((found / found.max() - expected / expected.max()).abs().max()) <= 1e-5
