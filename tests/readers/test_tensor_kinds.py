"""Every kind of tensor that the installed torch can save: ours equals what torch's own loader makes of the file."""

from __future__ import annotations

import io
import pickle
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from inspector.checkpoint.data import iter_chunks, read_array, read_bytes
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.torch_bridge import rebuild_tensor, to_torch
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.errors import ReadError
from inspector.readers import open_checkpoint

warnings.filterwarnings("ignore")

QUANTISED = {"qint8", "quint8", "qint32", "quint4x2", "quint2x4"}
DENSE = [d for d in DTYPES if hasattr(torch, d) and d not in QUANTISED and not d.startswith("gg")]
# torch writes these in the old container, but its own loader then fails (UntypedStorage has no attribute dtype).
OLD = {
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "complex128",
    "complex64",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
}
OLD |= {"bool"}

FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda t: t.view(2, 3, 4),
    "transposed": lambda t: t.view(2, 3, 4).transpose(0, 2),
    "sliced": lambda t: t[5:19:3],
    "expanded": lambda t: t[3:6].view(3, 1).expand(3, 5),
    "scalar": lambda t: t[7],
    "empty": lambda t: t[:0].view(0, 4),
}


def saved(value: object, *, legacy: bool = False, protocol: int = 2) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=not legacy, pickle_protocol=protocol)
    return buffer.getvalue()


def raw_bits(dtype: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(11)
    bits = torch.randint(0, 256, (24 * DTYPES[dtype].itemsize,), dtype=torch.uint8, generator=generator)
    return (bits % 2 if dtype == "bool" else bits).view(getattr(torch, dtype))


def to_bytes(tensor: torch.Tensor) -> bytes:
    """Row-major bytes, copied element by element by numpy: torch has no copy for some types."""
    if not tensor.numel():
        return b""
    width = tensor.element_size()
    base = np.frombuffer(bytes(tensor.untyped_storage()), dtype=f"V{width}")
    strides = tuple(s * width for s in tensor.stride())
    return np.lib.stride_tricks.as_strided(base[tensor.storage_offset() :], tensor.shape, strides).tobytes()


def only(checkpoint: Checkpoint, name: str) -> TensorInfo:
    (found,) = [t for t in checkpoint.tensors if t.name == name]
    return found


# torch cannot save by protocol 0: its persistent ids are tuples.
@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", DENSE)
def test_every_dtype_and_form(dtype: str, protocol: int) -> None:
    base = raw_bits(dtype)
    state = {"base": base, **{form: make(base) for form, make in FORMS.items()}}
    for legacy in (False, True) if dtype in OLD else (False,):
        data = saved(state, legacy=legacy, protocol=protocol)
        loaded = torch.load(io.BytesIO(data), weights_only=False)
        checkpoint = open_checkpoint(data)
        assert [t.name for t in checkpoint.tensors] == list(loaded)
        assert len({t.storage_id for t in checkpoint.tensors}) == 1
        for info in checkpoint.tensors:
            tensor = loaded[info.name]
            assert (info.shape, info.stride) == (tuple(tensor.shape), tensor.stride()), info.name
            assert (info.offset, info.dtype) == (tensor.storage_offset(), dtype), info.name
            expected = to_bytes(tensor)
            assert read_bytes(checkpoint, info) == expected, info.name
            assert b"".join(c.tobytes() for c in iter_chunks(checkpoint, info, chunk_nbytes=16)) == expected
            assert to_bytes(to_torch(checkpoint, info)) == expected, info.name


def quantised() -> dict[str, torch.Tensor]:
    base = torch.linspace(-3, 3, 24).view(2, 3, 4)
    scales, zeros = torch.tensor([0.5, 0.25, 0.1], dtype=torch.double), torch.tensor([1, 0, 2])
    made = {t: torch.quantize_per_tensor(base, 0.05, 3, getattr(torch, t)) for t in ("qint8", "quint8", "qint32")}
    made["channels"] = torch.quantize_per_channel(base, scales, zeros, 1, torch.qint8)
    made["turned"] = made["qint8"].transpose(0, 1)
    made["part"] = made["qint8"][1]
    for t in ("quint4x2", "quint2x4"):
        rows = torch.tensor([0.5, 0.25]), torch.tensor([1.0, 2.0])
        made[t] = torch.quantize_per_channel(torch.linspace(0, 3, 14).view(2, 7), *rows, 0, getattr(torch, t))
    return made


@pytest.mark.parametrize("legacy", [False, True])
def test_quantised_tensors(legacy: bool) -> None:
    data = saved(quantised(), legacy=legacy)
    loaded = torch.load(io.BytesIO(data), weights_only=False)
    checkpoint = open_checkpoint(data)
    assert not [f for f in checkpoint.findings if f.id in ("view-outside-storage", "misfit-tensor")]
    for name, tensor in loaded.items():
        info = only(checkpoint, name)
        mine = rebuild_tensor(checkpoint, info)
        assert (mine.dtype, mine.qscheme(), mine.stride()) == (tensor.dtype, tensor.qscheme(), tensor.stride()), name
        if name not in ("quint4x2", "quint2x4"):
            assert torch.equal(mine.int_repr(), tensor.int_repr()), name
            assert torch.equal(mine.dequantize(), tensor.dequantize()), name
            assert (
                read_array(checkpoint, info).tolist() == tensor.int_repr().numpy().view(DTYPES[info.dtype].raw).tolist()
            )
        else:
            assert bytes(mine.untyped_storage()) == bytes(tensor.untyped_storage())
            assert read_bytes(checkpoint, info) == bytes(tensor.untyped_storage())
            assert info.nbytes == len(bytes(tensor.untyped_storage()))
            assert torch.equal(mine.q_per_channel_scales(), tensor.q_per_channel_scales())
        with pytest.raises(ReadError, match=r"quantised|packed"):
            to_torch(checkpoint, info)
    assert only(checkpoint, "qint8").note == "quantised per tensor: scale 0.05, zero point 3"
    assert only(checkpoint, "channels").note == "quantised per channel: 3 scales along axis 1"


def sparse() -> dict[str, torch.Tensor]:
    dense = torch.zeros(4, 6)
    dense[0, 1], dense[2, 3], dense[3, 5] = 1.5, -2.0, 7.0
    hybrid = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.arange(6.0).view(2, 3), (4, 3))
    batched = torch.stack([dense, dense]).to_sparse_csr()
    return {
        "coo": dense.to_sparse(), "csr": dense.to_sparse_csr(), "csc": dense.to_sparse_csc(),
        "bsr": dense.to_sparse_bsr((2, 3)), "bsc": dense.to_sparse_bsc((2, 3)), "hybrid": hybrid, "batched": batched,
        "twice": torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.ones(2), (3,)),
    }  # fmt: skip


@pytest.mark.parametrize("legacy", [False, True])
def test_sparse_tensors_of_all_five_layouts(legacy: bool) -> None:
    data = saved(sparse(), legacy=legacy)
    loaded = torch.load(io.BytesIO(data), weights_only=False)
    checkpoint = open_checkpoint(data)
    for name, tensor in loaded.items():
        info = only(checkpoint, name)
        assert (info.shape, info.layout) == (tuple(tensor.shape), str(tensor.layout).removeprefix("torch.")), name
        mine = rebuild_tensor(checkpoint, info)
        assert mine.layout is tensor.layout
        assert torch.equal(mine.to_dense(), tensor.to_dense()), name
        with pytest.raises(ReadError, match="stored as sparse"):
            to_torch(checkpoint, info)
    assert only(checkpoint, "csr").note == "sparse csr: 3 stored values of 24"
    assert rebuild_tensor(checkpoint, only(checkpoint, "twice")).is_coalesced() is False


def test_conjugated_and_negated_views_show_their_values() -> None:
    z = torch.tensor([1 + 2j, -3 - 0.5j, 0 + 1j])
    views = {"z": z, "conj": z.conj(), "half": z.to(torch.complex32).conj(), "wide": z.to(torch.complex128).conj()}
    # torch refuses one storage under two types, so the real view comes from another tensor.
    data = saved({**views, "neg": z.clone().conj().imag})
    loaded = torch.load(io.BytesIO(data), weights_only=False)
    checkpoint = open_checkpoint(data)
    assert read_array(checkpoint, only(checkpoint, "conj")).tolist() == [1 - 2j, -3 + 0.5j, -1j]
    assert read_array(checkpoint, only(checkpoint, "neg")).tolist() == [-2.0, 0.5, -1.0]
    assert only(checkpoint, "conj").note == "conjugated view"
    for name, tensor in loaded.items():
        resolved = tensor.resolve_conj().resolve_neg()
        info = only(checkpoint, name)
        assert to_torch(checkpoint, info).contiguous().view(torch.uint8).equal(resolved.contiguous().view(torch.uint8))
        assert read_bytes(checkpoint, info) == resolved.contiguous().view(torch.uint8).numpy().tobytes(), name
        assert b"".join(c.tobytes() for c in iter_chunks(checkpoint, info)) == read_bytes(checkpoint, info)


def test_nested_tensors_show_rows_and_their_numbers_can_be_read() -> None:
    rows = [torch.arange(6.0).view(2, 3), torch.ones(4, 3)]
    old, new = torch.nested.nested_tensor(rows), torch.nested.nested_tensor(rows, layout=torch.jagged)
    checkpoint = open_checkpoint(saved({"old": old, "new": new}))
    assert only(checkpoint, "old").note.startswith("nested tensor: 2 tensors of 2 dimensions")
    assert only(checkpoint, "new").note.startswith("nested tensor: 2 rows of different lengths")
    assert (only(checkpoint, "old").layout, only(checkpoint, "new").layout) == ("nested", "jagged")
    assert only(checkpoint, "new").shape == (6, 3)
    assert read_array(checkpoint, only(checkpoint, "old.values")).tolist() == [*map(float, range(6)), *[1.0] * 12]
    assert read_array(checkpoint, only(checkpoint, "new.values")).tolist() == torch.cat(rows).tolist()
    assert read_array(checkpoint, only(checkpoint, "new.offsets")).tolist() == [0, 2, 6]
    with pytest.raises(ReadError, match="nested"):
        rebuild_tensor(checkpoint, only(checkpoint, "old"))


class Tagged(torch.Tensor):
    pass


class Wrapper(torch.Tensor):
    """As torchao's: a shape outside, the numbers in its attributes."""

    @staticmethod
    def __new__(cls, codes: torch.Tensor, scale: torch.Tensor) -> Wrapper:
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=torch.float32)

    def __init__(self, codes: torch.Tensor, scale: torch.Tensor) -> None:
        self.codes = codes
        self.scale = scale

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            return Wrapper(args[0].codes, args[0].scale)
        raise NotImplementedError(str(func))


def test_subclasses_buffers_and_what_has_no_shape() -> None:
    state = {
        "tagged": torch.arange(3.0).as_subclass(Tagged),
        "wrapped": Wrapper(torch.arange(6, dtype=torch.int8).view(2, 3), torch.tensor([0.5, 0.25])),
        "buffer": torch.nn.Buffer(torch.ones(2)),
        "parameter": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "lazy": torch.nn.UninitializedParameter(),
        "meta": torch.nn.Parameter(torch.empty(3, 4, device="meta")),
    }
    state["parameter"].origin = "here"  # type: ignore[attr-defined]
    checkpoint = open_checkpoint(saved(state))
    assert read_array(checkpoint, only(checkpoint, "tagged")).tolist() == [0.0, 1.0, 2.0]
    kinds = {name: value.type_name for name, value in checkpoint.root.children}
    assert kinds["tagged"] == f"{__name__}.Tagged"
    assert kinds["buffer"] == "torch.nn.parameter.Buffer"
    wrapped = only(checkpoint, "wrapped")
    assert (wrapped.shape, wrapped.dtype, wrapped.storage_id) == ((2, 3), "float32", None)
    assert wrapped.note.endswith("Wrapper: made of 2 tensors that the file holds under it")
    assert read_array(checkpoint, only(checkpoint, "wrapped.codes")).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert read_array(checkpoint, only(checkpoint, "wrapped.scale")).tolist() == [0.5, 0.25]
    flags = {t.name: (t.is_parameter, t.requires_grad) for t in checkpoint.tensors}
    assert flags["buffer"] == (False, False)
    assert flags["parameter"] == (True, False)
    assert flags["lazy"] == (True, True)
    assert only(checkpoint, "lazy").note.startswith("lazy parameter without a shape yet")
    assert (only(checkpoint, "meta").device, only(checkpoint, "meta").is_parameter) == ("meta", True)


def test_device_tensors_that_went_through_numpy() -> None:
    class ByNumpy:
        def __reduce__(self) -> Any:
            return torch._utils._rebuild_device_tensor_from_numpy, (
                np.arange(6.0).reshape(2, 3),
                torch.float64,
                "cpu",
                True,
            )

    class ByTensor:
        def __reduce__(self) -> Any:
            return torch._utils._rebuild_device_tensor_from_cpu_tensor, (torch.ones(3), torch.float32, "xla:1", False)

    checkpoint = open_checkpoint(saved({"n": ByNumpy(), "t": ByTensor()}))
    n, t = checkpoint.tensors
    assert (n.shape, n.dtype, n.device, n.requires_grad) == ((2, 3), "float64", "cpu", True)
    assert read_array(checkpoint, n).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert (t.device, read_array(checkpoint, t).tolist()) == ("xla:1", [1.0, 1.0, 1.0])


def test_numpy_of_every_kind() -> None:
    table = np.array([(1, 2.5)], dtype=[("id", "<i4"), ("x", ">f8")])
    state = {
        "big": np.arange(4, dtype=">f4"), "column": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "names": np.array(["ab", "c"]), "when": np.array(["2024-01-02"], dtype="M8[D]"), "table": table,
        "objects": np.array([None, {"k": 1}], dtype=object), "masked": np.ma.array([1, 2], mask=[0, 1]),
        "day": np.datetime64("2024-01-02"), "z": np.complex64(1 + 2j), "f": np.float32(0.5), "s": np.str_("hi"),
    }  # fmt: skip
    for protocol in (2, 5):
        checkpoint = open_checkpoint(pickle.dumps(state, protocol))
        says = {name: value.says for name, value in checkpoint.root.children}
        assert read_array(checkpoint, only(checkpoint, "big")).tolist() == [0.0, 1.0, 2.0, 3.0]
        assert read_array(checkpoint, only(checkpoint, "column")).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        assert read_array(checkpoint, only(checkpoint, "masked")).tolist() == [1, 2]
        assert says["names"] == "numpy dtype U2, shape 2: 'ab', 'c'"
        assert says["when"] == "numpy dtype M8[D], shape 1: 2024-01-02"
        assert says["table"] == "numpy structured array (id <i4, x >f8), shape 1"
        assert says["objects"] == "numpy array of Python objects, shape 2"
        assert (says["day"], says["z"], says["f"], says["s"]) == ("2024-01-02", "1.0+2.0j", "0.5", "hi")


def big_endian(data: bytes, widths: dict[str, int]) -> bytes:
    """A torch.save zip as a big-endian machine writes it. widths: bytes of the numbers in each storage."""
    turned = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(turned, "w", zipfile.ZIP_STORED) as new:
        for info in old.infolist():
            content = old.read(info)
            stem, _, last = info.filename.rpartition("/")
            if stem.endswith("/data"):
                content = np.frombuffer(content, f"<u{widths[last]}").astype(f">u{widths[last]}").tobytes()
            new.writestr(info.filename, b"big" if last == "byteorder" else content)
    return turned.getvalue()


@pytest.mark.parametrize("dtype", DENSE)
def test_big_endian_files_of_every_dtype(dtype: str) -> None:
    width = DTYPES[dtype].itemsize // (2 if "complex" in dtype else 1)
    base = raw_bits(dtype)
    data = big_endian(saved({"a": base.view(2, 3, 4).transpose(0, 2), "b": base[5:9]}), {"0": width})
    checkpoint = open_checkpoint(data)
    for info, tensor in zip(checkpoint.tensors, (base.view(2, 3, 4).transpose(0, 2), base[5:9]), strict=True):
        expected = to_bytes(tensor)
        assert read_bytes(checkpoint, info) == expected
        assert to_bytes(to_torch(checkpoint, info)) == expected
        assert b"".join(c.tobytes() for c in iter_chunks(checkpoint, info)) == expected


def test_a_big_endian_file_as_torch_loads_it() -> None:
    """The helper above against torch's own swapping, and a quantised and a sparse tensor through their parts."""
    q = torch.quantize_per_channel(
        torch.ones(2, 3), torch.tensor([0.5, 0.25]).double(), torch.tensor([1, 2]), 0, torch.qint32
    )
    state = {"x": torch.arange(6.0), "z": torch.tensor([1 + 2j]), "q": q, "s": torch.eye(3).to_sparse()}
    data = big_endian(saved(state), {"0": 4, "1": 4, "2": 4, "3": 8, "4": 8, "5": 8, "6": 4})
    loaded = torch.load(io.BytesIO(data), weights_only=False)
    checkpoint = open_checkpoint(data)
    for name in state:
        mine = rebuild_tensor(checkpoint, only(checkpoint, name))
        a, b = (t.dequantize() if t.is_quantized else t.to_dense() if t.is_sparse else t for t in (mine, loaded[name]))
        assert torch.equal(a, b), name
