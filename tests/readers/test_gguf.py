"""GGUF against the gguf package, and against headers written by hand. Reader "gguf"."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint, StateRole
from inspector.errors import CorruptFile, InspectorError, LimitExceeded, ReadError
from inspector.limits import Limits
from inspector.params.count import count_parameters
from inspector.readers import open_checkpoint
from inspector.readers.formats.gguf.ggml_types import GGML_TYPES

RNG = np.random.default_rng(0)


def ids(checkpoint: Checkpoint) -> set[str]:
    return {f.id for f in checkpoint.findings}


def text(value: bytes, mark: str = "<", length: str = "Q") -> bytes:
    return struct.pack(mark + length, len(value)) + value


def by_hand(
    tensors: list[tuple[str, tuple[int, ...], int, int]],
    data: bytes,
    *,
    version: int = 3,
    mark: str = "<",
    metadata: list[bytes] | None = None,
    align: int = 32,
) -> bytes:
    """tensors: (name, dims fastest first, type, offset). metadata: packed entries."""
    length = "I" if version == 1 else "Q"
    entries = metadata or []
    raw = b"GGUF" + struct.pack(mark + "I" + 2 * length, version, len(tensors), len(entries)) + b"".join(entries)
    for name, dims, kind, offset in tensors:
        raw += text(name.encode(), mark, length) + struct.pack(mark + "I", len(dims))
        raw += struct.pack(mark + str(len(dims)) + length, *dims) + struct.pack(mark + "IQ", kind, offset)
    return raw + b"\0" * (-len(raw) % align) + data


def entry(key: str, kind: int, payload: bytes, mark: str = "<", length: str = "Q") -> bytes:
    return text(key.encode(), mark, length) + struct.pack(mark + "I", kind) + payload


def written(path: Path, tensors: dict[str, tuple[np.ndarray, GGMLQuantizationType | None]], **options: object) -> Path:
    writer = gguf.GGUFWriter(path, "llama", **options)
    writer.add_name("Tiny")
    writer.add_context_length(4096)
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_token_list([f"token {i}" for i in range(1000)])
    writer.add_array("tokenizer.ggml.scores", [float(i) for i in range(1000)])
    for name, (array, kind) in tensors.items():
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


PLAIN = [np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64]


@pytest.mark.parametrize("endianess", [gguf.GGUFEndian.LITTLE, gguf.GGUFEndian.BIG])
def test_plain_types_as_the_gguf_package_reads_them(tmp_path: Path, endianess: gguf.GGUFEndian) -> None:
    arrays = {f"blk.{i}.weight": ((RNG.normal(size=(3, 5)) * 9).astype(t), None) for i, t in enumerate(PLAIN)}
    path = written(tmp_path / "tiny.gguf", arrays, endianess=endianess)
    checkpoint = open_checkpoint(path)
    oracle = gguf.GGUFReader(path)
    assert checkpoint.format == "gguf" and not checkpoint.findings
    assert [t.name for t in checkpoint.tensors] == [t.name for t in oracle.tensors]
    for mine, theirs in zip(checkpoint.tensors, oracle.tensors, strict=True):
        expected = arrays[mine.name][0]
        assert mine.shape == expected.shape == tuple(reversed(theirs.shape.tolist()))
        assert (mine.nbytes, mine.dtype) == (int(theirs.n_bytes), expected.dtype.name)
        assert checkpoint.storages[mine.storage_id or ""].offset == int(theirs.data_offset)
        assert read_array(checkpoint, mine).tolist() == expected.tolist()
    facts = dict(checkpoint.metadata)
    assert facts["general.architecture"] == "llama" and facts["llama.context_length"] == "4096"
    assert facts["tokenizer.ggml.tokens"].startswith("1,000 texts, beginning token 0, token 1")
    assert facts["tokenizer.ggml.scores"].startswith("1,000 float32, beginning 0, 1, 2")
    assert facts["llama.rope.freq_base"] == "10000"
    assert checkpoint.state_dicts[0].role is StateRole.WEIGHTS
    assert facts["gguf_version"] == ("3" if endianess is gguf.GGUFEndian.LITTLE else "3, big-endian")


def test_block_sizes_are_those_of_the_gguf_package() -> None:
    for kind, (block, nbytes) in GGML_QUANT_SIZES.items():
        mine = GGML_TYPES[kind.value]
        if kind is GGMLQuantizationType.Q8_1:
            nbytes = 36  # Two halves and 32 codes, as ggml-common.h asserts; the package still has two floats.
        assert (mine.name, mine.block, mine.nbytes) == (kind.name, block, nbytes)


# Q8_1 is no type of files: ggml makes it while it multiplies.
NO_BLOCKS = (0, 1, 9, 24, 25, 26, 27, 28, 30)


@pytest.mark.parametrize("kind", [k for k in GGML_QUANT_SIZES if k.value not in NO_BLOCKS])
def test_every_quantised_type_keeps_its_shape_and_its_bytes(tmp_path: Path, kind: GGMLQuantizationType) -> None:
    block, nbytes = GGML_QUANT_SIZES[kind]
    packed = RNG.integers(0, 256, (6, 2 * nbytes)).astype(np.uint8)
    path = written(tmp_path / "q.gguf", {"output.weight": (packed, kind), "norm.weight": (np.ones(7, "f4"), None)})
    checkpoint = open_checkpoint(path)
    assert not checkpoint.findings
    tensor = checkpoint.tensors[0]
    assert (tensor.shape, tensor.nbytes) == ((6, 2 * block), packed.size)
    assert tensor.note.startswith(f"{kind.name}: blocks of {block} weights in {nbytes} bytes")
    assert count_parameters(checkpoint).modules[0].parameters == 6 * 2 * block + 7
    with pytest.raises(ReadError, match="stored as quantised blocks"):
        read_array(checkpoint, tensor)
    assert tensor.encoding is not None and tensor.encoding.scheme == kind.name
    (part,) = tensor.encoding.parts
    assert read_array(checkpoint, part).tobytes() == packed.tobytes()


def test_bfloat16_is_read() -> None:
    raw = by_hand([("w.weight", (2,), 30, 0)], b"\x80\x3f\x20\xc0")
    (tensor,) = open_checkpoint(raw).tensors
    assert tensor.dtype == "bfloat16"
    assert read_array(open_checkpoint(raw), tensor).tolist() == [0x3F80, 0xC020]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("mark", ["<", ">"])
def test_every_version_by_hand(version: int, mark: str) -> None:
    length = "I" if version == 1 else "Q"
    words = struct.pack(mark + "I" + length, 8, 2) + text(b"a", mark, length) + text(b"bc", mark, length)
    nested = struct.pack(mark + "I" + length, 9, 1) + struct.pack(mark + "I" + length + "2H", 2, 2, 5, 6)
    metadata = [
        entry("general.name", 8, text("Größe".encode(), mark, length), mark, length),
        entry("words", 9, words, mark, length),
        entry("nested", 9, nested, mark, length),
        entry("flag", 7, b"\x01", mark, length),
    ]
    data = np.arange(6, dtype=mark + "f4")
    raw = by_hand([("w", (3, 2), 0, 0)], data.tobytes(), version=version, mark=mark, metadata=metadata)
    checkpoint = open_checkpoint(raw)
    assert dict(checkpoint.metadata) | {"gguf_version": ""} == {
        "gguf_version": "", "general.name": "Größe", "words": "[a, bc]", "nested": "[2 uint16]", "flag": "True",
    }  # fmt: skip
    assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == data.reshape(2, 3).tolist()
    assert not checkpoint.findings


def test_another_alignment() -> None:
    metadata = [entry("general.alignment", 4, struct.pack("<I", 256))]
    raw = by_hand(
        [("a", (1,), 0, 0), ("b", (1,), 0, 256)], b"\1".ljust(256, b"\0") + b"\2\0\0\0", metadata=metadata, align=256
    )
    checkpoint = open_checkpoint(raw)
    assert not checkpoint.findings
    assert [read_array(checkpoint, t).view("u4").tolist() for t in checkpoint.tensors] == [[1], [2]]
    wrong = raw.replace(metadata[0], metadata[0][:-4] + struct.pack("<I", 33))
    assert "bad-alignment" in ids(open_checkpoint(wrong))


def test_a_cut_says_which_tensors_are_lost() -> None:
    raw = by_hand([("a", (8,), 0, 0), ("b", (8,), 0, 32), ("c", (8,), 0, 64)], bytes(96))
    assert not open_checkpoint(raw).findings
    checkpoint = open_checkpoint(raw[:-50], name="m.gguf")
    (finding,) = checkpoint.findings
    assert finding.id == "cut-short" and finding.subjects == ("b", "c")
    evidence = dict(finding.evidence)
    assert (evidence["missing_nbytes"], evidence["ends_at"]) == (50, len(raw) - 50)
    assert (evidence["tensors_whole"], evidence["tensors_cut"], evidence["tensors_lost"]) == (1, 1, 1)
    assert evidence["percent gone of b"] == 56.25  # 14 of 32 bytes are there.
    assert "in the numbers of b. Of the tensors 50 B are missing. 1 tensor is lost (c), 1 cut" in finding.says
    assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == [0.0] * 8
    with pytest.raises(CorruptFile):
        read_array(checkpoint, checkpoint.tensors[1])


def test_a_cut_block_is_lost_by_its_bytes() -> None:
    # q4_0: 32 numbers in 18 bytes, of which 9 are there.
    raw = by_hand([("a", (8,), 0, 0), ("q", (32,), 2, 32)], bytes(50))
    (finding,) = open_checkpoint(raw[:-9]).findings
    assert finding.subjects == ("q",) and dict(finding.evidence)["percent gone of q"] == 50.0


def test_every_cut_and_flip() -> None:
    metadata = [entry("k", 9, struct.pack("<IQ", 8, 2) + text(b"a") + text(b"bc")), entry("n", 4, b"\1\0\0\0")]
    raw = by_hand([("a.weight", (8, 2), 0, 0), ("q", (32,), 2, 64)], bytes(82), metadata=metadata)
    header = len(raw) - 82
    for n in range(8, len(raw)):
        if n < header - 31:
            with pytest.raises(CorruptFile, match=r"cut short|makes no sense"):
                open_checkpoint(raw[:n])
        elif n >= header:
            assert "cut-short" in ids(open_checkpoint(raw[:n]))
    rng = np.random.default_rng(1)
    for _ in range(1500):
        mutant = bytearray(raw)
        for at in rng.integers(0, len(raw), rng.integers(1, 4)):
            mutant[at] = rng.integers(0, 256)
        try:
            checkpoint = open_checkpoint(bytes(mutant))
            for tensor in checkpoint.tensors:
                if tensor.nbytes < 1 << 20:
                    read_array(checkpoint, tensor)
        except InspectorError:
            pass


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "its version is 9"),
        (b"GGUF\0\0\0\0" + bytes(16), "version makes no sense"),
        (by_hand([("w", (1,) * 9, 0, 0)], bytes(4)), "9 dimensions; GGUF allows 4"),
        (by_hand([], b"", metadata=[entry("k", 77, b"")]), "'k' has the unknown type 77"),
        (by_hand([], b"", metadata=[entry("k", 9, struct.pack("<IQ", 78, 1))]), "list of the unknown type 78"),
        (by_hand([], b"", metadata=[struct.pack("<Q", 1 << 40)]), "a key at byte .* has 1,099,511,627,776 bytes"),
        (by_hand([], b"", metadata=[entry("k", 8, struct.pack("<Q", 1 << 62))]), "cut short inside its header"),
        (by_hand([], b"", metadata=[entry("k", 9, struct.pack("<IQ", 6, 1 << 61))]), "cut short inside its header"),
        (by_hand([], b"", metadata=[entry("k", 9, struct.pack("<IQ", 9, 1) * 9)]), "nested deeper than 4"),
    ],
)
def test_headers_that_lie(raw: bytes, words: str) -> None:
    with pytest.raises(ReadError, match=words):
        open_checkpoint(raw)


def test_counts_over_the_limit_cost_nothing() -> None:
    with pytest.raises(LimitExceeded, match="1,099,511,627,776 tensors"):
        open_checkpoint(b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0) + bytes(64))
    with pytest.raises(LimitExceeded, match="the metadata lists hold"):
        open_checkpoint(by_hand([], bytes(64), metadata=[entry("k", 9, struct.pack("<IQ", 8, 1 << 40))]))
    with pytest.raises(LimitExceeded, match="longer than 64 bytes"):
        open_checkpoint(by_hand([], b"", metadata=[entry("k" * 99, 4, bytes(4))]), limits=Limits(header_nbytes=64))


def test_tensors_that_lie() -> None:
    good = ("ok", (8,), 0, 0)
    for bad, words in (
        (("w", (33,), 2, 0), "rows of 33 are no multiple of the 32 weights in a block of Q4_0"),
        (("w", (1 << 40, 1 << 40), 0, 0), "beyond any file"),
        (("w", (8,), 0, 1 << 62), "beyond any file"),
        (("ok", (8,), 0, 32), "occurs twice"),
    ):
        checkpoint = open_checkpoint(by_hand([good, bad], bytes(64)))
        assert [t.name for t in checkpoint.tensors] == ["ok"]
        assert words in next(f.says for f in checkpoint.findings if f.id == "unusable-entry")
    assert "data-overlaps" in ids(open_checkpoint(by_hand([good, ("w", (8,), 0, 0)], bytes(64))))
    assert "misaligned-data" in ids(open_checkpoint(by_hand([("w", (8,), 0, 4)], bytes(64))))
    assert "trailing-data" in ids(open_checkpoint(by_hand([good], bytes(99))))
    twice = [entry("k", 4, b"\1\0\0\0"), entry("k", 4, b"\2\0\0\0")]
    assert "duplicate-keys" in ids(open_checkpoint(by_hand([good], bytes(32), metadata=twice)))


def test_a_type_of_tomorrow_is_described_and_the_rest_is_read() -> None:
    raw = by_hand([("new", (512,), 99, 0), ("w", (8,), 0, 64)], bytes(96))
    new, known = open_checkpoint(raw).tensors
    assert (new.shape, new.nbytes) == ((512,), 64) and "ggml type 99, unknown here; 64 B up to the next" in new.note
    assert read_array(open_checkpoint(raw), known).shape == (8,)


def split_file(number: int, count: int) -> bytes:
    metadata = [
        entry("split.no", 2, struct.pack("<H", number)),
        entry("split.count", 2, struct.pack("<H", count)),
        entry("split.tensors.count", 5, struct.pack("<i", 3)),
    ]
    return by_hand([(f"w{number}", (8,), 0, 0)], bytes(32), metadata=metadata)


def test_split_models_are_said(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"m-{number + 1:05d}-of-00003.gguf").write_bytes(split_file(number, 3))
    checkpoint = open_checkpoint(tmp_path / "m-00002-of-00003.gguf")
    (finding,) = checkpoint.findings
    assert "part 2 of 3 of a split model: 1 of its 3 tensors are in this file. 3 of 3 parts lie" in finding.says
    assert [p.says for p in checkpoint.parts] == ["part of the model"] * 3
    (tmp_path / "m-00003-of-00003.gguf").unlink()
    (finding,) = open_checkpoint(tmp_path / "m-00002-of-00003.gguf").findings
    assert finding.subjects == ("m-00003-of-00003.gguf",) and finding.severity.value == "error"
    (alone,) = open_checkpoint(split_file(0, 3), name="m-00001-of-00003.gguf").findings
    assert "was not looked at" in alone.says
