"""Distributed checkpoints as several ranks write them, made in one process: torch's own planner and writer, a process
group that talks to nobody."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import DefaultSavePlanner, FileSystemWriter, hf_storage
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.testing._internal.distributed.fake_pg import FakeStore

Layout = Mapping[str, Sequence[Placement]]


def _shard(full: torch.Tensor, mesh: DeviceMesh, placements: Sequence[Placement]) -> DTensor:
    sizes, offsets = compute_local_shape_and_global_offset(full.shape, mesh, placements)
    part = full
    for axis, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        part = part.narrow(axis, min(offset, full.shape[axis]), size)
    return DTensor.from_local(
        part.clone(memory_format=torch.preserve_format),
        mesh,
        placements,
        run_check=False,
        shape=full.shape,
        stride=full.stride(),
    )


def _state_of(state: object, mesh: DeviceMesh, layout: Layout, name: str = "") -> object:
    if isinstance(state, dict):
        return {k: _state_of(v, mesh, layout, f"{name}.{k}" if name else str(k)) for k, v in state.items()}
    if isinstance(state, torch.Tensor) and name in layout:
        return _shard(state, mesh, layout[name])
    return state


def save_ranks(
    path: Path,
    state: dict[str, Any],
    layout: Layout,
    mesh_shape: tuple[int, ...],
    *,
    writer: Callable[[], FileSystemWriter] | None = None,
    alone: bool = False,
) -> None:
    """Save state as prod(mesh_shape) ranks do; tensors named in layout are sharded so, others are on every rank.

    alone: every rank writes its own metadata, as without collectives.
    """
    ranks = torch.Size(mesh_shape).numel()
    plans, planners, writers = [], [], []
    for rank in range(ranks):
        dist.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mesh = DeviceMesh("cpu", torch.arange(ranks).reshape(mesh_shape))
                planner = DefaultSavePlanner()
                planner.set_up_planner(_state_of(state, mesh, layout), is_coordinator=alone or rank == 0)  # type: ignore[arg-type]
                made = writer() if writer else FileSystemWriter(path)
                made.reset(path)
                made.set_up_storage_writer(alone or rank == 0, rank=rank, use_collectives=not alone)
                plans.append(made.prepare_local_plan(planner.create_local_plan()))
                planners.append(planner)
                writers.append(made)
        finally:
            dist.destroy_process_group()
    if alone:
        for planner, made, plan in zip(planners, writers, plans, strict=True):
            final, metadata = planner.create_global_plan([plan])
            (ours,) = final if made.rank is not None else made.prepare_global_plan(final)
            made.finish(metadata, [made.write_data(planner.finish_plan(ours), planner).wait()])
        return
    final, metadata = planners[0].create_global_plan(plans)
    final = writers[0].prepare_global_plan(final)
    results = []
    for planner, made, plan in zip(planners, writers, final, strict=True):
        results.append(made.write_data(planner.finish_plan(plan), planner).wait())
    writers[0].finish(metadata, results)


def save_safetensors_ranks(path: Path, state: dict[str, Any], layout: Layout, mesh_shape: tuple[int, ...]) -> None:
    """The same into safetensors shards with DCP_SHARDING_INFO."""
    save_ranks(
        path,
        state,
        layout,
        mesh_shape,
        writer=lambda: hf_storage.HuggingFaceStorageWriter(str(path), save_distributed=True),
    )


__all__ = ["Replicate", "Shard", "save_ranks", "save_safetensors_ranks"]
