"""Trains the sample classifier on shapes and saves everything a training run would leave behind.

By hand only, a few minutes on two CPU cores. The result is committed under weights/: the weights in one file, the
optimizer's moments and the weights' moving average in another, so that the derived checkpoints carry real ones.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import get_model

from sample_models.shapes import CLASSES, draw_scene, generate

ARCHITECTURE = "shufflenet_v2_x0_5"
# At stride 32 a 192-pixel input leaves a 6x6 map before pooling: fine enough for a heat map to point at something.
INPUT_SIZE = 192
MEAN = (0.5, 0.5, 0.5)
STD = (0.25, 0.25, 0.25)

BATCH = 32
BATCHES_PER_EPOCH = 64
WEIGHT_DECAY = 1e-2
EMA_DECAY = 0.995
# Scenes are drawn at several resolutions, so that a small drawing scaled up and a large one scaled down both work.
DRAWN_SIZES = (64, 64, 64, 96, 128)
# Tried first without: after 800 batches the accuracy was still at chance. So the first pictures are faded towards a
# bright object on a dark ground, and less so each time an epoch reaches EASE_BELOW; from half of the epochs on, never.
EASE_STEP, EASE_BELOW = 0.1, 0.70


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One cycle of the learning rate, with an optimizer of its own.

    phases: (epochs, input size). peak_rate: of the cycle. eased: whether it begins with faded pictures.
    """

    phases: tuple[tuple[int, int], ...]
    peak_rate: float
    eased: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """The input size of each epoch."""
        return tuple(size for count, size in self.phases for _ in range(count))


# Most of the learning happens at the cheaper sizes. After the first round alone the accuracy was 95.5 %.
ROUNDS = (
    Round(phases=((56, 96), (8, 128), (10, INPUT_SIZE)), peak_rate=2e-3, eased=True),
    Round(phases=((10, INPUT_SIZE),), peak_rate=1e-3, eased=False),
)

# Fresh pictures are drawn with seeds that training, which uses `seed` itself, never meets.
TEST_SEED = 90_001


def train(folder: Path, *, seed: int = 7, share: float = 1.0, start: Path | None = None) -> dict[str, float]:
    """Train and write shapes.safetensors and training.safetensors into folder.

    share: fraction of the full number of batches, for a smoke test. start: weights that earlier rounds wrote; only the
    last round is run then. Returns the measured figures by name.
    """
    started, processor = time.monotonic(), time.process_time()
    torch.manual_seed(seed)
    model = get_model(ARCHITECTURE, num_classes=len(CLASSES)).train()
    # A quarter less processor time on a CPU; what is saved is laid out as usual.
    model = model.to(memory_format=torch.channels_last)
    rounds = ROUNDS
    if start is not None:
        model.load_state_dict(load_file(start))
        rounds = ROUNDS[-1:]
    per_epoch = max(1, round(BATCHES_PER_EPOCH * share))
    for one in rounds:
        # Each round has pictures of its own, whether it follows another one or is run alone.
        rng = np.random.default_rng((seed, ROUNDS.index(one)))
        average = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        optimizer = new_optimizer(model)
        schedule = new_schedule(optimizer, total_steps=len(one.sizes) * per_epoch, peak_rate=one.peak_rate)
        _run_round(one, model, optimizer, schedule, average, rng, per_epoch=per_epoch)
    model.eval()
    figures = {"accuracy": measure_accuracy(model), "mask_energy_ratio": measure_localisation(model)}
    averaged = get_model(ARCHITECTURE, num_classes=len(CLASSES)).eval()
    averaged.load_state_dict(average)
    figures["ema_accuracy"] = measure_accuracy(averaged)
    folder.mkdir(parents=True, exist_ok=True)
    epochs = sum(len(one.sizes) for one in ROUNDS)
    _save_weights(folder / "shapes.safetensors", model, epochs=epochs, seed=seed, figures=figures)
    _save_training(folder / "training.safetensors", model, optimizer, average, schedule)
    figures["seconds"] = time.monotonic() - started
    figures["processor_seconds"] = time.process_time() - processor
    return figures


def _run_round(
    one: Round,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    average: dict[str, Tensor],
    rng: np.random.Generator,
    *,
    per_epoch: int,
) -> None:
    """All epochs of one round; updates model, optimizer, schedule and average, and prints one line for each epoch."""
    started = time.monotonic()
    ease = 1.0 if one.eased else 0.0
    for epoch, size in enumerate(one.sizes, start=1):
        batches = (_draw_batch(rng, size, ease) for _ in range(per_epoch))
        loss, accuracy = _train_epoch(model, optimizer, schedule, average, batches)
        print(
            f"epoch {epoch:2d}/{len(one.sizes)} at {size} px, ease {ease:.1f}: loss {loss:.3f}, "
            f"accuracy {accuracy:.3f}, {time.monotonic() - started:.0f} s",
            flush=True,
        )
        if epoch >= len(one.sizes) // 2:
            ease = 0.0
        elif accuracy >= EASE_BELOW:
            ease = max(0.0, round(ease - EASE_STEP, 3))


def _train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    average: dict[str, Tensor],
    batches: Iterable[tuple[Tensor, Tensor]],
) -> tuple[float, float]:
    """Learn from batches; updates model, optimizer, schedule and average. Returns mean loss and accuracy."""
    right, seen, loss_sum = 0, 0, 0.0
    for pictures, labels in batches:
        logits = model(pictures)
        loss = functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                average[name].lerp_(tensor.detach(), 1 - EMA_DECAY)
            else:
                average[name].copy_(tensor)
        right += int((logits.argmax(1) == labels).sum())
        seen += len(labels)
        loss_sum += float(loss.detach()) * len(labels)
    return loss_sum / seen, right / seen


def new_optimizer(model: nn.Module) -> torch.optim.AdamW:
    """The optimizer of a round, fresh; its rate is set by the schedule."""
    return torch.optim.AdamW(model.parameters(), weight_decay=WEIGHT_DECAY)


def new_schedule(
    optimizer: torch.optim.Optimizer, *, total_steps: int, peak_rate: float = ROUNDS[-1].peak_rate
) -> torch.optim.lr_scheduler.OneCycleLR:
    """The learning-rate schedule of a round (by default the last), at its start."""
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=peak_rate, total_steps=total_steps, pct_start=0.1, cycle_momentum=False
    )


def _draw_batch(rng: np.random.Generator, size: int, ease: float) -> tuple[Tensor, Tensor]:
    """BATCH fresh pictures (BATCH, 3, size, size), normalised, and their labels (BATCH,).

    ease: 0 for pictures as they are, 1 for between 40 % and all of each replaced by its bare mask.
    """
    labels = rng.integers(len(CLASSES), size=BATCH)
    drawn = int(rng.choice(DRAWN_SIZES))
    scenes = [draw_scene(rng, int(label), drawn, drawn) for label in labels]
    images = np.stack([image for image, _ in scenes])
    if ease > 0:
        bare = np.where(np.stack([mask for _, mask in scenes]), 230, 25)[..., None]
        shares = (ease * rng.uniform(0.4, 1.0, size=(BATCH, 1, 1, 1))).astype(np.float32)
        images = (images + shares * (bare - images.astype(np.float32))).astype(np.uint8)
    return to_input(images, size), torch.from_numpy(labels)


def to_input(images: NDArray[np.uint8], size: int = INPUT_SIZE) -> Tensor:
    """uint8 (n, H, W, 3) with equal sides to normalised float32 (n, 3, size, size)."""
    way = cv2.INTER_LINEAR if images.shape[1] <= size else cv2.INTER_AREA
    scaled = np.stack([cv2.resize(image, (size, size), interpolation=way) for image in images])
    values = (scaled.astype(np.float32) / 255 - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
    return torch.from_numpy(values).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)


def measure_accuracy(model: nn.Module, n: int = 1000, size: int = INPUT_SIZE) -> float:
    """Share of n fresh pictures, drawn at 64 px as `generate` does by default, that the model classifies rightly."""
    images, labels, _ = generate(TEST_SEED, n)
    right = 0
    with torch.inference_mode():
        for start in range(0, n, BATCH):
            answer = model(to_input(images[start : start + BATCH], size)).argmax(1)
            right += int((answer == torch.from_numpy(labels[start : start + BATCH])).sum())
    return right / n


def measure_localisation(model: nn.Module, n: int = 200) -> float:
    """Mean heat inside the object's mask over what a uniform map has there, for the class the picture shows.

    The class activation map of Zhou 2016: the model ends in average pooling and one linear layer, where Grad-CAM is
    the same map up to scale.
    """
    images, labels, masks = generate(TEST_SEED + 1, n)
    features: list[Tensor] = []
    hook = model.conv5.register_forward_hook(lambda _module, _inputs, output: features.append(output))
    ratios = []
    try:
        with torch.inference_mode():
            for i in range(n):
                features.clear()
                model(to_input(images[i : i + 1]))
                weights = model.fc.weight[int(labels[i])][:, None, None]
                heat = (features[0][0] * weights).sum(0).relu().numpy()
                heat = cv2.resize(heat, masks.shape[2:0:-1], interpolation=cv2.INTER_LINEAR)
                inside = float(heat[masks[i]].sum() / max(float(heat.sum()), 1e-12))
                ratios.append(inside / float(masks[i].mean()))
    finally:
        hook.remove()
    return float(np.mean(ratios))


def _save_weights(path: Path, model: nn.Module, *, epochs: int, seed: int, figures: dict[str, float]) -> None:
    metadata = {
        "format": "pt",
        "architecture": f"torchvision/{ARCHITECTURE}",
        "classes": json.dumps(CLASSES),
        "preprocessing": json.dumps({"size": INPUT_SIZE, "mean": MEAN, "std": STD}),
        "seed": str(seed),
        "epochs": str(epochs),
        "accuracy": f"{figures['accuracy']:.4f}",
        "license": "Apache-2.0",
        "origin": "trained by sample_models/build.py on generated shapes",
    }
    save_file(_contiguous(model.state_dict()), path, metadata=metadata)


def _save_training(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    average: dict[str, Tensor],
    schedule: torch.optim.lr_scheduler.LRScheduler,
) -> None:
    """The moving average and AdamW's moments, one tensor per name: ema.<key>, exp_avg.<key>, exp_avg_sq.<key>."""
    tensors = {f"ema.{name}": tensor for name, tensor in average.items()}
    for name, parameter in model.named_parameters():
        state = optimizer.state[parameter]
        tensors[f"exp_avg.{name}"] = state["exp_avg"]
        tensors[f"exp_avg_sq.{name}"] = state["exp_avg_sq"]
    metadata = {
        "steps": str(schedule.last_epoch),
        "ema_decay": repr(EMA_DECAY),
    }
    save_file(_contiguous(tensors), path, metadata=metadata)


def _contiguous(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
