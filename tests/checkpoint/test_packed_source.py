"""Compressed bytes as a source, against gzip, bz2, lzma and zlib; bombs, cuts and lies."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import random
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.checkpoint.packed_source import HEAD_NBYTES, PackedSource, Packing, most_unpacked
from inspector.checkpoint.source import BufferSource
from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import Limits

MOST = 4 << 20
DATA = bytes(random.Random(0).choices(range(64), k=200_000))
PACK: dict[Packing, Callable[[bytes], bytes]] = {
    Packing.DEFLATE: lambda data: zlib.compress(data)[2:-4],
    Packing.GZIP: gzip.compress,
    Packing.BZIP2: lambda data: bz2.compress(data, 1),
    Packing.XZ: lzma.compress,
    Packing.LZMA: lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
    Packing.ZLIB: zlib.compress,
}
STREAMS = (Packing.GZIP, Packing.BZIP2, Packing.XZ)


def source(raw: bytes, packing: Packing, size: int | None, most: int = MOST) -> PackedSource:
    return PackedSource(
        BufferSource(b"xx" + raw + b"yy", "archive"), 2, len(raw), packing, size=size, most=most, name="m"
    )


@pytest.mark.parametrize("packing", Packing)
@pytest.mark.parametrize("size", [None, len(DATA)])
def test_any_range_is_that_of_the_unpacked_bytes(packing: Packing, size: int | None) -> None:
    found = source(PACK[packing](DATA), packing, size)
    assert found.size == len(DATA)
    ranges = [(0, 10), (HEAD_NBYTES - 5, 5), (HEAD_NBYTES - 5, 10), (150_000, 50_000), (0, len(DATA)), (len(DATA), 0)]
    assert found.read_many(ranges) == [DATA[a : a + n] for a, n in ranges]
    with pytest.raises(CorruptFile, match="ends at byte"):
        found.read(len(DATA), 1)
    again = pickle.loads(pickle.dumps(found))
    assert again.read(100_000, 7) == DATA[100_000:100_007]
    found.close()
    assert found.read(1, 2) == DATA[1:3]


def test_the_beginning_is_had_without_unpacking_the_rest() -> None:
    raw = PACK[Packing.DEFLATE](DATA)
    half = raw[: len(raw) // 2 + 20_000] + b"\xff" * 100
    found = source(half, Packing.DEFLATE, len(DATA))
    assert found.read(0, 100) == DATA[:100]
    assert found._file is None
    with pytest.raises(CorruptFile):
        found.read(HEAD_NBYTES, 1)


def test_nothing_gets_a_name_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = source(gzip.compress(DATA), Packing.GZIP, None)
    assert found.read(0, 5) == DATA[:5]
    assert list(tmp_path.iterdir()) == []
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    del found
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors - 1


@pytest.mark.parametrize("packing", STREAMS)
def test_streams_behind_each_other_count_as_one(packing: Packing) -> None:
    pack = PACK[packing]
    assert source(pack(b"abc") + pack(b"def"), packing, None).read(0, 6) == b"abcdef"
    padded = source(pack(b"abc") + b"\0" * 40, packing, None)
    assert (padded.size, padded.trouble) == (3, "")
    trailing = source(pack(b"abc") + b"something else", packing, None)
    assert (trailing.size, trailing.trouble) == (3, "")


@pytest.mark.parametrize("packing", Packing)
def test_cut_streams(packing: Packing) -> None:
    """With a size that nobody declared, what came out is kept and the trouble told; a member must be whole."""
    raw = PACK[packing](DATA)
    for n in (0, 1, len(raw) // 2, len(raw) - 1):
        with pytest.raises(CorruptFile):
            source(raw[:n], packing, len(DATA) + 1).read(0, len(DATA))
    cut = source(raw[: len(raw) * 3 // 4], packing, None)
    assert 0 < cut.size < len(DATA)
    assert cut.read(0, cut.size) == DATA[: cut.size]
    assert cut.trouble == "its stream has no end"
    with pytest.raises(CorruptFile):
        source(raw[:4], packing, None)


@pytest.mark.parametrize("packing", Packing)
@pytest.mark.parametrize("lie", [-1, 1])
def test_a_declared_size_that_lies(packing: Packing, lie: int) -> None:
    found = source(PACK[packing](DATA), packing, len(DATA) + lie)
    with pytest.raises(CorruptFile, match=f"announces {len(DATA) + lie:,} bytes and unpacks to"):
        found.read(0, found.size)


@pytest.mark.parametrize("packing", Packing)
def test_bombs_stop_at_the_limit(packing: Packing) -> None:
    raw = PACK[packing](bytes(16 << 20))
    assert len(raw) < 40_000
    with pytest.raises(LimitExceeded, match=r"m unpacks from .* or more; 4\.19 MB are allowed"):
        source(raw, packing, None)
    with pytest.raises(LimitExceeded):
        source(raw, packing, 16 << 20)
    # Declared small, so that it passes, and then more comes.
    with pytest.raises(CorruptFile, match="unpacks to more"):
        source(raw, packing, 100_000).read(0, 100_000)


def test_how_much_may_come_out() -> None:
    limits = Limits(inflation_ratio=200)
    assert most_unpacked(10, limits) == 1 << 20
    assert most_unpacked(1 << 20, limits) == 200 << 20
    assert most_unpacked(1 << 40, limits) == 1 << 30
    assert most_unpacked(1 << 20, limits, 1000) == 1000


def test_random_damage_gives_an_error_or_the_bytes(tmp_path: Path) -> None:
    rng = random.Random(1)
    small = DATA[:5000]
    for packing in Packing:
        raw = PACK[packing](small)
        for _ in range(150):
            bad = bytearray(raw)
            bad[rng.randrange(len(bad))] = rng.randrange(256)
            for size in (None, len(small)):
                try:
                    found = source(bytes(bad), packing, size)
                    assert len(found.read(0, found.size)) == found.size
                except (CorruptFile, LimitExceeded):
                    pass


def test_a_full_disk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 90, 10))  # type: ignore[attr-defined]
    with pytest.raises(LimitExceeded, match="has only 10 B free"):
        source(gzip.compress(DATA), Packing.GZIP, None)
