"""Tensors of a plain pickle.dump, and pickles that hide in constants. Oracle: pickle.loads on files made here."""

from __future__ import annotations

import base64
import bz2
import functools
import gzip
import io
import lzma
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.checkpoint.data import read_array, read_bytes
from inspector.checkpoint.torch_bridge import to_torch
from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.errors import InspectorError
from inspector.readers import open_checkpoint
from tests.readers.hostile import Payload, torch_zip

LOADER = "torch.storage._load_from_bytes"


class Calls:
    """Pickles as a call of function(*arguments)."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.made = (function, arguments)

    def __reduce__(self) -> Any:
        return self.made


def saved(value: object, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def verdicts(checkpoint: Checkpoint) -> dict[str, str]:
    return {g.name: g.verdict.value for g in checkpoint.globals}


@pytest.mark.parametrize("protocol", range(6))
def test_a_plain_pickle_of_tensors_is_read_in_place(protocol: int) -> None:
    base = torch.arange(3000.0)
    state = {
        "long": base,
        "turned": base.view(30, 100).t(),
        "part": base[7:19:3],
        "half": torch.ones(5, dtype=torch.bfloat16),
        "none": torch.zeros(0, 3),
        "one": torch.tensor(7),
        "parameter": torch.nn.Parameter(torch.ones(2, 2)),
    }
    data = pickle.dumps(state, protocol)
    loaded = pickle.loads(data)
    checkpoint = open_checkpoint(data)
    assert [t.name for t in checkpoint.tensors] == list(state)
    for info in checkpoint.tensors:
        tensor = loaded[info.name].detach()
        assert (info.shape, info.stride, info.offset) == (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        assert torch.equal(to_torch(checkpoint, info), tensor), info.name
    if protocol >= 3:  # From there on bytes are bytes, and a long constant stays in the file.
        long = checkpoint.storages[checkpoint.tensors[0].storage_id or ""]
        assert long.inline is None
        assert data[long.offset : (long.offset or 0) + 12000] == base.numpy().tobytes()
    loader = next(g for g in checkpoint.globals if g.name == LOADER)
    assert (loader.verdict, loader.place, loader.called) == (GlobalVerdict.KNOWN, "", True)
    assert not [
        f for f in checkpoint.findings if f.id in ("dangerous-global", "pickle-in-constant", "view-outside-storage")
    ]


def test_a_zip_inside_gives_its_whole_object() -> None:
    inner = {"w": torch.arange(4.0), "v": torch.ones(2, 2, dtype=torch.int32)}
    checkpoint = open_checkpoint(pickle.dumps({"model": Calls(torch.storage._load_from_bytes, saved(inner))}, 4))
    assert [t.path for t in checkpoint.tensors] == [("model", "w"), ("model", "v")]
    assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert verdicts(checkpoint)[LOADER] == "known"


def test_nested_files_keep_their_storages_apart() -> None:
    """Both inner files call their storage 0."""
    one, two = (Calls(torch.storage._load_from_bytes, saved(torch.full((3,), x))) for x in (1.0, 2.0))
    outer = open_checkpoint(saved({"a": one, "b": two, "c": torch.full((3,), 3.0)}))
    assert [read_array(outer, t).tolist() for t in outer.tensors] == [[1.0] * 3, [2.0] * 3, [3.0] * 3]
    assert len({t.storage_id for t in outer.tensors}) == 3


def test_arrays_inside_a_nested_file_are_found_at_their_place() -> None:
    inner = saved({"x": np.arange(2000.0)}, _use_new_zipfile_serialization=False)
    checkpoint = open_checkpoint(pickle.dumps([1, Calls(torch.storage._load_from_bytes, inner)], 4))
    assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == list(range(2000))


def test_a_payload_in_the_inner_file_is_reported_with_its_place(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        inner = saved([torch.ones(2), Payload(marker)], **options)
        checkpoint = open_checkpoint(pickle.dumps(Calls(torch.storage._load_from_bytes, inner), 4))
        use = next(g for g in checkpoint.globals if g.name == "posix.system")
        assert use.verdict is GlobalVerdict.DANGEROUS
        assert use.place.startswith("(inside a bytes constant")
        assert "dangerous-global" in {f.id for f in checkpoint.findings}
    assert not marker.exists()


@pytest.mark.parametrize(
    "spoil", [lambda b: b[:-3], lambda b: b[:200], lambda b: b"\x80\x02]q\x00." + b, lambda b: b"x" * 99]
)
def test_what_cannot_be_followed_stays_dangerous(spoil: Any) -> None:
    inner = saved(torch.ones(40), _use_new_zipfile_serialization=False)
    checkpoint = open_checkpoint(pickle.dumps(Calls(torch.storage._load_from_bytes, spoil(inner)), 4))
    assert verdicts(checkpoint)[LOADER] == "dangerous"
    assert checkpoint.tensors == ()


def test_a_loader_that_a_wrapper_may_call_unseen_stays_dangerous() -> None:
    inner = saved(torch.ones(40))
    hidden = Calls(functools.partial, torch.storage._load_from_bytes)
    checkpoint = open_checkpoint(pickle.dumps([Calls(torch.storage._load_from_bytes, inner), hidden], 4))
    assert verdicts(checkpoint)[LOADER] == "dangerous"


def hiding(payload: bytes) -> dict[str, object]:
    return {
        "pickle.loads": Calls(pickle.loads, payload),
        "a plain value": {"blob": payload},
        "long": {"blob": payload + b"\x00" * 6000},
        "base64 text": Calls(pickle.loads, Calls(base64.b64decode, base64.b64encode(payload).decode())),
        "base64 bytes": Calls(pickle.loads, Calls(base64.b64decode, base64.b64encode(payload))),
        "zlib": Calls(pickle.loads, Calls(zlib.decompress, zlib.compress(payload))),
        "bz2": Calls(pickle.loads, Calls(bz2.decompress, bz2.compress(payload))),
        "xz": Calls(pickle.loads, Calls(lzma.decompress, lzma.compress(payload))),
        "gzip": Calls(pickle.loads, Calls(gzip.decompress, gzip.compress(payload))),
        "two levels": Calls(pickle.loads, pickle.dumps(Calls(pickle.loads, payload), 4)),
        "in a dict key": {payload: 1},
    }


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("where", hiding(b""))
def test_a_pickle_in_a_constant_is_looked_into(where: str, protocol: int, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    value = hiding(pickle.dumps(Payload(marker), 4))[where]
    for data in (pickle.dumps(value, protocol), torch_zip(pickle.dumps(value, protocol))):
        checkpoint = open_checkpoint(data)
        assert verdicts(checkpoint).get("posix.system") == "dangerous", where
        finding = next(f for f in checkpoint.findings if f.id == "pickle-in-constant")
        assert finding.severity.value == "error"
        assert "posix.system" in finding.subjects
    assert not marker.exists()


def test_a_protocol_0_payload_is_found_where_a_loader_gets_it(tmp_path: Path) -> None:
    payload = pickle.dumps(Payload(tmp_path / "marker"), 0)
    checkpoint = open_checkpoint(pickle.dumps(Calls(pickle.loads, payload), 4))
    assert verdicts(checkpoint)["posix.system"] == "dangerous"


def test_a_pickle_in_a_text_of_one_character_for_a_byte_is_looked_into(tmp_path: Path) -> None:
    inner = pickle.dumps(Payload(tmp_path / "never"), protocol=3)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"model": inner.decode("latin-1")}, protocol=4))
    findings = {f.id: f.severity.value for f in open_checkpoint(tmp_path / "a.pkl").findings}
    assert findings["pickle-in-constant"] == "error"


def test_ordinary_bytes_are_left_in_peace() -> None:
    noise = np.random.default_rng(0).integers(0, 256, 9000, dtype=np.uint8).tobytes()
    values = {
        "noise": noise, "png": b"\x89PNG\r\n", "looks": b"\x80\x02" + noise, "text": "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=",
        "array": np.frombuffer(b"\x80\x04" * 4000, dtype=np.uint8), "zip": b"PK\x03\x04" + noise,
        "no name": b"\x80\x00c\n\x00", "cut": b"\x80\x00cA\n\x00",
        "known": b"\x80\x00ccollections\n\x00", "no such name": b"\x80\x00cos\n\x00", "no module": b"\x80\x02c\n\x00\n",
        "not UTF-8": b"\x80\x02c\xff\nx\n",
    }  # fmt: skip
    checkpoint = open_checkpoint(pickle.dumps(values, 4))
    assert not [f for f in checkpoint.findings if f.id in ("pickle-in-constant", "constants-left-out")]
    assert {g.verdict.value for g in checkpoint.globals} == {"known"}
    assert read_bytes(checkpoint, checkpoint.tensors[0]) == b"\x80\x04" * 4000


def test_a_harmless_inner_pickle_is_a_notice_and_no_global_of_the_file() -> None:
    checkpoint = open_checkpoint(pickle.dumps({"blob": pickle.dumps({"a": {1, 2}}, 2)}, 2))
    finding = next(f for f in checkpoint.findings if f.id == "pickle-in-constant")
    assert finding.severity.value == "notice"
    assert "weights-only-refuses" not in {f.id for f in checkpoint.findings}


def test_nesting_and_number_are_bounded(tmp_path: Path) -> None:
    deep: object = Payload(tmp_path / "marker")
    for _ in range(30):
        deep = Calls(pickle.loads, pickle.dumps(deep, 4))
    checkpoint = open_checkpoint(pickle.dumps(deep, 4))
    assert "constants-left-out" in {f.id for f in checkpoint.findings}
    many = open_checkpoint(pickle.dumps([b"\x80\x02N" + bytes([i % 256, i // 256]) for i in range(5000)], 4))
    left = next(f for f in many.findings if f.id == "constants-left-out")
    assert dict(left.evidence)["constants"] == 4000


@pytest.mark.parametrize("times", [1, 2000])
def test_one_constant_that_is_loaded_again_and_again_is_followed_once(times: int) -> None:
    inner = saved(torch.ones(64), _use_new_zipfile_serialization=False)
    once = pickle.dumps(Calls(torch.storage._load_from_bytes, inner), 4)
    head, tail = once[:-2], once[-2:]
    assert tail[1:] == b"."
    again = b"h\x02h\x03\x85R0"  # memo: 2 is the loader, 3 the constant
    checkpoint = open_checkpoint(head + again * times + b".")
    assert len(checkpoint.globals) < 10
    assert verdicts(checkpoint)[LOADER] == "dangerous"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_flipped_byte_is_a_checkpoint_or_an_error(draw: st.DataObject) -> None:
    protocol = draw.draw(st.sampled_from([2, 4]))
    data = bytearray(pickle.dumps({"w": torch.arange(12.0), "z": Calls(pickle.loads, b"\x80\x04]\x94.")}, protocol))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        checkpoint = open_checkpoint(bytes(data))
        for info in checkpoint.tensors:
            read_bytes(checkpoint, info)
    except InspectorError:
        return


def _with_info(whole: bytes, info: bytes) -> bytes:
    """A legacy file with another third pickle, the system information."""
    stream = io.BytesIO(whole)
    for _ in range(2):
        pickle.load(stream)
    before = stream.tell()
    pickle.load(stream)
    return whole[:before] + info + whole[stream.tell() :]


def test_a_file_that_begins_otherwise_is_followed_from_its_beginning(tmp_path: Path) -> None:
    """The first three pickles are followed once where they are the same bytes, and every time where they are not."""
    marker = tmp_path / "marker"
    ordinary = [saved(torch.full((40,), float(i)), _use_new_zipfile_serialization=False) for i in range(4)]
    big = torch.arange(30, dtype=torch.int64)
    turned = saved(big, _use_new_zipfile_serialization=False)
    at = len(turned) - 8 * 30 - 8
    body = np.frombuffer(turned[at:], "<i8").astype(">i8").tobytes()
    turned = _with_info(turned[:at] + body, pickle.dumps({"little_endian": False}, 2))
    armed = _with_info(ordinary[3], pickle.dumps(Payload(marker), 2))
    files = [ordinary[0], ordinary[1], turned, ordinary[2], armed]
    checkpoint = open_checkpoint(pickle.dumps([Calls(torch.storage._load_from_bytes, file) for file in files], 4))
    values = [read_array(checkpoint, t).tolist() for t in checkpoint.tensors]
    assert values == [[0.0] * 40, [1.0] * 40, big.tolist(), [2.0] * 40, [3.0] * 40]
    assert verdicts(checkpoint)["posix.system"] == "dangerous"
    armed_first = open_checkpoint(pickle.dumps([Calls(torch.storage._load_from_bytes, f) for f in (armed, armed)], 4))
    assert next(g for g in armed_first.globals if g.name == "posix.system").verdict is GlobalVerdict.DANGEROUS
    assert not marker.exists()


def test_the_beginning_that_all_files_share_is_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.readers.unpickle.machine.machine import Machine

    runs: list[int] = []
    run = Machine.run
    monkeypatch.setattr(Machine, "run", lambda machine, table: runs.append(1) or run(machine, table))
    state = {f"w{i}": torch.full((3,), float(i)) for i in range(10)}
    checkpoint = open_checkpoint(pickle.dumps(state, 4))
    assert len(runs) <= 1 + 3 + 2 * 10
    assert [read_array(checkpoint, t).tolist() for t in checkpoint.tensors] == [[float(i)] * 3 for i in range(10)]
