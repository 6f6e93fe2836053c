"""DTensor and ShardedTensor, saved in one process that believes to be one of four. Source: torch/distributed."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.errors import ReadError
from inspector.readers import open_checkpoint
from tests.readers.hostile import text, torch_zip
from tests.readers.test_old_tensors import name, number, row, storage

warnings.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def four_ranks() -> Iterator[None]:
    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    yield
    dist.destroy_process_group()


def opened(value: object) -> Checkpoint:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return open_checkpoint(buffer.getvalue())


def only(checkpoint: Checkpoint, key: str) -> TensorInfo:
    (found,) = [t for t in checkpoint.tensors if t.name == key]
    return found


def test_a_sharded_dtensor_shows_its_whole_shape_and_gives_its_local_shard() -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    local = torch.arange(12.0).view(3, 4)
    made = DTensor.from_local(local, mesh, [Shard(0), Replicate()], run_check=False)
    checkpoint = opened({"w": made, "plain": torch.ones(2)})
    info = only(checkpoint, "w")
    assert (info.shape, info.dtype, info.storage_id) == ((6, 4), "float32", None)
    assert info.note == "DTensor Shard(0), Replicate() over a mesh of 2x2 (dp, tp); this file holds 3x4 of it"
    assert read_array(checkpoint, only(checkpoint, "w.local shard")).tolist() == local.tolist()
    with pytest.raises(ReadError, match=r"Shard\(0\)"):
        read_array(checkpoint, info)
    assert read_array(checkpoint, only(checkpoint, "plain")).tolist() == [1.0, 1.0]
    assert [t.name for t in checkpoint.state_dicts[0].tensors] == ["w", "plain"]


def test_a_replicated_dtensor_is_read_under_its_own_name() -> None:
    mesh = init_device_mesh("cpu", (4,))
    made = DTensor.from_local(torch.arange(6.0), mesh, [Replicate()], run_check=False)
    checkpoint = opened({"w": torch.nn.Parameter(made)})
    info = only(checkpoint, "w")
    assert info.is_parameter is True
    assert read_array(checkpoint, info).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert info.note.endswith("this file holds all of it")


def test_a_partial_sum_is_not_taken_for_the_tensor() -> None:
    mesh = init_device_mesh("cpu", (4,))
    checkpoint = opened({"w": DTensor.from_local(torch.ones(3), mesh, [Partial()], run_check=False)})
    info = only(checkpoint, "w")
    assert info.storage_id is None
    assert "Partial(sum)" in info.note
    assert read_array(checkpoint, only(checkpoint, "w.local shard")).tolist() == [1.0] * 3


def test_a_sharded_tensor_lists_its_local_shards_by_place() -> None:
    from torch.distributed._shard import sharded_tensor
    from torch.distributed._shard.sharding_spec import ChunkShardingSpec

    spec = ChunkShardingSpec(0, [f"rank:{rank}/cpu" for rank in range(4)])
    checkpoint = opened({"w": sharded_tensor.full(spec, (8, 3), 2.5)})
    info = only(checkpoint, "w")
    assert (info.shape, info.storage_id) == ((8, 3), None)
    assert info.note == "ShardedTensor: 1 local shard with 6 of 24 elements"
    assert read_array(checkpoint, only(checkpoint, "w.shard at (0, 0)")).tolist() == [[2.5] * 3] * 2


def test_the_module_names_of_torch_2_0_mean_the_same() -> None:
    """DTensor lived in torch.distributed._tensor, its mesh was a tensor, its attributes a plain dict."""
    old = "torch.distributed._tensor"
    local = (
        name("torch._utils", "_rebuild_tensor_v2") + b"(" + storage() + number(0) + row(2, 3) + row(3, 1) + b"\x89NtR"
    )
    ranks = name("torch._utils", "_rebuild_tensor_v2") + b"(" + storage("LongStorage", "1", 4)
    ranks += number(0) + row(4) + row(1) + b"\x89NtR"
    mesh = name(f"{old}.device_mesh", "DeviceMesh") + b")\x81}" + text("mesh") + ranks + b"sb"
    shard = name(f"{old}.placement_types", "Shard") + b")\x81}" + text("dim") + number(0) + b"sb"
    spec = name(f"{old}.placement_types", "DTensorSpec") + b")\x81}(" + text("mesh") + mesh
    spec += text("placements") + shard + b"\x85ub"
    wrapper = name("torch._utils", "_rebuild_wrapper_subclass") + name(f"{old}.api", "DTensor")
    layout = name("torch.serialization", "_get_layout") + text("torch.strided") + b"\x85R"
    outer = b"(" + name(f"{old}.api", "DTensor") + name("torch", "float32") + row(8, 3) + row(3, 1) + number(0)
    outer += layout + name("torch", "device") + text("cpu") + b"\x85R\x89t"
    state = b"}(" + text("_local_tensor") + local + text("_spec") + spec + b"u"
    body = name("torch._tensor", "_rebuild_from_type_v2") + b"(" + wrapper + outer + state + b"tR"
    members = {"archive/data/0": bytes(24), "archive/data/1": bytes(32)}
    checkpoint = open_checkpoint(torch_zip(b"\x80\x02}" + text("w") + body + b"s.", members))
    info = only(checkpoint, "w")
    assert (info.shape, info.note) == ((8, 3), "DTensor Shard(0) over a mesh of 4; this file holds 2x3 of it")
    assert only(checkpoint, "w.local shard").shape == (2, 3)


def test_a_dtensor_without_its_parts_is_said_to_be_that() -> None:
    wrapper = name("torch._utils", "_rebuild_wrapper_subclass") + name("torch.distributed.tensor", "DTensor")
    outer = b"(" + name("torch.distributed.tensor", "DTensor") + name("torch", "float32") + row(2) + row(1) + number(0)
    outer += b"NN\x89t"
    body = name("torch._tensor", "_rebuild_from_type_v2") + b"(" + wrapper + outer + b"}" + text("_spec") + b"NstR"
    checkpoint = open_checkpoint(torch_zip(b"\x80\x02}" + text("w") + body + b"s."))
    assert only(checkpoint, "w").note == "DTensor without its local shard"
