"""Small files for reports, and their reports."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_models" / "files"
#: Names as somebody writes them who wants to break out of a page.
HOSTILE = (
    "</script><script>alert(1)</script>.weight",
    "<img src=x onerror=alert(2)>.weight",
    '"><svg onload=alert(3)>&amp;.weight',
    "<!--<script>\u202e\u2028\x07.weight",
    "javascript:alert(4)//' style=color:red .weight",
)


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[np.float32]], **metadata: str) -> Path:
    """A safetensors file of float32 tensors, without the library."""
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, values in tensors.items():
        raw = np.ascontiguousarray(values, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    return path


def hostile_file(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    tensors = {name: rng.normal(size=(4, 3)).astype(np.float32) for name in HOSTILE}
    return write_safetensors(folder / "<b>evil&.safetensors", tensors, **{HOSTILE[0]: HOSTILE[1]})
