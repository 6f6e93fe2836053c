"""A small training run for the Run page: eight checkpoints of one network, the log beside them, in one zip.

Trained here, in less than a second, on bare masks of the shapes: a network that learns a little and leaves everything
behind that a run has to tell. Its stem is frozen for the first epochs, the learning rate falls once, and one checkpoint
breaks off, as after a full disk. The same bytes each time on one machine; torch's sums differ between processors.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections import OrderedDict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sample_models.shapes import CLASSES, generate

if TYPE_CHECKING:
    from collections.abc import Iterator

EPOCHS, BATCHES, BATCH = 8, 12, 32
SEED, SIDE = 30_000, 32
PICTURES, HELD_OUT = 320, 96
RATE, LOWERED, LOWERED_FROM = 0.1, 0.01, 7
# Epochs in which the stem stands still; the member that is cut short, and to which share of its bytes.
FROZEN, CUT, CUT_TO = 3, 5, 0.4
# A point of the log every so many batches, seconds since 1970 of the first.
EVERY, BEGAN, SECONDS = 2, 1_700_000_000.0, 0.5
_WRITTEN = (2024, 1, 1, 0, 0, 0)


def new_network() -> nn.Module:
    """10,000 parameters: (n, 3, SIDE, SIDE) -> (n, 4)."""

    def block(inputs: int, outputs: int) -> nn.Module:
        conv = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        return nn.Sequential(OrderedDict(conv=conv, bn=nn.BatchNorm2d(outputs, momentum=0.3), act=nn.ReLU()))

    return nn.Sequential(
        OrderedDict(
            stem=block(3, 12),
            body=nn.Sequential(block(12, 24), block(24, 32)),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            head=nn.Linear(32, len(CLASSES)),
        )
    )


def write_run(place: Path) -> None:
    """Train, and write the zip."""
    with _one_thread(), torch.random.fork_rng(devices=()):
        torch.manual_seed(SEED)
        members, losses = _train()
    with zipfile.ZipFile(place, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(f"shapes_run/{name}", _WRITTEN), data)
        name, data = _log(losses)
        archive.writestr(zipfile.ZipInfo(f"shapes_run/logs/{name}", _WRITTEN), data)


def _train() -> tuple[dict[str, bytes], list[float]]:
    """(name -> bytes of each checkpoint, loss of every batch)."""
    pictures, labels = _pictures(SEED, PICTURES)
    fresh, wanted = _pictures(SEED + 1, HELD_OUT)
    rng = np.random.default_rng(SEED)
    model = new_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    members: dict[str, bytes] = {}
    losses: list[float] = []
    for epoch in range(1, EPOCHS + 1):
        model.train()
        if epoch <= FROZEN:
            # Batch norms gather statistics only where they are trained.
            model.get_submodule("stem").eval().requires_grad_(False)
        else:
            model.get_submodule("stem").requires_grad_(True)
        for group in optimizer.param_groups:
            group["lr"] = LOWERED if epoch >= LOWERED_FROM else RATE
        for _ in range(BATCHES):
            chosen = torch.from_numpy(rng.integers(len(labels), size=BATCH))
            # Turned and mirrored, so that the few pictures are not learned by heart.
            seen = torch.rot90(pictures[chosen], int(rng.integers(4)), (2, 3))
            seen = seen.flip(3) if rng.random() < 0.5 else seen
            loss = functional.cross_entropy(model(seen), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            right = (model(fresh).argmax(1) == wanted).float().mean().item()
        raw = io.BytesIO()
        content = {
            "epoch": epoch,
            "global_step": epoch * BATCHES,
            "state_dict": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "loss": float(np.mean(losses[-BATCHES:])),
            "accuracy": right,
        }
        torch.save(content, raw)
        data = raw.getvalue()
        members[f"epoch_{epoch}.pth"] = data[: int(len(data) * CUT_TO)] if epoch == CUT else data
    return members, losses


def _pictures(seed: int, count: int) -> tuple[Tensor, Tensor]:
    """Masks as bright shapes on a dark ground, with noise: (count, 3, SIDE, SIDE) and labels (count,)."""
    _, labels, masks = generate(seed, count, SIDE)
    noise = np.random.default_rng(seed).standard_normal((count, 3, SIDE, SIDE), dtype=np.float32)
    bright = masks[:, None].astype(np.float32) * 2 - 1
    return torch.from_numpy(bright + 0.2 * noise), torch.from_numpy(labels)


def _log(losses: list[float]) -> tuple[str, bytes]:
    """(name, bytes) of the event file that TensorBoard would have been shown."""
    from inspector.events.write import event_file

    with tempfile.TemporaryDirectory() as folder:
        with event_file(Path(folder), BEGAN) as log:
            for step, loss in enumerate(losses, start=1):
                if step % EVERY == 0:
                    log.scalar("train/loss", step, loss, BEGAN + SECONDS * step)
        (path,) = Path(folder).iterdir()
        return path.name, path.read_bytes()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums of several threads are added in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
