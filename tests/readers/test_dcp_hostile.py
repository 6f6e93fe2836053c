"""torch.distributed.checkpoint folders that no ordinary program writes: every outcome is a finding or a clear error."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

from inspector.checkpoint.data import read_bytes
from inspector.errors import CorruptFile, InspectorError, LimitExceeded
from inspector.limits import Limits
from inspector.readers import open_checkpoint


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saves") / "one"
    state = {"model": {f"l{i}.weight": torch.full((3, 4), float(i)) for i in range(6)}, "epoch": 3}
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    return folder


@pytest.fixture
def mine(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "mine"))


def hand_made(folder: Path, tensors: dict[str, Any], storage: dict[Any, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / ".metadata").write_bytes(pickle.dumps(Metadata(tensors, None, storage, None, "1.0.0")))
    (folder / "__0_0.distcp").write_bytes(b"PK\x03\x04")
    return folder


def entry(size: list[int], chunks: list[tuple[list[int], list[int]]]) -> TensorStorageMetadata:
    made = [ChunkStorageMetadata(torch.Size(o), torch.Size(n)) for o, n in chunks]
    return TensorStorageMetadata(TensorProperties(torch.float32), torch.Size(size), made)


HUGE = 1 << 61


def placed(*where: Any) -> dict[Any, Any]:
    return {MetadataIndex("w", [0]): _StorageInfo(*where)}


FOUR = {"w": entry([4], [([0], [4])])}


@pytest.mark.parametrize(
    ("tensors", "storage", "expected"),
    [
        ({"w": entry([4], [([-1], [2])])}, {}, "unusable-entry"),
        ({"w": entry([4], [([3], [2])])}, {}, "unusable-entry"),
        ({"w": entry([4], [([0, 0], [2, 2])])}, {}, "unusable-entry"),
        ({"w": entry([HUGE, HUGE], [([0, 0], [1, 1])])}, {}, "unusable-entry"),
        ({"w": entry([HUGE], [([0], [HUGE])])}, {}, "unusable-entry"),
        ({"w": 3, "v": None}, {}, "unusable-entry"),
        ({3: entry([4], [])}, {}, "unusable-entry"),
        ({"w": entry([4], [])}, {}, "chunks-missing"),
        (FOUR, placed("__0_0.distcp", -5, 10), "unusable"),
        (
            {"w": entry([4], [([0], [4])])},
            {MetadataIndex("w", [0]): _StorageInfo("__0_0.distcp", 0, HUGE)},
            "cut-short",
        ),
        (FOUR, placed("__0_0.distcp", 0, 4), "unreadable"),
        (FOUR, placed("/etc/passwd", 0, 4), "outside-path"),
        (FOUR, {3: 4, MetadataIndex("w", [0]): None}, "unusable-entry"),
    ],
)
def test_hostile_metadata_is_a_finding(tensors: Any, storage: Any, expected: str, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(hand_made(tmp_path / "x", tensors, storage))
    assert any(f.id.startswith(expected) for f in checkpoint.findings), [f.id for f in checkpoint.findings]
    for info in checkpoint.tensors:
        if info.numel < 100:
            with pytest.raises(InspectorError):
                read_bytes(checkpoint, info)


def test_a_billion_chunks_by_reference(tmp_path: Path) -> None:
    """One chunk, a list of 1,000 of it, and 100,000 tensors with that list: a few hundred kilobytes of pickle."""
    chunks = [ChunkStorageMetadata(torch.Size([0]), torch.Size([1]))] * 1000
    shared = TensorStorageMetadata(TensorProperties(torch.float32), torch.Size([1]), chunks)
    folder = hand_made(tmp_path / "x", {f"t{i}": shared for i in range(100_000)}, {})
    with pytest.raises(LimitExceeded, match="chunks"):
        open_checkpoint(folder)
    few = hand_made(tmp_path / "y", {"w": shared}, {})
    assert open_checkpoint(few).tensors[0].shape == (1,)


def test_a_state_that_two_objects_share(tmp_path: Path) -> None:
    """No torch writes that; a pickle that took states apart while reading would lose the second one."""
    first, second = entry([4], [([0], [4])]), entry([4], [([0], [1])])
    second.chunks[0].__dict__ = first.chunks[0].__dict__
    checkpoint = open_checkpoint(hand_made(tmp_path / "x", {"a": first, "b": second}, {}))
    assert [t.shape for t in checkpoint.tensors] == [(4,), (4,)]
    assert "chunks-missing" not in {f.id for f in checkpoint.findings}


def test_cycles_and_deep_paths(tmp_path: Path) -> None:
    loop: dict[str, Any] = {"w": entry([1], [([0], [1])])}
    loop["again"] = loop
    metadata = Metadata(loop, None, {}, None, "1.0.0")
    metadata.planner_data = {"w": ("w",) * 100_000, "again": loop}
    metadata.storage_meta = metadata  # type: ignore[assignment]
    (tmp_path / ".metadata").write_bytes(pickle.dumps(metadata))
    checkpoint = open_checkpoint(tmp_path)
    assert [t.path for t in checkpoint.tensors] == [("w",)]
    assert "unusable-entry" in {f.id for f in checkpoint.findings}


def test_a_path_that_is_not_the_name_is_not_believed(tmp_path: Path) -> None:
    """torch joins the keys to the name; any other path could be as long as somebody likes, for every tensor."""
    metadata = Metadata({"a.b": entry([1], [])}, {"a.b": ("x", "y")}, {}, None, "1.0.0")
    (tmp_path / ".metadata").write_bytes(pickle.dumps(metadata))
    assert [t.path for t in open_checkpoint(tmp_path).tensors] == [("a.b",)]


def test_paths_in_each_others_way(tmp_path: Path) -> None:
    """ "a" is a tensor and also a mapping with "b" in it: no state dict is so, and nothing is lost."""
    metadata = Metadata(
        {"a": entry([1], []), "a.b": entry([2], [])}, {"a": ("a",), "a.b": ("a", "b")}, {}, None, "1.0.0"
    )
    (tmp_path / ".metadata").write_bytes(pickle.dumps(metadata))
    assert {t.path: t.shape for t in open_checkpoint(tmp_path).tensors} == {("a",): (1,), ("a.b",): (2,)}


def test_cut_at_every_boundary(mine: Path) -> None:
    whole = (mine / ".metadata").read_bytes()
    names = {t.path for t in open_checkpoint(mine).tensors}
    outcomes = set()
    for n in [*range(0, len(whole), 97), len(whole) - 1]:
        (mine / ".metadata").write_bytes(whole[:n])
        try:
            found = open_checkpoint(mine)
        except InspectorError as error:
            outcomes.add(type(error))
        else:
            assert {t.path for t in found.tensors} <= names and "broken-pickle" in {f.id for f in found.findings}
    assert CorruptFile in outcomes


def test_a_limit_is_a_limit(mine: Path) -> None:
    with pytest.raises(LimitExceeded, match="the limit is 3"):
        open_checkpoint(mine, limits=Limits(members=3))
