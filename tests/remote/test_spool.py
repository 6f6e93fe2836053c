"""What came through the network lies on disk: the bytes are the file's, whatever was asked for before."""

from __future__ import annotations

import errno
import os
import random
import tempfile
from typing import Any

import pytest

from inspector.checkpoint.digest import sha256_of
from inspector.remote.client import Client
from inspector.remote.policy import OWN_LOOK, VISITOR
from inspector.remote.source import HttpSource
from inspector.remote.spool import Spool
from tests.serving import serving


def test_any_ranges_are_the_bytes_that_came(seeds: Any) -> None:
    for seed in seeds(20, full=500):
        rng = random.Random(seed)
        data = rng.randbytes(3000)
        spool, known = Spool(1 << 20), bytearray(3000)
        for _ in range(40):
            start = rng.randrange(3000)
            end = min(3000, start + rng.randrange(400))
            if rng.random() < 0.5:
                spool.add(start, data[start:end])
                known[start:end] = b"\1" * (end - start)
                continue
            buffer = bytearray(end - start)
            gaps = spool.fill(start, buffer)
            missing = {at for first, n in gaps for at in range(first, first + n)}
            assert missing == {at for at in range(start, end) if not known[at]}, seed
            assert gaps == sorted(gaps) and all(n > 0 for _, n in gaps)
            for at in set(range(start, end)) - missing:
                assert buffer[at - start] == data[at]


def test_over_its_size_and_without_room_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(100)
    spool.add(0, bytes(60))
    spool.add(60, bytes(60))
    spool.add(60, bytes(40))
    assert spool.fill(0, bytearray(120)) == [(100, 20)]

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    spool = Spool(100)
    spool.add(0, b"abc")
    assert spool.fill(0, bytearray(3)) == [(0, 3)]


def test_a_file_read_three_times_is_fetched_once_by_its_user_and_kept_for_no_visitor() -> None:
    data = random.Random(0).randbytes(40 << 20)
    with serving() as server:
        server.files["/a.bin"] = data
        source = HttpSource(f"{server.base}/a.bin", client=Client(OWN_LOOK))
        digests = {sha256_of(source) for _ in range(3)}
        source.close()
        assert source.read(5_000_000, 2_000_000) == data[5_000_000:7_000_000]
        assert len(digests) == 1 and server.sent == len(data)
    assert VISITOR.spool_nbytes == 0
