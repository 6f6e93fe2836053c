"""ZeRO folders as DeepSpeed 0.19 writes them, made without DeepSpeed: flat vectors, partitions, padding, placeholders.

Source: deepspeed/runtime/zero/stage_1_and_2.py, stage3.py and runtime/engine.py.
"""

from __future__ import annotations

import enum
import math
import sys
import types
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

Named = Mapping[str, torch.Tensor]


@contextmanager
def deepspeed_classes() -> Iterator[tuple[type[enum.IntEnum], type]]:
    """The two classes that ZeRO's pickles name, under the names they have there."""

    class ZeroStageEnum(enum.IntEnum):
        disabled = 0
        optimizer_states = 1
        gradients = 2
        weights = 3

    class LossScaler:
        def __init__(self) -> None:
            self.cur_scale = 1.0

    places = {
        "deepspeed.runtime.zero.config": ZeroStageEnum,
        "deepspeed.runtime.fp16.loss_scaler": LossScaler,
    }
    before = dict(sys.modules)
    try:
        for name, cls in places.items():
            parts = name.split(".")
            for n in range(1, len(parts) + 1):
                path = ".".join(parts[:n])
                if path not in sys.modules:
                    sys.modules[path] = types.ModuleType(path)
            cls.__module__, cls.__qualname__ = name, cls.__name__
            setattr(sys.modules[name], cls.__name__, cls)
        yield ZeroStageEnum, LossScaler
    finally:
        for name in set(sys.modules) - set(before):
            if name.startswith("deepspeed"):
                del sys.modules[name]


@dataclass(kw_only=True)
class Model:
    """groups: the trained parameters in fp32, by optimizer group. order: of the model's own state dict."""

    groups: Sequence[Named]
    frozen: Named = field(default_factory=dict)
    buffers: Named = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)

    def whole(self) -> dict[str, torch.Tensor]:
        """What must come out."""
        found = {name: p for group in self.groups for name, p in group.items()} | dict(self.frozen) | dict(self.buffers)
        return found | {name: found[other] for name, other in self.shared.items()}


def example(seed: int = 0) -> Model:
    torch.manual_seed(seed)
    return Model(
        groups=[
            {"embed.weight": torch.randn(11, 3), "layer.0.weight": torch.randn(5, 7), "scale": torch.randn(())},
            {"layer.0.bias": torch.randn(5), "norm.weight": torch.randn(3)},
        ],
        frozen={"frozen.weight": torch.randn(7, 2).bfloat16()},
        buffers={"norm.running_mean": torch.randn(3), "norm.num_batches_tracked": torch.tensor(9)},
        shared={"head.weight": "embed.weight"},
    )


def _common(model: Model, module: Named, fragments: Named) -> dict[str, Any]:
    return {
        "module": OrderedDict(module),
        "buffer_names": list(model.buffers),
        "optimizer": None,
        "param_shapes": [OrderedDict((n, p.shape) for n, p in group.items()) for group in model.groups],
        "frozen_param_shapes": OrderedDict((n, p.shape) for n, p in model.frozen.items()),
        "shared_params": dict(model.shared),
        "frozen_param_fragments": OrderedDict(fragments),
        "lr_scheduler": None,
        "global_steps": 5,
        "dp_world_size": 1,
        "mp_world_size": 1,
        "ds_config": {"zero_optimization": {"stage": 2}},
        "ds_version": "0.19.8",
    }


def _latest(folder: Path, tag: str) -> Path:
    (folder / tag).mkdir(parents=True, exist_ok=True)
    (folder / "latest").write_text(tag)
    return folder / tag


def save_zero2(
    folder: Path, model: Model, ranks: int, *, stage: int = 2, tag: str = "global_step5", mp: int = 0, lean: bool = True
) -> None:
    """Stage 1 or 2. lean: partitions without their padding, as checkpoints have them; else padded to 2 x ranks."""
    inside = _latest(folder, tag)
    half = {n: p.bfloat16() if p.is_floating_point() else p for n, p in model.whole().items()}
    torch.save(_common(model, half | dict(model.buffers), model.frozen), inside / f"mp_rank_{mp:02d}_model_states.pt")
    with deepspeed_classes() as (stages, scaler):
        for rank in range(ranks):
            parts, paddings = [], []
            for group in model.groups:
                flat = torch.cat([p.flatten() for p in group.values()])
                align = 2 * ranks
                padded = torch.cat([flat, torch.full((-len(flat) % align,), float("nan"))])
                size = len(padded) // ranks
                part = padded[rank * size : (rank + 1) * size].clone()
                paddings.append(max(0, min(size, (rank + 1) * size - len(flat))))
                parts.append(part[: size - paddings[-1]] if lean else part)
            inner = {
                "loss_scaler": scaler(),
                "base_optimizer_state": {
                    "state": {i: {"exp_avg": torch.zeros_like(p)} for i, p in enumerate(parts)},
                    "param_groups": [{"lr": 0.1, "params": [i]} for i in range(len(parts))],
                },
                "single_partition_of_fp32_groups": parts,
                "zero_stage": stages(stage),
                "group_paddings": paddings,
                "partition_count": [ranks] * len(parts),
            }
            torch.save(
                {"optimizer_state_dict": inner, "ds_version": "0.19.8"},
                inside / f"bf16_zero_pp_rank_{rank}_mp_rank_{mp:02d}_optim_states.pt",
            )


def save_zero3(folder: Path, model: Model, ranks: int, *, tag: str = "global_step5", flat_groups: int = 1) -> None:
    """Stage 3. flat_groups: over how many sub-groups of whole parameters each rank's vector is spread."""
    inside = _latest(folder, tag)

    def part(whole: torch.Tensor, rank: int) -> torch.Tensor:
        size = math.ceil(whole.numel() / ranks)
        padded = torch.cat([whole.flatten(), torch.zeros(size * ranks - whole.numel(), dtype=whole.dtype)])
        return padded[rank * size : (rank + 1) * size].clone()

    placeholders = {n: torch.empty(0, dtype=torch.bfloat16) for n in model.whole()}
    with deepspeed_classes() as (stages, scaler):
        for rank in range(ranks):
            fragments = {n: part(p, rank) for n, p in model.frozen.items()}
            torch.save(
                _common(model, placeholders | dict(model.buffers), fragments),
                inside / f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt",
            )
            parts = [part(p, rank) for group in model.groups for p in group.values()]
            flat = torch.cat(parts)
            share = math.ceil(len(parts) / flat_groups)
            inner = {
                "zero_stage": stages(3),
                "loss_scaler": scaler(),
                "partition_count": ranks,
                "optimizer_state_dict": {"state": {0: {"exp_avg": torch.zeros_like(flat)}}, "param_groups": []},
                "fp32_flat_groups": [torch.cat(parts[i : i + share]) for i in range(0, len(parts), share)],
            }
            torch.save(
                {"optimizer_state_dict": inner, "ds_version": "0.19.8"},
                inside / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt",
            )


def save_universal(folder: Path, model: Model, *, tag: str = "global_step5_universal") -> None:
    """What ds_to_universal.py writes: one file per parameter and state."""
    inside = _latest(folder, tag)
    for name, p in {n: p for group in model.groups for n, p in group.items()}.items():
        (inside / "zero" / name).mkdir(parents=True)
        for state, value in (("fp32", p), ("exp_avg", p * 0), ("exp_avg_sq", p * 0)):
            torch.save({"cat_dim": 0, "param": value.clone()}, inside / "zero" / name / f"{state}.pt")
        torch.save(torch.tensor(5.0), inside / "zero" / name / "step.pt")
    half = {n: p.bfloat16() if p.is_floating_point() else p for n, p in model.whole().items()}
    torch.save(_common(model, half, model.frozen), inside / "mp_rank_00_model_states.pt")
