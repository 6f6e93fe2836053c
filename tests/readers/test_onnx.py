"""ONNX against the onnx package, which writes and reads the models here; and against bytes by hand. Reader "onnx"."""

from __future__ import annotations

import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from inspector.checkpoint.data import read_array
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, StateRole
from inspector.errors import CorruptFile, InspectorError, LimitExceeded, ReadError, UnknownFormat
from inspector.limits import Limits
from inspector.params.count import count_parameters
from inspector.readers import detect_format, open_checkpoint

RNG = np.random.default_rng(0)


def ids(checkpoint: Checkpoint) -> set[str]:
    return {f.id for f in checkpoint.findings}


def model_of(
    initializers: list[TensorProto], nodes: list[onnx.NodeProto] | None = None, **options: object
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes or [helper.make_node("Relu", ["x"], ["y"], name="relu")],
        "main_graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 224, 224])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        initializers,
    )
    return helper.make_model(graph, producer_name="pytorch", producer_version="2.15", **options)


def written(*initializers: TensorProto, **options: object) -> bytes:
    return model_of(list(initializers), **options).SerializeToString()


CODES = [
    TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16, TensorProto.INT32,
    TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.UINT32,
    TensorProto.UINT64, TensorProto.COMPLEX64, TensorProto.COMPLEX128, TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ, TensorProto.FLOAT8E8M0,
]  # fmt: skip


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("code", CODES, ids=TensorProto.DataType.Name)
def test_every_type_as_the_onnx_package_reads_it(code: int, raw: bool) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(code)
    values = RNG.integers(0, 90, (3, 4)).astype("f4") - (0 if "uint" in str(dtype) or code == 24 else 40)
    array = values.astype(dtype)
    if raw:
        tensor = numpy_helper.from_array(array, "conv.weight")
    else:
        tensor = helper.make_tensor("conv.weight", code, [3, 4], array.reshape(-1).tolist())
    assert bool(tensor.raw_data) == raw
    checkpoint = open_checkpoint(written(tensor), name="m.onnx")
    (info,) = checkpoint.tensors
    expected = numpy_helper.to_array(tensor)
    assert (info.name, info.shape, info.nbytes) == ("conv.weight", (3, 4), expected.nbytes)
    assert info.dtype.replace("fn", "").replace("uz", "").replace("u", "") == (
        dtype.name.replace("fn", "").replace("uz", "").replace("u", "")
    )
    assert read_array(checkpoint, info).tobytes() == expected.tobytes()
    assert checkpoint.format == "onnx" and not checkpoint.findings


@pytest.mark.parametrize("code", [TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1])
@pytest.mark.parametrize("raw", [False, True])
def test_four_bit_types_keep_their_shape_and_their_bytes(code: int, raw: bool) -> None:
    array = np.array([[1, 2, 3], [4, 5, 6], [0, 1, 2]]).astype(helper.tensor_dtype_to_np_dtype(code))
    if raw:
        tensor = numpy_helper.from_array(array, "w.weight")
    else:
        tensor = helper.make_tensor("w.weight", code, [3, 3], array.reshape(-1).tolist())
    checkpoint = open_checkpoint(written(tensor))
    (info,) = checkpoint.tensors
    assert (info.shape, info.nbytes, info.dtype) == ((3, 3), 5, "bits4x2")
    assert count_parameters(checkpoint).modules[0].parameters == 9
    with pytest.raises(ReadError, match="packed elements"):
        read_array(checkpoint, info)
    assert info.encoding is not None
    packed = read_array(checkpoint, info.encoding.parts[0]).tobytes()
    assert packed == numpy_helper.from_array(array).raw_data
    assert not checkpoint.findings


def test_what_the_model_says_about_itself() -> None:
    weight = numpy_helper.from_array(np.ones((4, 3), "f4"), "fc.weight")
    text = helper.make_tensor("labels", TensorProto.STRING, [2], [b"cat", b"dog"])
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.ones(5, "i8")))
    inner = helper.make_graph(
        [helper.make_node("Identity", ["k"], ["o"])], "then", [], [helper.make_tensor_value_info("o", 1, None)],
        [numpy_helper.from_array(np.full(2, 7, "f4"), "k")],
    )  # fmt: skip
    nodes = [
        constant,
        helper.make_node("Gemm", ["x", "fc.weight"], ["g"]),
        helper.make_node("If", ["cond"], ["y"], name="branch", then_branch=inner, else_branch=inner),
        helper.make_node("Magic", ["x"], ["z"], domain="com.example"),
    ]
    model = model_of([weight, text, numpy_helper.from_array(np.ones(2, "f4"), "onnx::Conv_497")], nodes)
    helper.set_model_props(model, {"author": "me"})
    model.functions.append(helper.make_function("f", "Swish", ["a"], ["b"], [], [helper.make_opsetid("", 17)]))
    checkpoint = open_checkpoint(model.SerializeToString())
    facts = dict(checkpoint.metadata)
    assert facts["producer_name"] == "pytorch" and facts["producer_version"] == "2.15"
    assert facts["opset"] == f"ai.onnx {model.opset_import[0].version}" and facts["author"] == "me"
    assert facts["input x"] == "float32 [batch, 3, 224, 224]" and facts["output y"] == "float32, any shape"
    assert facts["operators"] == "6: Identity 2, Constant 1, Gemm 1, If 1, com.example::Magic 1"
    assert facts["functions"] == "1: Swish"
    assert [t.name for t in checkpoint.tensors][:1] == ["branch/k"]
    assert {t.name for t in checkpoint.tensors} == {"branch/k", "branch/k (1)", "fc.weight", "onnx::Conv_497"}
    assert ids(checkpoint) == {"constant-tensors", "custom-operators", "generated-names"}
    (constants,) = [f for f in checkpoint.findings if f.id == "constant-tensors"]
    assert dict(constants.evidence) == {"tensors": 1, "nbytes": 40}
    assert dict(checkpoint.root.children)["labels"].says == "2 text, 2 strings"
    assert checkpoint.state_dicts[0].role is not StateRole.OPTIMIZER


def test_sparse_initializers_are_described() -> None:
    values = numpy_helper.from_array(np.ones(3, "f4"), "sparse.weight")
    indices = numpy_helper.from_array(np.array([1, 5, 7], "i8"), "i")
    model = model_of([])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4, 4]))
    checkpoint = open_checkpoint(model.SerializeToString())
    says = dict(checkpoint.root.children)["sparse.weight"].says
    assert says == "4x4 float32, 3 values stored, indices 3"


def constant(output: str, array: np.ndarray) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [output], value=numpy_helper.from_array(array))


def test_weights_that_are_constant_nodes_are_the_models_weights(tmp_path: Path) -> None:
    kernel, bias = RNG.normal(size=(8, 3, 3, 3)).astype("f4"), RNG.normal(size=8).astype("f2")
    nodes = [
        constant("features.0.weight", kernel),
        constant("features.0.bias", bias),
        constant("shape", np.array([1, -1])),
        constant("eps", np.array(1e-5, "f4")),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"], value=numpy_helper.from_array(np.zeros(1, "f4"))),
        helper.make_node("Conv", ["x", "features.0.weight", "features.0.bias"], ["y"]),
    ]
    (tmp_path / "m.onnx").write_bytes(model_of([], nodes).SerializeToString())
    checkpoint = open_checkpoint(tmp_path / "m.onnx")
    assert checkpoint.weights is not None
    first, second = checkpoint.weights.tensors
    assert (first.name, first.shape, second.name) == ("features.0.weight", (8, 3, 3, 3), "features.0.bias")
    assert np.array_equal(read_array(checkpoint, first), kernel) and np.array_equal(
        read_array(checkpoint, second), bias
    )
    (left,) = [f for f in checkpoint.findings if f.id == "constant-tensors"]
    assert dict(left.evidence) == {"tensors": 3, "nbytes": 16 + 4 + 4}


def test_constants_in_branches_and_functions_are_told_apart(tmp_path: Path) -> None:
    inner = helper.make_graph(
        [constant("k", np.full(2, 7, "f4")), helper.make_node("Identity", ["k"], ["o"])],
        "then", [], [helper.make_tensor_value_info("o", 1, None)],
    )  # fmt: skip
    branch = helper.make_node("If", ["cond"], ["y"], name="branch", then_branch=inner, else_branch=inner)
    model = model_of([], [branch])
    body = [constant("t", np.ones((3, 3), "f4"))]
    model.functions.append(helper.make_function("f", "Swish", ["a"], ["t"], body, [helper.make_opsetid("", 17)]))
    checkpoint = open_checkpoint(model.SerializeToString())
    assert [t.name for t in checkpoint.tensors] == ["branch/k", "branch/k (1)"]


def test_a_sparse_constant_is_described_under_the_name_of_its_output() -> None:
    values, indices = numpy_helper.from_array(np.ones(3, "f4")), numpy_helper.from_array(np.array([1, 5, 7], "i8"))
    node = helper.make_node("Constant", [], ["w"], sparse_value=helper.make_sparse_tensor(values, indices, [4, 4]))
    assert dict(open_checkpoint(model_of([], [node]).SerializeToString()).root.children)["w"].says.startswith("4x4")


def test_constants_are_charged_and_looked_at_like_initializers(tmp_path: Path) -> None:
    many = [constant(f"c{i}", np.ones(2, "f4")) for i in range(400)]
    raw = model_of([], many).SerializeToString()
    with pytest.raises(LimitExceeded):
        open_checkpoint(raw, limits=Limits(memory_nbytes=200_000))
    twice = model_of([], [constant("c", np.ones(2, "f4"))] * 2).SerializeToString()
    assert "c: the name occurs twice" in next(
        f.says for f in open_checkpoint(twice).findings if f.id == "unusable-entry"
    )
    away = TensorProto(name="w", data_type=1, dims=[2], data_location=1)
    away.external_data.add(key="location", value="../../etc/passwd")
    (tmp_path / "m.onnx").write_bytes(
        model_of([], [helper.make_node("Constant", [], ["w"], value=away)]).SerializeToString()
    )
    checkpoint = open_checkpoint(tmp_path / "m.onnx")
    assert "external-data-outside" in ids(checkpoint) and checkpoint.tensors[0].storage_id is None


# -- data in other files ------------------------------------------------------------------------------------------


def saved(folder: Path, **options: object) -> dict[str, np.ndarray]:
    arrays = {f"layer{i}.weight": RNG.normal(size=(8, i + 1)).astype("f4") for i in range(3)}
    model = model_of([numpy_helper.from_array(a, n) for n, a in arrays.items()])
    onnx.save_model(model, folder / "m.onnx", save_as_external_data=True, size_threshold=0, **options)
    return arrays


@pytest.mark.parametrize("together", [True, False])
def test_data_beside_the_model(tmp_path: Path, together: bool) -> None:
    arrays = saved(tmp_path, all_tensors_to_one_file=together)
    checkpoint = open_checkpoint(tmp_path / "m.onnx")
    assert not checkpoint.findings and checkpoint.origin.nbytes == (tmp_path / "m.onnx").stat().st_size
    assert len(checkpoint.parts) == (2 if together else 4)
    for info in checkpoint.tensors:
        assert read_array(checkpoint, info).tolist() == arrays[info.name].tolist()


def test_data_that_are_not_there(tmp_path: Path) -> None:
    arrays = saved(tmp_path, location="weights.bin")
    alone = open_checkpoint((tmp_path / "m.onnx").read_bytes(), name="m.onnx")
    (finding,) = alone.findings
    assert finding.id == "external-data-missing" and "the file came alone" in finding.says
    assert finding.subjects == ("weights.bin",)
    assert {t.name: t.shape for t in alone.tensors} == {n: a.shape for n, a in arrays.items()}
    with pytest.raises(ReadError, match="in a file that is not here"):
        read_array(alone, alone.tensors[0])
    data = (tmp_path / "weights.bin").read_bytes()
    (tmp_path / "weights.bin").write_bytes(data[:-20])
    (finding,) = open_checkpoint(tmp_path / "m.onnx").findings
    assert finding.id == "cut-short" and finding.subjects == ("layer2.weight",)
    (tmp_path / "weights.bin").unlink()
    (finding,) = open_checkpoint(tmp_path / "m.onnx").findings
    assert finding.severity.value == "error" and "not beside the model" in finding.says


@pytest.mark.parametrize(
    "place", ["../secret", "/etc/passwd", "a/../../secret", "..\\secret", "C:/secret", "link/secret"]
)
def test_a_place_that_leads_outside_is_not_followed(tmp_path: Path, place: str) -> None:
    (tmp_path / "secret").write_bytes(b"s" * 64)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    tensor = TensorProto(name="w", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=place)
    (folder / "m.onnx").write_bytes(written(tensor))
    checkpoint = open_checkpoint(folder / "m.onnx")
    assert ids(checkpoint) == {"external-data-missing" if "link" in place else "external-data-outside"}
    assert checkpoint.tensors[0].storage_id is None and not checkpoint.storages
    assert checkpoint.source.size == checkpoint.origin.nbytes


@pytest.mark.parametrize("cached", [False, True])
def test_data_behind_a_link_is_read_in_a_download_cache_alone(tmp_path: Path, cached: bool) -> None:
    """Any file of the machine would otherwise be shown as numbers; onnx itself refuses such links."""
    blobs, folder = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    folder.mkdir(parents=True)
    target = blobs / "0a1b" if cached else tmp_path / "secret"
    target.write_bytes(np.arange(4, dtype="f4").tobytes())
    (folder / "w").symlink_to(target)
    tensor = TensorProto(name="w", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w")
    (folder / "m.onnx").write_bytes(written(tensor))
    checkpoint = open_checkpoint(folder / "m.onnx")
    assert ids(checkpoint) == (set() if cached else {"external-data-outside"})
    assert bool(checkpoint.storages) is cached


def external(**pairs: str) -> bytes:
    tensor = TensorProto(name="w", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in pairs.items():
        tensor.external_data.add(key=key, value=value)
    return written(tensor, numpy_helper.from_array(np.ones(2, "f4"), "ok"))


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ({"location": "w", "offset": "-1"}, "does not say where"),
        ({"location": "w", "offset": "1e3"}, "external offset '1e3' is no number"),
        ({"location": "w", "length": "9" * 40}, "is no number"),
        ({"location": "w", "length": "8"}, "its shape needs 16 bytes, its place in another file has 8"),
        ({"offset": "0"}, "does not say where"),
    ],
)
def test_places_that_lie(pairs: dict[str, str], words: str) -> None:
    checkpoint = open_checkpoint(external(**pairs))
    assert words in next(f.says for f in checkpoint.findings if f.id == "unusable-entry")
    assert [t.name for t in checkpoint.tensors] == ["ok"]


# -- what it costs, and what is no model --------------------------------------------------------------------------


class Counting(BufferSource):
    """Counts what is read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, "m.onnx")
        self.total = 0

    def read(self, offset: int, n: int) -> bytes:
        self.total += n
        return super().read(offset, n)


def test_the_data_are_not_read() -> None:
    tensors = [numpy_helper.from_array(np.zeros(1_000_000, "f4"), f"w{i}") for i in range(5)]
    source = Counting(written(*tensors))
    checkpoint = open_checkpoint(source)
    assert len(checkpoint.tensors) == 5 and source.size > 20_000_000
    # 64 kB of it are the end of the file, where an archive's end record would be.
    assert source.total < 80_000


@pytest.mark.parametrize(
    "data",
    [
        b"\x08\x01\x12\xc0\x84\x3d\x0a\x30" + bytes(400),  # TensorFlow's SavedModel: field 2 is a message.
        b"\x0a\x04conv\x12\x06Conv2D" + bytes(40),  # A frozen graph of TensorFlow.
        b"\x08\x04\x12\x0c\x0a\x05\x0a\x01x\x1a\x00\x52\x01\x00" + bytes(60),  # CoreML.
        b"\x08\x07\x12\x07pytorch\x1a\x051.9.0" + b"\xff" * 9,
        b"\x08" * 500,
        b"\x08\x07\x3a\x05hello world, this is text",
    ],
)
def test_other_messages_are_not_claimed(data: bytes) -> None:
    assert detect_format(data) is None
    with pytest.raises((UnknownFormat, CorruptFile)):
        open_checkpoint(data)


def test_models_that_lie() -> None:
    good = numpy_helper.from_array(np.ones(2, "f4"), "ok")
    for change, words in (
        ({"dims": [3]}, "3 FLOAT needs 12 bytes, its raw_data has 8"),
        ({"dims": [-2]}, "its shape -2 is none"),
        ({"dims": [1 << 40, 1 << 40]}, "is none"),
        ({"dims": [1] * 65}, "is none"),
        ({"data_type": 99}, "its data type 99 is unknown"),
        ({"name": "ok"}, "occurs twice"),
    ):
        bad = TensorProto(name="w", data_type=1, dims=[2], raw_data=bytes(8))
        for key, value in change.items():
            if key == "dims":
                del bad.dims[:]
                bad.dims.extend(value)
            else:
                setattr(bad, key, value)
        checkpoint = open_checkpoint(written(good, bad))
        assert [t.name for t in checkpoint.tensors] == ["ok"]
        assert words in next(f.says for f in checkpoint.findings if f.id == "unusable-entry")
    short = TensorProto(name="w", data_type=7, dims=[3], int64_data=[1, 2])
    assert "its numbers make 16" in open_checkpoint(written(good, short)).findings[0].says


def test_numbers_one_by_one_are_decoded_up_to_a_bound() -> None:
    large = TensorProto(name="large", data_type=7, dims=[3_000_000], int64_data=[300] * 3_000_000)
    checkpoint = open_checkpoint(written(large, TensorProto(name="n", data_type=7, dims=[2], int64_data=[-1, 1 << 40])))
    first, second = checkpoint.tensors
    assert first.storage_id is None and "6.00 MB of numbers written one by one" in first.note
    assert read_array(checkpoint, second).tolist() == [-1, 1 << 40]


def message(number: int, content: bytes) -> bytes:
    n, length = len(content), b""
    while n > 127:
        length += bytes([n & 127 | 128])
        n >>= 7
    return bytes([number << 3 | 2]) + length + bytes([n]) + content


def test_deep_and_wide_models_stop() -> None:
    graph = onnx.GraphProto(initializer=[numpy_helper.from_array(np.ones(1, "f4"), "w")]).SerializeToString()
    for _ in range(40):  # graph, node, attribute, graph; the onnx package itself stops before that.
        graph = message(1, message(5, message(6, graph)))
    raw = b"\x08\x08" + message(7, graph)
    assert "nested deeper than 24" in next(f.says for f in open_checkpoint(raw).findings if f.id == "unusable-entry")
    with pytest.raises(LimitExceeded, match="more than 100 protobuf fields"):
        open_checkpoint(
            written(*[numpy_helper.from_array(np.ones(1), f"w{i}") for i in range(50)]), limits=Limits(memo=100)
        )


def test_a_cut_says_what_is_lost() -> None:
    raw = written(*[numpy_helper.from_array(np.full(100, i, "f4"), f"w{i}.weight") for i in range(3)])
    at = raw.index(np.full(100, 1, "f4").tobytes())
    checkpoint = open_checkpoint(raw[: at + 50], name="m.onnx")
    (finding,) = checkpoint.findings
    assert finding.id == "cut-short" and finding.subjects == ("w1.weight",)
    assert dict(finding.evidence)["missing_nbytes"] == 350 and "what follows the cut is unknown" in finding.says
    assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == [0.0] * 100
    assert "cut-short" in ids(open_checkpoint(raw[:-1]))


def test_every_cut_and_flip() -> None:
    raw = written(
        numpy_helper.from_array(np.ones((2, 2), ml_dtypes.bfloat16), "a"),
        TensorProto(name="b", data_type=7, dims=[3], int64_data=[1, -2, 300]),
    )
    for n in range(len(raw)):
        try:
            checkpoint = open_checkpoint(raw[:n])
        except (CorruptFile, UnknownFormat):
            continue
        assert ids(checkpoint) & {"cut-short", "no-opset"}, n
    rng = np.random.default_rng(1)
    for _ in range(2500):
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


def test_a_message_by_hand() -> None:
    """ir_version 8, a graph with one initializer "w": dims 2, FLOAT, raw_data."""
    tensor = b"\x08\x02\x10\x01\x42\x01w\x4a\x08" + struct.pack("<2f", 1.5, -2)
    graph = b"\x2a" + bytes([len(tensor)]) + tensor
    raw = b"\x08\x08\x3a" + bytes([len(graph)]) + graph
    checkpoint = open_checkpoint(raw)
    assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == [1.5, -2.0]
    assert checkpoint.metadata == (("ir_version", "8"),) and ids(checkpoint) == {"no-opset"}
    assert not open_checkpoint(raw + b"\x42\x02\x10\x11").findings
