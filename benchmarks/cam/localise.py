"""Does a method's heat lie on the object? Fresh shapes with their masks, every method, beside maps that know nothing.

Two measures of one map: the share of the heat inside the mask, and whether its hottest pixel lies there (the pointing
game). Both for the class that the picture shows; a map without heat counts as 0. Beside each method the same on the
same architecture untrained, and three maps that never saw the model.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from inspector.architectures.build import build_model
from inspector.architectures.recognise import recognise
from inspector.cam.layers import propose_layers
from inspector.cam.maps import heat_grids
from inspector.cam.methods import METHODS
from inspector.cam.preprocess import infer_preprocessing, prepare
from inspector.cam.report import LayerProposal
from inspector.cam.scene import open_scene
from inspector.cam.trust.agreement import energy_in_mask, points_at
from inspector.cam.trust.baselines import centred_gaussian, edges, random_map
from inspector.checkpoint.torch_bridge import to_state_dict
from inspector.errors import ExplainError
from inspector.readers import open_checkpoint

WEIGHTS = Path(__file__).resolve().parents[2] / "sample_models" / "weights"
SAMPLES = ("shapes.safetensors", "shapes_vit.safetensors")
# Far from any seed that training uses.
SEED = 880_011
# Forward passes of one picture: what takes no more is measured on all pictures, what takes more than the second number
# on few.
QUICK, SLOW = 8, 150
AT_ONCE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One method or baseline on one sample, means over pictures.

    energy: share of the heat inside the mask. pointing: of pictures whose hottest pixel lies in it. untrained: (energy,
    pointing) of the untrained model, None for baselines.
    """

    sample: str
    of: str
    pictures: int
    energy: float
    pointing: float
    untrained: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One sample model with its pictures, prepared. uniform: the masks' mean share of the picture."""

    name: str
    trained: nn.Module
    untrained: nn.Module
    layer: LayerProposal
    batch: Tensor
    labels: list[int]
    masks: Tensor

    @property
    def uniform(self) -> float:
        return float(self.masks.double().mean())


def load(name: str, count: int, device: str) -> Subject:
    """A committed sample, recognised and built as the product does, and its untrained twin."""
    from sample_models.shapes import generate

    images, labels, masks = generate(SEED, count)
    checkpoint = open_checkpoint(WEIGHTS / name)
    recognition = recognise(checkpoint)
    if checkpoint.weights is None or recognition.best is None:
        raise SystemExit(f"{name} is not recognised: {recognition.says}")
    preprocessing = infer_preprocessing(recognition, checkpoint)
    batch = torch.cat([prepare(Image.fromarray(image), preprocessing)[0] for image in images])
    trained = build_model(recognition.best.spec)
    trained.load_state_dict(to_state_dict(checkpoint, checkpoint.weights))
    with torch.inference_mode():
        right = trained(batch).argmax(1).numpy() == labels
    assert right.mean() >= 0.97, f"{name}: only {right.mean():.1%} of the pictures are answered rightly"
    return Subject(
        name=name,
        trained=trained.to(device),
        untrained=forgotten(trained).to(device),
        layer=propose_layers(trained, (batch.shape[1], batch.shape[2], batch.shape[3]))[0],
        batch=batch.to(device),
        labels=labels.tolist(),
        masks=torch.from_numpy(masks),
    )


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


def localise(names: Sequence[str], *, pictures: int, some: int, few: int, device: str) -> Iterator[Place]:
    """Every method that the model has maps of, then the baselines. some, few: pictures for the slower methods."""
    for name in names:
        subject = load(name, pictures, device)
        yield from _methods(subject, some, few)
        yield from _baselines(subject)


def _methods(subject: Subject, some: int, few: int) -> Iterator[Place]:
    whole = len(subject.labels)
    with open_scene(subject.trained, subject.batch[:1], [subject.layer], subject.labels[:1]) as scene:
        passes = {m.id: m.passes(scene, subject.layer) if m.passes else 1 for m in METHODS}
    counts = {i: whole if n <= QUICK else min(whole, some if n <= SLOW else few) for i, n in passes.items()}
    for count in sorted(set(counts.values()), reverse=True):
        ids = [i for i, n in counts.items() if n == count]
        found = {state: _measure(subject, model, ids, count) for state, model in _both(subject)}
        for method in ids:
            if method in found["trained"]:
                energy, pointing = found["trained"][method]
                yield Place(
                    sample=subject.name,
                    of=method,
                    pictures=count,
                    energy=energy,
                    pointing=pointing,
                    untrained=found["untrained"].get(method),
                )


def _both(subject: Subject) -> tuple[tuple[str, nn.Module], tuple[str, nn.Module]]:
    return (("trained", subject.trained), ("untrained", subject.untrained))


def _measure(subject: Subject, model: nn.Module, ids: Sequence[str], count: int) -> dict[str, tuple[float, float]]:
    """method -> mean (energy, pointing)."""
    results: dict[str, list[tuple[float, float]]] = {i: [] for i in ids}
    for first in range(0, count, AT_ONCE):
        part = slice(first, min(first + AT_ONCE, count))
        ((row,),) = heat_grids(
            model,
            subject.batch[part],
            classes=[subject.labels[part]],
            layers=[subject.layer],
            methods=ids,
            lenient=True,
        )
        for method, maps in zip(ids, row, strict=True):
            if not isinstance(maps, ExplainError):
                results[method].extend(_score(h, m) for h, m in zip(maps.heat, subject.masks[part], strict=True))
    return {i: _mean(found) for i, found in results.items() if found}


def _baselines(subject: Subject) -> Iterator[Place]:
    size = (subject.batch.shape[2], subject.batch.shape[3])
    makers = {
        "random map": lambda n: random_map(size, subject.layer.grid, n),
        "centred Gaussian": lambda n: centred_gaussian(size),
        "edge map": lambda n: edges(subject.batch[n].cpu()),
    }
    for name, make in makers.items():
        energy, pointing = _mean([_score(make(n), mask) for n, mask in enumerate(subject.masks)])
        yield Place(
            sample=subject.name,
            of=name,
            pictures=len(subject.masks),
            energy=energy,
            pointing=pointing,
            untrained=None,
        )


def _score(heat: Tensor, mask: Tensor) -> tuple[float, float]:
    """(energy, pointing), 0 for no heat, at the mask's own size, where the truth is exact."""
    small = functional.interpolate(
        heat[None, None].double(), size=tuple(mask.shape), mode="bilinear", align_corners=False, antialias=True
    )[0, 0]
    energy, pointing = energy_in_mask(small, mask), points_at(small, mask)
    return (0.0 if math.isnan(energy) else energy, 0.0 if math.isnan(pointing) else pointing)


def _mean(found: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return statistics.mean(e for e, _ in found), statistics.mean(p for _, p in found)


def clearly_above(rows: Sequence[Place], method: str = "grad-cam") -> None:
    """Raises AssertionError unless the method beats every baseline and its untrained twin, on every sample."""
    for row in rows:
        if row.of != method:
            continue
        assert row.untrained is not None
        rest = [(b.energy, b.pointing) for b in rows if b.sample == row.sample and b.untrained is None]
        for energy, pointing in (*rest, row.untrained):
            assert row.energy > 1.5 * energy, (row, energy)
            assert row.pointing > pointing, (row, pointing)
