"""TorchScript of torch 1.0 and 1.1, which present torch cannot load: archives built by hand.

The layout was taken from files that torch 1.0.1 and 1.1.0 wrote; the numbers are worked out by hand.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile

import pytest

from inspector.checkpoint.data import read_bytes
from inspector.errors import InspectorError
from inspector.readers import open_checkpoint

_MODEL = {
    "protoVersion": "3",
    "mainModule": {
        "name": "old",
        "torchscriptArena": {"key": "code/old.py"},
        "parameters": [{"isBuffer": False, "tensorId": "0", "name": "t"}],
        "submodules": [
            {
                "name": "sub",
                "parameters": [
                    {"isBuffer": False, "tensorId": "1", "name": "w"},
                    {"isBuffer": True, "tensorId": "2", "name": "mean"},
                ],
                "attributes": [
                    {"type": "Tensor", "name": "b", "id": "0"},
                    {"type": "List[int]", "name": "sizes", "id": "1"},
                ],
            }
        ],
    },
    "producerName": "pytorch",
    "producerVersion": "1.0",
    "tensors": [
        # Rows 1 to 3 of a 4x3 matrix, transposed: a view with an offset.
        {"dims": ["3", "3"], "offset": "3", "strides": ["1", "3"], "dataType": "FLOAT", "data": {"key": "tensors/0"}},
        {"dims": ["2"], "offset": "0", "strides": ["1"], "dataType": "INT64", "data": {"key": "tensors/1"}},
        {"dims": ["2"], "strides": ["1"], "dataType": "FLOAT16", "data": {"key": "tensors/2"}, "device": "cpu"},
        {"dims": [], "dataType": "DOUBLE", "data": {"key": "tensors/3"}},
    ],
}
# attributes.pkl as torch 1.1 writes it: (build_tensor_from_id(3), build_intlist([1, 2])).
_ATTRIBUTES = (
    b"\x80\x02(ctorch.jit._pickle\nbuild_tensor_from_id\n(K\x03tRctorch.jit._pickle\nbuild_intlist\n(](K\x01K\x02etRt."
)


def _old(model: object) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("old/version", b"1\n")
        archive.writestr("old/code/old.py", "op_version_set = 0\ndef forward(self,\n    x: Tensor):\n  return x\n")
        archive.writestr("old/attributes.pkl", _ATTRIBUTES)
        archive.writestr("old/tensors/0", struct.pack("<12f", *range(12)))
        archive.writestr("old/tensors/1", struct.pack("<2q", 5, -6))
        archive.writestr("old/tensors/2", struct.pack("<2e", 0.5, 2.0))
        archive.writestr("old/tensors/3", struct.pack("<d", 7.25))
        archive.writestr("old/model.json", model if isinstance(model, str) else json.dumps(model))
    return out.getvalue()


def test_the_layout_of_torch_1_0_and_1_1_is_read_without_torch() -> None:
    checkpoint = open_checkpoint(_old(_MODEL))
    assert checkpoint.format == "torchscript"
    assert checkpoint.weights is not None
    found = {t.name: (t.shape, t.dtype, t.is_parameter, read_bytes(checkpoint, t)) for t in checkpoint.weights.tensors}
    rows = [3.0, 6.0, 9.0, 4.0, 7.0, 10.0, 5.0, 8.0, 11.0]
    assert found == {
        "t": ((3, 3), "float32", True, struct.pack("<9f", *rows)),
        "sub.w": ((2,), "int64", True, struct.pack("<2q", 5, -6)),
        "sub.mean": ((2,), "float16", False, struct.pack("<2e", 0.5, 2.0)),
        "sub.b": ((), "float64", False, struct.pack("<d", 7.25)),
    }
    (sub,) = checkpoint.weights.modules.children
    assert sub.hyperparameters == (("sizes", "[1, 2]"),)
    assert dict(checkpoint.metadata)["producer"] == "pytorch 1.0"
    assert "torchscript-legacy" in {f.id for f in checkpoint.findings}
    assert [s.name for s in checkpoint.code] == ["code/old.py"]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"data": {"key": "tensors/9"}}, "which is not there"),
        ({"data": {"key": "../../etc/passwd"}}, "which is not there"),
        ({"dims": ["-1"]}, "no usable type"),
        ({"dims": [str(1 << 61), str(1 << 61)], "strides": ["1", "1"]}, "impossible sizes"),
        ({"dataType": "STRING"}, "no usable type"),
        ({"dims": ["9999"]}, "reach behind the end"),
    ],
)
def test_a_lying_model_json_is_a_finding(entry: dict[str, object], says: str) -> None:
    model = json.loads(json.dumps(_MODEL))
    model["tensors"][1].update(entry)
    checkpoint = open_checkpoint(_old(model))
    assert any(says in f.says for f in checkpoint.findings)
    assert "t" in {t.name for t in checkpoint.tensors}


def test_a_hostile_model_json_is_an_error() -> None:
    for text in ("[" * 100_000, "{}", "null", '{"mainModule": 3}', "[" + "0," * 3_000_000 + "0]", "\x00"):
        with pytest.raises(InspectorError):
            open_checkpoint(_old(text))
    deep: dict[str, object] = {}
    for _ in range(400):
        deep = {"name": "a", "submodules": [deep]}
    assert any("nested deeper" in f.says for f in open_checkpoint(_old({"mainModule": deep})).findings)
