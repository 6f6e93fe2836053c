"""One store that several servers write: what one takes all have, and none takes away what another works with."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inspector.web.front.visitors import Visitors, visitors_secret
from inspector.web.store import ContentStore

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows knows no locks that several share.")


@pytest.fixture
def two(tmp_path: Path) -> tuple[ContentStore, ContentStore]:
    return ContentStore(tmp_path, shared=True), ContentStore(tmp_path, shared=True)


def test_a_file_is_at_every_server_and_known_by_its_owner(two: tuple[ContentStore, ContentStore]) -> None:
    a, b = two
    first = a.put_bytes(b"abc", name="a.pth", owner="me").sha256
    assert b.owned("me")[0].sha256 == first and b.owned("you") == []
    path = b.get_path(first)
    assert path is not None and path.read_bytes() == b"abc"
    second = b.put_bytes(b"abcd", name="b.pth", owner="me").sha256
    assert {stored.sha256 for stored in a.owned("me")} == {first, second}
    # Whoever else has it keeps it, whichever server is told.
    assert b.claim(first, name="its.pth", owner="you") is not None
    a.forget(first, "me")
    assert b.get_path(first) is not None and a.name_of(first, "you") == "its.pth"
    b.forget(first, "you")
    assert a.get_path(first) is None


def test_no_owner_is_lost_where_all_servers_write_one_record(two: tuple[ContentStore, ContentStore]) -> None:
    """The first whose name was written over would lose the file to somebody else's `forget`."""
    digest = two[0].put_bytes(b"abc", name="a.pth", owner="me").sha256

    def claim(store: ContentStore, who: str) -> None:
        for number in range(12):
            assert store.claim(digest, name="a.pth", owner=f"{who}{number}") is not None

    threads = [threading.Thread(target=claim, args=(two[n % 2], f"{n}-")) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = two[0].find(digest)
    assert stored is not None and len(stored.names) == 1 + 4 * 12


def test_a_server_that_starts_or_sweeps_cuts_no_upload_of_another(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, shared=True)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"abc"
        other = ContentStore(tmp_path, shared=True)
        other.sweep()
        other.clear_uploads()
        yield b"def"

    stored = asyncio.run(store.put_stream(chunks(), name="a.pth", owner="me", announced=6))
    path = ContentStore(tmp_path, shared=True).get_path(stored.sha256)
    assert path is not None and path.read_bytes() == b"abcdef"


def test_what_a_killed_server_had_on_its_way_goes_and_its_files_stay(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from inspector.web.store import ContentStore\n"
        "store = ContentStore(Path(sys.argv[1]), shared=True)\n"
        "print(store.put_bytes(b'abc', name='a.pth', owner='me').sha256)\n"
        "(store.incoming / 'half').write_bytes(b'half'); store.new_export('half')\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    digest = process.stdout.readline().strip()
    assert process.stdout.readline().strip() == "ready"
    store = ContentStore(tmp_path, shared=True)
    assert len(list(tmp_path.glob("servers/*/incoming/half"))) == 1
    process.kill()
    process.communicate()
    store.sweep()
    assert not list(tmp_path.glob("servers/*/*/half")) and len(list(tmp_path.glob("servers/*"))) == 1
    assert store.get_path(digest) is not None and store.owned("me")[0].names == {"me": "a.pth"}


def test_a_store_is_shared_where_every_server_was_told_so(tmp_path: Path) -> None:
    code = (
        "import sys; from inspector.web.store_lock import hold_store; print(hold_store(), flush=True); sys.stdin.read()"
    )
    alone = {**os.environ, "INSPECTOR_STORE": str(tmp_path), "INSPECTOR_STORE_SHARED": ""}
    shared = {**alone, "INSPECTOR_STORE_SHARED": "on"}

    def ask(environment: dict[str, str]) -> tuple[str, str]:
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, input="")
        return done.stdout.strip(), done.stderr

    for held, fits, refused in (
        (shared, shared, "Another server uses the store"),
        (alone, None, "Another server that shares it with none uses the store"),
    ):
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=held, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline().strip() == str(tmp_path)
        try:
            if fits is not None:
                assert ask(fits)[0] == str(tmp_path)
            assert refused in ask(alone if held is shared else shared)[1]
        finally:
            process.communicate("")
    unnamed = {name: value for name, value in shared.items() if name != "INSPECTOR_STORE"}
    assert "no store is named" in ask(unnamed)[1]
    assert "INSPECTOR_STORE_SHARED is 'yes'" in ask({**shared, "INSPECTOR_STORE_SHARED": "yes"})[1]


def test_servers_over_one_store_know_each_others_visitors_from_the_first_moment(tmp_path: Path) -> None:
    secrets: list[bytes] = []
    start = threading.Barrier(6)

    def begin() -> None:
        start.wait()
        secrets.append(visitors_secret({}, tmp_path))

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(secrets)) == 1 and [path.name for path in tmp_path.iterdir()] == ["visitors"]
    assert Visitors(secrets[0]).signed("me") == Visitors(secrets[5]).signed("me")
