"""Does the map lie on the object, and what does one map cost?

    python benchmarks/bench_cam.py [--pictures 200] [--rounds 12] [--csv FILE]

Localisation: fresh pictures of the shapes data set, each with the mask of its object. Of a map's heat, the share inside
the mask over the mask's share of the picture: 1.0 is what a uniform map gets. The trained sample model beside the same
architecture untrained, for the class that the picture shows.

Cost: CPU milliseconds of one Grad-CAM map (median, one thread, all contestants interleaved in random order in this one
process) beside the plain forward, the floor (forward plus the same partial backward, no map) and whichever of grad-cam,
captum and torchcam is installed. Each map is compared with ours before it is timed.
"""

from __future__ import annotations

import argparse
import csv
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from inspector.architectures.build import build_model
from inspector.architectures.recognise import recognise
from inspector.cam.layers import find_layer, propose_layers
from inspector.cam.maps import heat_maps
from inspector.cam.preprocess import infer_preprocessing, prepare
from inspector.cam.report import LayerProposal
from inspector.checkpoint.torch_bridge import to_state_dict
from inspector.readers import open_checkpoint

ROOT = Path(__file__).resolve().parents[1]
WEIGHTS = ROOT / "sample_models" / "weights" / "shapes.safetensors"
# Far from any seed that training uses.
SEED = 880_011
MODELS = (("resnet18", "layer4"), ("mobilenet_v3_small", "features"), ("resnet50", "layer4"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Localisation:
    """One model on all pictures, means over pictures.

    energy: share of the heat inside the mask. ratio: energy over the mask's share of the picture. pointing: share of
    pictures whose hottest pixel lies in the mask. empty: maps without any heat, which count as 0. accuracy: of the
    model's answers.
    """

    model: str
    layer: str
    pictures: int
    energy: float
    uniform: float
    ratio: float
    pointing: float
    empty: int
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """CPU milliseconds, median. difference: largest absolute one from our map, both stretched to 0..1, at the layer's
    grid."""

    model: str
    who: str
    milliseconds: float
    over_floor: float
    difference: float | None


def localise(count: int) -> list[Localisation]:
    """The trained sample model, untrained ones of three seeds, and their layers as proposed."""
    from sample_models.shapes import generate

    images, labels, masks = generate(SEED, count)
    checkpoint = open_checkpoint(WEIGHTS)
    state = checkpoint.weights
    recognition = recognise(checkpoint)
    best = recognition.best
    if state is None or best is None:
        raise SystemExit(f"{WEIGHTS} is not recognised: {recognition.says}")
    preprocessing = infer_preprocessing(recognition, checkpoint)
    batch = torch.cat([prepare(Image.fromarray(image), preprocessing)[0] for image in images])
    trained = build_model(best.spec)
    trained.load_state_dict(to_state_dict(checkpoint, state))
    rows = [_localise("trained", trained, batch, labels, masks)]
    for seed in range(3):
        torch.manual_seed(seed)
        rows.append(
            _localise(f"untrained, seed {seed}", untrained(best.spec.name, best.spec.num_classes), batch, labels, masks)
        )
    return rows


def untrained(name: str, classes: int | None) -> nn.Module:
    """The architecture with its own random start."""
    from torchvision.models import get_model

    options = {} if classes is None else {"num_classes": classes}
    return get_model(name, weights=None, **options).eval()


def _localise(
    name: str, model: nn.Module, batch: Tensor, labels: np.ndarray, masks: np.ndarray, at_once: int = 20
) -> Localisation:
    layer = propose_layers(model, (batch.shape[1], batch.shape[2], batch.shape[3]))[0]
    energies, shares, ratios, hits, right, empty = [], [], [], [], [], 0
    for first in range(0, len(batch), at_once):
        some = slice(first, first + at_once)
        maps = heat_maps(model, batch[some], layer=layer, targets=labels[some].tolist())
        right.extend((maps.logits.argmax(1).numpy() == labels[some]).tolist())
        # At the mask's own size, where the truth is exact.
        heats = functional.interpolate(
            maps.heat[:, None], size=masks.shape[1:], mode="bilinear", align_corners=False, antialias=True
        )[:, 0]
        for heat, mask in zip(heats.double().numpy(), masks[some], strict=True):
            total = heat.sum()
            empty += int(total == 0)
            energies.append(float(heat[mask].sum() / total) if total > 0 else 0.0)
            shares.append(float(mask.mean()))
            ratios.append(energies[-1] / shares[-1])
            hits.append(bool(total > 0 and mask[np.unravel_index(heat.argmax(), heat.shape)]))
    return Localisation(
        model=name,
        layer=layer.path,
        pictures=len(energies),
        energy=statistics.mean(energies),
        uniform=statistics.mean(shares),
        ratio=statistics.mean(ratios),
        pointing=statistics.mean(hits),
        empty=empty,
        accuracy=statistics.mean(right),
    )


def stretched(found: Tensor) -> Tensor:
    """From 0 to 1, as torchcam gives it; the others divide by the maximum alone, or not at all."""
    return (found - found.min()) / (found.max() - found.min())


Contestant = Callable[[], Tensor | None]


def costs(rounds: int) -> list[Cost]:
    """One map at batch 1 and 224 x 224, random seeded weights."""
    rows = []
    for name, path in MODELS:
        torch.manual_seed(0)
        model = untrained(name, 10)
        x = torch.randn(1, 3, 224, 224)
        entrants = contestants(model, find_layer(model, path, (3, 224, 224)), x)
        ours = entrants["inspector"]()
        assert ours is not None
        assert ours.max() > ours.min(), "the map that is timed has to show something"
        differences = {}
        for who, run in entrants.items():
            found = run()
            known = found is not None and who != "inspector"
            differences[who] = float((stretched(found) - stretched(ours)).abs().max()) if known else None
        seconds: dict[str, list[float]] = {who: [] for who in entrants}
        order = list(entrants)
        for _ in range(rounds):
            random.shuffle(order)
            for who in order:
                start = time.process_time()
                entrants[who]()
                seconds[who].append(time.process_time() - start)
        floor = statistics.median(seconds["floor"])
        rows.extend(
            Cost(
                model=name,
                who=who,
                milliseconds=1000 * statistics.median(times),
                over_floor=statistics.median(times) / floor,
                difference=differences[who],
            )
            for who, times in seconds.items()
        )
    return rows


def contestants(model: nn.Module, layer: LayerProposal, x: Tensor, target: int = 3) -> dict[str, Contestant]:
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
        torch.autograd.grad(model(x)[0, target], kept)
        model.requires_grad_(True)
        handle.remove()

    def ours() -> Tensor:
        return heat_maps(model, x, layer=layer, targets=target).raw.clamp_min(0)[0]

    entrants: dict[str, Contestant] = {"forward": forward, "floor": floor, "inspector": ours}
    for name, make in (("captum", _captum), ("torchcam", _torchcam), ("grad-cam", _grad_cam)):
        try:
            entrants[name] = make(model, module, x, target)
        except ImportError as error:
            print(f"{name} is not compared: {error}")
    return entrants


def _captum(model: nn.Module, module: nn.Module, x: Tensor, target: int) -> Contestant:
    from captum.attr import LayerGradCam

    def run() -> Tensor:
        return LayerGradCam(model, module).attribute(x, target=target, relu_attributions=True)[0, 0].detach()

    return run


def _torchcam(model: nn.Module, module: nn.Module, x: Tensor, target: int) -> Contestant:
    from torchcam.methods import GradCAM

    def run() -> Tensor:
        with GradCAM(model, target_layer=module) as extractor:
            return extractor(target, model(x))[0][0].detach()

    return run


def _grad_cam(model: nn.Module, module: nn.Module, x: Tensor, target: int) -> Contestant:
    from pytorch_grad_cam import GradCAM
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    def run() -> Tensor | None:
        with GradCAM(model=model, target_layers=[module]) as cam:
            cam(input_tensor=x, targets=[ClassifierOutputTarget(target)])
            weights = cam.activations_and_grads.gradients[0].mean(dim=(2, 3), keepdim=True)
            return (weights * cam.activations_and_grads.activations[0]).sum(dim=1)[0].clamp_min(0).detach()

    return run


def main() -> None:
    """Run both and print two tables."""
    parser = argparse.ArgumentParser(description="Where Grad-CAM's heat lies, and what one map costs.")
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    random.seed(0)
    found = localise(options.pictures)
    print(
        f"{'model':<20} {'layer':<12} {'in mask':>8} {'uniform':>8} {'ratio':>6} {'hits':>6} {'empty':>6} {'right':>6}"
    )
    for row in found:
        print(
            f"{row.model:<20} {row.layer:<12} {row.energy:8.3f} {row.uniform:8.3f} {row.ratio:6.2f} "
            f"{row.pointing:6.3f} {row.empty:6d} {row.accuracy:6.3f}"
        )
    timed = costs(options.rounds)
    print(f"\n{'model':<20} {'who':<10} {'CPU ms':>8} {'/ floor':>8} {'differs by':>11}")
    for cost in timed:
        differs = "" if cost.difference is None else f"{cost.difference:.1e}"
        print(f"{cost.model:<20} {cost.who:<10} {cost.milliseconds:8.1f} {cost.over_floor:8.2f} {differs:>11}")
    if options.csv:
        with options.csv.open("w", newline="") as file:
            for group in (found, timed):
                table = csv.DictWriter(file, list(asdict(group[0])))
                table.writeheader()
                table.writerows(asdict(row) for row in group)


if __name__ == "__main__":
    main()
