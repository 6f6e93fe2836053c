"""What a piece gave, as a line of JSON: the same wherever it is written, and to the last bit what it was."""

from __future__ import annotations

import dataclasses
import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from inspector.weights.parts import Part
from inspector.weights.report import Decoding, NumberKind, Pages, Rows, TensorStatistics, ValueTable
from inspector.weights.row_sums import Leaf

#: Of one tensor or a stretch of one: its numbers, or why there are none.
Answer: TypeAlias = TensorStatistics | Part | str

_CLASSES = {one.__name__: one for one in (TensorStatistics, Part, Leaf, ValueTable, Rows, Pages, Decoding)}
# Counts and marks of most tensors fit into less than they are worked out in.
_SHORTER = (np.uint8, np.uint16, np.uint32)


def written(answers: Sequence[Answer]) -> bytes:
    """As a store keeps it."""
    return json.dumps([_plain(one) for one in answers], ensure_ascii=True, separators=(",", ":")).encode("ascii")


def read(data: bytes) -> tuple[Answer, ...]:
    """What `written` wrote. Raises ValueError, TypeError or KeyError for what is none."""
    found = tuple(_meant(one) for one in json.loads(data))
    if not all(isinstance(one, TensorStatistics | Part | str) for one in found):
        raise ValueError("no answers")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, NumberKind):
        return {"kind": value.value}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        told = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"is": type(value).__name__, **told}
    if isinstance(value, np.ndarray):
        return _plain_array(value)
    if isinstance(value, bytes):
        return {"bytes": b64encode(value).decode("ascii")}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value


def _plain_array(array: NDArray[Any]) -> dict[str, Any]:
    dtype = array.dtype
    kept = array
    if dtype.kind in "iu" and array.ndim == 1:
        most = int(array.max(initial=0))
        kept = array.astype(next((short for short in _SHORTER if most <= np.iinfo(short).max), dtype))
    little = kept.astype(kept.dtype.newbyteorder("<"))
    return {
        "array": b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii"),
        "of": little.dtype.str,
        "as": dtype.str,
        "shape": list(array.shape),
    }


def _meant(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_meant(one) for one in value)
    if not isinstance(value, dict):
        return value
    if "is" in value:
        return _CLASSES[value["is"]](**{key: _meant(one) for key, one in value.items() if key != "is"})
    if "kind" in value:
        return NumberKind(value["kind"])
    if "bytes" in value:
        return b64decode(value["bytes"])
    array = np.frombuffer(b64decode(value["array"]), np.dtype(value["of"]))
    return array.astype(np.dtype(value["as"])).reshape(value["shape"])
