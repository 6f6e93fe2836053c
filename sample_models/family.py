"""The family of sample files: one trained classifier, saved in the ways that people's files are saved.

Everything comes from the committed files under weights/: the weights and what the training run left beside them, and
the weights of a vision transformer, which is saved in one way only. Nothing is trained here but the tiny network of
`training_run.py`. Bytes are the same on every run, except for two: torch names the storages of a legacy file by
memory address, and notes in a traced program where it was traced from.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save as save_safetensors
from torch import Tensor, nn
from torchvision.models import get_model

from sample_models.hostile import hostile_archive
from sample_models.pictures import PICTURES, draw_pictures
from sample_models.shapes import CLASSES
from sample_models.train import ARCHITECTURE, new_optimizer, new_schedule
from sample_models.training_run import write_run
from sample_models.wrong import write_download_page, write_lfs_pointer, write_renamed, write_truncated

HERE = Path(__file__).resolve().parent
WEIGHTS = HERE / "weights"

# What was done to the sick file: (key, what). Kept small, so that each ailment has one place.
NAN_KEY = "stage3.2.branch2.5.weight"
NAN_COUNT = 5
DEAD_KEY, DEAD_FILTERS = "conv5.0.weight", 256
EXPLODED_KEY, EXPLOSION = "stage4.1.branch2.5.weight", 1e6
CONSTANT_KEY, CONSTANT = "stage2.1.branch2.0.weight", 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRun:
    """What training left behind.

    state: the last weights, in the model's own order. average: their moving average. metadata: of the weights file.
    exp_avg, exp_avg_sq: AdamW's moments by parameter name. steps: optimizer steps taken. folder: where it was read.
    """

    state: OrderedDict[str, Tensor]
    average: OrderedDict[str, Tensor]
    exp_avg: dict[str, Tensor]
    exp_avg_sq: dict[str, Tensor]
    metadata: dict[str, str]
    steps: int
    folder: Path

    @property
    def epochs(self) -> int:
        """Epochs trained."""
        return int(self.metadata["epochs"])

    @property
    def accuracy(self) -> float:
        """In percent, on fresh pictures."""
        return 100 * float(self.metadata["accuracy"])


def load_run(folder: Path = WEIGHTS) -> TrainedRun:
    """Read the committed files. safetensors re-orders; the model's own order is restored here."""
    weights, metadata = _read(folder / "shapes.safetensors")
    rest, training = _read(folder / "training.safetensors")
    names = list(get_model(ARCHITECTURE, num_classes=len(CLASSES)).state_dict())
    moments = [name for name in names if f"exp_avg.{name}" in rest]
    return TrainedRun(
        state=OrderedDict((name, weights[name]) for name in names),
        average=OrderedDict((name, rest[f"ema.{name}"]) for name in names),
        exp_avg={name: rest[f"exp_avg.{name}"] for name in moments},
        exp_avg_sq={name: rest[f"exp_avg_sq.{name}"] for name in moments},
        metadata=metadata,
        steps=int(training["steps"]),
        folder=folder,
    )


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    with safe_open(path, framework="pt") as file:
        # A safe_open handle has keys() but cannot be iterated.
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118


def build_model(run: TrainedRun) -> nn.Module:
    """The trained classifier, in eval mode."""
    model = get_model(ARCHITECTURE, num_classes=len(CLASSES))
    model.load_state_dict(run.state)
    return model.eval()


def derive(output: Path, *, weights: Path = WEIGHTS, pictures: Path = HERE / "pictures") -> tuple[Path, ...]:
    """Write the family into output and the pictures into pictures; existing files are replaced whole."""
    run = load_run(weights)
    output.mkdir(parents=True, exist_ok=True)
    draw_pictures(pictures)
    written = []
    # torch.save writes the file's stem into the archive, so files get their own names in a folder beside their place.
    with tempfile.TemporaryDirectory(dir=output, prefix=".deriving-") as scratch:
        folder = Path(scratch)
        for name, write in WRITERS.items():
            write(run, folder / name)
        whole = folder / "shapes.pth"
        write_download_page(folder / "download_page.pth")
        write_lfs_pointer(folder / "lfs_pointer.bin", whole)
        write_truncated(folder / "truncated.pth", whole)
        write_renamed(folder / "picture.pth", pictures / PICTURES[0].name)
        write_run(folder / "shapes_run.zip")
        for path in sorted(folder.iterdir()):
            path.replace(output / path.name)
            written.append(output / path.name)
    return tuple(written)


def _clean(run: TrainedRun, path: Path) -> None:
    torch.save(build_model(run).state_dict(), path)


def _safetensors(run: TrainedRun, path: Path) -> None:
    path.write_bytes((run.folder / "shapes.safetensors").read_bytes())


def _transformer(run: TrainedRun, path: Path) -> None:
    path.write_bytes((run.folder / "shapes_vit.safetensors").read_bytes())


def _data_parallel(run: TrainedRun, path: Path) -> None:
    # The layout of PyTorch's ImageNet example, which a thousand repositories copied.
    content = {
        "epoch": run.epochs,
        "arch": ARCHITECTURE,
        "state_dict": nn.DataParallel(build_model(run)).state_dict(),
        "best_acc1": torch.tensor(run.accuracy),
        "optimizer": _optimizer_state(run),
    }
    torch.save(content, path, _use_new_zipfile_serialization=False)


def _compiled(run: TrainedRun, path: Path) -> None:
    # torch.compile wraps a model in a module that calls it `_orig_mod`; only the names are needed here.
    options = argparse.Namespace(model=ARCHITECTURE, epochs=run.epochs, batch_size=32, opt="adamw", model_ema=True)
    content = {
        "model": OrderedDict((f"_orig_mod.{name}", tensor) for name, tensor in run.state.items()),
        "ema": run.average,
        "optimizer": _optimizer_state(run),
        "scheduler": _schedule_state(run),
        "epoch": run.epochs - 1,
        "args": options,
    }
    torch.save(content, path)


def _lightning(run: TrainedRun, path: Path) -> None:
    state = OrderedDict((f"model.{name}", tensor) for name, tensor in run.state.items())
    # A loss with class weights registers them as a buffer of the LightningModule.
    state["criterion.weight"] = torch.ones(len(CLASSES))
    content = {
        "epoch": run.epochs - 1,
        "global_step": run.steps,
        "pytorch-lightning_version": "2.5.5",
        "state_dict": state,
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"current": {"completed": run.epochs}}}},
        "callbacks": {
            "ModelCheckpoint{'monitor': 'val_acc', 'mode': 'max'}": {
                "monitor": "val_acc",
                "best_model_score": torch.tensor(run.accuracy / 100),
                "best_model_path": f"checkpoints/epoch={run.epochs - 1}-step={run.steps}.ckpt",
            }
        },
        "optimizer_states": [_optimizer_state(run)],
        "lr_schedulers": [_schedule_state(run)],
        "hparams_name": "kwargs",
        "hyper_parameters": {"architecture": ARCHITECTURE, "num_classes": len(CLASSES), "classes": list(CLASSES)},
    }
    torch.save(content, path)


def _module(run: TrainedRun, path: Path) -> None:
    torch.save(build_model(run), path)


def _half(run: TrainedRun, path: Path) -> None:
    halves = OrderedDict((name, t.half() if t.is_floating_point() else t) for name, t in run.state.items())
    torch.save(halves, path)


def _sick(run: TrainedRun, path: Path) -> None:
    state = OrderedDict((name, tensor.clone()) for name, tensor in run.state.items())
    flat = state[NAN_KEY].view(-1)
    flat[:: flat.numel() // NAN_COUNT][:NAN_COUNT] = float("nan")
    state[DEAD_KEY][:DEAD_FILTERS] = 0.0
    state[EXPLODED_KEY] *= EXPLOSION
    state[CONSTANT_KEY].fill_(CONSTANT)
    torch.save(state, path)


def _hostile(run: TrainedRun, path: Path) -> None:
    path.write_bytes(hostile_archive({name: tensor.numpy() for name, tensor in run.state.items()}))


def _bare_tensor(run: TrainedRun, path: Path) -> None:
    torch.save(run.state["fc.weight"], path)


def _tensor_list(run: TrainedRun, path: Path) -> None:
    torch.save(
        [run.state["fc.weight"].clone(), run.state["fc.bias"].clone(), run.state["conv1.0.weight"].clone()], path
    )


def _script(run: TrainedRun, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated; files made with it are not.
        torch.jit.trace(build_model(run), torch.zeros(1, 3, 64, 64)).save(str(path))


def _sharded(run: TrainedRun, path: Path) -> None:
    """A folder as model hubs lay it out, in one archive: shards, their index, and a configuration beside them."""
    names = list(run.state)
    cuts = (0, len(names) // 3, 2 * len(names) // 3, len(names))
    places: dict[str, str] = {}
    members: dict[str, bytes] = {}
    for number, (first, end) in enumerate(pairwise(cuts), 1):
        shard = f"model-{number:05}-of-00003.safetensors"
        places |= dict.fromkeys(names[first:end], shard)
        members[shard] = save_safetensors({name: run.state[name] for name in names[first:end]}, {"format": "pt"})
    total = sum(t.numel() * t.element_size() for t in run.state.values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    members["model.safetensors.index.json"] = json.dumps(index, indent=1).encode()
    config = {"architecture": ARCHITECTURE, "num_classes": len(CLASSES), "id2label": dict(enumerate(CLASSES))}
    members["config.json"] = json.dumps(config, indent=1).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            # Without a date of its own, so that the same weights make the same file.
            archive.writestr(zipfile.ZipInfo(f"shapes/{name}"), content)


# In the order in which the pages offer them.
WRITERS: dict[str, Callable[[TrainedRun, Path], None]] = {
    "shapes.pth": _clean,
    "shapes_dp.pth.tar": _data_parallel,
    "shapes_compile_ema.pth": _compiled,
    "shapes_lightning.ckpt": _lightning,
    "shapes_module.pth": _module,
    "shapes.safetensors": _safetensors,
    "shapes_vit.safetensors": _transformer,
    "shapes_fp16.pth": _half,
    "shapes_script.pt": _script,
    "shapes_sharded.zip": _sharded,
    "shapes_sick.pth": _sick,
    "hostile.pth": _hostile,
    "bare_tensor.pt": _bare_tensor,
    "tensor_list.pt": _tensor_list,
}


def _optimizer_state(run: TrainedRun) -> dict[str, Any]:
    """AdamW's own state dict, with the moments of the training run."""
    model = build_model(run)
    optimizer = new_optimizer(model)
    schedule = new_schedule(optimizer, total_steps=run.steps)
    _wind(schedule, run.steps)
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {
            "step": torch.tensor(float(run.steps)),
            "exp_avg": run.exp_avg[name],
            "exp_avg_sq": run.exp_avg_sq[name],
        }
    return optimizer.state_dict()


def _schedule_state(run: TrainedRun) -> dict[str, Any]:
    """The learning-rate schedule's state dict at the end of training."""
    schedule = new_schedule(new_optimizer(nn.Linear(1, 1)), total_steps=run.steps)
    _wind(schedule, run.steps)
    return schedule.state_dict()


def _wind(schedule: torch.optim.lr_scheduler.LRScheduler, steps: int) -> None:
    with warnings.catch_warnings():
        # It warns that the optimizer took no step. It did, when the weights were trained.
        warnings.simplefilter("ignore")
        for _ in range(steps):
            schedule.step()
