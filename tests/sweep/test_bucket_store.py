"""A store in a bucket: the same parts as in a folder, whole whatever a store's package raises, and sentences for it."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from inspector.cli.main import run
from inspector.errors import ExportError, ReadError, UsageError
from inspector.remote import buckets
from inspector.remote.buckets import list_bucket
from inspector.sweep.engines import Inline, Threads
from inspector.sweep.piece import Outcome, Piece, key_of
from inspector.sweep.run import sweep
from inspector.sweep.store import existing_store, open_store
from tests.sweep.works import Square, lost

fsspec = pytest.importorskip("fsspec")

KEYS = [key_of("squares", n) for n in range(200)]
PLACE = "memory://audits/one"


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """fsspec's own store in memory, taken for a bucket's."""
    found = fsspec.filesystem("memory")
    found.store.clear()
    monkeypatch.setitem(buckets.SCHEMES, "memory", "fsspec")
    yield found
    found.store.clear()


class ClientError(Exception):
    """As botocore's: the store's own word is in its answer."""

    def __init__(self, code: str, says: str) -> None:
        super().__init__(f"An error occurred ({code}) when calling the operation: {says}")
        self.response = {"Error": {"Code": code, "Message": says}}


def from_client(code: str, says: str, kind: type[OSError] = OSError) -> OSError:
    """As s3fs raises it."""
    found = kind(says) if kind is not OSError else OSError(errno.EIO, says)
    found.__cause__ = ClientError(code, says)
    return found


def held(place: str = PLACE) -> dict[str, bytes]:
    return dict(existing_store(place).load("squares", set(KEYS)))


def test_the_same_parts_as_in_a_folder(system: Any, tmp_path: Path) -> None:
    for place in (PLACE, str(tmp_path / "s")):
        store = open_store(place)
        store.put("squares", [(KEYS[0], b"0"), (KEYS[1], b"1")])
        store.put("squares", [(KEYS[2], b"4")])
    folder = {path.relative_to(tmp_path / "s").as_posix(): path.read_bytes() for path in (tmp_path / "s").rglob("*.*")}
    bucket = {name.removeprefix("/audits/one/"): system.cat_file(name) for name in system.find("/audits/one")}
    assert folder == bucket and len(bucket) == 3
    assert held() == held(str(tmp_path / "s")) == {KEYS[0]: b"0", KEYS[1]: b"1", KEYS[2]: b"4"}


def test_two_drivers_write_into_one_bucket(system: Any) -> None:
    def drive(first: int) -> None:
        store = open_store(PLACE)
        for n in range(first, first + 120, 10):
            store.put("squares", [(key, b"%d" % k) for k, key in enumerate(KEYS) if n <= k < n + 10])

    drivers = [threading.Thread(target=drive, args=(first,)) for first in (0, 80)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert held() == {key: b"%d" % k for k, key in enumerate(KEYS)}
    # What both did is there once: a part is named by its bytes.
    assert len(system.find("/audits/one/results")) == 20


def test_a_part_of_another_is_seen_by_who_listed_before(system: Any) -> None:
    one, two = open_store(PLACE), open_store(PLACE)
    one.put("squares", [(KEYS[0], b"0")])
    assert set(dict(two.load("squares", set(KEYS)))) == {KEYS[0]}
    one.put("squares", [(KEYS[1], b"1")])
    assert set(dict(two.load("squares", set(KEYS)))) == {KEYS[0], KEYS[1]}


@pytest.mark.parametrize(
    ("error", "says", "hint"),
    [
        (from_client("QuotaExceeded", "quota used up"), "no room left in the bucket (quota used up)", "Make room"),
        (OSError(errno.ENOSPC, "No space left on device"), "there is no room left in the bucket", "Make room"),
        (from_client("XMinioStorageFull", "drives are full"), "no room left in the bucket", "Make room"),
        (from_client("NoSuchBucket", "gone", FileNotFoundError), "no such bucket or object", "Check the bucket's name"),
        (from_client("AccessDenied", "Access Denied", PermissionError), "access is refused: Access Denied", "AWS_PROF"),
        (type("NoCredentialsError", (Exception,), {})("Unable to locate"), "no credentials were found", "AWS_PROFILE"),
        (from_client("RequestTimeTooSkewed", "skew", PermissionError), "the clock of this machine is not", "clock"),
        (from_client("SlowDown", "Please reduce your request rate"), "asks for fewer requests", "again later"),
        (type("EndpointConnectionError", (Exception,), {})("no route"), "cannot be reached", "AWS_ENDPOINT_URL"),
        (
            ValueError("Invalid endpoint: x"),
            "the settings for its store are none (Invalid endpoint: x)",
            "AWS_ENDPOINT_U",
        ),
        (type("ProfileNotFound", (Exception,), {})("no profile (x)"), "are none (no profile (x))", "AWS_PROFILE"),
        (ValueError("Cannot do that."), "cannot be written: Cannot do that.", "once it can be written"),
    ],
)
def test_what_cannot_be_written_is_one_sentence_and_the_store_is_whole(
    system: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str, hint: str
) -> None:
    store = open_store(PLACE)
    store.put("squares", [(KEYS[0], b"0")])

    def refuse(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(type(system), "pipe_file", refuse)
        with pytest.raises(ExportError) as told:
            store.put("squares", [(KEYS[1], b"1")])
    assert told.value.says.startswith(f"The store {PLACE} cannot be written: ") and says in told.value.says
    assert hint in told.value.hint and "What it holds is whole" in told.value.hint
    assert ("once there is room" in told.value.hint) == ("no room left" in told.value.says)
    assert held() == {KEYS[0]: b"0"}
    store.put("squares", [(KEYS[1], b"1")])
    assert held() == {KEYS[0]: b"0", KEYS[1]: b"1"}


@pytest.mark.parametrize("call", ["find", "cat_file"])
def test_a_store_that_does_not_answer_is_no_empty_store(
    system: Any, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    store = open_store(PLACE)
    store.put("squares", [(KEYS[0], b"0")])
    before = {name: system.cat_file(name) for name in system.find("/audits")}

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "page 2 of the listing broke off")

    with monkeypatch.context() as patched:
        patched.setattr(type(system), call, refuse)
        with pytest.raises(ReadError, match=r"The store memory://audits/one cannot be (listed|read): .*page 2"):
            dict(store.load("squares", set(KEYS)))
        if call == "cat_file":
            # Neither written over nor said to be none.
            with pytest.raises(ReadError, match="page 2"):
                open_store(PLACE)
            with pytest.raises(ReadError, match="page 2"):
                existing_store(PLACE)
    assert {name: system.cat_file(name) for name in system.find("/audits")} == before


def test_results_of_one_driver_travel_together_and_a_stop_loses_none(
    system: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part of a bucket is a round trip: 200 results of an engine that gives them one by one are two of them."""
    pieces = [Piece(item=n, key=key, nbytes=1) for n, key in enumerate(KEYS)]
    outcomes = sweep("squares", pieces, Square(), lost=lost, engine=Inline(), store=open_store(PLACE))
    assert len(list(outcomes)) == 200
    assert 1 <= len(system.find("/audits/one/results")) <= 4
    system.rm("/audits/one/results", recursive=True)
    stopped = sweep("squares", pieces, Square(), lost=lost, engine=Inline(), store=open_store(PLACE))
    for _, _ in zip(range(30), stopped, strict=False):
        pass
    stopped.close()
    assert len(dict(open_store(PLACE).load("squares", {piece.key for piece in pieces}))) == 30
    # After so long they are kept as they come.
    monkeypatch.setattr("inspector.sweep.run._HELD_SECONDS", -1)
    going = sweep("squares", pieces, Square(), lost=lost, engine=Inline(), store=open_store(PLACE))
    for _, _ in zip(range(32), going, strict=False):
        pass
    assert len(dict(open_store(PLACE).load("squares", {piece.key for piece in pieces}))) >= 31
    going.close()


def test_results_do_not_wait_for_a_piece_that_takes_minutes(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that is killed meanwhile lost them."""
    monkeypatch.setattr("inspector.sweep.run._HELD_SECONDS", 0.1)
    over = threading.Event()

    def work(item: int) -> Outcome:
        if item == 1:
            assert over.wait(60)
        return Outcome(data=b"%d" % item)

    def ask() -> None:
        list(sweep("squares", pieces, work, lost=lost, engine=Threads(2), store=open_store(PLACE), together=1))

    pieces = [Piece(item=n, key=KEYS[n], nbytes=1) for n in range(2)]
    driver = threading.Thread(target=ask)
    driver.start()
    until = time.monotonic() + 20
    while not system.exists("/audits/one/results") and time.monotonic() < until:
        time.sleep(0.05)
    kept = held()
    over.set()
    driver.join()
    assert kept == {KEYS[0]: b"0"} and len(held()) == 2


def test_a_place_that_is_none_is_named(system: Any) -> None:
    system.pipe_file("/models/a.pth", b"x")
    with pytest.raises(UsageError, match="memory://models holds other files"):
        open_store("memory://models/")
    with pytest.raises(ReadError, match="memory://models is no store"):
        existing_store("memory://models")
    for address in ("s3://", "memory:///"):
        with pytest.raises(UsageError, match=r"names no bucket\. Write \w+://bucket"):
            open_store(address)
        with pytest.raises(UsageError, match="names no bucket"):
            list_bucket(address)
    with pytest.raises(UsageError, match="no place for a store"):
        open_store("https://example.org/audits")
    system.pipe_file("/later/store.json", b'{"format": "inspector store", "version": 99}')
    with pytest.raises(UsageError, match="no store of this version"):
        open_store("memory://later")
    assert system.find("/models") == ["/models/a.pth"]


def test_an_audit_a_report_of_its_parts_and_numbers_of_a_giant_from_a_store_in_a_bucket(
    system: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for n in range(6):
        save_file({"w": torch.tensor([0.1, float("nan") if n == 3 else 0.2])}, folder / f"{n}.safetensors")
    for part in ("1/2", "2/2"):
        run(["audit", str(folder), "--store", PLACE, "--part", part, "--jobs", "1", "--json"])
    err = capsys.readouterr().err
    assert "name a folder for it" in err and not (tmp_path / "memory:").exists() and not Path("memory:").exists()
    assert run(["merge-parts", PLACE, "--json"]) == 1
    merged = json.loads(capsys.readouterr().out)
    assert run(["check", str(folder), "--jobs", "1", "--json"]) == 1
    plain = json.loads(capsys.readouterr().out)
    assert [one["findings"] for one in merged["files"]] == [one["findings"] for one in plain["files"]]
    assert run(["query", PLACE]) == 2
    assert "merge-parts memory://audits/one --catalogue DIR" in capsys.readouterr().err

    stats = ["stats", str(folder / "0.safetensors"), "--store", PLACE, "--json"]
    assert run(stats) == 0
    first = json.loads(capsys.readouterr().out)["weights"]["tensors"]
    kept = system.find("/audits/one/results")
    assert run(stats) == 0 and json.loads(capsys.readouterr().out)["weights"]["tensors"] == first
    assert system.find("/audits/one/results") == kept


def test_a_catalogue_is_made_of_stores_in_buckets_in_a_folder(
    system: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    (tmp_path / "models").mkdir()
    save_file({"layers.0.q_proj": torch.tensor([0.1, 0.2])}, tmp_path / "models" / "a.safetensors")
    audit = ["audit", str(tmp_path / "models"), "--store", PLACE, "--catalogue", str(tmp_path / "c"), "--jobs", "1"]
    assert run(audit) == 0
    assert "No catalogue" not in capsys.readouterr().err
    assert run(["query", str(tmp_path / "c"), "--search", "q_proj", "--format", "json"]) == 0
    assert "a.safetensors" in capsys.readouterr().out
