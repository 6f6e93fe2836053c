"""The content store: files by digest, nothing by a visitor's name, old things gone first."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inspector.errors import LimitExceeded, NoRoom, ReadError, RefusedContent
from inspector.web.records import Records
from inspector.web.store import ContentStore, clean_name


async def _chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _put(store: ContentStore, *parts: bytes, name: str = "a.pth", owner: str = "me") -> str:
    return asyncio.run(store.put_stream(_chunks(*parts), name=name, owner=owner)).sha256


def test_a_stream_is_found_by_the_sha256_of_its_bytes(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    digest = _put(store, b"abc", b"def")
    assert digest == hashlib.sha256(b"abcdef").hexdigest()
    path = store.get_path(digest)
    assert path is not None and path.read_bytes() == b"abcdef"
    assert store.name_of(digest, "me") == "a.pth"


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..\\x", "a\x00b", "x" * 5000])
def test_no_sent_name_becomes_a_path(tmp_path: Path, name: str) -> None:
    root = tmp_path / "store"
    digest = _put(ContentStore(root), b"abc", name=name)
    assert sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()) == [
        f"files/{digest}",
        f"records/{digest}.json",
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_names_are_shown_without_folders_or_control_characters() -> None:
    assert clean_name("../../etc/pass\x1bwd") == "passwd"
    assert clean_name("C:\\models\\a.pth") == "a.pth"
    assert clean_name("\x00/") == "unnamed file"
    assert clean_name("model (1).pth") == "model (1).pth"


def test_a_stream_over_the_limit_leaves_nothing(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, file_nbytes=10)
    with pytest.raises(LimitExceeded, match="larger than this server takes"):
        _put(store, b"123456", b"789012")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    assert store.get_path(_put(store, b"1234567890")) is not None


def test_a_broken_stream_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"abc"
        raise RuntimeError("the visitor left")

    store = ContentStore(tmp_path)
    with pytest.raises(RuntimeError, match="the visitor left"):
        asyncio.run(store.put_stream(broken(), name="a", owner="me"))
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    with pytest.raises(RefusedContent, match="0 bytes"):
        _put(ContentStore(tmp_path), name="a")


@pytest.mark.parametrize("digest", ["", "../records/x", "A" * 64, "0" * 63, "0" * 64, "*"])
def test_only_known_digests_are_found(tmp_path: Path, digest: str) -> None:
    store = ContentStore(tmp_path)
    _put(store, b"abc")
    assert store.get_path(digest) is None


def test_forgetting_keeps_what_another_session_has_open(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    digest = _put(store, b"abc", name="mine.pth", owner="me")
    assert _put(store, b"abc", name="yours.pth", owner="you") == digest
    store.forget(digest, "me")
    assert store.get_path(digest) is not None
    assert store.name_of(digest, "you") == "yours.pth"
    assert store.name_of(digest, "me") == digest[:12]  # what others call it is theirs
    store.forget(digest, "you")
    assert store.get_path(digest) is None
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, quota_nbytes=10)
    first, second = _put(store, b"1111"), _put(store, b"2222")
    store.touch(first)
    third = _put(store, b"333333")
    assert [store.get_path(d) is not None for d in (first, second, third)] == [True, False, True]


def test_old_files_go_after_their_time(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, ttl_seconds=100)
    digest = _put(store, b"abcd")
    used = store.find(digest)
    assert used is not None
    assert store.sweep(now=used.used + 99) == 0
    assert store.get_path(digest) is not None
    assert store.sweep(now=used.used + 101) == 4
    assert store.get_path(digest) is None


def test_a_file_left_where_it_is_must_stay_the_same(tmp_path: Path) -> None:
    store, outside = ContentStore(tmp_path / "store"), tmp_path / "weights.pth"
    outside.write_bytes(b"abc")
    stored = store.refer(outside, name="weights.pth", owner="me")
    assert store.get_path(stored.sha256) == outside
    outside.write_bytes(b"abd")
    os.utime(outside, ns=(1, 1))
    assert store.get_path(stored.sha256) is None


def test_forgetting_a_file_left_where_it_is_does_not_delete_it(tmp_path: Path) -> None:
    store, outside = ContentStore(tmp_path / "store"), tmp_path / "weights.pth"
    outside.write_bytes(b"abc")
    digest = store.refer(outside, name="weights.pth", owner="me").sha256
    store.forget(digest, "me")
    assert store.find(digest) is None
    assert outside.read_bytes() == b"abc"


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"There is no file gone\.pth"):
        ContentStore(tmp_path / "s").refer(tmp_path / "gone.pth", name="gone.pth", owner="me")


def test_a_restart_clears_cut_off_uploads(tmp_path: Path) -> None:
    ContentStore(tmp_path)
    (tmp_path / "incoming" / "rest").write_bytes(b"half")
    ContentStore(tmp_path)
    assert list((tmp_path / "incoming").iterdir()) == []


def test_exports_go_after_their_time(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, ttl_seconds=100)
    for name, age in (("old", 1000), ("new", 10)):
        folder = store.exports / name
        folder.mkdir()
        (folder / "repaired.pth").write_bytes(b"abc")
        os.utime(folder, (10_000 - age, 10_000 - age))
    store.sweep(now=10_000)
    assert [p.name for p in store.exports.iterdir()] == ["new"]


def test_a_link_shows_a_stranger_the_file_but_not_what_others_call_it(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    digest = _put(store, b"abc", name="secret project.pth", owner="me")
    assert store.get_path(digest) is not None
    assert store.name_of(digest, "stranger") == digest[:12]


def test_whoever_follows_a_link_keeps_the_file_when_the_first_one_forgets_it(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    digest = _put(store, b"abc", owner="me")
    store.claim(digest, name="link", owner="you")
    store.forget(digest, "me")
    assert store.get_path(digest) is not None
    store.forget(digest, "you")
    assert store.get_path(digest) is None
    assert store.claim(digest, name="late", owner="you") is None


def test_a_record_does_not_grow_with_every_visitor(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    for n in range(200):
        digest = _put(store, b"abc", name=f"{n}.pth", owner=f"visitor {n}")
    stored = store.find(digest)
    assert stored is not None and len(stored.names) == 64
    assert store.name_of(digest, "visitor 199") == "199.pth"


def test_uploads_on_their_way_cannot_fill_the_disk_together(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, file_nbytes=10, quota_nbytes=15)

    async def slow(first: bytes, go: asyncio.Event) -> AsyncIterator[bytes]:
        yield first
        await go.wait()
        yield b"!"

    async def both() -> list[object]:
        go = asyncio.Event()
        puts = [store.put_stream(slow(bytes([n]) * 9, go), name="a", owner="me") for n in range(2)]
        running = asyncio.gather(*puts, return_exceptions=True)
        await asyncio.sleep(0.05)
        go.set()
        return list(await running)

    results = asyncio.run(both())
    assert [type(r).__name__ for r in results] == ["Stored", "LimitExceeded"]
    assert "being uploaded to this server at once" in str(results[1])
    assert list((tmp_path / "incoming").iterdir()) == []
    assert _put(store, b"abc")  # what was given up counts no longer


def test_exports_go_first_when_they_take_too_much(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, quota_nbytes=400)
    kept = _put(store, b"x" * 50)
    for n, name in enumerate(("old", "new")):
        (store.exports / name).mkdir()
        (store.exports / name / "repaired.pth").write_bytes(b"x" * 90)
        os.utime(store.exports / name, (1e9 + n, 1e9 + n))
    store.sweep(now=1e9 + 5)
    assert [p.name for p in store.exports.iterdir()] == ["new"]
    assert store.get_path(kept) is not None


def test_nobodys_upload_takes_away_what_another_is_looking_at(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, quota_nbytes=10, busy_seconds=100)
    mine = _put(store, b"111111", owner="me")
    with pytest.raises(NoRoom, match="others are looking at"):
        _put(store, b"222222", owner="you")
    assert store.get_path(mine) is not None
    assert list((tmp_path / "incoming").iterdir()) == []
    busy_no_more = ContentStore(tmp_path, quota_nbytes=10, busy_seconds=0)
    assert _put(busy_no_more, b"222222", owner="you") and store.get_path(mine) is None


def test_a_visitor_over_the_own_quota_loses_the_own_oldest(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, quota_nbytes=100, owner_nbytes=10)
    other = _put(store, b"3" * 20, owner="you")
    first, second = _put(store, b"1" * 6), _put(store, b"2" * 6)
    assert [store.get_path(d) is not None for d in (other, first, second)] == [True, False, True]


def test_a_file_that_very_many_have_open_is_not_forgotten_by_the_last_known(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, ttl_seconds=100)
    for n in range(70):
        digest = _put(store, b"abc", owner=f"visitor {n}")
    for n in range(6, 70):
        store.forget(digest, f"visitor {n}")
    # Of the first six no record is kept, and they may still look at it.
    stored = store.find(digest)
    assert stored is not None and store.get_path(digest) is not None
    store.sweep(now=stored.used + 101)
    assert store.get_path(digest) is None


def test_what_is_announced_needs_room_before_it_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def usage(path: object) -> object:
        asked.append(str(path))
        return shutil._ntuple_diskusage(100, 95, 5)  # type: ignore[attr-defined]

    monkeypatch.setattr(shutil, "disk_usage", usage)
    store, taken = ContentStore(tmp_path), []

    async def chunks() -> AsyncIterator[bytes]:
        taken.append(1)
        yield b"abcdef"

    with pytest.raises(NoRoom, match=r"no room for 6 B: 5 B are free"):
        asyncio.run(store.put_stream(chunks(), name="a", owner="me", announced=6))
    assert not taken and asked == [str(tmp_path / "incoming")]
    assert list((tmp_path / "incoming").iterdir()) == []


def test_a_start_collects_what_an_end_in_the_middle_left(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    kept, lost = _put(store, b"kept"), _put(store, b"lost")
    (tmp_path / "files" / lost).unlink()
    (tmp_path / "files" / ("0" * 64)).write_bytes(b"bytes without a record")
    (tmp_path / "records" / "broken.json").write_text("{")
    (store.new_export("half") / "repaired.pth").write_bytes(b"abc")
    whole = store.publish(store.new_export("whole"))
    again = ContentStore(tmp_path)
    assert again.get_path(kept) is not None and again.find(lost) is None
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == sorted([kept, f"{kept}.json"])
    assert list(again.exports.iterdir()) == [whole]


def test_the_day_goes_on_over_a_restart(tmp_path: Path) -> None:
    digest = _put(ContentStore(tmp_path), b"abc")
    assert ContentStore(tmp_path, ttl_seconds=-1).get_path(digest) is None


def test_an_export_is_not_there_before_it_is_whole(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    folder = store.new_export("token")
    (folder / "a.pth").write_bytes(b"abc")
    assert list(store.exports.iterdir()) == []
    assert (store.publish(folder) / "a.pth").read_bytes() == b"abc"


def test_two_servers_do_not_sweep_each_others_store(tmp_path: Path) -> None:
    code = (
        "import sys; from inspector.web.store_lock import hold_store; print(hold_store(), flush=True); sys.stdin.read()"
    )
    unnamed = {name: value for name, value in os.environ.items() if name != "INSPECTOR_STORE"}
    environment = {**unnamed, "XDG_CACHE_HOME": str(tmp_path)}
    held = []
    try:
        for number in ("", "-2", "-3"):
            process = subprocess.Popen(
                [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            held.append(process)
            assert process.stdout is not None
            root = process.stdout.readline().strip()
            assert root == str(tmp_path / "model-inspector" / f"store{number}")
        named = {**environment, "INSPECTOR_STORE": root}
        refused = subprocess.run([sys.executable, "-c", code], env=named, capture_output=True, text=True, input="")
        assert "Another server uses the store" in refused.stderr
    finally:
        for process in held:
            process.communicate("")
    again = subprocess.run([sys.executable, "-c", code], env=named, capture_output=True, text=True, input="")
    assert again.stdout.strip() == root


def test_two_uploads_do_not_share_the_same_free_bytes_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 100 bytes are free; each upload says that 60 will come, and writes them slowly.
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1000, 900, 100))  # type: ignore[attr-defined]
    store = ContentStore(tmp_path)

    async def slow(go: asyncio.Event) -> AsyncIterator[bytes]:
        await go.wait()
        yield b"x" * 60

    async def both() -> list[object]:
        go = asyncio.Event()
        puts = [store.put_stream(slow(go), name="a", owner="me", announced=60) for _ in range(2)]
        running = asyncio.gather(*puts, return_exceptions=True)
        await asyncio.sleep(0.05)
        go.set()
        return list(await running)

    results = asyncio.run(both())
    assert [type(result).__name__ for result in results] == ["Stored", "NoRoom"]
    assert "no room for 60 B: 40 B are free on its disk" in str(results[1])


def test_a_refused_upload_takes_nothing_away(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, quota_nbytes=10, busy_seconds=100)
    idle = _put(store, b"1111", owner="long ago")
    stored = store.find(idle)
    assert stored is not None
    store._write(stored, used=stored.used - 200)
    busy = _put(store, b"22222", owner="other")
    with pytest.raises(NoRoom):
        _put(store, b"333333", owner="me")
    assert store.get_path(idle) is not None and store.get_path(busy) is not None
    # Five bytes fit when the four idle ones go.
    assert _put(store, b"44444", owner="me") and store.get_path(idle) is None and store.get_path(busy) is not None


def test_what_is_too_old_goes_though_the_upload_is_refused(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, quota_nbytes=10, busy_seconds=100, ttl_seconds=1000)
    busy, old = _put(store, b"22222222", owner="other"), _put(store, b"1")
    stored = store.find(old)
    assert stored is not None
    store._write(stored, used=stored.used - 2000)
    with pytest.raises(NoRoom):
        _put(store, b"333333", owner="me")
    assert store.get_path(old) is None and store.get_path(busy) is not None


def test_a_fetch_that_nobody_took_up_goes_with_the_next_sweep(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, busy_seconds=1800)
    left, underway, upload = (store.incoming / name for name in ("fetch-left", "fetch-now", "0123"))
    for path in (left, underway, upload):
        path.write_bytes(b"abc")
    now = underway.stat().st_mtime
    for path in (left, upload):
        os.utime(path, (now - 1801, now - 1801))
    store.sweep(now=now)
    # An upload counts itself, and clears what it leaves.
    assert sorted(store.incoming.iterdir()) == [upload, underway]


def test_a_sweep_reads_no_record_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ContentStore(tmp_path, quota_nbytes=30, busy_seconds=0)
    digests = [_put(first, bytes([number]) * 5, owner=f"visitor {number}") for number in range(5)]
    read: list[str] = []
    find = Records.find
    monkeypatch.setattr(Records, "find", lambda self, sha256: read.append(sha256) or find(self, sha256))
    store = ContentStore(tmp_path, quota_nbytes=30, busy_seconds=0)
    assert sorted(read) == sorted(digests)
    assert store.sweep(room_for=20, owner="me") == 15
    assert len(read) == 5
    # What another server wrote meanwhile is read again, and nothing else.
    first.touch(digests[3])
    read.clear()
    assert [stored.sha256 for stored in store.owned("visitor 3")] == read == [digests[3]]
