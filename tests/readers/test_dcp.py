"""torch.distributed.checkpoint folders, "dcp" and "dcp-safetensors", against torch's own loader; and broken ones."""

from __future__ import annotations

import io
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from cluster_saves import Replicate, Shard, save_ranks, save_safetensors_ranks
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.metadata import (
    Metadata,
    MetadataIndex,
)

from inspector.checkpoint.data import read_bytes
from inspector.checkpoint.types import Checkpoint, GlobalVerdict, StateRole, TensorInfo
from inspector.errors import CorruptFile, InspectorError, UnknownFormat
from inspector.findings import Severity
from inspector.readers import detect_format, open_checkpoint


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def model_state() -> dict[str, Any]:
    torch.manual_seed(0)
    return {
        "model": {
            "a.weight": torch.randn(10, 6),
            "b.weight": torch.randn(7, 5).t(),
            "c.weight": torch.randn(8, 8).bfloat16(),
            "d.weight": torch.randn(3, 4, 2, 2, dtype=torch.float64),
            "n": torch.tensor(7),
            "e": torch.empty(0, 3),
        },
        "optim": {
            "state": {"a.weight": {"exp_avg": torch.randn(10, 6), "step": torch.tensor(3.0)}},
            "param_groups": [{"lr": 0.125, "params": ["a.weight"]}],
        },
        "epoch": 3,
    }


LAYOUTS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "fully sharded": (
        {n: [Shard(0)] for n in ("model.a.weight", "model.c.weight", "optim.state.a.weight.exp_avg")},
        (4,),
    ),
    "columns": ({"model.a.weight": [Shard(1)], "model.b.weight": [Shard(1)], "model.d.weight": [Shard(1)]}, (3,)),
    "two axes": (
        {
            "model.a.weight": [Shard(0), Shard(1)],
            "model.b.weight": [Replicate(), Shard(0)],
            "model.c.weight": [Shard(1), Shard(0)],
            "model.d.weight": [Shard(0), Shard(0)],
        },
        (2, 2),
    ),
}


def as_torch_has_it(folder: Path, tmp_path: Path) -> dict[str, Any]:
    dcp_to_torch_save(folder, tmp_path / "whole.pt")
    loaded: dict[str, Any] = torch.load(tmp_path / "whole.pt", weights_only=False)
    return loaded


def at(state: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        state = state[int(key)] if isinstance(state, list) else state[key]
    return state


def compare(checkpoint: Checkpoint, state: dict[str, Any], count: int) -> None:
    assert len(checkpoint.tensors) == count
    for tensor in checkpoint.tensors:
        theirs = at(state, tensor.path)
        assert (tensor.shape, f"torch.{tensor.dtype}") == (tuple(theirs.shape), str(theirs.dtype))
        assert read_bytes(checkpoint, tensor) == bits(theirs)


def tensor(checkpoint: Checkpoint, *path: str) -> TensorInfo:
    return next(t for t in checkpoint.tensors if t.path == path)


def ids(checkpoint: Checkpoint) -> set[str]:
    return {f.id for f in checkpoint.findings if f.severity in (Severity.WARNING, Severity.ERROR)}


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saves") / "two_axes"
    layout, mesh = LAYOUTS["two axes"]
    save_ranks(folder, model_state(), layout, mesh)
    return folder


@pytest.fixture
def mine(sharded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sharded, tmp_path / "mine"))


def test_one_rank(tmp_path: Path) -> None:
    dcp.save(model_state(), checkpoint_id=tmp_path / "one", no_dist=True)
    checkpoint = open_checkpoint(tmp_path / "one")
    assert (checkpoint.format, checkpoint.findings) == ("dcp", ())
    compare(checkpoint, as_torch_has_it(tmp_path / "one", tmp_path), 8)
    compare(checkpoint, model_state(), 8)
    assert checkpoint.weights is not None and checkpoint.weights.path == ("model",)
    assert [t.name for t in checkpoint.weights.tensors] == list(model_state()["model"])
    optimizer = next(s for s in checkpoint.state_dicts if s.role is StateRole.OPTIMIZER)
    assert {t.name for t in optimizer.tensors} == {"state.a.weight.exp_avg", "state.a.weight.step"}
    said = dict(checkpoint.metadata)
    assert (said["epoch"], said["optim.param_groups.0.lr"], said["version"]) == ("3", "0.125", "1.0.0")
    assert {g.verdict for g in checkpoint.globals} == {GlobalVerdict.KNOWN}
    assert {p.name for p in checkpoint.parts} == {".metadata", "__0_0.distcp"}


@pytest.mark.parametrize("name", LAYOUTS)
def test_several_ranks(name: str, tmp_path: Path) -> None:
    layout, mesh = LAYOUTS[name]
    save_ranks(tmp_path / "ranks", model_state(), layout, mesh)
    checkpoint = open_checkpoint(tmp_path / "ranks")
    assert checkpoint.findings == ()
    compare(checkpoint, as_torch_has_it(tmp_path / "ranks", tmp_path), 8)
    compare(checkpoint, model_state(), 8)
    for sharded_name in layout:
        assert "chunks" in next(t.note for t in checkpoint.tensors if ".".join(t.path) == sharded_name)
    copy = pickle.loads(pickle.dumps(checkpoint))
    assert read_bytes(copy, copy.tensors[0]) == read_bytes(checkpoint, checkpoint.tensors[0])


def test_every_rank_with_its_own_metadata(tmp_path: Path) -> None:
    layout, mesh = LAYOUTS["two axes"]
    save_ranks(tmp_path / "alone", model_state(), layout, mesh, alone=True)
    assert not (tmp_path / "alone/.metadata").exists()
    checkpoint = open_checkpoint(tmp_path / "alone")
    compare(checkpoint, model_state(), 8)
    assert ids(checkpoint) == set()
    (tmp_path / "alone/__3.metadata").unlink()
    found = next(f for f in open_checkpoint(tmp_path / "alone").findings if f.id == "chunks-missing")
    assert "model.a.weight lacks 15 of 60 elements (25.0 %)" in found.says


def test_safetensors_shards(tmp_path: Path) -> None:
    state = {"a.weight": torch.randn(10, 6), "c": torch.randn(8, 8).bfloat16(), "n": torch.tensor(7)}
    layout = {"a.weight": [Shard(0), Replicate()], "c": [Shard(1), Shard(0)]}
    save_safetensors_ranks(tmp_path, state, layout, (2, 2))
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.format == "dcp-safetensors"
    compare(checkpoint, state, 3)
    assert ids(checkpoint) == set()
    (tmp_path / "shard-00002-model-00001-of-00001.safetensors").unlink()
    cut = open_checkpoint(tmp_path)
    assert "1 shard is missing: of 4 numbers, 3 are there" in next(
        f.says for f in cut.findings if f.id == "missing-data-file"
    )
    assert "c lacks 16 of 64 elements" in next(f.says for f in cut.findings if f.id == "chunks-missing")


def test_the_first_chunks_are_not_needed_to_list(mine: Path) -> None:
    """What a chunk's own header says is looked at again when its numbers are read."""
    checkpoint = open_checkpoint(mine)
    for path in mine.glob("*.distcp"):
        path.write_bytes(b"\x00" * path.stat().st_size)
    with pytest.raises(InspectorError, match=r"model\.a\.weight in __0_0"):
        read_bytes(checkpoint, tensor(checkpoint, "model", "a.weight"))


def test_a_missing_data_file_names_what_is_lost(mine: Path) -> None:
    (mine / "__3_0.distcp").unlink()
    checkpoint = open_checkpoint(mine)
    found = next(f for f in checkpoint.findings if f.id == "missing-data-file")
    assert "1 data file is missing, first __3_0.distcp" in found.says
    assert dict(found.evidence)["lost of model.a.weight"] == 0.25
    lost = tensor(checkpoint, "model", "a.weight")
    with pytest.raises(CorruptFile):
        read_bytes(checkpoint, lost)
    # Rows 0 to 4 lie in the files of ranks 0 and 1, and rank 3 has the right half of rows 5 to 9.
    assert checkpoint.storages[lost.storage_id or ""].present_nbytes == (5 * 6 + 3) * 4
    touched = {label.removeprefix("lost of ") for label, _ in found.evidence if label.startswith("lost of ")}
    intact = [t for t in checkpoint.tensors if ".".join(t.path) not in touched]
    assert len(touched) + len(intact) == 8 and len(intact) >= 2
    for info in intact:
        assert read_bytes(checkpoint, info) == bits(at(model_state(), info.path))


def test_a_data_file_cut_short(mine: Path) -> None:
    path = mine / "__2_0.distcp"
    path.write_bytes(path.read_bytes()[:-1])
    found = next(f for f in open_checkpoint(mine).findings if f.id == "cut-short")
    assert f"__2_0.distcp has {path.stat().st_size:,} bytes" in found.says


def rewrite(folder: Path, change: Callable[[Metadata], None]) -> Path:
    """Change the .metadata that torch wrote."""
    metadata = pickle.loads((folder / ".metadata").read_bytes())
    change(metadata)
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    return folder


def test_places_that_lead_outside(mine: Path) -> None:
    secret = mine.parent / "secret.distcp"
    shutil.copy(mine / "__0_0.distcp", secret)

    def change(metadata: Metadata) -> None:
        for info in metadata.storage_data.values():
            if info.relative_path == "__0_0.distcp":
                info.relative_path = "../secret.distcp"

    checkpoint = open_checkpoint(rewrite(mine, change))
    assert "'../secret.distcp'. It was not followed" in next(
        f.says for f in checkpoint.findings if f.id == "outside-path"
    )
    with pytest.raises(CorruptFile):
        read_bytes(checkpoint, tensor(checkpoint, "model", "a.weight"))


def test_chunks_that_overlap_and_chunks_that_are_missing(mine: Path) -> None:
    def change(metadata: Metadata) -> None:
        metadata.state_dict_metadata["model.a.weight"].chunks.pop(0)
        metadata.state_dict_metadata["model.c.weight"].chunks[0].sizes = torch.Size([8, 4])

    checkpoint = open_checkpoint(rewrite(mine, change))
    with pytest.raises(CorruptFile, match=r"holds 4x4 bfloat16; the \.metadata says 8x4"):
        read_bytes(checkpoint, tensor(checkpoint, "model", "c.weight"))
    found = {f.id: f.says for f in checkpoint.findings}
    assert "model.a.weight lacks 15 of 60 elements" in found["chunks-missing"]
    assert "model.c.weight has 16 elements more than once" in found["chunks-overlap"]
    assert "model.c.weight holds 4x4 bfloat16; the .metadata says 8x4 bfloat16" in found["unreadable-items"]


def test_a_version_from_later_and_packed_chunks(mine: Path) -> None:
    def change(metadata: Metadata) -> None:
        metadata.version = "2.0.0"
        metadata.storage_data[MetadataIndex("model.n", [])].transform_descriptors = ["stream.zstd"]

    checkpoint = open_checkpoint(rewrite(mine, change))
    found = {f.id: f.says for f in checkpoint.findings}
    assert "version '2.0.0'; known here is 1.0.0" in found["unknown-version"]
    assert "packed by an extension (stream.zstd), first model.n" in found["transformed-chunks"]
    with pytest.raises(CorruptFile):
        read_bytes(checkpoint, tensor(checkpoint, "model", "n"))


def test_a_left_over_data_file_is_said(mine: Path) -> None:
    shutil.copy(mine / "__0_0.distcp", mine / "__9_0.distcp")
    assert "first __9_0.distcp" in next(f.says for f in open_checkpoint(mine).findings if f.id == "unused-files")


def test_files_of_the_folder_opened_alone(mine: Path, tmp_path: Path) -> None:
    for name in ("__0_0.distcp", ".metadata"):
        checkpoint = open_checkpoint(mine / name)
        assert (checkpoint.format, len(checkpoint.tensors)) == ("dcp", 8)
        claimed = detect_format(mine / name)
        assert claimed is not None and claimed[0].id == "dcp-file"
    data = (mine / "__2_0.distcp").read_bytes()
    with pytest.raises(UnknownFormat, match=r"is a data file of a torch\.distributed\.checkpoint"):
        open_checkpoint(data, name="__2_0.distcp")
    with pytest.raises(UnknownFormat, match="says where the tensors of a distributed checkpoint lie"):
        open_checkpoint((mine / ".metadata").read_bytes(), name=".metadata")
    torch.save({"w": torch.ones(3)}, tmp_path / "plain.pt")
    assert open_checkpoint(tmp_path / "plain.pt").format == "torch-zip"


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_packed_into_one_file(kind: str, sharded: Path, tmp_path: Path) -> None:
    packed = shutil.make_archive(str(tmp_path / "packed"), kind, sharded.parent, sharded.name)
    checkpoint = open_checkpoint(packed)
    assert checkpoint.format == "dcp"
    compare(checkpoint, model_state(), 8)


def test_without_metadata(mine: Path) -> None:
    (mine / ".metadata").unlink()
    with pytest.raises(CorruptFile, match=r"4 data files of a torch\.distributed\.checkpoint.*but no \.metadata"):
        open_checkpoint(mine)


def test_two_in_one_folder(mine: Path, sharded: Path) -> None:
    shutil.copytree(sharded, mine.parent / "both/model")
    assert open_checkpoint(mine.parent / "both").format == "dcp"
    shutil.copytree(sharded, mine.parent / "both/optimizer")
    with pytest.raises(UnknownFormat, match="2 distributed checkpoints: model/, optimizer/"):
        open_checkpoint(mine.parent / "both")


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, (f"touch {self.marker}",))


def test_nothing_runs_and_every_global_is_reported(mine: Path) -> None:
    marker = mine.parent / "marker"
    buffer = io.BytesIO()
    torch.save({"x": Payload(marker)}, buffer)
    data = mine / "__0_0.distcp"
    start = data.stat().st_size
    data.write_bytes(data.read_bytes() + buffer.getvalue())

    def change(metadata: Metadata) -> None:
        index = next(i for i in metadata.storage_data if i.fqn == "epoch")
        metadata.storage_data[index] = _StorageInfo("__0_0.distcp", start, len(buffer.getvalue()))
        metadata.storage_meta = Payload(marker)  # type: ignore[assignment]

    # Loading it here would run it: the pickle is made without.
    metadata = pickle.loads((mine / ".metadata").read_bytes())
    change(metadata)
    (mine / ".metadata").write_bytes(pickle.dumps(metadata))
    checkpoint = open_checkpoint(mine)
    (use,) = (g for g in checkpoint.globals if g.verdict is GlobalVerdict.DANGEROUS)
    assert use.name == f"{os.system.__module__}.system" and use.called and use.count >= 2
    assert "dangerous-global" in ids(checkpoint)
    assert not marker.exists()
