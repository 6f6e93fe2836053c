"""Files of other kinds are named, with the next step and with the sentence that torch or safetensors says to them."""

from __future__ import annotations

import io
import pickle
import random
import re
import sqlite3
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from inspector.checkpoint.data import read_array
from inspector.errors import CorruptFile, InspectorError, ReadError, UnknownFormat
from inspector.readers import open_checkpoint
from inspector.readers.not_checkpoints.messages import safetensors_says, torch_says

RNG = np.random.default_rng(0)
FLOATS = RNG.normal(size=400).astype("<f4").tobytes()


def varint(n: int) -> bytes:
    made = b""
    while n > 127:
        made += bytes([n & 127 | 128])
        n >>= 7
    return made + bytes([n])


def message(number: int, content: bytes | int) -> bytes:
    """One protobuf field by hand."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


NODE = message(1, b"input") + message(2, b"Placeholder") + message(5, message(1, b"dtype"))
GRAPH_DEF = message(1, NODE) + message(1, message(1, b"w") + message(2, b"Const")) + message(4, message(1, 27))
SAVED_MODEL = message(1, 1) + message(2, message(1, message(4, b"serve")) + message(2, GRAPH_DEF))
CORE_ML = message(1, 4) + message(2, message(1, message(1, b"image"))) + message(500, message(1, b"x" * 40))
CAFFE = message(1, b"VGG_ILSVRC_16_layers") + message(100, message(1, b"conv1_1") + message(2, b"Convolution"))
PADDLE = bytes(16) + struct.pack("<i", 6) + b"\x08\x05\x10\x03\x10\x04" + FLOATS
INDEX = b"\x00" * 40 + bytes.fromhex("57fb808b247547db")
DARKNET = struct.pack("<3iq", 0, 2, 0, 32013312) + FLOATS
HDF5 = b"\x89HDF\r\n\x1a\n"

KINDS = [
    ("saved_model.pb", SAVED_MODEL, "TensorFlow SavedModel", "numpy.savez"),
    ("frozen.pb", GRAPH_DEF, r"frozen TensorFlow graph \(.pb\); its first node is input \(Placeholder\)", "constants"),
    ("model.ckpt.index", INDEX, "index of a TensorFlow checkpoint", "TensorFlow"),
    ("model.ckpt.data-00000-of-00001", b"\x01\x02\xfe" * 30, "data part of a TensorFlow checkpoint", "TensorFlow"),
    ("events.out", b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\0\0brain.Event:2", "TensorBoard log", "TensorBoard"),
    ("model.h5", HDF5 + bytes(90) + b"keras_version", "Keras weights", "Keras"),
    ("resnet50.weights.h5", HDF5 + bytes(90), "Keras weights", "{w.path: w.numpy() for w in model.weights}"),
    ("data.h5", HDF5 + bytes(90), "is an HDF5 file, not", "h5py"),
    ("v73.h5", bytes(512) + HDF5 + bytes(90), "is an HDF5 file", "h5py"),
    ("m.tflite", b"\x1c\0\0\0TFL3" + bytes(40), "TensorFlow Lite", "PyTorch checkpoint"),
    ("m.mlmodel", CORE_ML, "Core ML model", "PyTorch checkpoint"),
    ("m.caffemodel", CAFFE, r'Caffe model \(.caffemodel\), the network "VGG_ILSVRC_16_layers"', "ONNX"),
    ("m.param", b"7767517\n75 83\nInput data 0 1 data 0=227\n", "graph of an ncnn model", "converted from"),
    ("m.bin", b"\x47\x6b\x30\x01" + bytes(60), "weights of an ncnn model", ".param"),
    ("raw.bin", FLOATS, "raw 32-bit floats without a header .400 of them", "PyTorch checkpoint"),
    ("yolov3.weights", DARKNET, r"Darknet weights file \(version 0.2.0\), 400 floats", ".cfg"),
    ("yolov3.cfg", b"[net]\nbatch=64\nwidth=608\n", "Darknet configuration", ".weights"),
    ("deploy.prototxt", b'name: "VGG"\nlayer {\n  name: "conv1"\n}\n', "Caffe network description", ".caffemodel"),
    ("m-0000.params", struct.pack("<QQQ", 0x112, 0, 3) + bytes(40), "MXNet parameter file", "mxnet"),
    ("m.pdiparams", PADDLE, "PaddlePaddle parameter file", "pdparams"),
    ("flax_model.msgpack", b"\x81\xa6params\x81\xa5Dense\xc7" + bytes(60), 'begins with "params", as Flax',
     "flatten_dict(..., sep=\"/\")"),
    ("manifest.ocdbt", b"\x0c\xdb\x3a\x2a" + bytes(60), "Orbax", "orbax"),
    ("m.engine", b"ftrt" + bytes(60), "TensorRT engine", "ONNX"),
    ("y.engine", struct.pack("<i", 13) + b'{"imgsz":640}' + b"ftrt" + bytes(60),
     "TensorRT engine with a note", r"\.pt file"),
    ("m.pte", b"\x30\0\0\0ET12" + bytes(60), "ExecuTorch", "exported from"),
    ("m.ort", b"\x30\0\0\0ORTM" + bytes(60), "ONNX Runtime model", ".onnx"),
    ("m.t7", struct.pack("<3i", 4, 1, 3) + b"V 1" + bytes(60), "Lua's Torch", "load_lua"),
    ("ggml.bin", b"tjgg\3\0\0\0" + bytes(60), "from before GGUF", "GGUF"),
    ("m.xml", b'<?xml version="1.0"?>\n<net name="m" version="11">\n', "graph of an OpenVINO model", "ONNX or PyTorch"),
    ("m.mat", b"MATLAB 5.0 MAT-file, Platform" + bytes(99), "MATLAB", "loadmat"),
    ("core.1234", b"\x7fELF\2\1\1" + bytes(9) + b"\x04\0" + bytes(60), "core dump", "Delete"),
    ("lib.so", b"\x7fELF\2\1\1" + bytes(9) + b"\x03\0" + bytes(60), "program or library", "Do not run"),
    ("t.parquet", b"PAR1" + bytes(60), "Parquet", "table"),
    ("t.arrow", b"ARROW1\0\0" + bytes(60), "Arrow", "table"),
    ("z.bin", zlib.compress(b"hello" * 90), "is a zlib archive, and there is no checkpoint to open in it: z.bin", ""),
    ("a.7z", b"7z\xbc\xaf\x27\x1c" + bytes(60), "7-Zip", "Unpack"),
    ("a.rar", b"Rar!\x1a\x07\x01\0" + bytes(60), "RAR", "Unpack"),
    ("a.zst", b"\x28\xb5\x2f\xfd" + bytes(60), "Zstandard", "Unpack"),
    ("x.pth", b"/annex/objects/SHA256E-s46830571--abcdef.pth\n", r"git-annex pointer .* 46,830,571 bytes",
     "git annex get"),
    ("x.pth", b"../../.git/annex/objects/F2/7k/MD5E-s99--ab.pth/MD5E-s99--ab.pth", "git-annex pointer", "datalad"),
    ("x.pth", b"# xet version 0\nfilesize = 46830571\nhash = 'ab'\n", "Xet pointer .* 46,830,571 bytes", "git-xet"),
    ("x.pth", b"../../blobs/" + b"ab" * 32, "text of a symbolic link", "cp -L"),
    ("x.pth", b"<html><title>Google Drive - Virus scan warning</title>", "web page titled", "gdown"),
    ("x.pth", b"<!DOCTYPE html><html><a href='https://github.com/a/b'>", "web page", '"raw"'),
    ("x.pth", b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "error AccessDenied", "new link"),
    ("x.pth", b"Entry not found", 'answer of a server, "Entry not found"', "log in"),
    ("x.pth", b"404: Not Found", "answer of a server", "link"),
    ("x.pth", b'{"error":"Invalid username or password."}', 'answer of a server: "Invalid username', "log in"),
    ("config.json", b'{"architectures": ["BertModel"]}', "a model's configuration", "weights"),
    ("tokenizer.json", b'{"added_tokens": []}', "a tokenizer", "weights"),
    ("model.json", b'{"modelTopology": {}, "weightsManifest": []}', "TensorFlow.js", "PyTorch"),
    ("n.ipynb", b'{"cells": [], "nbformat": 4}', "Jupyter notebook", "code"),
    ("log.csv", b"epoch,loss,acc\n1,0.5,0.9\n2,0.4,0.91\n", "CSV table with 3 columns", "training log"),
    ("net.py", b"import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n",
     "Python source: the model's code, not its w", "weights"),
    ("get.sh", b"#!/usr/bin/env bash\nwget x\n", "shell script", "Read it"),
    ("hparams.yaml", b"lr: 0.1\nepochs: 90\n", "settings or notes", "weights"),
    ("u16.txt", "lr: 0.1 über\n".encode("utf-16"), "text file|settings", "weights"),
    ("x.pth", b" \n\n", "only blank", "again"),
    ("zeros.pth", bytes(200_000), "only zero bytes in 17 places looked at .200 kB in all", "preallocated"),
    ("half.pth", bytes(100_000) + b"\1" * 100_000,
     "zero bytes at its beginning .200 kB in all., and others behind", "again"),
    ("m.onnx", b"\x08\x07\x12\x07pytorch\x1a\x051.9.0" + b"\xff" * 9,
     "begins as an ONNX model written by pytorch", "again"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "words", "hint"), KINDS, ids=[f"{k[0]}-{i}" for i, k in enumerate(KINDS)])
def test_each_kind_is_named_with_the_next_step(name: str, data: bytes, words: str, hint: str) -> None:
    with pytest.raises((UnknownFormat, CorruptFile), match=words) as caught:
        open_checkpoint(data, name=name)
    assert caught.value.says.startswith(name)
    assert hint.replace("\\", "") in caught.value.hint


def test_a_real_database_is_named(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("create table t (a)")
    connection.close()
    with pytest.raises(UnknownFormat, match="SQLite"):
        open_checkpoint(tmp_path / "x.db")


def test_unfinished_downloads_are_said() -> None:
    with pytest.raises(ReadError) as caught:
        open_checkpoint(bytes(500), name="resnet.pth.crdownload")
    assert 'ends in ".crdownload" is that of an unfinished download' in caught.value.hint
    with pytest.raises(ReadError) as caught:
        open_checkpoint(bytes(500), name="resnet.pth")
    assert "unfinished" not in caught.value.hint


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (("saved_model.pb", "variables/variables.index"), "TensorFlow SavedModel"),
        (("Manifest.json", "Data/com.apple.CoreML/model.mlmodel"), "Core ML package"),
        (("manifest.ocdbt", "_METADATA"), "Orbax"),
        (("model.ckpt.index", "model.ckpt.data-00000-of-00001"), "TensorFlow checkpoint"),
        ((".zgroup", "w/.zarray"), "Zarr"),
    ],
)
def test_folders_of_other_frameworks(tmp_path: Path, files: tuple[str, ...], words: str) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b"\1\2\xff\xfe\3")
    with pytest.raises(UnknownFormat, match=words) as caught:
        open_checkpoint(tmp_path)
    assert caught.value.hint


def test_a_paddle_state_dict_is_a_pickle_and_opens() -> None:
    weight = RNG.normal(size=(2, 3)).astype("f4")
    state = {"conv.weight": weight, "StructuredToParameterName@@": {"conv.weight": "conv2d_0.w_0"}}
    checkpoint = open_checkpoint(pickle.dumps(state, protocol=2), name="m.pdparams")
    assert checkpoint.format == "pickle"
    assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == weight.tolist()


# -- the quiet twins: what looks alike and is something else ----------------------------------------------------------


def test_noise_is_not_given_a_name() -> None:
    for seed in range(40):
        data = random.Random(seed).randbytes(4000)
        if data[0] in (0x80, 0x0A, 0x08) or data[:2] == b"BM":
            continue
        with pytest.raises(ReadError) as caught:
            open_checkpoint(b"\xc1" + data[1:], name="noise.bin")
        assert "no format known here" in caught.value.says


def test_prose_is_neither_code_nor_a_table() -> None:
    for text in (
        "Dear all, hello.\nKind regards, me.\n",
        "from here on we import cars, mostly.\nAnd so on.\n",
        "Dear reader,\n\nimport duties rise.\n",
    ):
        with pytest.raises(UnknownFormat, match="is a text file that begins"):
            open_checkpoint(text.encode())


def test_integers_are_not_taken_for_floats() -> None:
    with pytest.raises(UnknownFormat, match="no format known"):
        open_checkpoint(np.arange(1 << 20, dtype="<i4")[900_000:].tobytes() + b"\x91" * 4, name="i.bin")


# -- the words of the loaders -----------------------------------------------------------------------------------------


def torch_answers(data: bytes, *, weights_only: bool) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.load(io.BytesIO(data), weights_only=weights_only)
        except Exception as error:  # noqa: BLE001 Whatever it says is what the owner reads.
            return f"{type(error).__name__}: {error}"
    return "loaded"


@pytest.mark.parametrize("prefix", [b"", b"N", b"\x89", b"]}("])
def test_what_torch_says_is_what_torch_says(prefix: bytes) -> None:
    """Every first byte, with nothing behind it that a real unpickle could call."""
    quoted = 0
    for first in range(256):
        data = prefix + bytes([first]) + b"\x7f" * 40
        for words in torch_says(data):
            restricted = words.startswith("Unsupported operand")
            assert words in torch_answers(data, weights_only=restricted), (data[:4], words)
            quoted += 1
    assert quoted > 300


@pytest.mark.parametrize("n", [511, 512, 4096])
def test_zeros_are_an_empty_tar_to_torch_from_512_on(n: int, tmp_path: Path) -> None:
    for data in (bytes(n), bytes(n) + b"rest"):
        (tmp_path / "zeros.pth").write_bytes(data)  # Only of a file with a number does torch look for a tar.
        for words, restricted in zip(torch_says(data[:4096]), (True, False), strict=True):
            with pytest.raises((pickle.UnpicklingError, RuntimeError, KeyError), match=re.escape(words)):
                torch.load(tmp_path / "zeros.pth", weights_only=restricted)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.pth", b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 46830571\n",
         ("invalid load key, 'v'.", "Unsupported operand 118")),
        ("a.pth", b"<!DOCTYPE html><html>", ("invalid load key, '<'.", "Unsupported operand 60")),
        ("a.pth", b"\n<html>", ("invalid load key, '\\x0a'.", "Unsupported operand 10")),
        ("a.pth", HDF5 + bytes(90), ("invalid load key, 'H'.", "Unsupported operand 72")),
        ("a.pth", bytes(500), ("invalid load key, '\\x00'.", "Unsupported operand 0")),
        ("a.pth", b"", ("EOFError", "Ran out of input")),
    ],
)  # fmt: skip
def test_the_words_are_in_the_hint(name: str, data: bytes, words: tuple[str, ...]) -> None:
    with pytest.raises(ReadError) as caught:
        open_checkpoint(data, name=name)
    for said in words:
        assert f"“{said}”" in caught.value.hint
        assert said in torch_answers(data, weights_only=said.startswith("Unsupported"))


SAFE = [
    (b"version https://git-lfs.github.com/spec/v1\n", "header too large", "HeaderTooLarge"),
    (b"<!DOCTYPE html><html>", "header too large", "HeaderTooLarge"),
    (bytes(500), "invalid JSON in header", "InvalidHeaderDeserialization"),
    (b"abc", "header too small", "HeaderTooSmall"),
    (b"", "header too small", "HeaderTooSmall"),
    (struct.pack("<Q", 900) + b"abc" * 9, "invalid header length", "InvalidHeaderLength"),
    (struct.pack("<Q", 4) + b"\xff\xfe\xfd\xfc" + bytes(9), "invalid UTF-8 in header", "InvalidHeader"),
]


@pytest.mark.parametrize(("data", "words", "older"), SAFE, ids=[s[1] + str(i) for i, s in enumerate(SAFE)])
def test_what_safetensors_says_is_what_safetensors_says(data: bytes, words: str, older: str) -> None:
    assert safetensors_says(data, len(data)) == (words, older)
    with pytest.raises(Exception, match=words):
        safetensors.torch.load(data)
    with pytest.raises(ReadError) as caught:
        open_checkpoint(data, name="model.safetensors")
    assert f"“{words}” or “{older}”" in caught.value.hint


def test_mutants_of_every_kind_end_in_our_own_words() -> None:
    rng = random.Random(3)
    for name, data, _, _ in KINDS:
        for _ in range(25):
            mutant = bytearray(data[: rng.randrange(1, len(data) + 1)][:3000])
            for _ in range(rng.randrange(3)):
                mutant[rng.randrange(len(mutant))] = rng.randrange(256)
            try:
                open_checkpoint(bytes(mutant), name=name)
            except InspectorError as error:
                assert error.says and "\x00" not in error.says
