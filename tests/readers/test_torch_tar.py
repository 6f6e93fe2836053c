"""Archives of torch 0.1, reader "torch-tar": written here byte by byte, and loaded by torch's own tar branch."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.checkpoint.torch_bridge import to_torch
from inspector.checkpoint.types import Checkpoint
from inspector.errors import InspectorError
from inspector.readers import open_checkpoint
from inspector.readers.opening import detect_format
from tests.readers.hostile import Payload

DTYPES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "HalfStorage": "float16",
}  # fmt: skip


class Numbered:
    """Stands for a tensor or a class: it pickles as a persistent id."""

    def __init__(self, pid: object) -> None:
        self.pid = pid


class Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return obj.pid if isinstance(obj, Numbered) else None


def dumped(value: object) -> bytes:
    buffer = io.BytesIO()
    Pickler(buffer, 2).dump(value)
    return buffer.getvalue()


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def row(key: object, second: object, module: str, attribute: str) -> bytes:
    """A pickle of (key, second, class)."""
    return b"\x80\x02" + dumped(key)[2:-1] + dumped(second)[2:-1] + name(module, attribute) + b"\x87."


def storages(entries: list[tuple[int, str, str, bytes, int]], views: list[tuple[int, int, int, int]]) -> bytes:
    """entries: (key, location, class name, bytes, elements)."""
    made = dumped(len(entries))
    for key, location, cls, raw, numel in entries:
        made += row(key, location, "torch", cls) + struct.pack("<q", numel) + raw
    return made + dumped(views)


def tensors(entries: list[tuple[int, int, str, tuple[int, ...], tuple[int, ...], int]]) -> bytes:
    """entries: (key, storage key, class name, size, stride, offset)."""
    made = dumped(len(entries))
    for key, storage, cls, size, stride, offset in entries:
        n = len(size)
        made += row(key, storage, "torch", cls) + struct.pack(f"<ii{n}q{n}qq", n, 0, *size, *stride, offset)
    return made


def packed(members: dict[str, bytes], fmt: int = tarfile.USTAR_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=fmt) as tar:
        for member, content in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


SYS_INFO = dumped({"protocol_version": 1000, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}})


def example(value: object | None = None) -> dict[str, bytes]:
    """A float storage of 12, a view of 6 of it, a long storage of 3."""
    floats = struct.pack("<12f", *range(12))
    longs = struct.pack("<3q", -1, 0, 1 << 40)
    return {
        "sys_info": SYS_INFO,
        "pickle": dumped(
            value
            or {"w": Numbered("1001"), "t": Numbered("1002"), "part": Numbered("1003"), "n": Numbered("1004"), "e": 3}
        ),
        "storages": storages(
            [(11, "cpu", "FloatStorage", floats, 12), (12, "cpu", "LongStorage", longs, 3)], [(13, 11, 4, 6)]
        ),
        "tensors": tensors(
            [
                (1001, 11, "FloatTensor", (3, 4), (4, 1), 0),
                (1002, 11, "FloatTensor", (4, 3), (1, 4), 0),
                (1003, 13, "FloatTensor", (2, 2), (3, 1), 1),
                (1004, 12, "LongTensor", (3,), (1,), 0),
            ]
        ),
    }


def oracle(data: bytes) -> dict[str, torch.Tensor]:
    with tempfile.NamedTemporaryFile() as file:  # torch looks for a tar in real files only.
        file.write(data)
        file.flush()
        loaded = torch.load(file.name, weights_only=False)
    return {k: v for k, v in loaded.items() if isinstance(v, torch.Tensor)}


def check(checkpoint: Checkpoint, expected: dict[str, torch.Tensor]) -> None:
    by_name = {t.name: t for t in checkpoint.tensors}
    assert list(by_name) == list(expected)
    for key, tensor in expected.items():
        info = by_name[key]
        assert (info.shape, info.stride) == (tuple(tensor.shape), tensor.stride()), key
        assert torch.equal(to_torch(checkpoint, info), tensor), key


@pytest.mark.parametrize("fmt", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_it_reads_what_torch_reads(fmt: int) -> None:
    data = packed(example(), fmt)
    found = detect_format(data)
    assert found is not None
    assert found[0].id == "torch-tar"
    checkpoint = open_checkpoint(data, name="old.pt")
    check(checkpoint, oracle(data))
    assert checkpoint.format == "torch-tar"
    shared = {t.name: t.storage_id for t in checkpoint.tensors}
    assert shared["w"] == shared["t"] == shared["part"] != shared["n"]
    assert [t.offset for t in checkpoint.tensors] == [0, 0, 5, 0]  # The view begins at 4, the tensor at 1 of it.
    assert dict(checkpoint.metadata) == {"e": "3"}
    assert not [f for f in checkpoint.findings if f.severity.rank >= 2 and f.id not in ("weights-only-refuses",)]


@pytest.mark.parametrize(("cls", "dtype"), DTYPES.items())
def test_every_type_of_those_years(cls: str, dtype: str) -> None:
    width = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    raw = bytes(range(1, 6 * width + 1))
    members = {
        "sys_info": SYS_INFO,
        "pickle": dumped({"x": Numbered("5")}),
        "storages": storages([(3, "cpu", cls, raw, 6)], []),
        "tensors": tensors([(5, 3, cls.replace("Storage", "Tensor"), (2, 3), (3, 1), 0)]),
    }
    data = packed(members)
    checkpoint = open_checkpoint(data)
    assert checkpoint.tensors[0].dtype == dtype
    expected = oracle(data)["x"]
    assert to_torch(checkpoint, checkpoint.tensors[0]).view(torch.uint8).equal(expected.view(torch.uint8))


def test_a_module_class_with_its_source_is_inert_and_its_source_shown() -> None:
    module = b"\x80\x02cmodels\nNet\nX\x06\x00\x00\x00net.pyX\x04\x00\x00\x00pass\x87Q"
    module += b")\x81}X\x01\x00\x00\x00wX\x04\x00\x00\x001001Qsb."
    members = {**example(), "pickle": module}
    checkpoint = open_checkpoint(packed(members))
    assert checkpoint.root.type_name == "models.Net"
    assert [t.shape for t in checkpoint.tensors] == [(3, 4)]
    assert [(s.name, s.text, s.nbytes) for s in checkpoint.code] == [("models.Net", "pass", 4)]
    assert checkpoint.skipped == ()
    assert [(g.name, g.verdict.value) for g in checkpoint.globals if g.name == "models.Net"] == [
        ("models.Net", "unknown")
    ]


def test_a_payload_in_any_member_is_reported_and_does_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    payload = pickle.dumps(Payload(marker), 2)
    for member in ("sys_info", "pickle", "storages", "tensors"):
        checkpoint = open_checkpoint(packed({**example(), member: payload}))
        assert "posix.system" in {g.name for g in checkpoint.globals}, member
        assert "dangerous-global" in {f.id for f in checkpoint.findings}, member
    assert not marker.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tensors": tensors([(1001, 11, "FloatTensor", (3, -4), (4, 1), 0)])}, "negative number"),
        ({"tensors": tensors([(1001, 99, "FloatTensor", (3, 4), (4, 1), 0)])}, "no storage of the file"),
        ({"tensors": tensors([(1001, 11, "FloatTensor", (1 << 61, 8), (4, 1), 0)])}, "more than any memory"),
    ],
)
def test_a_tensor_that_cannot_be_is_named(change: dict[str, bytes], words: str) -> None:
    checkpoint = open_checkpoint(packed({**example(), **change, "pickle": dumped({"w": Numbered("1001")})}))
    finding = next(f for f in checkpoint.findings if f.id == "misfit-tensor")
    assert words in finding.says
    assert finding.subjects == ("w",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"storages": dumped(-1)}, "declares -1 storages"),
        ({"storages": dumped(1 << 70)}, "declares 1180591620717411303424 storages"),
        ({"storages": storages([(11, "cpu", "FloatStorage", b"", -3)], [])}, "declares -3 elements"),
        ({"storages": storages([(11, "cpu", "FloatStorage", b"abcd", 1 << 61)], [])}, "storage 11 lacks"),
        ({"storages": storages([(11, "cpu", "FloatStorage", b"", 0)], [(1, 11, 0, 9)])}, "fits no storage"),
        ({"tensors": dumped(2)}, "tensors breaks off"),
        (
            {"tensors": dumped(1) + row(1, 11, "torch", "FloatTensor") + struct.pack("<ii", 1 << 20, 0)},
            "declares 1,048,576 dimensions",
        ),
    ],
)
def test_lying_counts_are_findings(change: dict[str, bytes], words: str) -> None:
    checkpoint = open_checkpoint(packed({**example(), **change}))
    finding = next(f for f in checkpoint.findings if f.id == "broken-member")
    assert words in finding.says, finding.says


def test_another_tar_is_none_of_torchs() -> None:
    data = packed({"readme.txt": b"hello", "pickle": b"N."})
    found = detect_format(data)
    assert found is None or found[0].id != "torch-tar"


def test_cut_anywhere_it_is_a_checkpoint_or_an_error() -> None:
    data = packed(example())
    for end in [*range(0, len(data), 97), *range(3000, 3200, 7)]:
        try:
            open_checkpoint(data[:end])
        except InspectorError:
            continue


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_flipped_byte_is_a_checkpoint_or_an_error(draw: st.DataObject) -> None:
    data = bytearray(packed(example()))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        open_checkpoint(bytes(data))
    except InspectorError:
        return
