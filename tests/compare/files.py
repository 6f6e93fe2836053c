"""Files to compare, written with numpy and the format's own definition, so that no loader of ours has a part in it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.types import Checkpoint
from inspector.compare.diff import compare_checkpoints
from inspector.compare.report import Diff, TensorDiff
from inspector.readers import open_checkpoint

CODES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16",
    "int8": "I8", "uint8": "U8", "bool": "BOOL", "complex64": "C64", "uint64": "U64",
}  # fmt: skip


def bf16(values: NDArray[np.floating]) -> NDArray[np.uint16]:
    """Bits of bfloat16, cut off: for numbers that it has."""
    return (np.asarray(values, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def write(path: Path, arrays: dict[str, object], metadata: dict[str, str] | None = None) -> Path:
    """arrays: an array, or (code of the format, array of raw bits)."""
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, value in arrays.items():
        code, array = value if isinstance(value, tuple) else (CODES[np.asarray(value).dtype.name], np.asarray(value))
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": code,
            "shape": list(np.shape(array)),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(path)


def compare(folder: Path, a: dict[str, object], b: dict[str, object]) -> Diff:
    return compare_checkpoints(opened(write(folder / "a.safetensors", a)), opened(write(folder / "b.safetensors", b)))


def compare_one(folder: Path, a: object, b: object) -> TensorDiff:
    """Two tensors called "w"."""
    (found,) = compare(folder, {"w": a}, {"w": b}).tensors
    return found
