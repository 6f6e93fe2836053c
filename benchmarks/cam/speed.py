"""What maps cost beside other tools: one map, a grid of six methods at four layers, eigen projections, Ablation-CAM.

Medians of processor time, one thread, all contestants interleaved in random order in one process (on a GPU, wall time
with the device waited for). Every answer is compared before it is timed.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.cam.contestants import OURS, TARGET, contestants, loud, stretched, untrained
from inspector.cam.engine.maps import Axes, heat_grid, heat_maps
from inspector.cam.engine.projection import first_component
from inspector.cam.layers.proposals import find_layer
from inspector.cam.report import LayerProposal, Maps

MODELS = (("resnet18", "layer4"), ("mobilenet_v3_small", "features"), ("resnet50", "layer4"))
GRIDS = (
    ("mobilenet_v3_small", ("features.1", "features.3", "features.8", "features")),
    ("resnet18", ("layer1", "layer2", "layer3", "layer4")),
    ("resnet50", ("layer1", "layer2", "layer3", "layer4")),
)
SIX = {
    "grad-cam": "GradCAM",
    "grad-cam++": "GradCAMPlusPlus",
    "xgrad-cam": "XGradCAM",
    "hires-cam": "HiResCAM",
    "element-wise": "GradCAMElementWise",
    "layer-cam": "LayerCAM",
}
FOUR_OF_TORCHCAM = ("GradCAM", "GradCAMpp", "XGradCAM", "LayerCAM")
EIGEN = ((512, 7), (2048, 7), (768, 14), (256, 56))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """what: the job. milliseconds: median. maps: how many it gives. times: beside the first of the job. difference: the
    largest from ours, of maps stretched to 0..1."""

    what: str
    who: str
    maps: int
    milliseconds: float
    times: float
    difference: float | None


def one_map(rounds: int, device: str) -> Iterator[Cost]:
    """One map at batch 1 and 224 x 224, random seeded weights; times: beside the floor."""
    for name, path in MODELS:
        torch.manual_seed(0)
        model, x = untrained(name, 10, device), torch.randn(1, 3, 224, 224).to(device)
        entrants = contestants(model, find_layer(model, path, (3, 224, 224)), x)
        ours = entrants[OURS]()
        assert ours is not None and ours.max() > ours.min(), "the map that is timed has to show something"
        differences = {who: _difference(run(), ours) for who, run in entrants.items() if who != OURS}
        assert all(d is None or d <= 1e-4 for d in differences.values()), differences
        yield from _costs(f"one map, {name}", entrants, rounds, device, "floor", differences=differences)


def grids(rounds: int, device: str) -> Iterator[Cost]:
    """Six gradient methods at four layers; the others call by call, since none gives the grid at once."""
    for name, paths in GRIDS:
        torch.manual_seed(0)
        model, x = loud(untrained(name, 10, device)), torch.randn(1, 3, 224, 224).to(device)
        layers = [find_layer(model, path, (3, 224, 224)) for path in paths]

        def ours(model: nn.Module = model, x: Tensor = x, layers: list[LayerProposal] = layers) -> list[Tensor]:
            rows = heat_grid(model, x, Axes(layers=layers, classes=[TARGET], methods=list(SIX)))
            return [maps.heat[0] for row in rows[0] for maps in row if isinstance(maps, Maps)]

        jobs: dict[str, Callable[[], list[Tensor]]] = {OURS: ours}
        for who, make in (("captum", _captum_grid), ("torchcam", _torchcam_grid), ("grad-cam", _grad_cam_grid)):
            try:
                jobs[who] = make(model, x, paths)
            except ImportError as error:
                print(f"{who} is not compared: {error}")
        mine = ours()
        if "grad-cam" in jobs:
            # It stretches once more after enlarging.
            for a, b in zip(mine[0 :: len(SIX)], jobs["grad-cam"]()[0 :: len(SIX)], strict=True):
                assert float((stretched(a).cpu() - b).abs().max()) <= 1e-3
        maps = {who: len(run()) for who, run in jobs.items()}
        yield from _costs(f"6 methods x 4 layers, {name}", jobs, rounds, device, OURS, maps=maps)


def _grad_cam_grid(model: nn.Module, x: Tensor, paths: tuple[str, ...]) -> Callable[[], list[Tensor]]:
    import pytorch_grad_cam
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    def run() -> list[Tensor]:
        found = []
        for path in paths:
            for method in SIX.values():
                with getattr(pytorch_grad_cam, method)(model=model, target_layers=[model.get_submodule(path)]) as cam:
                    found.append(torch.from_numpy(cam(input_tensor=x, targets=[ClassifierOutputTarget(TARGET)])[0]))
        return found

    return run


def _torchcam_grid(model: nn.Module, x: Tensor, paths: tuple[str, ...]) -> Callable[[], list[Tensor]]:
    from torchcam import methods

    def run() -> list[Tensor]:
        found: list[Tensor] = []
        for method in FOUR_OF_TORCHCAM:
            with getattr(methods, method)(model, target_layer=list(paths)) as extractor:
                found.extend(extractor(TARGET, model(x)))
        return found

    return run


def _captum_grid(model: nn.Module, x: Tensor, paths: tuple[str, ...]) -> Callable[[], list[Tensor]]:
    from captum.attr import LayerGradCam

    def run() -> list[Tensor]:
        return [LayerGradCam(model, model.get_submodule(path)).attribute(x, target=TARGET) for path in paths]

    return run


def eigen(rounds: int) -> Iterator[Cost]:
    """EigenCAM's projection beside grad-cam's SVD, on the CPU; theirs centres, so both are given centred columns."""
    try:
        from pytorch_grad_cam.utils.svd_on_activations import get_2d_projection
    except ImportError as error:
        print(f"grad-cam's SVD is not compared: {error}")
        return
    for channels, side in EIGEN:
        torch.manual_seed(0)
        features = torch.rand(1, channels, side, side) + 3 * torch.rand(1, 1, side, side) * torch.rand(
            1, channels, 1, 1
        )
        features = features - features.mean(dim=(2, 3), keepdim=True)
        numbers = features.numpy()
        mine, theirs = first_component(features)[0], torch.from_numpy(get_2d_projection(numbers.copy())[0])
        together = float(torch.corrcoef(torch.stack([mine.flatten(), theirs.flatten().float()]))[0, 1])
        assert abs(together) >= 0.9999, together
        jobs = {
            OURS: lambda features=features: first_component(features),
            "grad-cam": lambda numbers=numbers: get_2d_projection(numbers.copy()),
        }
        yield from _costs(f"first component, {channels} x {side} x {side}", jobs, rounds, "cpu", OURS)


def ablation(rounds: int, device: str) -> Iterator[Cost]:
    """Ablation-CAM of 512 channels: what is behind the layer alone is run again, or the whole network."""
    try:
        from pytorch_grad_cam import AblationCAM
        from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
    except ImportError as error:
        print(f"grad-cam's Ablation-CAM is not compared: {error}")
        return
    torch.manual_seed(0)
    model, x = untrained("resnet18", 10, device), torch.randn(1, 3, 224, 224).to(device)
    with torch.inference_mode():
        target = int(model(x).argmax())  # a positive score: theirs turns over where it is negative
    layer = find_layer(model, "layer4", (3, 224, 224))

    def ours() -> Tensor:
        return heat_maps(model, x, layer=layer, targets=target, method="ablation-cam").heat[0]

    def theirs() -> Tensor:
        with AblationCAM(model=model, target_layers=[model.layer4]) as cam:
            return torch.from_numpy(cam(input_tensor=x, targets=[ClassifierOutputTarget(target)])[0])

    difference = float((stretched(ours()) - theirs()).abs().max())
    assert difference <= 1e-3, difference
    jobs = {OURS: ours, "grad-cam": theirs}
    yield from _costs("Ablation-CAM, resnet18", jobs, rounds, device, OURS, differences={"grad-cam": difference})


def _difference(found: Tensor | None, ours: Tensor) -> float | None:
    return None if found is None else float((stretched(found).cpu() - stretched(ours)).abs().max())


def _costs(
    what: str,
    jobs: Mapping[str, Callable[[], object]],
    rounds: int,
    device: str,
    unit: str,
    *,
    maps: Mapping[str, int] | None = None,
    differences: Mapping[str, float | None] | None = None,
) -> Iterator[Cost]:
    seconds: dict[str, list[float]] = {who: [] for who in jobs}
    order = list(jobs)
    for _ in range(rounds):
        random.shuffle(order)
        for who in order:
            start = _clock(device)
            jobs[who]()
            seconds[who].append(_clock(device) - start)
    beside = statistics.median(seconds[unit])
    for who, times in seconds.items():
        middle = statistics.median(times)
        yield Cost(
            what=what,
            who=who,
            maps=(maps or {}).get(who, 1),
            milliseconds=1000 * middle,
            times=middle / beside,
            difference=(differences or {}).get(who),
        )


def _clock(device: str) -> float:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()
