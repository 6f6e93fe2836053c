"""Does a method's heat lie on the object? Fresh shapes with their masks, every method, beside maps that know nothing.

Two measures of one map: the share of the heat inside the mask, and whether its hottest pixel lies there (the pointing
game). Both for the class that the picture shows; a map without heat counts as 0. Beside each method the same on the
same architecture untrained, and three maps that never saw the model. Each mean with its standard error.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from inspector.architectures.build import build_model
from inspector.architectures.recognise import recognise
from inspector.cam.engine.maps import Axes, heat_grid
from inspector.cam.inputs.preprocess import infer_preprocessing, prepare
from inspector.cam.layers.proposals import propose_layers
from inspector.cam.methods import METHODS
from inspector.cam.report import LayerProposal, Preprocessing
from inspector.cam.trust.baselines import centred_gaussian, edges, random_map
from inspector.cam.trust.correlation import energy_in_mask, points_at
from inspector.cam.trust.intervals import wilson
from inspector.checkpoint.torch_bridge import to_state_dict
from inspector.errors import ExplainError
from inspector.readers import open_checkpoint

WEIGHTS = Path(__file__).resolve().parents[2] / "sample_models" / "weights"
# With the method that has to be clearly above everything else. A class token reads few patches, so that the mean
# gradient that Grad-CAM gives to all of them says little (docs/measurements.md): there it is not Grad-CAM.
SAMPLES = {"shapes.safetensors": "grad-cam", "shapes_vit.safetensors": "gradient-rollout"}
# Far from any seed that training uses.
SEED = 880_011
AT_ONCE = 20
# Of pictures, so many are answered rightly: less is another network.
RIGHT = 0.97
# Hundreds of passes of the whole network: measured on fewer pictures.
SLOW = ("occlusion", "score-cam")
BY_LAYER = ("grad-cam", "hires-cam", "layer-cam")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One method or baseline on one sample, means over pictures with their standard errors.

    model: "trained", "untrained", "none" for baselines. energy: share of the heat inside the mask. pointing: of
    pictures whose hottest pixel lies in it.
    """

    sample: str
    of: str
    model: str
    pictures: int
    energy: float
    energy_error: float
    pointing: float
    pointing_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One sample model with its pictures, prepared. uniform: the masks' mean share of the picture."""

    name: str
    trained: nn.Module
    untrained: nn.Module
    preprocessing: Preprocessing
    layers: tuple[LayerProposal, ...]
    batch: Tensor
    labels: list[int]
    masks: Tensor

    @property
    def layer(self) -> LayerProposal:
        """The suggested one."""
        return self.layers[0]

    @property
    def uniform(self) -> float:
        return float(self.masks.double().mean())


def load(name: str, count: int, device: str, *, seed: int = SEED) -> Subject:
    """A committed sample, recognised and built as the product does, and its untrained twin; pictures of a seed."""
    from sample_models.shapes import generate

    images, labels, masks = generate(seed, count)
    checkpoint = open_checkpoint(WEIGHTS / name)
    recognition = recognise(checkpoint)
    if checkpoint.weights is None or recognition.best is None:
        raise SystemExit(f"{name} is not recognised: {recognition.says}")
    preprocessing = infer_preprocessing(recognition, checkpoint)
    batch = prepared(images, preprocessing)
    trained = build_model(recognition.best.spec)
    trained.load_state_dict(to_state_dict(checkpoint, checkpoint.weights))
    with torch.inference_mode():
        right = trained(batch).argmax(1).numpy() == labels
    # Of few pictures one wrong answer is more than 3 %.
    assert wilson(right.tolist()).high >= RIGHT, f"{name}: only {right.mean():.1%} of the pictures are answered rightly"
    return Subject(
        name=name,
        trained=trained.to(device),
        untrained=forgotten(trained).to(device),
        preprocessing=preprocessing,
        layers=propose_layers(trained, (batch.shape[1], batch.shape[2], batch.shape[3])),
        batch=batch.to(device),
        labels=labels.tolist(),
        masks=torch.from_numpy(masks),
    )


def prepared(images: Iterable[NDArray[np.uint8]], preprocessing: Preprocessing) -> Tensor:
    """(N, C, H, W) of pictures (H, W, 3)."""
    return torch.cat([prepare(Image.fromarray(image), preprocessing)[0] for image in images])


def forgotten(model: nn.Module, seed: int = 0) -> nn.Module:
    """The same architecture with a random start: torch's own, and normal numbers where that is 0 (a ViT's head)."""
    torch.manual_seed(seed)
    twin = copy.deepcopy(model)
    for module in twin.modules():
        reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
        if callable(reset):
            reset()
    for name, parameter in twin.named_parameters():
        if "class_token" in name or "pos_embedding" in name:
            nn.init.normal_(parameter, std=0.02)
    return twin.eval()


def localise(names: Iterable[str], *, pictures: int, slow: int, device: str) -> Iterator[Place]:
    """The baselines, then every method that the model has maps of, trained and untrained; the slow ones last."""
    for name in names:
        subject = load(name, pictures, device)
        yield from _baselines(subject)
        for together in jobs():
            count = min(pictures, slow) if together[0] in SLOW else pictures
            yield from _both(subject, together, count, subject.layer)


def by_layer(names: Iterable[str], *, pictures: int, device: str) -> Iterator[Place]:
    """Three methods at every proposed layer, the suggested one first."""
    for name in names:
        subject = load(name, pictures, device)
        for layer in subject.layers:
            yield from _both(subject, BY_LAYER, pictures, layer, at=f" at {layer.path}")


def _both(subject: Subject, ids: Sequence[str], count: int, layer: LayerProposal, *, at: str = "") -> Iterator[Place]:
    found = {
        state: _measure(subject, model, ids, count, layer)
        for state, model in (("trained", subject.trained), ("untrained", subject.untrained))
    }
    for method in ids:
        for state, scores in found.items():
            if method in scores:
                yield _place(subject, method + at, state, scores[method])


def jobs() -> list[list[str]]:
    """Methods that are arithmetic together, since they share their passes; each of the others alone, slow ones last."""
    alone = [m.id for m in METHODS if not m.arithmetic and m.id not in SLOW]
    return [[m.id for m in METHODS if m.arithmetic], *([i] for i in (*alone, *SLOW))]


def _measure(
    subject: Subject, model: nn.Module, ids: Sequence[str], count: int, layer: LayerProposal
) -> dict[str, list[tuple[float, float]]]:
    """method -> (energy, pointing) of each of the first pictures."""
    results: dict[str, list[tuple[float, float]]] = {}
    for first in range(0, count, AT_ONCE):
        part = slice(first, min(first + AT_ONCE, count))
        axes = Axes(layers=[layer], methods=ids, classes=[subject.labels[part]])
        ((row,),) = heat_grid(model, subject.batch[part], axes, lenient=True)
        for method, maps in zip(ids, row, strict=True):
            if not isinstance(maps, ExplainError):
                scores = [score(h, m) for h, m in zip(maps.heat, subject.masks[part], strict=True)]
                results.setdefault(method, []).extend(scores)
    return results


def _baselines(subject: Subject) -> Iterator[Place]:
    size = (subject.batch.shape[2], subject.batch.shape[3])
    makers = {
        "random map": lambda n: random_map(size, subject.layer.grid, n),
        "centred Gaussian": lambda n: centred_gaussian(size),
        "edge map": lambda n: edges(subject.batch[n].cpu()),
    }
    for name, make in makers.items():
        yield _place(subject, name, "none", [score(make(n), mask) for n, mask in enumerate(subject.masks)])


def score(heat: Tensor, mask: Tensor) -> tuple[float, float]:
    """(energy, pointing), 0 for no heat, at the mask's own size, where the truth is exact."""
    small = functional.interpolate(
        heat[None, None].double(), size=tuple(mask.shape), mode="bilinear", align_corners=False, antialias=True
    )[0, 0]
    energy, pointing = energy_in_mask(small, mask), points_at(small, mask)
    return (0.0 if math.isnan(energy) else energy, 0.0 if math.isnan(pointing) else pointing)


def mean(values: Sequence[float]) -> tuple[float, float]:
    """(mean, its standard error)."""
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def _place(subject: Subject, of: str, model: str, scores: Sequence[tuple[float, float]]) -> Place:
    (energy, energy_error), (pointing, pointing_error) = (mean([s[n] for s in scores]) for n in (0, 1))
    return Place(
        sample=subject.name,
        of=of,
        model=model,
        pictures=len(scores),
        energy=energy,
        energy_error=energy_error,
        pointing=pointing,
        pointing_error=pointing_error,
    )


def clearly_above(rows: Sequence[Place]) -> None:
    """Raises AssertionError unless each sample's method beats every baseline and its untrained twin.

    Half as much heat again in the mask, and more pictures pointed at, by two standard errors of the difference.
    """
    for name in {row.sample for row in rows}:
        of_it = [row for row in rows if row.sample == name]
        (own,) = (row for row in of_it if (row.of, row.model) == (SAMPLES[name], "trained"))
        for other in of_it:
            if other.model == "none" or (other.of, other.model) == (own.of, "untrained"):
                assert own.energy > 1.5 * other.energy, (own, other)
                error = math.hypot(own.pointing_error, other.pointing_error)
                assert own.pointing > other.pointing + 2 * error, (own, other)
