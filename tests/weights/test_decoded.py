"""Complex, sparse, quantised and packed tensors: the numbers that are measured are those that torch and numpy give."""

from __future__ import annotations

import dataclasses
import io
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.types import Checkpoint, Encoding, TensorInfo
from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from inspector.weights.fingerprint import fingerprint
from inspector.weights.histogram import histogram
from inspector.weights.measure import measure_chunks, measure_tensor, measure_weights
from inspector.weights.merge import merge
from inspector.weights.moments import TILE
from inspector.weights.parts import Numbers
from inspector.weights.report import NumberKind, TensorStatistics, WeightsReport
from tests.weights.test_measure import Builder

# torch warns of complex halves, quantised tensors and sparse layouts.
pytestmark = pytest.mark.filterwarnings("ignore")


def opened(state: dict[str, torch.Tensor]) -> Checkpoint:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return open_checkpoint(buffer.getvalue())


def measured(state: dict[str, torch.Tensor]) -> dict[str, TensorStatistics]:
    """Of each, and of each the same in pieces of a few bytes."""
    checkpoint = opened(state)
    report = measure_weights(checkpoint)
    assert report.skipped == ()
    tensors = {t.name: t for t in checkpoint.tensors}
    for found in report.tensors:
        for chunk_nbytes in (1, 7):
            pieces = measure_tensor(checkpoint, tensors[found.name], chunk_nbytes=chunk_nbytes)
            assert repr(pieces) == repr(found), found.name
    return {t.name: t for t in report.tensors if t.name in state}


def check(found: TensorStatistics, numbers: NDArray[Any], dtype: str = "") -> None:
    """Against the same numbers measured as a plain tensor, and against numpy."""
    dtype = dtype or numbers.dtype.name
    expected: Numbers = measure_chunks([numbers.reshape(-1)], dtype, numbers.shape)
    for name in ("numel", "nan", "infinite", "zero", "table", "fours", "pages"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("minimum", "maximum", "mean", "std", "rms"):
        np.testing.assert_equal(getattr(found, name), getattr(expected, name))
    assert found.fits == "" and found.numbers_dtype == dtype
    if numbers.dtype.kind == "f" and numbers.size and np.isfinite(numbers).all():
        assert found.mean == pytest.approx(numbers.astype(np.float64).mean(), rel=1e-9, abs=1e-12)
        assert (found.minimum, found.maximum) == (numbers.min(), numbers.max())


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


PARTS = {"complex128": "float64", "complex64": "float32", "complex32": "float16"}


@pytest.mark.parametrize("dtype", PARTS)
def test_complex_parts_are_one_run_of_numbers(dtype: str) -> None:
    base = torch.complex(random(3, 5), random(3, 5) * 2).to(getattr(torch, dtype))
    state = {"w": base, "turned": base.t(), "conj": base.conj(), "none": base[:0], "one": base[1, 2]}
    for name, found in measured(state).items():
        parts = torch.view_as_real(state[name].resolve_conj()).numpy()
        check(found, np.ascontiguousarray(parts))
        assert found.decoding is not None and found.decoding.says == "real and imaginary parts"
        assert (found.shape, found.dtype) == (tuple(state[name].shape), dtype)


def test_complex_rows_are_those_of_both_parts() -> None:
    base = torch.tensor([[1 + 5j, -2j, 0j], [0.5 + 0j, -0.25 + 0j, 3j]])
    found = measured({"w": base, "vector": base[0].clone()})
    rows = found["w"].rows
    assert rows is not None and (rows.count, rows.length, rows.columns) == (2, 6, 3)
    assert np.frombuffer(rows.largest, np.float32).tolist() == [5.0, 3.0]
    assert np.frombuffer(rows.across, np.float32).tolist() == [6.5, 2.25, 3.0]
    assert found["vector"].rows is None
    assert np.frombuffer(found["vector"].values).tolist() == [1.0, 5.0, 0.0, -2.0, 0.0, 0.0]


def test_the_first_nan_of_a_complex_tensor_is_an_element_and_is_found() -> None:
    parts = torch.zeros(2, 4, 2)
    parts[1, 2, 1], parts[1, 3, 0] = float("nan"), float("inf")
    base = torch.view_as_complex(parts)
    found = measured({"w": base})["w"]
    assert (found.first_non_finite, found.nan, found.infinite, found.numel) == (6, 1, 1, 16)
    says = [f.says for f in examine(opened({"w": base})).findings]
    assert says == ["w holds 1 NaN (6.2 %) and 1 infinite number among 16, the first at [1, 2]."]


def test_bfloat16_parts_of_a_complex_tensor() -> None:
    b = Builder()
    bits = np.array([0x3F80, 0xC000, 0x7FC0, 0x4000], np.uint16)  # 1, -2, NaN, 2
    b.add("w", bits.view(np.uint32), "bcomplex32")
    found = measure_weights(b.checkpoint()).tensors[0]
    assert (found.numel, found.minimum, found.maximum, found.nan, found.first_non_finite) == (4, -2.0, 2.0, 1, 1)
    # Every value is a cell of its own, so that none is spread over two bins.
    assert histogram(found, bins=2, span=(0.998, 1.006)).counts == (1.0, 0.0)


def test_complex_tiles_meet_where_they_should() -> None:
    base = torch.complex(random(TILE // 2 + 5, 2), random(TILE // 2 + 5, 2))
    found = measure_weights(opened({"w": base})).tensors[0]
    check(found, torch.view_as_real(base).numpy().reshape(-1, 2, 2))


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_stored_values_of_a_sparse_tensor(layout: str) -> None:
    dense = random(4, 6).relu()
    blocksize = (2, 3) if layout.startswith("bs") else None
    sparse = dense.to_sparse(layout=getattr(torch, f"sparse_{layout}"), blocksize=blocksize)
    found = measured({"w": sparse})["w"]
    values = sparse.values().numpy()
    check(found, values.reshape(-1))
    assert found.decoding is not None and found.decoding.kind is NumberKind.STORED
    assert found.decoding.says == f"{values.size} stored values of 24 elements (sparse {layout.upper()})"
    assert (found.shape, found.rows, found.values) == ((4, 6), None, b"")


def test_stored_values_are_of_any_type_and_may_be_none() -> None:
    dense = random(4, 6).relu()
    wave = torch.complex(dense, dense).to_sparse()
    twice = torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.tensor([1.0, 2.0]), (3,), is_coalesced=False)
    state = {
        "half": dense.half().to_sparse(),
        "int": (dense * 9).long().to_sparse_csr(),
        "wave": wave,
        "twice": twice,
        "none": torch.zeros(3, 3).to_sparse(),
        "hybrid": torch.sparse_coo_tensor(torch.tensor([[0, 2]]), random(2, 3), (4, 3)),
    }
    found = measured(state)
    check(found["half"], state["half"].values().numpy())
    check(found["int"], state["int"].values().numpy())
    check(found["wave"], torch.view_as_real(wave.values()).numpy())
    says = {name: t.decoding.says for name, t in found.items() if t.decoding}
    n = wave.values().numel()
    assert says["wave"] == f"real and imaginary parts of {n} stored values of 24 elements (sparse COO)"
    assert says["twice"].endswith("(sparse COO), not added up where one place occurs twice")
    assert (found["twice"].numel, found["twice"].maximum) == (2, 2.0)
    assert (found["none"].numel, found["none"].shape) == (0, (3, 3))
    assert (found["hybrid"].numel, found["hybrid"].shape) == (6, (4, 3))


def test_a_constant_adjacency_is_no_finding_and_its_nan_is() -> None:
    adjacency = torch.eye(5)
    assert examine(opened({"graph.adjacency": adjacency.to_sparse()})).findings == ()
    adjacency[1, 1] = float("nan")
    findings = examine(opened({"graph.adjacency": adjacency.to_sparse()})).findings
    assert [f.says for f in findings] == ["graph.adjacency holds 1 NaN (20.0 %) among 5, the first at stored value 1."]


def integers(dtype: torch.dtype, n: int) -> torch.Tensor:
    plain = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}[dtype]
    info = torch.iinfo(plain)
    # Of 32 bits, torch's own difference overflows near the ends.
    low, high = (info.min, info.max) if dtype is not torch.qint32 else (-(1 << 30), 1 << 30)
    found = torch.randint(low, high, (n,), generator=torch.Generator().manual_seed(5)).to(plain)
    found[:2] = torch.tensor([low, high], dtype=plain)
    return found


QUANTISED = [torch.qint8, torch.quint8, torch.qint32]


@pytest.mark.parametrize("dtype", QUANTISED)
def test_codes_of_one_scale_mean_what_torch_makes_of_them(dtype: torch.dtype) -> None:
    # Scales that float32 does not have.
    whole = torch._make_per_tensor_quantized_tensor(integers(dtype, 4000), 0.0371234567, 117).view(20, 200)
    state = {"w": whole, "turned": whole.t(), "row": whole[3], "one": whole[1, 2]}
    for name, found in measured(state).items():
        check(found, np.ascontiguousarray(state[name].dequantize().numpy()))
        assert found.decoding is not None and found.decoding.kind is NumberKind.VALUES
        assert (found.rows is None) == (state[name].dim() < 2)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", QUANTISED)
def test_codes_of_a_scale_per_channel_mean_what_torch_makes_of_them(dtype: torch.dtype, axis: int) -> None:
    codes = integers(dtype, 3 * 4 * 50).view(3, 4, 50)
    n = codes.shape[axis]
    scales = torch.rand(n, dtype=torch.double, generator=torch.Generator().manual_seed(1)) * 0.1
    zeros = torch.arange(n)
    state = {"w": torch._make_per_channel_quantized_tensor(codes, scales, zeros, axis)}
    found = measured(state)["w"]
    check(found, state["w"].dequantize().numpy())
    assert found.decoding is not None and found.decoding.says.endswith("codes, a scale per channel")


@pytest.mark.parametrize("columns", [7, 8, 9])
@pytest.mark.parametrize("dtype", [torch.quint4x2, torch.quint2x4, torch.quint8])
def test_codes_packed_in_bytes_and_fractional_zero_points(dtype: torch.dtype, columns: int) -> None:
    generator = torch.Generator().manual_seed(2)
    scales, zeros = torch.rand(5, generator=generator) * 0.3 + 0.01, torch.rand(5, generator=generator) * 3
    values = torch.rand(5, columns, generator=generator) * 3
    state = {"w": torch.quantize_per_channel(values, scales, zeros, 0, dtype)}
    check(measured(state)["w"], state["w"].dequantize().numpy())


def test_quantised_tiles_meet_where_they_should() -> None:
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]).double(), torch.tensor([1, 0, -5])
    codes = integers(torch.qint8, 3 * (TILE // 2 + 7))
    for shape, axis in (((3, -1), 0), ((-1, 3), 1), ((7, 3, -1), 1)):
        whole = torch._make_per_channel_quantized_tensor(codes[: 7 * 3 * 18_000].view(shape), scales, zeros, axis)
        check(measure_weights(opened({"w": whole})).tensors[0], whole.dequantize().numpy())


def test_a_quantised_layer_is_a_row_of_the_fingerprint_and_no_constant_weight() -> None:
    weight = torch.quantize_per_tensor(torch.full((4, 4), 0.5), 0.1, 0, torch.qint8)
    checkpoint = opened({"fc.weight": weight})
    assert examine(checkpoint).findings == ()
    assert fingerprint(measure_weights(checkpoint)).names == ("fc.weight",)
    assert [f.id for f in examine(opened({"fc.weight": torch.full((4, 4), 0.5)})).findings] == ["constant-weight"]


def changed(checkpoint: Checkpoint, **changes: Any) -> WeightsReport:
    """Of the first tensor with another encoding."""
    tensor = checkpoint.tensors[0]
    assert tensor.encoding is not None
    other = dataclasses.replace(tensor, encoding=dataclasses.replace(tensor.encoding, **changes))
    return measure_weights(dataclasses.replace(checkpoint, tensors=(other,), state_dicts=()))


def test_what_means_nothing_is_skipped_with_its_reason() -> None:
    one = opened({"w": torch.quantize_per_tensor(random(2, 3), 0.1, 0, torch.qint8)})
    many = opened({"w": torch.quantize_per_channel(random(2, 3), torch.ones(2), torch.zeros(2), 0, torch.qint8)})
    sparse = opened({"w": random(2, 3).to_sparse()})
    parts = many.tensors[0].encoding
    assert parts is not None
    short = dataclasses.replace(parts.parts[0], shape=(1,))
    wide = dataclasses.replace(many.tensors[0], shape=(1 << 40, 3))
    reports = [
        changed(one, zero_point=1 << 62),
        changed(one, scheme=""),
        changed(many, parts=(short, parts.parts[1])),
        changed(many, parts=()),
        changed(many, axis=2),
        changed(sparse, parts=()),
        measure_weights(dataclasses.replace(many, tensors=(wide,), state_dicts=())),
    ]
    assert [report.skipped[0][1] for report in reports] == [
        "w has no statistics: its zero point 4,611,686,018,427,387,904 is no code of qint8.",
        "w has no statistics: its qint8 elements are quantised codes, and the file has no scale for them.",
        "w has no statistics: 1 float32 are no scales or zero points of 2 channels.",
        "w has no statistics: its scales and zero points are not in the file.",
        "w has no statistics: its scales and zero points are not in the file.",
        "w has no statistics: it is stored as sparse COO, and its values are not known.",
        "w has no statistics: 1,099,511,627,776 scales are more than are read at once.",
    ]
    # A scale that is no number makes values that are none.
    assert changed(one, scale=float("nan")).tensors[0].nan == 6
    assert changed(one, scale=1e300).tensors[0].infinite > 0


def test_the_same_codes_with_another_scale_are_other_values() -> None:
    checkpoint = opened({"w": torch.quantize_per_tensor(torch.ones(2, 2), 0.5, 0, torch.qint8)})
    first = checkpoint.tensors[0]
    assert first.encoding is not None
    second = dataclasses.replace(first, name="v", encoding=dataclasses.replace(first.encoding, scale=2.0))
    report = measure_weights(dataclasses.replace(checkpoint, tensors=(first, second), state_dicts=()))
    assert [(t.name, t.mean) for t in report.tensors] == [("w", 1.0), ("v", 4.0)]


def test_a_negated_view_has_numbers_of_its_own() -> None:
    wave = torch.tensor([1 + 2j, 1 + 4j])
    report = measure_weights(opened({"imag": wave.imag, "neg": wave.conj().imag}))
    assert [(t.name, t.mean) for t in report.tensors] == [("imag", 3.0), ("neg", -3.0)]


# OCP Microscaling Formats v1.0, table 5.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def test_four_bit_floats_two_to_an_element() -> None:
    raw = np.random.default_rng(0).integers(0, 256, (3, 5)).astype(np.uint8)
    found = measured({"w": torch.from_numpy(raw).view(torch.float4_e2m1fn_x2)})["w"]
    numbers = np.stack([E2M1[raw & 15], E2M1[raw >> 4]], axis=-1).reshape(3, 10)
    check(found, numbers)
    assert (found.shape, found.numel) == ((3, 5), 30)
    assert found.rows is not None and found.rows.length == 10
    np.testing.assert_allclose(np.frombuffer(found.rows.total, np.float32), np.abs(numbers).sum(axis=1))


@pytest.mark.parametrize(
    ("scheme", "dtype", "bits", "values"),
    [
        ("UINT4", "uint8", 4, np.arange(16)),
        ("INT4", "int8", 4, np.array([0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1])),
        ("UINT2", "uint8", 2, np.arange(4)),
        ("INT2", "int8", 2, np.array([0, 1, -2, -1])),
        ("FLOAT4E2M1", "float32", 4, E2M1),
    ],
)
def test_packed_elements_of_an_onnx_file(scheme: str, dtype: str, bits: int, values: NDArray[Any]) -> None:
    codes = np.random.default_rng(1).integers(0, len(values), 3 * 7)
    each = 8 // bits
    padded = np.concatenate([codes, np.full(-len(codes) % each, len(values) - 1)]).reshape(-1, each)
    raw = (padded << (bits * np.arange(each))).sum(axis=1).astype(np.uint8)
    b = Builder()
    part = b.add("w", raw)
    changes: dict[str, Any] = {
        "shape": (3, 7), "dtype": "bits4x2", "stride": None, "layout": "packed_elements",
        "encoding": Encoding(scheme=scheme, parts=(part,)),
    }  # fmt: skip
    b.tensors = [dataclasses.replace(part, **changes), dataclasses.replace(part, **{**changes, "shape": (3, 9)})]
    report = measure_weights(b.checkpoint())
    check(report.tensors[0], values[codes].astype(dtype).reshape(3, 7))
    wanted = f"27 elements do not fill the {len(raw)} bytes"
    assert len(report.tensors) == 1 and wanted in report.skipped[0][1]


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name.startswith("float8")])
def test_eight_bit_floats_are_counted_exactly(dtype: str) -> None:
    raw = torch.arange(256, dtype=torch.uint8).view(getattr(torch, dtype))
    found = measure_weights(opened({"w": raw})).tensors[0]
    values = raw.float().numpy()
    finite = values[np.isfinite(values)].astype(np.float64)
    assert found.decoding is None
    assert (found.minimum, found.maximum) == (finite.min(), finite.max())
    assert (found.nan, found.infinite) == (np.isnan(values).sum(), np.isinf(values).sum())
    assert found.mean == pytest.approx(finite.mean(), rel=1e-12, abs=1e-300)
    counts, _ = np.histogram(finite, bins=16)
    assert histogram(found, bins=16).counts == tuple(counts.astype(float))


def test_words_of_packed_codes_are_measured_and_called_so() -> None:
    words = torch.randint(-(2**31), 2**31 - 1, (4, 8), generator=torch.Generator().manual_seed(0)).int()
    state = {"q_proj.qweight": words, "q_proj.qzeros": words[:1].clone(), "q_proj.weight": words.clone()}
    found = measured(state)
    says = {name: t.decoding.says if t.decoding else "" for name, t in found.items()}
    assert says["q_proj.qweight"].startswith("int32 words of packed codes, as GPTQ and AWQ store weights")
    assert says["q_proj.qzeros"] == "int32 words of packed codes, as GPTQ and AWQ store zero points"
    assert says["q_proj.weight"] == ""
    check(found["q_proj.qweight"], words.numpy())
    assert fingerprint(measure_weights(opened(state))).names == ()


def test_a_report_groups_what_was_measured() -> None:
    report = measure_weights(opened({"a": torch.ones(2, 2), "b": torch.ones(2) * 1j, "c": torch.ones(3) * 1j}))
    assert report.decodings == (("real and imaginary parts", ("b", "c")),)
    both = merge(report.tensors[1], report.tensors[2])
    assert (both.numel, both.decoding) == (10, report.tensors[1].decoding)
    assert merge(report.tensors[0], report.tensors[1]).decoding is None


def test_files_cut_short_have_no_numbers() -> None:
    state = {
        "wave": torch.ones(300, dtype=torch.complex64),
        "coo": torch.ones(300).to_sparse(),
        "q": torch.quantize_per_tensor(torch.ones(300), 0.1, 0, torch.qint8),
        "f4": torch.ones(300, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    }
    checkpoint = opened(state)
    short = {key: dataclasses.replace(s, present_nbytes=100) for key, s in checkpoint.storages.items()}
    report = measure_weights(dataclasses.replace(checkpoint, storages=short))
    why = dict(report.skipped)
    assert set(state) <= set(why)
    assert all("only 100 of its" in why[name] for name in state)
    gone = {key: dataclasses.replace(s, offset=None) for key, s in checkpoint.storages.items()}
    report = measure_weights(dataclasses.replace(checkpoint, storages=gone))
    assert not report.tensors
    assert all(said.endswith("the file declares it but holds no data for it.") for _, said in report.skipped)


def test_memory_does_not_grow_with_the_tensor() -> None:
    def peak(rows: int) -> int:
        b = Builder()
        b.add("wave", np.ones((rows, 64), np.complex64))
        scales, zeros = np.full(64, 0.5), np.zeros(64, np.int64)
        parts: tuple[TensorInfo, ...] = (b.add("s", scales), b.add("z", zeros))
        encoding = Encoding(scheme="per_channel_affine", parts=parts, axis=1)
        b.add("q", np.ones((rows, 64), np.uint8), "quint8", encoding=encoding)
        b.add("f4", np.ones((rows, 64), np.uint8), "float4_e2m1fn_x2")
        checkpoint = b.checkpoint()
        tracemalloc.start()
        try:
            assert measure_weights(checkpoint).skipped == ()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # Rows themselves take a few bytes each.
    small, large = peak(1 << 13), peak(1 << 16)
    assert large < small * 1.3
    assert large < 16 << 20
