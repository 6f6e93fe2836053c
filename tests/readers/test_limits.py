"""No file takes memory or time out of proportion to its length, and what stops it is said with its figure."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import floods
import pytest
import torch
from hostile import text

from inspector.checkpoint.source import BufferSource, PathSource
from inspector.checkpoint.tree import TreeRoom, module_tree
from inspector.checkpoint.types import ModuleNode, TensorInfo
from inspector.errors import LimitExceeded, ReadError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers import open_checkpoint
from inspector.readers.formats.safetensors_header import read_entries
from inspector.readers.unpickle.machine import room as room_module
from tests.steps import steps

# A twentieth of the default, with floods as much shorter: the same code, twenty times as fast.
SMALL = Limits(memory_nbytes=10_000_000, nodes=10_000)
# These are as large whatever size is asked for, or large by their nature.
FIXED = ("one member many times", "deflate bomb", "deflate bomb of text")


def opened(data: bytes, limits: Limits = SMALL) -> object:
    try:
        return open_checkpoint(data, limits=limits)
    except ReadError as error:
        return error


@pytest.mark.parametrize("name", sorted(floods.FLOODS))
def test_memory_stays_within_the_budget(name: str, thorough: bool) -> None:
    nbytes = 150_000 if thorough else 60_000
    limits = SMALL if thorough else Limits(memory_nbytes=4_000_000, nodes=4_000)
    data = floods.FLOODS[name](nbytes)
    tracemalloc.start()
    try:
        opened(data, limits)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Windows, blocks and the interpreter's own caches come on top of what is counted.
    assert peak < 1.25 * limits.memory_nbytes + 4 * 1024 * 1024


@pytest.mark.parametrize("name", sorted(set(floods.FLOODS) - set(FIXED)))
def test_work_grows_no_faster_than_the_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the bytes may cost little more than twice the lines."""
    monkeypatch.setattr(room_module, "_MOST_REPEATED", 500)
    short, long = floods.FLOODS[name](4_000), floods.FLOODS[name](8_000)
    opened(short, DEFAULT_LIMITS)  # What a reader imports when it is first asked is no work of the file's.
    twice = steps(lambda: opened(long, DEFAULT_LIMITS))
    assert twice < 2.4 * steps(lambda: opened(short, DEFAULT_LIMITS)) + 20_000


@pytest.mark.parametrize("name", ["empty dicts", "several wide texts"])
def test_the_whole_process_stays_small(name: str, tmp_path: Path) -> None:
    """The default limits, in a process of its own; docs/measurements.md has every flood at 30 MB."""
    found = floods.measure(floods.FLOODS[name](1_500_000), tmp_path)
    assert float(found["megabytes"]) < 256


def test_what_stops_a_pickle_is_said_with_its_figure() -> None:
    checkpoint = open_checkpoint(b"\x80\x02(" + b"}" * 200_000 + b"l.", limits=SMALL)
    (finding,) = [f for f in checkpoint.findings if f.id == "pickle-over-limit"]
    assert "takes more than 6.50 MB of memory" in finding.says


def test_a_constant_for_which_there_is_no_room_is_not_read() -> None:
    n = 8_000_000
    checkpoint = open_checkpoint(b"\x80\x02X" + n.to_bytes(4, "little") + b"a" * n + b".", limits=SMALL)
    (finding,) = [f for f in checkpoint.findings if f.id == "pickle-over-limit"]
    assert "a constant of 8,000,000 bytes" in finding.says


def test_global_names_are_counted() -> None:
    data = b"\x80\x02(" + b"".join(b"cm%d\nf\n" % i for i in range(300)) + b"l."
    checkpoint = open_checkpoint(data, limits=Limits(global_names=100))
    assert any("more than 100 different global names" in f.says for f in checkpoint.findings)
    assert len(checkpoint.globals) == 100


def test_ordinary_files_are_far_from_every_limit(tmp_path: Path) -> None:
    """The quiet twin: two thousand tensors under a twentieth of the memory."""
    state = {f"layers.{i}.weight": torch.zeros(2) for i in range(2000)}
    for legacy in (False, True):
        torch.save(state, tmp_path / "a.pt", _use_new_zipfile_serialization=not legacy)
        checkpoint = open_checkpoint(tmp_path / "a.pt", limits=Limits(memory_nbytes=DEFAULT_LIMITS.memory_nbytes // 20))
        assert len(checkpoint.tensors) == 2000 and not checkpoint.skipped and not checkpoint.findings


def test_an_opening_has_one_budget_and_each_a_new_one(tmp_path: Path) -> None:
    limits = Limits(memory_nbytes=4_000_000)
    torch.save({"w": torch.ones(3)}, tmp_path / "a.pt")
    for _ in range(50):
        open_checkpoint(tmp_path / "a.pt", limits=limits)
    metered = limits.metered()
    metered.charge(3_000_000, "This")
    with pytest.raises(LimitExceeded, match="That would take about 2 MB of memory; 1 of 4 MB are left"):
        metered.charge(2_000_000, "That")
    metered.spend(-3_000_000)
    assert metered.room == 4_000_000 and limits.room == 4_000_000


def test_memo_entries_out_of_line_are_kept() -> None:
    """Indices as no writer numbers them: 9, then 0, 1, then 9 again."""
    data = b"\x80\x02" + text("far") + b"q\x090" + text("a") + b"q\x000" + text("b") + b"q\x010"
    checkpoint = open_checkpoint(data + b"(h\x09h\x00h\x01" + text("c") + b"q\x09h\x09l.")
    assert [value.says for _, value in checkpoint.root.children] == ["far", "a", "b", "c", "c"]


def test_a_dense_memo_grows_over_a_sparse_one() -> None:
    data = b"\x80\x04(" + b"\x8c\x01xq\x02" + b"\x8c\x01aq\x00" + b"\x8c\x01bq\x01" + b"\x8c\x01cq\x02" + b"h\x02h\x01"
    checkpoint = open_checkpoint(data + b"l.")
    assert [value.says for _, value in checkpoint.root.children] == ["x", "a", "b", "c", "c", "b"]


def depth(node: ModuleNode) -> int:
    return 1 + max(map(depth, node.children), default=0)


def test_trees_of_one_file_share_their_room() -> None:
    name = ".".join("abcdefgh" * 7) + ".weight"
    tensor = TensorInfo(name=name, path=(name,), shape=(), dtype="float32", nbytes=4, storage_id=None)
    assert depth(module_tree([tensor])) == 57
    room = TreeRoom(1)
    room.modules = 10
    assert depth(module_tree([tensor], room)) == 11
    assert module_tree([tensor], room).tensors == (tensor,)


def test_a_header_is_read_entry_by_entry() -> None:
    def read(raw: bytes) -> list[tuple[str, object]]:
        return list(read_entries(raw, "f", DEFAULT_LIMITS))

    assert read(b"{}") == []
    assert read(b' {"a": {"x": [1, 2]} , "b":0 }   ') == [("a", {"x": [1, 2]}), ("b", 0)]
    assert read('{"é😀": 1, "\\u00e9\\n": 2}'.encode()) == [("é😀", 1), ("é\n", 2)]
    assert read(b'{"__metadata__": {"k": "v", "n": 1}}') == [("__metadata__", {"k": "v", "n": "1"})]
    brokens = [b"", b"{", b"[]", b'{"a"}', b'{"a":}', b'{"a":1', b'{"a":1,}', b'{"a":1}x', b'{"a":1}{', b"{a:1}"]
    brokens += [b'{"a":1 "b":2}', b'{"\xff":1}', b'{"a":[[[[', b'{"__metadata__":{"a":"b"', b'{"a":{"x":1,"x":2}}']
    for broken in brokens:
        with pytest.raises(ReadError, match="The header of f is no valid JSON"):
            read(broken)
    with pytest.raises(ReadError, match='names "a" twice'):
        read(b'{"a":1,"a":2}')
    with pytest.raises(ReadError, match="is longer than 8,192 bytes"):
        read(b'{"a":[' + b"1," * 8000 + b"1]}")


def test_ranges_that_lie_close_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 40_000
    (tmp_path / "f").write_bytes(data)
    source = PathSource(tmp_path / "f")
    ranges = [(at, 30) for at in range(0, 9_000_000, 3000)] + [(5, 10), (9_999_000, 1000), (0, 0), (10_240_000, 0)]
    assert source.read_many(ranges) == BufferSource(data).read_many(ranges) == [data[a : a + n] for a, n in ranges]
    reads: list[int] = []
    monkeypatch.setattr(source, "read", lambda offset, n: reads.append(n) or data[offset : offset + n])
    source.read_many(ranges[:3000])
    assert len(reads) < 15 and max(reads) <= 1 << 20
