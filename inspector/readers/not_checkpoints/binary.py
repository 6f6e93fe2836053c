"""Binary files without a magic number, known by their structure: protocol buffers, tables, raw numbers.

Sources: tensorflow/core/protobuf/saved_model.proto and framework/graph.proto, coremltools' Model.proto, caffe.proto,
darknet's parser.c (load_weights_upto), ncnn's modelbin.cpp, PaddlePaddle's lod_tensor.cc, LevelDB's table format.
"""

from __future__ import annotations

import math
import re
import struct

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, InspectorError, LimitExceeded, NotExamined, UnknownFormat
from inspector.readers.cursor import Cursor, Ended
from inspector.readers.formats.onnx.protobuf import BYTES, VARINT, BadWire, Field, Walk
from inspector.readers.not_checkpoints.signatures import HDF5, NCNN_STARTS
from inspector.units import human_bytes

_TABLE_MAGIC = bytes.fromhex("57fb808b247547db")
_TENSORFLOW = (
    "Read it with TensorFlow, save the variables with numpy.savez and open that, or open the PyTorch checkpoint of the "
    "same model."
)
KERAS_HINT = (
    "Load it with Keras, save its weights under their paths and open that: "
    'numpy.savez("weights.npz", **{w.path: w.numpy() for w in model.weights}). Or open the PyTorch checkpoint of the '
    "same model."
)
_WORD = re.compile(rb"[A-Za-z][A-Za-z0-9_.]{1,60}")
_SHARD = re.compile(r"\.data-\d{5}-of-\d{5}$")


def name_binary(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    """The error for a binary file whose structure tells what it is; None when it does not."""
    for look in (_hdf5, _tensorflow_table, _mapping, _ncnn, _paddle, _engine, _darknet, _messages):
        found = look(source, head, name)
        if found is not None:
            return found
    return None


def name_raw(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    """The error for what seems to be numbers and nothing else; None when it does not."""
    if _SHARD.search(name):
        return UnknownFormat(
            f"{name} is the data part of a TensorFlow checkpoint: raw numbers, whose names are in the .index file.",
            hint=_TENSORFLOW,
        )
    n = len(head) // 4
    if source.size % 4 or n < 16:
        return None
    if not _are_weights(head[: 4 * n]):
        return None
    return UnknownFormat(
        f"{name} seems to be raw 32-bit floats without a header ({source.size // 4:,} of them): no names, no shapes.",
        hint="ncnn and OpenVINO (.bin) and hand-written dumps look so. The names are in the file beside it (.param, "
        ".xml); open the PyTorch checkpoint it was made from.",
    )


def _are_weights(raw: bytes) -> bool:
    """Whether nearly all of these little-endian floats are of the size that weights have, and not all alike."""
    values = struct.unpack(f"<{len(raw) // 4}f", raw)
    usual = sum(1 for v in values if v == 0 or (math.isfinite(v) and 1e-8 < abs(v) < 1e4))
    return usual >= 0.98 * len(values) and len(set(values)) > len(values) // 4


def _hdf5(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    start = next((at for at in (0, 512, 1024, 2048) if head[at : at + 8] == HDF5), None)
    if start is None:
        return None
    near = source.read(0, min(source.size, 1 << 16))
    words = (b"keras_version", b"layer_names", b"model_weights", b"_layer_checkpoint")
    # Keras 3 leaves no word of its own there, and lets nothing else end in .weights.h5.
    if name.lower().endswith(".weights.h5") or any(word in near for word in words):
        return NotExamined(
            f"{name} is an HDF5 file with Keras weights (.h5), not a PyTorch checkpoint.", hint=KERAS_HINT
        )
    return NotExamined(
        f"{name} is an HDF5 file, not a checkpoint.",
        hint="Keras weights and MATLAB 7.3 files are HDF5. Read it with h5py, save the arrays with numpy.savez and "
        "open that.",
    )


def _tensorflow_table(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    if b"brain.Event:" in head[:64]:
        return UnknownFormat(
            f"{name} is a TensorBoard log (events.out.tfevents), not a checkpoint.",
            hint="Look at it with TensorBoard, or with the command events; open the file with the weights here.",
        )
    if source.size >= 48 and source.read(source.size - 8, 8) == _TABLE_MAGIC:
        return UnknownFormat(
            f"{name} is the index of a TensorFlow checkpoint (.index): names without numbers.", hint=_TENSORFLOW
        )
    return None


def _mapping(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    """MessagePack: a mapping whose first key is a text that can be printed."""
    at = 1 if 0x81 <= head[0] <= 0x8F else 3 if head[0] == 0xDE else 5 if head[0] == 0xDF else 0
    if not at or len(head) < at + 3:
        return None
    first = head[at]
    n = first & 0x1F if 0xA0 <= first <= 0xBF else head[at + 1] if first == 0xD9 else 0
    start = at + 1 if 0xA0 <= first <= 0xBF else at + 2
    key = head[start : start + n]
    if not n or len(key) < n or not key.isascii() or not key.decode().isprintable():
        return None
    return UnknownFormat(
        f'{name} is MessagePack data that begins with "{key.decode()[:40]}", as Flax (JAX) saves parameters.',
        hint="Read it with flax.serialization.msgpack_restore, make names of its paths with "
        'flax.traverse_util.flatten_dict(..., sep="/"), save the arrays with numpy.savez and open that.',
    )


def _ncnn(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    found = NCNN_STARTS.get(head[:4])
    if found is None or source.size < 16:
        return None
    says, _, hint = found.partition("|")
    return UnknownFormat(f"{name} begins as the weights of an ncnn model do (.bin, {says}).", hint=hint)


def _paddle(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    # Version 0, no levels of detail, version 0, then a short description of the tensor: its type and sizes.
    if len(head) < 28 or any(head[:16]):
        return None
    n = int.from_bytes(head[16:20], "little")
    if not 2 <= n <= 128 or head[20] != 0x08 or head[21] > 30 or head[22] not in (0x10, 0x12):
        return None
    return UnknownFormat(
        f"{name} is a PaddlePaddle parameter file (.pdiparams), whose names are in the .pdmodel beside it.",
        hint="Open the .pdparams file of the same model: that is a pickle, and is read here.",
    )


def _engine(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    n = int.from_bytes(head[:4], "little")
    if not 2 <= n < 4000 or head[4:5] != b"{" or head[4 + n : 8 + n] not in (b"ftrt", b"ptrt"):
        return None
    return NotExamined(
        f"{name} is a TensorRT engine with a note in front of it, as Ultralytics exports them.",
        hint="It is compiled for one kind of GPU and holds no readable weights. Open the .pt file it was built from.",
    )


def _darknet(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    if len(head) < 84 or source.size % 4:
        return None
    major, minor, revision = struct.unpack("<3i", head[:12])
    if major != 0 or minor not in (1, 2) or not 0 <= revision <= 9:
        return None
    # Since 0.2 the number of images seen is 64 bits wide.
    start = 20 if minor == 2 else 16
    if not _are_weights(head[start : start + (len(head) - start) // 4 * 4]):
        return None
    return UnknownFormat(
        f"{name} is a Darknet weights file (version {major}.{minor}.{revision}), "
        f"{(source.size - start) // 4:,} floats without names.",
        hint="The .cfg beside it says which layer has which. Convert both to PyTorch, then open that checkpoint.",
    )


# -- protocol buffers ---------------------------------------------------------------------------------------------


def _messages(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    if head[0] not in (0x08, 0x0A) or len(head) < 8:
        return None
    walk = Walk(Cursor(source), 200)
    fields: list[Field] = []
    try:
        for f in walk.fields(0, None):
            fields.append(f)
            if len(fields) >= 24:
                break
        return _by_fields(walk, fields, name) if fields else None
    except (BadWire, LimitExceeded, Ended):
        return _by_start(walk, fields, name)


def _by_fields(walk: Walk, fields: list[Field], name: str) -> InspectorError | None:
    numbers = {f.number for f in fields}
    first = fields[0]
    if first.number == 1 and first.wire == VARINT:
        if any(f.number >= 200 and f.wire == BYTES for f in fields) and 1 <= first.value <= 20:
            return NotExamined(
                f"{name} is a Core ML model (.mlmodel, specification {first.value}).",
                hint="Open the PyTorch checkpoint it was converted from.",
            )
        if numbers <= {1, 2} and first.value == 1 and len(fields) > 1 and fields[1].wire == BYTES:
            return NotExamined(
                f"{name} is a TensorFlow SavedModel (.pb): the graph, with the numbers in variables/ beside it.",
                hint=_TENSORFLOW,
            )
        return _by_start(walk, fields, name)
    if first.number == 1 and first.wire == BYTES:
        if first.nbytes <= 200 and any(f.number in (2, 100) and f.wire == BYTES for f in fields[1:]):
            text = walk.read(first, 200)
            if text.isascii() and text.decode().isprintable():
                return UnknownFormat(
                    f'{name} is a Caffe model (.caffemodel), the network "{text.decode()[:60]}".',
                    hint="Convert it to PyTorch or ONNX, then open that.",
                )
        inner = _first_texts(walk, first)
        if len(inner) == 2 and numbers <= {1, 2, 3, 4, 5}:
            return NotExamined(
                f"{name} is a frozen TensorFlow graph (.pb); its first node is {inner[0][:60]} ({inner[1][:40]}).",
                hint="Its numbers are constants inside the graph. " + _TENSORFLOW,
            )
    return None


def _first_texts(walk: Walk, message: Field) -> list[str]:
    """Name and operator of a NodeDef, which are its fields 1 and 2."""
    found: list[str] = []
    for f in walk.fields(message.start, message.end):
        if f.number != len(found) + 1 or f.wire != BYTES or f.nbytes > 300:
            return []
        text = walk.read(f, 300)
        if not text or not text.isascii() or not text.decode().isprintable():
            return []
        found.append(text.decode())
        if len(found) == 2:
            return found if _WORD.fullmatch(text) else []
    return found


def _by_start(walk: Walk, fields: list[Field], name: str) -> InspectorError | None:
    """A message that breaks off: an ONNX model that ends, or is damaged, before its graph."""
    if len(fields) < 2 or fields[0].number != 1 or fields[0].wire != VARINT or not 1 <= fields[0].value <= 99:
        return None
    texts = [walk.read(f, 60) for f in fields[1:3] if f.number in (2, 3) and f.wire == BYTES and f.nbytes <= 200]
    if not texts or not all(_WORD.match(texts[0]) and t.isascii() and t.decode().isprintable() for t in texts):
        return None
    return CorruptFile(
        f"{name} begins as an ONNX model written by {texts[0].decode()[:60]}, but has no graph "
        f"({human_bytes(walk.cursor.size)} in all).",
        hint="Download or export it again.",
    )
