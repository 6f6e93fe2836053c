"""Objects of a bucket through fsspec: how many requests and bytes each format costs, and what a store refuses."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save, save_file

from inspector.checkpoint.data import read_array
from inspector.cli.main import run
from inspector.errors import AddressError, MissingLibrary, UsageError
from inspector.giants.measure import read_in_pieces
from inspector.giants.plan import plan_pieces
from inspector.giants.work import measure_piece
from inspector.lint.audit import audit
from inspector.lint.check import check
from inspector.lint.request import CheckRequest, Settings
from inspector.readers import open_checkpoint
from inspector.readers.bucket import open_bucket
from inspector.remote import buckets
from inspector.remote.buckets import BucketFile, is_bucket_address, list_bucket
from inspector.survey.survey import How
from inspector.sweep.engines import Inline
from inspector.sweep.store import open_store
from inspector.weights.measure import read_tensors
from tests.readers.cluster_saves import Shard, save_ranks

fsspec = pytest.importorskip("fsspec")


class Bucket:
    """fsspec's own store in memory, whose ranged requests are written down."""

    def __init__(self) -> None:
        self.system = fsspec.filesystem("memory")
        self.system.store.clear()
        self.requests: list[tuple[str, int, int]] = []
        self._real = type(self.system).cat_file

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **more: object) -> bytes:
        assert start is not None and end is not None, "a whole object was fetched"
        self.requests.append((path, start, end))
        found: bytes = self._real(self.system, path, start=start, end=end, **more)
        return found

    def put(self, name: str, data: bytes) -> None:
        self.system.pipe_file(f"/models/{name}", data)

    @property
    def nbytes(self) -> int:
        return sum(end - start for _, start, end in self.requests)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    found = Bucket()
    monkeypatch.setitem(buckets.SCHEMES, "memory", "fsspec")
    monkeypatch.setattr(type(found.system), "cat_file", lambda _, *a, **more: found.cat_file(*a, **more))
    yield found
    found.system.store.clear()


def source_of(name: str) -> buckets.BucketSource:
    (file,) = list_bucket(f"memory://models/{name}")
    return file.open()


def test_a_safetensors_header_is_one_request(bucket: Bucket) -> None:
    state = {f"layers.{n}.weight": torch.randn(64, 64) for n in range(300)}
    bucket.put("a.safetensors", save(state))
    checkpoint = open_checkpoint(source_of("a.safetensors"))
    assert len(checkpoint.tensors) == 300
    assert bucket.requests == [("/models/a.safetensors", 0, 128 * 1024)]


@pytest.mark.parametrize("away", range(-9, 10, 3))
def test_a_header_that_ends_at_the_edge_of_the_first_request_is_read_whole(bucket: Bucket, away: int) -> None:
    header = '{"weight":{"dtype":"F32","shape":[100000],"data_offsets":[0,400000]}'
    header += " " * (128 * 1024 - 8 - len(header) - 1 + away) + "}"
    raw = len(header).to_bytes(8, "little") + header.encode() + np.arange(100_000, dtype="<f4").tobytes()
    bucket.put("edge.safetensors", raw)
    checkpoint = open_checkpoint(source_of("edge.safetensors"))
    assert [tensor.shape for tensor in checkpoint.tensors] == [(100_000,)]
    assert len(bucket.requests) == (1 if away <= 0 else 2)


def test_a_torch_zip_is_at_most_four_requests(bucket: Bucket, tmp_path: Path) -> None:
    torch.save({f"layers.{n}.weight": torch.randn(64, 64) for n in range(300)}, tmp_path / "a.pth")
    bucket.put("a.pth", (tmp_path / "a.pth").read_bytes())
    checkpoint = open_checkpoint(source_of("a.pth"))
    assert len(checkpoint.tensors) == 300
    assert len(bucket.requests) <= 4 and bucket.nbytes < 600_000


def test_numbers_are_those_of_the_file(bucket: Bucket) -> None:
    state = {"a": torch.randn(1000, 700), "b": torch.arange(5)}
    bucket.put("deep/er/n.safetensors", save(state))
    source = pickle.loads(pickle.dumps(source_of("deep/er/n.safetensors")))
    checkpoint = open_checkpoint(source)
    for tensor in checkpoint.tensors:
        storage = checkpoint.storages[tensor.storage_id or ""]
        assert storage.offset is not None
        assert source.read(storage.offset, tensor.nbytes) == state[tensor.name].numpy().tobytes()


def put_shards(bucket: Bucket, count: int) -> dict[str, torch.Tensor]:
    state = {f"layers.{n}.weight": torch.randn(30, 40) for n in range(count)}
    names = {key: f"model-{n + 1:05}-of-{count:05}.safetensors" for n, key in enumerate(state)}
    for key, name in names.items():
        bucket.put(f"giant/{name}", save({key: state[key]}))
    bucket.put("giant/model.safetensors.index.json", json.dumps({"weight_map": names}).encode())
    return state


@pytest.mark.parametrize("end", ["", "/", "/model.safetensors.index.json"])
def test_shards_in_a_bucket_take_one_request_each_and_the_index(bucket: Bucket, end: str) -> None:
    put_shards(bucket, 40)
    checkpoint = open_bucket(f"memory://models/giant{end}")
    assert len(checkpoint.tensors) == 40 and checkpoint.format == "sharded"
    assert checkpoint.origin.name == "giant"
    assert len(bucket.requests) == 40 + 1


def test_a_distributed_checkpoint_in_a_bucket_is_read_as_its_folder_is(bucket: Bucket, tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(0)
    state = {f"layers.{n}.weight": torch.randn(300, 400, generator=rng) for n in range(40)}
    save_ranks(tmp_path / "run", {"model": state}, {f"model.{name}": [Shard(0)] for name in state}, (4,))
    for path in (tmp_path / "run").iterdir():
        bucket.put(f"run/{path.name}", path.read_bytes())
    checkpoint, local = open_bucket("memory://models/run"), open_checkpoint(tmp_path / "run")
    assert (checkpoint.format, len(checkpoint.tensors)) == ("dcp", 40)
    assert [(one.name, one.shape) for one in checkpoint.tensors] == [(one.name, one.shape) for one in local.tensors]
    # What lies where stands in .metadata; of each rank's file one header is held against it, and the numbers stay.
    assert len(bucket.requests) == 1 + 4 and bucket.nbytes < 600_000
    assert any("The headers of 156 chunks of tensors were not opened" in says for says in checkpoint.skipped)
    for one in (checkpoint.tensors[0], checkpoint.tensors[39]):
        wanted = state[one.name.removeprefix("model.")]
        assert torch.equal(torch.from_numpy(read_array(checkpoint, one).copy()), wanted)
    once = read_tensors(local, local.tensors)
    found = read_in_pieces(checkpoint, checkpoint.tensors, engine=Inline(), most_nbytes=1_000_000)
    assert repr(found.answers) == repr(once.answers)


def test_one_object_of_a_bucket_is_opened_and_what_is_not_there_is_said(bucket: Bucket) -> None:
    bucket.put("a.safetensors", save({"w": torch.ones(3)}))
    assert open_bucket("memory://models/a.safetensors").tensors[0].name == "w"
    with pytest.raises(AddressError, match="nothing at"):
        open_bucket("memory://models/none.safetensors")


def test_numbers_of_a_bucket_by_pieces_are_those_of_the_file(
    bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = put_shards(bucket, 6)
    save_file(state, tmp_path / "one.safetensors")
    assert run(["stats", str(tmp_path / "one.safetensors"), "--json"]) == 0
    local = json.loads(capsys.readouterr().out)
    stats = ["stats", "memory://models/giant", "--store", str(tmp_path / "s"), "--json"]
    monkeypatch.setattr("inspector.cli.stats.UNASKED_NBYTES", 6 * 30 * 40 * 4 - 1)
    assert run(stats) == 2
    assert "The numbers of giant are 28.8 kB, to be fetched" in capsys.readouterr().err
    assert run([*stats, "--yes"]) == 0
    found = json.loads(capsys.readouterr().out)
    key = lambda one: one["name"]  # noqa: E731
    assert sorted(found["weights"]["tensors"], key=key) == sorted(local["weights"]["tensors"], key=key)
    before = len(bucket.requests)
    assert run([*stats, "--yes"]) == 0
    assert json.loads(capsys.readouterr().out)["weights"]["tensors"] == found["weights"]["tensors"]
    assert len(bucket.requests) - before == 6 + 1  # Headers alone.


def test_a_shard_that_is_replaced_is_said(bucket: Bucket, tmp_path: Path) -> None:
    put_shards(bucket, 3)
    checkpoint = open_bucket("memory://models/giant")
    name = "giant/model-00002-of-00003.safetensors"
    bucket.put(name, save({"layers.1.weight": torch.randn(30, 41)}))
    found = read_in_pieces(checkpoint, checkpoint.tensors, engine=Inline(), store=open_store(str(tmp_path / "s")))
    said = [answer for answer in found.answers.values() if isinstance(answer, str)]
    assert len(said) == 1 and "changed while it was read" in said[0]
    # What is whole is measured by whoever is sent a piece of it.
    first = plan_pieces(checkpoint, checkpoint.tensors)[0]
    assert measure_piece(pickle.loads(pickle.dumps(first.item))).kept


def test_an_audit_of_a_bucket_is_that_of_the_files(bucket: Bucket, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    save_file({"w": torch.tensor([[0.1, float("nan")]])}, folder / "sick.safetensors")
    save_file({"w": torch.tensor([[0.1, 0.2]])}, folder / "well.safetensors")
    torch.save({"w": torch.zeros(3)}, folder / "old.pth")
    (folder / "notes.md").write_text("# notes")
    for path in folder.iterdir():
        bucket.put(path.name, path.read_bytes())
    request = CheckRequest(paths=(), base=tmp_path, settings=Settings())
    how = How(store=open_store(str(tmp_path / "store")))
    report = audit(request, how, addresses=["memory://models"]).report
    local = check(replace(request, paths=(folder,), base=folder)).report
    said = {file.path.removeprefix("memory://models/"): [one.id for one in file.findings] for file in report.files}
    assert said == {file.path: [one.id for one in file.findings] for file in local.files}
    assert said["sick.safetensors"] == ["non-finite"]
    bucket.requests.clear()
    again = audit(request, How(store=open_store(str(tmp_path / "store"))), addresses=["memory://models"]).report
    assert replace(again, seconds=0.0) == replace(report, seconds=0.0) and not bucket.requests


def test_an_audit_reads_each_header_once(bucket: Bucket, tmp_path: Path) -> None:
    """It looks for members of an archive besides: in what is there already."""
    for n in range(5):
        bucket.put(f"{n}.safetensors", save({"w": torch.ones(3)}))
    torch.save({f"layers.{n}.weight": torch.randn(64, 64) for n in range(300)}, tmp_path / "a.pth")
    bucket.put("a.pth", (tmp_path / "a.pth").read_bytes())
    request = CheckRequest(paths=(), base=tmp_path, settings=Settings(), headers=True)
    report = audit(request, How(store=open_store(str(tmp_path / "s"))), addresses=["memory://models"]).report
    assert len(report.files) == 6
    of = [path.rpartition("/")[2] for path, _, _ in bucket.requests]
    assert [of.count(f"{n}.safetensors") for n in range(5)] == [1] * 5 and of.count("a.pth") <= 4
    assert bucket.nbytes < 600_000


def test_an_object_that_changes_while_it_is_read_is_told(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("a.safetensors", save({"w": torch.ones(3)}))
    real = bucket.cat_file

    def changing(path: str, start: int | None = None, end: int | None = None, **more: object) -> bytes:
        found = real(path, start, end, **more)
        bucket.put("a.safetensors", save({"w": torch.ones(4)}))
        return found

    monkeypatch.setattr(bucket, "cat_file", changing)
    request = CheckRequest(paths=(), base=tmp_path, settings=Settings())
    how = How(store=open_store(str(tmp_path / "store")))
    report = audit(request, how, addresses=["memory://models/a.safetensors"]).report
    assert [one.id for file in report.files for one in file.findings] == ["file-changed"]


def test_much_is_not_fetched_unasked(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("a.safetensors", save({"w": torch.ones(300)}))
    request = CheckRequest(paths=(), base=tmp_path, settings=Settings())
    with pytest.raises(UsageError, match=r"Their numbers are 1\.\d+ kB, to be fetched from 1 file"):
        audit(request, How(), addresses=["memory://models"], most_nbytes=1000)
    assert not bucket.requests
    assert audit(replace(request, headers=True), How(), addresses=["memory://models"], most_nbytes=1000).report.files


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (FileNotFoundError("The specified bucket does not exist"), "There is nothing at"),
        (PermissionError("Access Denied"), "access is refused: Access Denied"),
        (type("NoCredentialsError", (Exception,), {})("Unable to locate"), "refused: no credentials were found"),
        (OSError("[Errno 5] broken page of the listing"), "cannot be read: OSError: .*broken page"),
    ],
)
def test_what_a_store_refuses_is_one_sentence(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise error

    monkeypatch.setattr(type(bucket.system), "find", refuse)
    with pytest.raises(AddressError, match=says):
        list_bucket("memory://models")


def test_what_is_no_bucket_is_named(bucket: Bucket) -> None:
    with pytest.raises(AddressError, match="There is nothing at"):
        list_bucket("memory://nothing/here")
    with pytest.raises(UsageError, match="no address in a bucket"):
        list_bucket("ftp://models")
    assert is_bucket_address("S3://a/b") and not is_bucket_address("s3:/a") and not is_bucket_address("a/b")
    assert BucketFile(address="s3://a/b/c.pth", size=1).name == "c.pth"


def test_the_package_of_a_store_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> object:
        raise ImportError("Install gcsfs to access Google Storage")

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(MissingLibrary, match="gs:// needs the package gcsfs"):
        list_bucket("gs://models")
