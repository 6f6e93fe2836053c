"""numpy's .npy and .npz against numpy.load(allow_pickle=False), and headers that lie.

Readers "npy" and "npz".
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from inspector.checkpoint.data import iter_chunks, read_array
from inspector.checkpoint.types import Checkpoint, StateRole
from inspector.errors import CorruptFile, InspectorError, RefusedContent
from inspector.findings import Severity
from inspector.limits import Limits
from inspector.readers import open_checkpoint
from inspector.readers.formats.numpy.header import BadHeader, parse_header
from inspector.survey.survey import survey_folder
from tests.readers.hostile import torch_zip


def npy(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=version)
    return buffer.getvalue()


def npz(*, compressed: bool = False, **arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def by_hand(header: str, data: bytes = b"", version: int = 1) -> bytes:
    raw = header.encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(raw)) + raw + data


def ids(checkpoint: Checkpoint) -> set[str]:
    return {f.id for f in checkpoint.findings}


TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", ">i2", ">f4", ">f8", ">c8"]


@settings(deadline=None)
@given(
    data=st.data(),
    shape=st_numpy.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
    code=st.sampled_from(TYPES),
    fortran=st.booleans(),
    version=st.sampled_from([(1, 0), (2, 0), (3, 0)]),
)
def test_every_type_and_order_as_numpy_reads_it(
    data: st.DataObject, shape: tuple[int, ...], code: str, fortran: bool, version: tuple[int, int]
) -> None:
    array = data.draw(st_numpy.arrays(np.dtype(code), shape))
    array = np.asfortranarray(array) if fortran else np.ascontiguousarray(array).reshape(shape)
    raw = npy(array, version)
    expected = np.load(io.BytesIO(raw), allow_pickle=False)
    checkpoint = open_checkpoint(raw, name="w.npy")
    (tensor,) = checkpoint.tensors
    assert (tensor.name, tensor.shape, tensor.numel) == ("w", expected.shape, expected.size)
    assert tensor.dtype == expected.dtype.newbyteorder("=").name
    got = read_array(checkpoint, tensor)
    assert got.tobytes() == np.ascontiguousarray(expected.astype(expected.dtype.newbyteorder("="))).tobytes()
    assert checkpoint.format == "npy" and ids(checkpoint) == {"unnamed-tensors"}


@pytest.mark.parametrize("compressed", [False, True])
def test_archives_as_numpy_reads_them(compressed: bool) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "params/Dense_0/kernel": np.asfortranarray(rng.normal(size=(5, 3)).astype("f4")),
        "conv1.weight": rng.normal(size=(4, 3, 2, 2)).astype("f2"),
        "step": np.array(7),
        "big": rng.integers(0, 9, 1000).astype(">i8"),
        "empty": np.empty((0, 4), "f8"),
    }
    raw = npz(compressed=compressed, **arrays)
    checkpoint = open_checkpoint(raw, name="flax.npz")
    assert checkpoint.format == "npz" and not checkpoint.findings
    assert ("compressed" in checkpoint.format_says) == compressed
    oracle = np.load(io.BytesIO(raw), allow_pickle=False)
    assert [t.name for t in checkpoint.tensors] == list(oracle.files) == list(arrays)
    assert checkpoint.state_dicts[0].role is StateRole.WEIGHTS
    for tensor in checkpoint.tensors:
        expected = oracle[tensor.name]
        assert (tensor.path, tensor.shape) == ((tensor.name,), expected.shape)
        assert (read_array(checkpoint, tensor) == expected).all()
        chunks = [np.asarray(c) for c in iter_chunks(checkpoint, tensor, chunk_nbytes=64)]
        assert sum(c.size for c in chunks) == expected.size
        storage = checkpoint.storages[tensor.storage_id or ""]
        assert storage.inline is None and (storage.deflated_nbytes is not None) == compressed


def test_a_deflated_array_is_read_behind_its_header() -> None:
    """The header is inside the deflate stream: 128 bytes that are no elements."""
    values = np.arange(64, dtype="f8")
    checkpoint = open_checkpoint(npz(compressed=True, w=values))
    (storage,) = checkpoint.storages.values()
    assert (storage.skipped_nbytes, storage.nbytes) == (128, 512)
    assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == values.tolist()


def test_types_that_numpy_does_not_know_keep_their_bytes() -> None:
    values = np.array([1.0, -2.5], ml_dtypes.bfloat16)
    checkpoint = open_checkpoint(npz(a=values, b=values.astype(ml_dtypes.float8_e5m2)))
    first, second = checkpoint.tensors
    assert first.dtype == "bits16" and "bfloat16" in first.note
    assert read_array(checkpoint, first).tobytes() == values.tobytes() == b"\x80\x3f\x20\xc0"
    assert second.dtype == "float8_e5m2" and read_array(checkpoint, second).tobytes() == b"\x3c\xc1"


def test_what_is_no_tensor_is_described() -> None:
    fields = np.zeros(3, [("a", "<f4"), ("b", ">i2", (2,))])
    checkpoint = open_checkpoint(npz(s=fields, t=np.array(["ab", "c"]), w=np.ones(2), m=np.zeros(2, "M8[ns]")))
    assert {t.name: t.dtype for t in checkpoint.tensors} == {"w": "float64", "m": "int64"}
    says = {label: value.says for label, value in checkpoint.root.children}
    assert says["s"] == "3 structured [('a', '<f4'), ('b', '>i2', (2,))]"
    assert says["t"] == "2 <U2"
    assert checkpoint.state_dicts[0].others == ("s", "t")
    alone = open_checkpoint(npy(fields), name="s.npy")
    assert not alone.tensors and alone.root.children[0][1].says == says["s"]


# -- objects are pickles ------------------------------------------------------------------------------------------


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, (f"touch {self.marker}",))


@pytest.mark.parametrize("how", ["npy", "stored", "deflated"])
def test_objects_are_followed_and_nothing_runs(tmp_path: Path, how: str) -> None:
    marker = tmp_path / "ran"
    inner = np.arange(6, dtype="f4").reshape(2, 3)
    array = np.array({"conv1": [inner, Payload(marker)]}, dtype=object)
    raw = npy(array) if how == "npy" else npz(compressed=how == "deflated", w=array, v=np.ones(3))
    checkpoint = open_checkpoint(raw, name="vgg16." + ("npy" if how == "npy" else "npz"))
    assert not marker.exists()
    assert {"object-array", "dangerous-global"} <= ids(checkpoint)
    assert {"posix.system", "os.system"} & {use.name for use in checkpoint.globals}
    if how != "npy":
        assert all(use.place.startswith("w") or use.place.startswith("(not") for use in checkpoint.globals)
    (tensor,) = [t for t in checkpoint.tensors if t.shape == (2, 3)]
    assert read_array(checkpoint, tensor).tolist() == inner.tolist()
    with pytest.raises(ValueError, match="Object arrays cannot be loaded when allow_pickle=False"):
        np.load(io.BytesIO(raw), allow_pickle=False)[() if how == "npy" else "w"]


@pytest.mark.parametrize(
    "dtype",
    [
        [("a", "O")],
        [("n", [("i", "<i4"), ("a", "O")])],
        [("a", "O", (2,))],
        [(("title", "a"), "O")],
    ],
)
@pytest.mark.parametrize("how", ["npy", "npz", "beside a torch file"])
def test_records_with_objects_are_followed_too(tmp_path: Path, how: str, dtype: list[object]) -> None:
    """numpy unpickles the whole array as soon as one field at any depth is an object."""
    array = np.zeros(1, dtype=dtype)
    field = array
    while field.dtype.names:
        field = field[field.dtype.names[-1]]
    field[...] = Payload(tmp_path / "ran")
    raw = npy(array) if how == "npy" else npz(w=array)
    if how == "beside a torch file":
        raw = torch_zip(pickle.dumps({}), {"archive/extra/w.npy": npy(array)})
    (tmp_path / "file").write_bytes(raw)
    rows = survey_folder(tmp_path).rows
    assert any(row.dangerous for row in rows) and rows[0].worst is Severity.ERROR
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "descr", ["[('a', 'wat')]", "[('a',)]", "[1]", "('<f4', 1, 2)", "[('a', 'i4,O')]", "{'a': 'O'}"]
)
def test_a_record_that_is_not_understood_is_no_quiet_array(descr: str) -> None:
    with pytest.raises(CorruptFile):
        open_checkpoint(by_hand("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }", b"N."))


def test_a_quiet_archive_has_no_globals() -> None:
    checkpoint = open_checkpoint(npz(w=np.ones(3)))
    assert not checkpoint.globals and not checkpoint.findings


# -- headers that lie ---------------------------------------------------------------------------------------------

GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("__import__('os').system('true')", "cannot be read at character 0"),
        (GOOD.replace("(2,)", "(-2,)"), "no tuple of sizes"),
        (GOOD.replace("(2,)", "[2]"), "no tuple of sizes"),
        (GOOD.replace("(2,)", "(True,)"), "no tuple of sizes"),
        (GOOD.replace("(2,)", "(" + "1," * 65 + ")"), "65 dimensions; the limit is 64"),
        (GOOD.replace("'<f4'", "'<q9'") + "x", "more follows"),
        (GOOD.replace("'<f4'", "'f4; x'"), "element type 'f4; x' is unknown"),
        (GOOD.replace("False", "1"), "fortran_order is neither"),
        (GOOD.replace("'shape'", "'descr'"), "one twice"),
        (GOOD.replace("(2,)", "(" * 5000), "nested deeper than 24"),
        (GOOD.replace("'shape': (2,), ", ""), "no dictionary with descr"),
        (GOOD.replace("'<f4'", "3"), "neither a type nor a list"),
    ],
)
def test_headers_that_are_no_headers(header: str, words: str) -> None:
    with pytest.raises(CorruptFile, match=words):
        open_checkpoint(by_hand(header, b"\0" * 8))


def test_headers_that_numpy_writes_or_reads() -> None:
    python2 = GOOD.replace("(2,)", "(2L,)").replace("'descr'", "u'descr'")
    assert open_checkpoint(by_hand(python2, b"\0" * 8)).tensors[0].shape == (2,)
    long = open_checkpoint(by_hand(GOOD + " " * 20_000, b"\0" * 8))
    assert "long-header" in ids(long)
    with pytest.raises(ValueError, match="Header info length"):
        np.load(io.BytesIO(by_hand(GOOD + " " * 20_000, b"\0" * 8)))
    wide = by_hand(GOOD, b"\0" * 8, version=2)[:8] + b"\xff\xff\xff\xff" + GOOD.encode()
    with pytest.raises(CorruptFile, match=r"says 4,294,967,307 bytes, more than 1,048,576"):
        open_checkpoint(wide)
    with pytest.raises(CorruptFile, match=r"version 9\.0 is unknown"):
        open_checkpoint(by_hand(GOOD, version=9))
    with pytest.raises(BadHeader, match="no tuple of sizes"):
        parse_header(by_hand(GOOD.replace("(2,)", str(1 << 62))), Limits())


def test_a_size_beyond_the_file_is_said_and_costs_nothing() -> None:
    checkpoint = open_checkpoint(by_hand(GOOD.replace("(2,)", "(1000000, 1000000, 1000)"), b"\0" * 8), name="w.npy")
    (finding,) = [f for f in checkpoint.findings if f.id == "cut-short"]
    assert dict(finding.evidence)["missing_nbytes"] == 4_000_000_000_000_000 - 8
    with pytest.raises(CorruptFile):
        read_array(checkpoint, checkpoint.tensors[0])


def test_every_cut_of_an_array() -> None:
    raw = npy(np.arange(40, dtype="f8"))
    for n in range(6, len(raw)):
        if n < 128:
            with pytest.raises(CorruptFile):
                open_checkpoint(raw[:n])
            continue
        checkpoint = open_checkpoint(raw[:n])
        assert "cut-short" in ids(checkpoint)
        assert next(iter(checkpoint.storages.values())).present_nbytes == n - 128


@pytest.mark.parametrize("compressed", [False, True])
def test_every_cut_and_flip_of_an_archive(compressed: bool) -> None:
    raw = npz(compressed=compressed, a=np.arange(9.0), b=np.ones((2, 2), "f4"))
    rng = np.random.default_rng(1)
    mutants = [raw[:n] for n in range(0, len(raw), 3)]
    for _ in range(600):
        mutant = bytearray(raw)
        for at in rng.integers(0, len(raw), rng.integers(1, 4)):
            mutant[at] = rng.integers(0, 256)
        mutants.append(bytes(mutant))
    for mutant in mutants:
        try:
            checkpoint = open_checkpoint(mutant)
        except InspectorError:
            continue
        for tensor in checkpoint.tensors:
            try:
                if tensor.nbytes < 1 << 20:
                    read_array(checkpoint, tensor)
            except InspectorError:
                pass


def repacked(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_members_that_lie() -> None:
    good = npy(np.ones(2))
    checkpoint = open_checkpoint(
        repacked({"ok.npy": good, "short.npy": good[:-8], "text.npy": b"hello world, no array", "empty.npy": b""})
    )
    assert [t.name for t in checkpoint.tensors] == ["ok"]
    (finding,) = [f for f in checkpoint.findings if f.id == "unusable-entry"]
    assert finding.subjects == ("short", "text", "empty")
    assert "declares 16 B, the member has 8 B" in finding.says
    bzip = open_checkpoint(repacked({"a.npy": good}, zipfile.ZIP_BZIP2))
    assert "method 12" in bzip.findings[0].says
    with pytest.warns(UserWarning, match="Duplicate name"):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("a.npy", good)
            archive.writestr("a.npy", npy(np.zeros(9)))
    twice = open_checkpoint(buffer.getvalue())
    assert {"ambiguous-archive", "unusable-entry"} <= ids(twice) and len(twice.tensors) == 1


def test_a_bomb_of_zeros_is_not_inflated_to_open_it() -> None:
    raw = repacked({"w.npy": npy(np.zeros(30_000_000, "u1"))}, zipfile.ZIP_DEFLATED)
    assert len(raw) < 40_000
    checkpoint = open_checkpoint(raw)
    (tensor,) = checkpoint.tensors
    assert tensor.nbytes == 30_000_000 and not checkpoint.findings


def test_a_bomb_of_objects_is_refused() -> None:
    header = by_hand("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }")
    raw = repacked({"w.npy": header + b"\x80\x04" + b"0" * 40_000_000}, zipfile.ZIP_DEFLATED)
    checkpoint = open_checkpoint(raw)
    assert "inflates to more than" in next(f.says for f in checkpoint.findings if f.id == "unusable-entry")


def test_encrypted_archives_are_refused() -> None:
    raw = bytearray(npz(w=np.ones(2)))
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(RefusedContent, match="encrypted"):
        open_checkpoint(bytes(raw))


def test_nothing_in_impossible_sizes_is_our_own_error() -> None:
    """Found by fuzzing: numpy refuses even an empty array of these sizes."""
    checkpoint = open_checkpoint(by_hand(GOOD.replace("(2,)", f"(0, {1 << 61}, 8)")))
    with pytest.raises(CorruptFile, match="sizes that no array can have"):
        read_array(checkpoint, checkpoint.tensors[0])
