"""Pickles of the years 2016 to 2018, of Python 2, of TorchScript and of other processes, written opcode by opcode."""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import pickle
import struct
import uuid
from collections.abc import Mapping

import numpy as np
import pytest

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.readers import open_checkpoint
from tests.readers.hostile import text, torch_zip

FLOATS = struct.pack("<6f", *range(6))
PROTO = b"\x80\x02"


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def storage(cls: str = "FloatStorage", key: str = "0", numel: int = 6) -> bytes:
    """A persistent id as torch.save writes it."""
    return b"(" + text("storage") + name("torch", cls) + text(key) + text("cpu") + number(numel) + b"tQ"


def number(n: int) -> bytes:
    raw = n.to_bytes(9, "little", signed=True)
    return b"\x8a\x09" + raw


def row(*numbers: int) -> bytes:
    return b"(" + b"".join(map(number, numbers)) + b"t"


def opened(body: bytes, members: Mapping[str, bytes] | None = None) -> Checkpoint:
    return open_checkpoint(torch_zip(PROTO + body + b".", {"archive/data/0": FLOATS, **(members or {})}))


def named(body: bytes) -> bytes:
    return b"}" + text("w") + body + b"s"


def first(body: bytes) -> tuple[Checkpoint, TensorInfo]:
    checkpoint = opened(named(body))
    return checkpoint, checkpoint.tensors[0]


def misfit(checkpoint: Checkpoint) -> str:
    (found,) = [f for f in checkpoint.findings if f.id == "misfit-tensor"]
    assert found.subjects == ("w",)
    return found.says


OLD = name("torch", "FloatTensor") + b")\x81"
CUDA = name("torch.cuda", "FloatTensor") + b")\x81"
STATE = b"(" + storage() + number(0) + row(2, 3) + row(3, 1) + b"t"


@pytest.mark.parametrize("make", [OLD, name("torch", "FloatTensor") + b")R", b"(" + OLD[:-2] + b"o", CUDA])
def test_a_tensor_made_empty_and_filled_by_build(make: bytes) -> None:
    checkpoint, info = first(make + STATE + b"b")
    assert (info.shape, info.stride, info.dtype, info.note) == ((2, 3), (3, 1), "float32", "")
    assert read_array(checkpoint, info).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert not [f for f in checkpoint.findings if f.severity.rank >= 2]


def test_a_variable_and_a_parameter_with_their_states() -> None:
    data = OLD + STATE + b"b"
    flags = b"(\x88\x89N" + b"t"  # requires_grad, volatile, hooks
    checkpoint, info = first(name("torch.autograd.variable", "Variable") + b"(" + data + b"tR" + flags + b"b")
    assert (info.requires_grad, info.shape) == (True, (2, 3))
    checkpoint, info = first(name("torch.nn.parameter", "Parameter") + b"(" + data + b"tR" + flags + b"b")
    assert (info.requires_grad, info.is_parameter) == (True, True)
    # 0.1.6: (data, grad, hooks, requires_grad, volatile), on a Variable that was made without data.
    five = b"(" + data + b"NN\x89\x89t"
    checkpoint, info = first(name("torch.autograd.variable", "Variable") + b")R" + five + b"b")
    assert (info.requires_grad, info.shape) == (False, (2, 3))
    assert read_array(checkpoint, info).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_protocol_0_wrote_a_variable_through_newobj() -> None:
    made = name("copy_reg", "__newobj__") + b"(" + name("torch.autograd.variable", "Variable") + OLD + STATE + b"btR"
    checkpoint, info = first(made)
    assert info.shape == (2, 3)
    assert not [f for f in checkpoint.findings if f.severity.rank >= 2]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (storage() + number(0) + row(2, -3) + row(3, 1), "negative number"),
        (storage() + number(0) + row(2, 3) + row(-3, 1), "negative number"),
        (storage() + number(-1) + row(2, 3) + row(3, 1), "offset is -1"),
        (storage() + number(0) + row(2, 3) + row(1), "2 sizes and 1 strides"),
        (storage() + number(0) + row(1 << 40, 1 << 40) + row(1, 1), "more than any memory"),
        (storage() + number(0) + row(1 << 63) + row(1), "no usable number"),
        (storage() + number(0) + text("six") + row(1), "no list of numbers"),
        (storage("LongStorage") + number(0) + row(2, 3) + row(3, 1), "set to a storage of int64"),
        (b"N" + number(0) + row(2, 3) + row(3, 1), "no storage"),
    ],
)
def test_bad_arguments_are_named_with_their_place(state: bytes, words: str) -> None:
    by_build, info = first(OLD + b"(" + state + b"tb")
    assert words in misfit(by_build)
    assert info.storage_id is None
    if "int64" in words:
        return
    by_call = opened(named(name("torch._utils", "_rebuild_tensor_v2") + b"(" + state + b"\x89NtR"))
    assert words in misfit(by_call)
    assert by_call.tensors == ()


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        ("_rebuild_tensor_v2", storage(), "has 1 arguments"),
        ("_rebuild_tensor_v3", storage() + number(0) + row(2) + row(1) + b"\x89NN", "type of elements is None"),
        ("_rebuild_parameter", b"N\x89N", "not of a tensor"),
        ("_rebuild_sparse_tensor", b"N)", "none that torch stores sparsely"),
        ("_rebuild_sparse_tensor", name("torch", "sparse_coo") + b"(NNN" + row(2) + b"tN", "has 3 arguments"),
        ("_rebuild_sparse_tensor", name("torch", "sparse_csr") + b"(NNN" + row(2) + b"t", "are no tensors"),
        ("_rebuild_nested_tensor", b"NNNN", "not a buffer with sizes"),
        ("_rebuild_wrapper_subclass", b"NN", "has 2 arguments"),
        ("_rebuild_meta_tensor_no_storage", name("torch", "float32") + row(-1) + row(1) + b"\x89", "negative number"),
        ("_rebuild_device_tensor_from_numpy", b"NNNN", "no array or tensor"),
    ],
)
def test_every_rebuild_says_what_is_wrong(function: str, arguments: bytes, words: str) -> None:
    checkpoint = opened(named(name("torch._utils", function) + b"(" + arguments + b"tR"))
    assert words in misfit(checkpoint), misfit(checkpoint)
    assert checkpoint.tensors == ()


def tensor(key: str, cls: str, *size: int, numel: int = 6) -> bytes:
    stride = tuple(int(np.prod(size[i + 1 :])) for i in range(len(size)))
    rest = number(0) + row(*size) + row(*stride) + b"\x89N"
    return name("torch._utils", "_rebuild_tensor_v2") + b"(" + storage(cls, key, numel) + rest + b"tR"


def ints(*size: int) -> bytes:
    return tensor("0", "LongStorage", *size)


def floats(*size: int) -> bytes:
    return tensor("0", "FloatStorage", *size)


@pytest.mark.parametrize(
    ("layout", "parts"),
    [
        ("sparse_coo", ints(2, 3) + floats(4) + row(5, 5)),
        ("sparse_coo", ints(3, 2) + floats(2) + row(5, 5)),
        ("sparse_coo", floats(2, 3) + floats(3) + row(5, 5)),
        ("sparse_csr", ints(5) + ints(3) + floats(3) + row(5, 5)),
        ("sparse_csc", ints(6) + ints(2) + floats(3) + row(5, 5)),
        ("sparse_bsr", ints(3) + ints(1) + floats(1, 2, 3) + row(5, 6)),
        ("sparse_bsc", ints(3) + tensor("0", "IntStorage", 1) + floats(1, 2, 3) + row(4, 6)),
    ],
)
def test_parts_that_are_no_sparse_tensor(layout: str, parts: bytes) -> None:
    body = name("torch._utils", "_rebuild_sparse_tensor") + b"(" + name("torch", layout) + b"(" + parts + b"ttR"
    assert "are no parts of" in misfit(opened(named(body))) or "not a table" in misfit(opened(named(body)))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (name("torch", "per_tensor_affine") + b"N" + number(0), "scale and zero point"),
        (name("torch", "per_channel_affine") + b"]]" + number(4), "of 2 dimensions"),
        (name("torch", "per_channel_affine") + b"]]" + number(1), "0 scales and 0 zero points for 3"),
        (name("torch", "per_whatever") + b"N", "none of torch's"),
    ],
)
def test_bad_quantisers(params: bytes, words: str) -> None:
    args = storage("QInt8Storage") + number(0) + row(2, 3) + row(3, 1) + b"(" + params + b"t\x89N"
    assert words in misfit(opened(named(name("torch._utils", "_rebuild_qtensor") + b"(" + args + b"tR")))


def test_old_names_of_torchscript_and_modules() -> None:
    ints = name("torch.jit._pickle", "build_intlist") + b"(](" + number(3) + number(4) + b"etR"
    tagged = name("torch.jit._pickle", "restore_type_tag") + b"(](" + number(5) + b"e" + text("List[int]") + b"tR"
    backend = name("torch.nn.backends.thnn", "_get_thnn_function_backend") + b")R"
    body = b"}(" + text("ints") + ints + text("tagged") + tagged + text("_backend") + backend + b"u"
    checkpoint = opened(body)
    says = {key: [c.says for _, c in value.children] or value.says for key, value in checkpoint.root.children}
    assert says == {"ints": ["3", "4"], "tagged": ["5"], "_backend": "THNN"}
    assert {g.verdict.value for g in checkpoint.globals} == {"known"}


def test_shared_memory_of_another_process_is_not_in_the_file() -> None:
    reductions = "torch.multiprocessing.reductions"
    handle = name(reductions, "rebuild_storage_filename") + b"(" + name("torch", "UntypedStorage")
    handle += text("/torch_1") + text("/torch_2") + number(24) + b"tR"
    typed = name(reductions, "rebuild_typed_storage") + b"(" + handle + name("torch", "float32") + b"tR"
    shape = b"(" + number(0) + row(2, 3) + row(3, 1) + b"\x89t"
    checkpoint, info = first(
        name(reductions, "rebuild_tensor") + b"(" + name("torch", "Tensor") + typed + shape + b"tR"
    )
    assert (info.shape, info.dtype, info.storage_id) == ((2, 3), "float32", None)
    assert info.note == "shared memory of the process that saved it: data not in the file"
    verdicts = {g.name: g.verdict.value for g in checkpoint.globals}
    assert verdicts[f"{reductions}.rebuild_storage_filename"] == "dangerous"


def test_python_2_names_texts_and_arrays() -> None:
    """Names as byte strings, `unicode` and `long`, module names of Python 2, array data as a text."""
    floats = struct.pack("<2f", 1.5, -2.0)
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I2\ntcnumpy\ndtype\n(S'f4'\nI0\nI1\n"
        b"tR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\n" + b"S" + repr(floats)[1:].encode() + b"\ntb"
    )
    body = (
        b"(dS'w'\n"
        + array
        + b"sVna\\u00efve\nL12345678901234567890L\nsS'k\\xe9y'\nI01\nsU\x03seqc__builtin__\nset\n((lI1\natRs."
    )
    checkpoint = open_checkpoint(body)
    assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == [1.5, -2.0]
    says = {key: value.says for key, value in checkpoint.root.children}
    assert says["naïve"] == "12345678901234567890"
    assert says["b'k\\xe9y'"] == "True"
    assert "builtins.set" in {g.name for g in checkpoint.globals}
    assert {g.verdict.value for g in checkpoint.globals} == {"known"}


def test_python_2_storages_are_named_by_byte_strings() -> None:
    pid = b"(U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x06tQ"
    checkpoint, info = first(name("torch._utils", "_rebuild_tensor") + b"(" + pid + b"K\x00(K\x06t(K\x01ttR")
    assert read_array(checkpoint, info).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_plain_values_show_their_text() -> None:
    when = datetime.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    values = {
        "when": when, "day": when.date(), "clock": when.time(), "span": datetime.timedelta(3, 4, 5),
        "path": pathlib.PurePosixPath("/data/a b"), "id": uuid.UUID(int=5), "price": decimal.Decimal("1.50"),
        "third": fractions.Fraction(1, 3), "numbers": np.random.default_rng(0), "old": np.random.RandomState(0),
    }  # fmt: skip
    for protocol in range(6):
        checkpoint = open_checkpoint(pickle.dumps(values, protocol))
        says = {key: value.says for key, value in checkpoint.root.children}
        assert says["when"] == "2024-01-02 03:04:05.000006 UTC"
        assert (says["day"], says["clock"], says["span"]) == ("2024-01-02", "03:04:05.000006", str(values["span"]))
        assert (says["path"], says["price"]) == ("/data/a b", "1.50")
        assert says["id"] == str(values["id"])
        kinds = {key: value.type_name for key, value in checkpoint.root.children}
        assert kinds["numbers"] == kinds["old"] == "numpy.random state"
