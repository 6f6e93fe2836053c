"""s3:// against a real server, moto's: requests and bytes of each format, listings of many pages, and what goes wrong.

moto and s3fs with what they need are 330 MB and come with no extra of ours: `pip install "moto[server]" s3fs`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save, save_file

from inspector.cli.main import run
from inspector.errors import AddressError, ExportError, FileChanged
from inspector.lint.audit import audit
from inspector.lint.request import CheckRequest, Settings
from inspector.readers.bucket import open_bucket
from inspector.remote.buckets import list_bucket
from inspector.survey.survey import How
from inspector.sweep.piece import Part, key_of
from inspector.sweep.store import existing_store, open_store

pytest.importorskip("s3fs")
pytest.importorskip("moto.server")
pytestmark = pytest.mark.outside

KEYS = [key_of("squares", n) for n in range(100)]


@pytest.fixture(scope="module")
def started() -> Iterator[Any]:
    from tests.remote.s3_server import server

    yield from server()


@pytest.fixture
def server(started: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """It with an empty bucket zoo, and credentials for it."""
    import requests
    import s3fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", started.url)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # botocore's own repetitions wait for seconds between them.
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    s3fs.S3FileSystem.clear_instance_cache()
    started.forget()
    requests.post(f"{started.url}/moto-api/reset", timeout=10)
    system().mkdir("zoo")
    started.forget()
    return started


def system() -> Any:
    import s3fs

    return s3fs.S3FileSystem()


def put(name: str, data: bytes) -> None:
    system().pipe_file(f"zoo/{name}", data)


def put_many(files: dict[str, bytes]) -> None:
    """Behind the server, whose requests for a thousand of them would take a minute."""
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for name, data in files.items():
        bucket, _, key = name.partition("/")
        backend.put_object(bucket, key, data)


def request_of(place: Path, *, headers: bool = True) -> CheckRequest:
    return CheckRequest(paths=(), base=place, settings=Settings(), headers=headers)


def shards_of(count: int) -> dict[str, torch.Tensor]:
    state = {f"layers.{n}.weight": torch.randn(30, 40) for n in range(count)}
    names = {key: f"model-{n + 1:05}-of-{count:05}.safetensors" for n, key in enumerate(state)}
    for key, name in names.items():
        put(f"giant/{name}", save({key: state[key]}))
    put("giant/model.safetensors.index.json", json.dumps({"weight_map": names}).encode())
    return state


def test_requests_and_bytes_of_each_format(server: Any, tmp_path: Path) -> None:
    state = {f"layers.{n}.weight": torch.randn(64, 64) for n in range(300)}
    torch.save(state, tmp_path / "a.pth")
    put("a.safetensors", save(state))
    put("a.pth", (tmp_path / "a.pth").read_bytes())
    shards_of(40)
    found = {}
    for name in ("a.safetensors", "a.pth", "giant"):
        server.forget()
        checkpoint = open_bucket(f"s3://zoo/{name}")
        assert len(checkpoint.tensors) == (40 if name == "giant" else 300)
        reads = server.of("GET", f"zoo/{name}")
        assert all(one.range and one.if_match for one in reads), "a request that is not held to one content"
        assert len(reads) + len(server.listings) + len(server.of("HEAD")) == len(server.asked)
        found[name] = (len(reads), sum(one.nbytes for one in reads), len(server.listings), len(server.of("HEAD")))
    print(found)
    assert found["a.safetensors"][0] == 1 and found["a.safetensors"][1] <= 128 * 1024
    assert found["a.pth"][0] <= 4 and found["a.pth"][1] < 600_000
    assert found["giant"][0] == 40 + 1


def test_the_commands(server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = shards_of(4)
    save_file(state, tmp_path / "one.safetensors")
    assert run(["identify", "s3://zoo/giant/model-00001-of-00004.safetensors"]) in (0, 1)
    assert run(["stats", str(tmp_path / "one.safetensors"), "--json"]) == 0
    capsys.readouterr()
    assert run(["stats", str(tmp_path / "one.safetensors"), "--json"]) == 0
    local = json.loads(capsys.readouterr().out)["weights"]["tensors"]
    stats = ["stats", "s3://zoo/giant", "--store", "s3://zoo/store", "--json"]
    for _ in range(2):
        server.forget()
        assert run(stats) == 0
        found = json.loads(capsys.readouterr().out)["weights"]["tensors"]
        key = lambda one: one["name"]  # noqa: E731
        assert sorted(found, key=key) == sorted(local, key=key)
    # Headers, and what the store holds.
    assert len(server.of("GET", "zoo/giant")) == 4 + 1 and not server.of("PUT")


def test_an_audit_of_a_listing_of_several_pages_with_its_store_in_the_bucket(server: Any, tmp_path: Path) -> None:
    data = save({"w": torch.ones(3)})
    put_many({f"zoo/many/{n:05}.safetensors": data for n in range(1205)})
    put("many/sick.safetensors", b"\xff" * 40)
    server.forget()
    how = How(store=open_store("s3://zoo/store"))
    report = audit(request_of(tmp_path), how, addresses=["s3://zoo/many"]).report
    assert len(report.files) == 1206
    assert [file.path for file in report.files if file.findings] == ["s3://zoo/many/sick.safetensors"]
    many = [one for one in server.listings if one.query["prefix"] == ["many/"]]
    assert len(many) == 2
    reads = server.of("GET", "zoo/many/")
    print("requests", len(reads) / 1206, "HEAD", len(server.of("HEAD", "zoo/many/")), "PUT", len(server.of("PUT")))
    assert len(reads) == 1206 and not server.of("HEAD", "zoo/many/")
    assert len(server.of("PUT")) <= 200
    server.forget()
    again = audit(request_of(tmp_path), How(store=open_store("s3://zoo/store")), addresses=["s3://zoo/many"]).report
    assert [file.findings for file in again.files] == [file.findings for file in report.files]
    assert not server.of("GET", "zoo/many/")


def test_a_listing_that_is_cut_is_no_shorter_list(server: Any, tmp_path: Path) -> None:
    put_many({f"zoo/many/{n:05}.pth": b"x" for n in range(1100)})
    for refused in ("InternalError", "cut"):
        server.forget()

        def fault(asked: Any, refused: str = refused) -> Any:
            from tests.remote.s3_server import Refused

            return Refused(cut=refused == "cut") if "continuation-token" in asked.query else None

        server.fault = fault
        with pytest.raises(AddressError, match="s3://zoo/many cannot be read"):
            list_bucket("s3://zoo/many")
        server.forget()
        assert len(list_bucket("s3://zoo/many")) == 1100


def test_credentials_that_are_missing_or_wrong_and_a_bucket_that_is_gone(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3fs

    from tests.remote.s3_server import Refused

    for address in ("s3://nowhere/models", "s3://zoo/nothing.pth"):
        with pytest.raises(AddressError, match=f"There is nothing at {address}"):
            list_bucket(address)
    for code, says in (
        ("AccessDenied", "access is refused: "),
        ("InvalidAccessKeyId", "access is refused: "),
        ("SignatureDoesNotMatch", "access is refused: "),
        ("RequestTimeTooSkewed", "the clock of this machine is not that of the store"),
    ):
        server.fault = lambda _, code=code: Refused(status=403, code=code)
        with pytest.raises(AddressError, match=f"s3://zoo/a cannot be read: {says}"):
            list_bucket("s3://zoo/a")
    server.forget()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(AddressError, match="access is refused: no credentials were found") as told:
        list_bucket("s3://zoo/a")
    assert "AWS_PROFILE" in told.value.hint and not server.asked


def test_an_object_that_changes_between_two_requests_is_told(server: Any, tmp_path: Path) -> None:
    """Of the same length, so that nothing but what the store knows it by tells them apart."""
    rng = np.random.default_rng(0)
    header = json.dumps({"w": {"dtype": "F32", "shape": [400_000], "data_offsets": [0, 1_600_000]}}).encode()
    files = [len(header).to_bytes(8, "little") + header + rng.random(400_000, np.float32).tobytes() for _ in "ab"]
    put("a.safetensors", files[0])
    (file,) = list_bucket("s3://zoo/a.safetensors")
    source = file.open()
    assert source.read(0, 8) == files[0][:8]
    put("a.safetensors", files[1])
    with pytest.raises(FileChanged, match=r"a\.safetensors changed while it was read"):
        source.read(1_000_000, 100)
    assert source.changed()
    # The audit says it of the file, and keeps nothing.
    put("a.safetensors", files[0])
    server.forget()
    changed = threading.Event()

    def change(asked: Any) -> None:
        if asked.range and asked.key == "zoo/a.safetensors" and not changed.is_set():
            changed.set()
            put("a.safetensors", files[1])

    server.after = change
    store = open_store("s3://zoo/store")
    request = request_of(tmp_path, headers=False)
    report = audit(request, How(store=store), addresses=["s3://zoo/a.safetensors"]).report
    assert "file-changed" in {one.id for one in report.files[0].findings}
    assert not store.blobs.names("results")


def test_an_answer_that_breaks_off_is_asked_for_again(server: Any) -> None:
    from tests.remote.s3_server import Refused

    data = save({"w": torch.ones(3000)})
    put("a.safetensors", data)
    (file,) = list_bucket("s3://zoo/a.safetensors")
    cut: list[str] = []

    def fault(asked: Any) -> Any:
        if asked.range and not cut:
            cut.append(asked.range)
            return Refused(cut=True)
        return None

    server.fault = fault
    assert file.open().read(0, len(data)) == data and cut


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (403, "QuotaExceeded", "there is no room left in the bucket"),
        (507, "XMinioStorageFull", "there is no room left in the bucket"),
        (404, "NoSuchBucket", "there is no such bucket or object"),
        (403, "RequestTimeTooSkewed", "the clock of this machine"),
        (403, "AccessDenied", "access is refused"),
    ],
)
def test_what_the_store_of_an_audit_refuses_is_a_sentence_and_it_is_whole(
    server: Any, status: int, code: str, says: str
) -> None:
    from tests.remote.s3_server import Refused

    store = open_store("s3://zoo/store")
    store.put("squares", [(KEYS[0], b"0")])
    server.fault = lambda asked: Refused(status=status, code=code) if asked.method == "PUT" else None
    with pytest.raises(ExportError, match=f"The store s3://zoo/store cannot be written: {says}"):
        store.put("squares", [(KEYS[1], b"1")])
    server.forget()
    assert dict(existing_store("s3://zoo/store").load("squares", set(KEYS))) == {KEYS[0]: b"0"}


def test_two_drivers_at_once_on_one_store_in_a_bucket(server: Any, tmp_path: Path) -> None:
    put_many({f"zoo/many/{n:03}.safetensors": save({"w": torch.full((3,), n / 7)}) for n in range(60)})
    addresses = ["s3://zoo/many"]

    def drive(part: int) -> None:
        how = How(store=open_store("s3://zoo/store"), part=Part(number=part, of=2))
        audit(request_of(tmp_path, headers=False), how, addresses=addresses)

    drivers = [threading.Thread(target=drive, args=(part,)) for part in (1, 2, 1)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    from inspector.lint.audit import merge_parts

    merged = merge_parts(request_of(tmp_path), [existing_store("s3://zoo/store")]).report
    assert len(merged.files) == 60 and not merged.skipped and not any(file.findings for file in merged.files)
