"""GGUF's quantised blocks: every weight as the gguf package makes it, whatever the tiles, and what is refused."""

from __future__ import annotations

import dataclasses
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from inspector.checkpoint.types import Checkpoint
from inspector.findings import Severity
from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from inspector.readers.formats.gguf.ggml_types import GGML_TYPES
from inspector.weights.decoded.blocks import BLOCK_TYPES
from inspector.weights.fingerprint import fingerprint
from inspector.weights.measure import measure_chunks, measure_tensor, measure_weights
from inspector.weights.moments import TILE
from inspector.weights.report import Decoding, NumberKind

NAMES = sorted(BLOCK_TYPES)


def random_blocks(kind: str, rows: int, blocks: int) -> np.ndarray:
    """(rows, bytes of a row): any bits at all, so that scales are huge, subnormal, infinite and NaN too."""
    return np.random.default_rng(7).integers(0, 256, (rows, blocks * BLOCK_TYPES[kind].nbytes)).astype(np.uint8)


def written(path: Path, tensors: dict[str, tuple[np.ndarray, str]], **options: object) -> Checkpoint:
    writer = gguf.GGUFWriter(path, "llama", **options)  # type: ignore[arg-type]
    for name, (array, kind) in tensors.items():
        writer.add_tensor(name, array, raw_dtype=GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return open_checkpoint(path)


def test_blocks_are_as_long_as_the_reader_and_the_gguf_package_say() -> None:
    sizes = {kind.name: (kind.block, kind.nbytes) for kind in GGML_TYPES.values()}
    for name, kind in BLOCK_TYPES.items():
        assert (kind.weights, kind.nbytes) == sizes[name] == GGML_QUANT_SIZES[GGMLQuantizationType[name]]


@pytest.mark.parametrize("kind", NAMES)
def test_every_float_is_that_of_the_gguf_package(kind: str) -> None:
    raw = random_blocks(kind, 1, 4000)
    out = np.empty((4000, BLOCK_TYPES[kind].weights), np.float32)
    with np.errstate(all="ignore"):
        BLOCK_TYPES[kind].decode(raw.reshape(-1).view(BLOCK_TYPES[kind].fields), out)
        expected = dequantize(raw.reshape(4000, -1), GGMLQuantizationType[kind])
    same = (out.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(out) & np.isnan(expected))
    assert same.all()


@pytest.mark.parametrize("kind", NAMES)
def test_statistics_are_those_of_the_decoded_weights(tmp_path: Path, kind: str) -> None:
    raw = random_blocks(kind, 6, 3)
    with np.errstate(all="ignore"):
        weights = dequantize(raw, GGMLQuantizationType[kind])
    checkpoint = written(tmp_path / "q.gguf", {"blk.0.ffn_up.weight": (raw, kind)})
    (tensor,) = checkpoint.tensors
    found = measure_tensor(checkpoint, tensor)
    expected = measure_chunks([weights.reshape(-1)], "float32", weights.shape)
    assert found.decoding == Decoding(kind=NumberKind.VALUES, dtype="float32", says=f"values of {kind} blocks")
    assert (found.dtype, found.shape, found.fits) == ("bits8", weights.shape, "")
    for name in ("numel", "nan", "infinite", "zero", "first_non_finite", "table", "rows", "pages"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("minimum", "maximum", "mean", "std"):
        np.testing.assert_equal(getattr(found, name), getattr(expected, name))
    # However few blocks are read at a time. One weight's worth of bytes is a block.
    assert measure_tensor(checkpoint, tensor, chunk_nbytes=1).table == found.table
    assert measure_tensor(checkpoint, tensor, chunk_nbytes=700).table == found.table


def test_tiles_meet_where_they_should(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).normal(0, 0.02, (5, TILE // 2 + 32)).astype(np.float32)
    raw = gguf.quants.quantize(weights, GGMLQuantizationType.Q8_0)
    decoded = dequantize(raw, GGMLQuantizationType.Q8_0)
    checkpoint = written(tmp_path / "q.gguf", {"w.weight": (raw, "Q8_0")})
    found = measure_weights(checkpoint).tensors[0]
    assert found.numel == weights.size
    assert found.mean == pytest.approx(decoded.astype(np.float64).mean(), rel=1e-12)
    assert found.std == pytest.approx(decoded.astype(np.float64).std(), rel=1e-12)
    assert found.rows is not None
    largest = np.frombuffer(found.rows.largest, np.float32)
    np.testing.assert_array_equal(largest, np.abs(decoded).max(axis=1))


@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0", "Q4_K", "Q6_K", "MXFP4"])
def test_a_big_endian_file_says_the_same(tmp_path: Path, kind: str) -> None:
    """Laid out as gguf-py's converter does: the halves swapped."""
    raw = random_blocks(kind, 2, 2)
    little = written(tmp_path / "little.gguf", {"w": (raw, kind)})
    block = BLOCK_TYPES[kind]
    swapped = raw.reshape(-1).view(block.fields).astype(block.fields.newbyteorder(">")).view(np.uint8)
    data = bytes(swapped.reshape(raw.shape).tobytes())
    path = tmp_path / "big.gguf"
    writer = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG)
    writer.add_tensor_info("w", raw.shape, np.dtype(np.uint8), raw.nbytes, raw_dtype=GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    held = path.read_bytes()
    path.write_bytes(held + b"\0" * (-len(held) % 32) + data)
    big = open_checkpoint(path)
    assert big.storages["w"].big_endian
    assert measure_tensor(big, big.tensors[0]) == measure_tensor(little, little.tensors[0])


def test_blocks_whose_byte_order_is_not_known_are_refused(tmp_path: Path) -> None:
    checkpoint = written(tmp_path / "q.gguf", {"w": (random_blocks("Q5_0", 1, 1), "Q5_0")})
    storages = {"w": dataclasses.replace(checkpoint.storages["w"], big_endian=True)}
    report = measure_weights(dataclasses.replace(checkpoint, storages=storages))
    assert report.tensors == ()
    assert report.skipped[0][1] == "w has no statistics: how blocks of Q5_0 lie in a big-endian file is not known."


def test_blocks_that_need_a_grid_are_skipped_and_said_so(tmp_path: Path) -> None:
    raw = np.zeros((2, 66), np.uint8)
    tensors = {"iq": (raw, "IQ2_XXS"), "fine": (random_blocks("Q4_0", 2, 1), "Q4_0")}
    report = measure_weights(written(tmp_path / "q.gguf", tensors))
    assert [t.name for t in report.tensors] == ["fine"]
    assert report.skipped == (
        ("iq", "iq has no statistics: it is stored as quantised blocks (IQ2_XXS), which are not decoded here."),
    )


def test_a_file_cut_short_has_no_numbers(tmp_path: Path) -> None:
    written(
        tmp_path / "q.gguf", {"a": (random_blocks("Q4_0", 2, 1), "Q4_0"), "w": (random_blocks("Q4_K", 4, 2), "Q4_K")}
    )
    data = (tmp_path / "q.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(data[:-300])
    report = measure_weights(open_checkpoint(tmp_path / "cut.gguf"))
    assert [t.name for t in report.tensors] == ["a"]
    assert "the file has only 852 of its 1,152 bytes" in report.skipped[0][1]


def test_sizes_that_no_file_holds_take_no_memory(tmp_path: Path) -> None:
    checkpoint = written(tmp_path / "q.gguf", {"w": (random_blocks("Q4_0", 2, 1), "Q4_0")})
    (tensor,) = checkpoint.tensors
    assert tensor.encoding is not None
    part = dataclasses.replace(tensor.encoding.parts[0], shape=(18 << 40,), nbytes=18 << 40)
    encoding = dataclasses.replace(tensor.encoding, parts=(part,))
    huge = dataclasses.replace(tensor, shape=(1 << 40, 32), nbytes=18 << 40, encoding=encoding)
    odd = dataclasses.replace(tensor, name="odd", shape=(3, 32))
    tracemalloc.start()
    try:
        report = measure_weights(dataclasses.replace(checkpoint, tensors=(huge, odd), state_dicts=()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.tensors == ()
    assert "needs 19,791,209,299,968 bytes" in report.skipped[0][1]
    assert "96 weights are no whole number of Q4_0 blocks in 36 bytes" in report.skipped[1][1]
    assert peak < 4 << 20


def test_memory_does_not_grow_with_the_tensor(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        checkpoint = written(tmp_path / f"{rows}.gguf", {"w": (random_blocks("Q4_K", rows, 16), "Q4_K")})
        tracemalloc.start()
        try:
            measure_weights(checkpoint)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small, large = peak(1 << 8), peak(1 << 11)
    assert large < small * 1.1
    assert large < 12 << 20


def test_progress_counts_the_bytes_of_the_file(tmp_path: Path) -> None:
    tensors = {name: (random_blocks("Q4_K", 8, 2), "Q4_K") for name in ("a", "b")}
    told: list[tuple[int, int | None, str]] = []
    measure_weights(
        written(tmp_path / "q.gguf", tensors), progress=lambda done, total, note: told.append((done, total, note))
    )
    assert [one for one in told if one[2] in ("b", "done")] == [(2304, 4608, "b"), (4608, 4608, "done")]


def test_blocks_are_rows_of_the_fingerprint_and_a_scale_that_is_nan_is_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.02, (4, 64)).astype(np.float32)
    raw = gguf.quants.quantize(weights, GGMLQuantizationType.Q8_0)
    # A constant one is left alone: `measured` has plain weights only.
    sound = {"a.weight": (raw, "Q8_0"), "zero.weight": (np.zeros_like(raw), "Q8_0")}
    checkpoint = written(tmp_path / "sound.gguf", sound)
    assert examine(checkpoint).findings == ()
    assert fingerprint(measure_weights(checkpoint)).names == ("a.weight", "zero.weight")
    raw = raw.copy()
    raw[2, 34:36] = np.array([np.nan], np.float16).view(np.uint8)
    findings = examine(written(tmp_path / "sick.gguf", {"a.weight": (raw, "Q8_0")})).findings
    assert [(f.id, f.severity) for f in findings] == [("non-finite", Severity.ERROR)]
    assert findings[0].says == "a.weight holds 32 NaN (12.5 %) among 256, the first at [2, 32]."
