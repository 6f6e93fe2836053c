"""What torch.save wrote is what we read: torch's own loader is the oracle, for every dtype, layout and container."""

from __future__ import annotations

import io
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.checkpoint.data import iter_chunks, read_array, read_bytes
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.torch_bridge import to_state_dict, to_torch
from inspector.errors import ReadError
from inspector.readers import open_checkpoint

DENSE = [
    "float64", "float32", "float16", "bfloat16", "complex128", "complex64", "complex32", "int64", "int32", "int16",
    "int8",
    "uint64", "uint32", "uint16", "uint8", "bool", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e8m0fnu",
]  # fmt: skip


def saved(value: object, *, legacy: bool = False) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=not legacy)
    return buffer.getvalue()


def raw_bits(dtype: str, n: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    bits = torch.randint(0, 256, (n * DTYPES[dtype].itemsize,), dtype=torch.uint8, generator=generator)
    if dtype == "bool":
        bits = bits % 2
    return bits.view(getattr(torch, dtype))


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.contiguous().view(-1).view(torch.uint8).equal(b.contiguous().view(-1).view(torch.uint8))


# torch writes these in the old container, but its own loader then fails (UntypedStorage has no attribute dtype).
ZIP_ONLY = {"complex32", "uint64", "uint32", "uint16"} | {d for d in DENSE if d.startswith("float8")}


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("dtype", DENSE)
def test_every_dtype_reads_bit_for_bit(dtype: str, legacy: bool) -> None:
    tensor = raw_bits(dtype, 24).view(2, 3, 4)
    data = saved({"w": tensor}, legacy=legacy)
    loaded = tensor if legacy and dtype in ZIP_ONLY else torch.load(io.BytesIO(data), weights_only=False)["w"]
    checkpoint = open_checkpoint(data)
    (info,) = checkpoint.tensors
    assert (info.name, info.shape, info.dtype, info.nbytes) == ("w", (2, 3, 4), dtype, 24 * tensor.element_size())
    assert same_bits(to_torch(checkpoint, info), loaded)
    assert read_bytes(checkpoint, info) == loaded.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("legacy", [False, True])
def test_strided_and_shared_views(legacy: bool) -> None:
    base = torch.arange(120, dtype=torch.float32)
    state = OrderedDict(
        base=base,
        transposed=base.view(10, 12).t(),
        sliced=base[7:91:3],
        channels_last=base.view(2, 3, 4, 5).to(memory_format=torch.channels_last),
        expanded=base[3:6].view(3, 1).expand(3, 5),
        scalar=torch.tensor(3.5),
        empty=torch.zeros(0, 4),
    )
    data = saved(state, legacy=legacy)
    loaded = torch.load(io.BytesIO(data), weights_only=True)
    checkpoint = open_checkpoint(data)
    mine = to_state_dict(checkpoint, checkpoint.state_dicts[0])
    assert list(mine) == list(loaded)
    for name, tensor in loaded.items():
        info = next(t for t in checkpoint.tensors if t.name == name)
        assert same_bits(mine[name], tensor), name
        assert info.stride == tensor.stride(), name
        assert info.offset == tensor.storage_offset(), name
        assert np.array_equal(read_array(checkpoint, info), tensor.numpy()), name
        chunks = list(iter_chunks(checkpoint, info, chunk_nbytes=12))
        flat = np.concatenate(chunks) if chunks else np.zeros(0, np.float32)
        assert np.array_equal(flat, tensor.numpy().reshape(-1)), name
        assert all(len(c) <= 3 for c in chunks)
    # Ties are kept: writing through one name shows under the other.
    mine["base"][7] = -1.0
    assert mine["sliced"][0] == -1.0
    assert mine["scalar"].untyped_storage().data_ptr() != mine["base"].untyped_storage().data_ptr()


def test_a_saved_slice_reads_only_its_span(tmp_path: Path) -> None:
    state = {"small": torch.arange(1_000_000, dtype=torch.float32)[500_001:500_004]}
    checkpoint = open_checkpoint(saved(state))
    got = to_state_dict(checkpoint, checkpoint.state_dicts[0])["small"]
    assert got.tolist() == [500_001.0, 500_002.0, 500_003.0]
    assert got.untyped_storage().nbytes() < 100
    waste = next(f for f in checkpoint.findings if f.id == "saved-slice")
    assert dict(waste.evidence)["wasted_nbytes"] == 4_000_000 - 12


def test_overlapping_views_are_counted_once() -> None:
    """Elements 0 to 5,999 and 4,000 to 7,999 of 10,000: 2,000 are used by nobody."""
    base = torch.zeros(10_000)
    checkpoint = open_checkpoint(saved({"a": base[:6000], "b": base[4000:8000]}))
    waste = next(f for f in checkpoint.findings if f.id == "saved-slice")
    assert dict(waste.evidence)["wasted_nbytes"] == 8_000
    quiet = open_checkpoint(saved({"a": base[:6000], "b": base[4000:]}))
    assert {f.id for f in quiet.findings} == {"shared-storage"}


def test_layouts_without_dense_bytes_are_described() -> None:
    eye = torch.eye(5)
    state = {
        "coo": eye.to_sparse(),
        "csr": eye.to_sparse_csr(),
        "meta": torch.zeros(3, 4, device="meta"),
        "q": torch.quantize_per_tensor(torch.ones(6), 0.25, 3, torch.qint8),
        "dense": eye,
    }
    checkpoint = open_checkpoint(saved(state))
    by_name = {t.name: t for t in checkpoint.tensors if t.name in state}
    assert {n: t.layout for n, t in by_name.items()} == {
        "coo": "sparse_coo", "csr": "sparse_csr", "meta": "strided", "q": "strided", "dense": "strided",
    }  # fmt: skip
    assert by_name["coo"].shape == (5, 5)
    assert by_name["coo"].nbytes == 5 * 4 + 2 * 5 * 8
    assert by_name["q"].note == "quantised per tensor: scale 0.25, zero point 3"
    assert read_array(checkpoint, by_name["q"]).tolist() == [7] * 6  # 1 / 0.25 + 3
    assert by_name["meta"].storage_id is None
    for name in ("coo", "csr", "meta"):
        with pytest.raises(ReadError, match=f"{name} cannot be read as numbers"):
            read_array(checkpoint, by_name[name])
    assert read_array(checkpoint, by_name["dense"]).tolist() == eye.tolist()


@pytest.mark.parametrize("legacy", [False, True])
def test_parameters_keep_requires_grad(legacy: bool) -> None:
    data = saved([torch.nn.Parameter(torch.ones(2)), torch.ones(2)], legacy=legacy)
    first, second = open_checkpoint(data).tensors
    assert (first.is_parameter, first.requires_grad) == (True, True)
    assert (second.is_parameter, second.requires_grad) == (None, False)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
SHAPES = st.lists(st.integers(0, 4), max_size=4)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), NAMES, st.binary(max_size=40)
)


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    dtype = draw(st.sampled_from(["float32", "int64", "bfloat16", "bool", "int8", "complex64"]))
    shape = draw(SHAPES)
    n = int(np.prod(shape)) if shape else 1
    made = raw_bits(dtype, max(1, n))[:n].view(shape)
    if made.ndim > 1 and draw(st.booleans()):
        made = made.transpose(0, -1)
    return made


TREES = st.recursive(
    st.one_of(LEAVES, tensors()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4), st.tuples(inner, inner)
    ),
    max_leaves=12,
)


def walk(value: object, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        return [(path, value)]
    if isinstance(value, dict):
        return [hit for k, v in value.items() for hit in walk(v, (*path, k))]
    if isinstance(value, list | tuple):
        return [hit for i, v in enumerate(value) for hit in walk(v, (*path, str(i)))]
    return []


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=TREES, legacy=st.booleans(), protocol=st.sampled_from([2, 3, 4, 5]))
def test_any_tree_gives_torchs_tensors_at_their_paths(tree: object, legacy: bool, protocol: int) -> None:
    buffer = io.BytesIO()
    torch.save(tree, buffer, _use_new_zipfile_serialization=not legacy, pickle_protocol=protocol)
    data = buffer.getvalue()
    expected = walk(torch.load(io.BytesIO(data), weights_only=False), ())
    checkpoint = open_checkpoint(data)
    assert [t.path for t in checkpoint.tensors] == [path for path, _ in expected]
    for info, (path, tensor) in zip(checkpoint.tensors, expected, strict=True):
        assert same_bits(to_torch(checkpoint, info), tensor), path
    # Bytes that are drawn may be a pickle.
    assert not [
        f for f in checkpoint.findings if f.severity.rank >= 2 and f.id not in ("saved-slice", "pickle-in-constant")
    ]
