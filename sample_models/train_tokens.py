"""Trains the sample vision transformer on the same shapes, so that the token path is shown on a model that has learned.

By hand only, some minutes on one CPU core. A transformer knows nothing of neighbouring pixels to begin with and needs
more pictures than the classifier of `train.py`: scenes are drawn once and seen about four times, each time turned or
mirrored, their colours exchanged or inverted, none of which changes the class.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import VisionTransformer

from sample_models.shapes import CLASSES, draw_scene
from sample_models.train import DRAWN_SIZES, EASE_BELOW, EASE_STEP, MEAN, STD, measure_accuracy, to_input

SIZE, PATCH, WIDTH, DEPTH, HEADS, HIDDEN = 64, 8, 96, 4, 4, 192

BATCH = 64
BATCHES = 3600
BATCHES_PER_ROUND = 32
# One in four pictures of a batch is new; the others come from the last ones drawn.
FRESH, KEPT = BATCH // 4, 1024
# Muon (Jordan 2024) for the matrices inside the blocks, AdamW for the rest.
MATRIX_RATE, RATE, WARM_UP, WEIGHT_DECAY = 2e-3, 1e-3, 0.04, 0.02
EMA_DECAY = 0.998

Scenes = tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.int64]]


def new_transformer() -> VisionTransformer:
    """torchvision's own vision transformer, in the size of the sample, in train mode."""
    return VisionTransformer(SIZE, PATCH, DEPTH, HEADS, WIDTH, HIDDEN, num_classes=len(CLASSES))


def train(folder: Path, *, seed: int = 7, share: float = 1.0) -> dict[str, float]:
    """Train and write shapes_vit.safetensors into folder: the weights' moving average.

    share: fraction of the full number of batches, for a smoke test. Returns the measured figures by name.
    """
    started, processor = time.monotonic(), time.process_time()
    torch.manual_seed(seed)
    rng = np.random.default_rng((seed, 64))
    model = new_transformer()
    with torch.no_grad():
        model.encoder.pos_embedding.copy_(_waves())
    batches = max(BATCHES_PER_ROUND, round(BATCHES * share))
    average = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    _learn(model, average, rng, batches=batches)
    model.load_state_dict(average)
    model.eval()
    figures = {"accuracy": measure_accuracy(model, size=SIZE), "pictures": float(batches * BATCH)}
    figures["seconds"] = time.monotonic() - started
    figures["processor_seconds"] = time.process_time() - processor
    folder.mkdir(parents=True, exist_ok=True)
    _save(folder / "shapes_vit.safetensors", model, seed=seed, figures=figures)
    return figures


def _learn(model: nn.Module, average: dict[str, Tensor], rng: np.random.Generator, *, batches: int) -> None:
    """All batches; updates model and average, and prints one line for each round."""
    started = time.monotonic()
    matrices = [p for name, p in model.named_parameters() if ".layers." in name and p.dim() == 2]
    others = [p for name, p in model.named_parameters() if not (".layers." in name and p.dim() == 2)]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.Muon(matrices, lr=MATRIX_RATE, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=RATE, weight_decay=WEIGHT_DECAY, betas=(0.9, 0.98)),
    ]
    schedules = [torch.optim.lr_scheduler.LambdaLR(one, lambda step: _rate(step, batches)) for one in optimizers]
    scenes = _draw(rng, 4 * BATCH)
    right, ease = 0, 1.0
    for batch in range(1, batches + 1):
        scenes = _renew(scenes, _draw(rng, FRESH))
        pictures, labels = _pick(rng, scenes, ease)
        logits = model(pictures)
        loss = functional.cross_entropy(logits, labels)
        for one in optimizers:
            one.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for one, schedule in zip(optimizers, schedules, strict=True):
            one.step()
            schedule.step()
        keep = min(EMA_DECAY, batch / (batch + 10))
        for name, tensor in model.state_dict().items():
            average[name].lerp_(tensor.detach(), 1 - keep)
        right += int((logits.argmax(1) == labels).sum())
        if batch % BATCHES_PER_ROUND == 0:
            accuracy, right = right / (BATCHES_PER_ROUND * BATCH), 0
            print(
                f"batch {batch}/{batches}, ease {ease:.1f}: loss {loss.item():.3f}, accuracy {accuracy:.3f}, "
                f"{time.monotonic() - started:.0f} s, {time.process_time():.0f} CPU s",
                flush=True,
            )
            if accuracy >= EASE_BELOW:
                ease = max(0.0, round(ease - EASE_STEP, 3))


def _rate(step: int, steps: int) -> float:
    """Share of the full learning rate: a straight rise, then half a cosine."""
    done = step / steps
    if done < WARM_UP:
        return done / WARM_UP
    return 0.5 + 0.5 * math.cos(math.pi * min(1.0, (done - WARM_UP) / (1 - WARM_UP)))


def _waves() -> Tensor:
    """(1, tokens, WIDTH): sines and cosines of row and column, so that near patches begin alike; the class token: 0."""
    side, quarter = SIZE // PATCH, WIDTH // 4
    speeds = 1 / 100 ** (torch.arange(quarter) / quarter)
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    parts = [turn(where.flatten()[:, None] * speeds) for where in (rows, columns) for turn in (torch.sin, torch.cos)]
    return torch.cat([torch.zeros(1, WIDTH), torch.cat(parts, dim=1)])[None] * 0.2


def _draw(rng: np.random.Generator, count: int) -> Scenes:
    """count new scenes at SIZE, drawn at one of several resolutions: images, masks, labels."""
    labels = rng.integers(len(CLASSES), size=count)
    drawn = int(rng.choice(DRAWN_SIZES))
    scenes = [draw_scene(rng, int(label), drawn, drawn) for label in labels]
    images = np.stack([_to_size(image) for image, _ in scenes])
    masks = np.stack([_to_size(mask.astype(np.uint8) * 255) > 127 for _, mask in scenes])
    return images, masks, labels


def _to_size(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if image.shape[0] == SIZE:
        return image
    return np.asarray(cv2.resize(image, (SIZE, SIZE), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _renew(old: Scenes, new: Scenes) -> Scenes:
    """The newest KEPT of both."""
    return (
        np.concatenate([old[0], new[0]])[-KEPT:],
        np.concatenate([old[1], new[1]])[-KEPT:],
        np.concatenate([old[2], new[2]])[-KEPT:],
    )


def _pick(rng: np.random.Generator, scenes: Scenes, ease: float) -> tuple[Tensor, Tensor]:
    """BATCH pictures (BATCH, 3, SIZE, SIZE), normalised, each turned and coloured anew, and their labels (BATCH,).

    ease: 0 for pictures as they are, 1 for between 40 % and all of each replaced by its bare mask.
    """
    chosen = rng.integers(len(scenes[2]), size=BATCH)
    images, masks, labels = scenes[0][chosen], scenes[1][chosen], scenes[2][chosen]
    seen = np.empty_like(images)
    for i in range(BATCH):
        image = images[i]
        if ease > 0:
            bare = np.where(masks[i], 230, 25)[..., None]
            image = (image + ease * rng.uniform(0.4, 1.0) * (bare - image.astype(np.float32))).astype(np.uint8)
        image = np.rot90(image, int(rng.integers(4)))[:, :, rng.permutation(3)]
        image = image[:, ::-1] if rng.random() < 0.5 else image
        seen[i] = 255 - image if rng.random() < 0.5 else image
    return to_input(seen, SIZE).contiguous(), torch.from_numpy(labels)


def _save(path: Path, model: nn.Module, *, seed: int, figures: dict[str, float]) -> None:
    metadata = {
        "format": "pt",
        "architecture": "torchvision/vision_transformer",
        "num_heads": str(HEADS),
        "classes": json.dumps(CLASSES),
        "preprocessing": json.dumps({"size": SIZE, "mean": MEAN, "std": STD}),
        "seed": str(seed),
        "pictures": f"{figures['pictures']:.0f}",
        "accuracy": f"{figures['accuracy']:.4f}",
        "license": "Apache-2.0",
        "origin": "trained by sample_models/build.py on generated shapes",
    }
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, path, metadata=metadata)
