"""A first look at a file by slices of it: what it says is what the whole file says, in a few requests."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.numpy import save as save_safetensors

from inspector.checkpoint.types import Checkpoint
from inspector.errors import UsageError
from inspector.overview import summarise
from inspector.readers import open_checkpoint
from inspector.readers.header_look import MOST_NBYTES, HeaderLook, Waits, Wanted, first_ranges

ARRAYS = {f"layer{i}.weight": np.full((256, 200), i, np.float32) for i in range(40)}


def look_at(data: bytes, name: str = "net") -> tuple[HeaderLook, Checkpoint | Waits]:
    """Counted here, as a browser would send it."""
    look = HeaderLook(len(data), name)
    requests = nbytes = 0
    while True:
        slices = b"".join(data[offset : offset + n] for offset, n in look.wanted.ranges)
        requests, nbytes = requests + 1, nbytes + len(slices)
        assert requests <= 6 and nbytes <= 4 << 20
        outcome = look.take(slices)
        assert (look.requests, look.nbytes) == (requests, nbytes)
        if not isinstance(outcome, Wanted):
            return look, outcome


def as_safetensors(folder: Path) -> bytes:
    return save_safetensors(ARRAYS)


def as_torch(folder: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save({name: torch.from_numpy(array) for name, array in ARRAYS.items()}, buffer)
    return buffer.getvalue()


def as_npz(folder: Path) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **ARRAYS)
    return buffer.getvalue()


def as_gguf(folder: Path) -> bytes:
    writer = gguf.GGUFWriter(folder / "a.gguf", "llama")
    # A vocabulary of 1.2 MB, as models of 32,000 tokens have it.
    writer.add_token_list([f"token {i:020}" for i in range(32_000)])
    for name, array in ARRAYS.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return (folder / "a.gguf").read_bytes()


@pytest.mark.parametrize("make", [as_safetensors, as_torch, as_npz, as_gguf])
def test_a_format_with_an_index_is_told_as_the_whole_file_is(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    data = make(tmp_path)
    look, first = look_at(data)
    assert isinstance(first, Checkpoint), first
    whole = open_checkpoint(data, name="net")
    assert look.nbytes < len(data) // 2
    assert (first.format, first.format_says, first.origin.nbytes) == (whole.format, whole.format_says, len(data))
    assert [(t.name, t.shape, t.dtype) for t in first.tensors] == [(t.name, t.shape, t.dtype) for t in whole.tensors]
    assert first.findings == whole.findings and first.globals == whole.globals
    assert first.storages == whole.storages
    if make is as_torch:
        assert summarise(first).answers == summarise(whole).answers


def test_a_plain_torch_file_takes_one_request_and_a_long_gguf_header_four(tmp_path: Path) -> None:
    assert look_at(as_torch(tmp_path))[0].requests == 1
    look, _ = look_at(as_gguf(tmp_path))
    # Head and end, then 256 kB, 512 kB and 1 MB on.
    assert (look.requests, look.nbytes) == (4, 2 * 131_072 + 7 * 262_144)


class Payload:
    def __reduce__(self) -> tuple[object, ...]:
        return print, ("not run",)


def test_what_a_hostile_pickle_would_run_is_said_before_the_file_is_there() -> None:
    buffer = io.BytesIO()
    torch.save({"a": torch.zeros(300_000), "b": Payload()}, buffer)
    _, first = look_at(buffer.getvalue())
    assert isinstance(first, Checkpoint)
    assert "builtins.print" in {use.name for use in first.globals}


def _legacy() -> bytes:
    buffer = io.BytesIO()
    torch.save({"a": torch.zeros(300_000)}, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def _archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/net.safetensors", save_safetensors(ARRAYS))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (
            _legacy(),
            "A legacy torch.save file (before torch 1.6): it is shown when all of it is here, as the length of",
        ),
        (
            pickle.dumps({"a": bytes(1_200_000)}),
            "A Python pickle: it is shown when all of it is here, as a pickle says",
        ),
        (_archive(), "An archive of files (zip, tar, gzip, bzip2, xz, lzma, zlib): it is shown when all of it is here"),
        (b"\x89PNG\r\n\x1a\n" + bytes(1_200_000), "net is a PNG image, not a checkpoint."),
    ],
    ids=["legacy", "pickle", "archive", "picture"],
)
def test_what_has_no_index_says_what_it_waits_for(data: bytes, says: str) -> None:
    look, outcome = look_at(data)
    assert isinstance(outcome, Waits) and says in outcome.says
    assert look.requests == 1


def test_a_header_over_the_limits_is_waited_for() -> None:
    head = struct.pack("<Q", 5_000_000) + b"{" + b" " * 5_000_000
    look, outcome = look_at(head + bytes(9_000_000))
    assert isinstance(outcome, Waits)
    assert outcome.says == "1 request and 262 kB of it do not tell what is in it: that is shown when all of it is here."
    assert look.requests == 1


def test_a_header_that_goes_on_ends_with_the_bytes_that_are_allowed() -> None:
    key = b"tokenizer.ggml.tokens"
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(key)) + key
    data += struct.pack("<IIQ", 9, 8, 80_000) + (struct.pack("<Q", 100) + b"x" * 100) * 80_000
    look, outcome = look_at(data)
    assert isinstance(outcome, Waits) and outcome.says.startswith("5 requests and 4.19 MB of it do not tell")
    assert look.nbytes == MOST_NBYTES


def test_places_all_over_a_file_end_with_the_requests_that_are_allowed() -> None:
    # Members of TorchScript lie apart, and each is followed by itself.
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/constants.pkl", pickle.dumps((), protocol=2))
        for i in range(9):
            archive.writestr(f"a/ballast/{i}", bytes(400_000))
            archive.writestr(f"a/code/{i}.py", "x = 1")
        archive.writestr("a/data.pkl", pickle.dumps({"a": 1}, protocol=2))
    look, outcome = look_at(buffer.getvalue())
    assert isinstance(outcome, Waits) and outcome.says.startswith("6 requests and ")
    assert look.nbytes < MOST_NBYTES


@pytest.mark.parametrize("n", [0, 1, 262_143, 262_145])
def test_only_what_was_asked_for_is_taken(n: int) -> None:
    look = HeaderLook(1_000_000, "net")
    with pytest.raises(UsageError, match="262,144 were asked for"):
        look.take(bytes(n))
    assert (look.requests, look.source.held_nbytes) == (0, 0)


@pytest.mark.parametrize("size", [1, 131_072, 131_073, 262_144, 262_145, 10**15])
def test_the_first_ranges_lie_inside_and_apart(size: int) -> None:
    ranges = first_ranges(size)
    assert sum(n for _, n in ranges) == min(size, 262_144)
    assert all(offset >= 0 and n > 0 and offset + n <= size for offset, n in ranges)
    assert len(ranges) == 1 or ranges[0][1] <= ranges[1][0]


def test_a_size_that_lies_is_an_answer_like_any_other() -> None:
    data = as_safetensors(Path())
    _, outcome = look_at(data + bytes(2 * len(data)))
    assert isinstance(outcome, Checkpoint)
    assert "trailing-data" in {finding.id for finding in outcome.findings}
