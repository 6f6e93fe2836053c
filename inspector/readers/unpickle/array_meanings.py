"""numpy's arrays, scalars and dtypes as pickles write them, for dtypes without Python objects.

Source: `__reduce__` of ndarray, dtype and the scalars (numpy/_core/src/multiarray/methods.c, descriptor.c).
"""

from __future__ import annotations

import math
import struct

from inspector.readers.unpickle.stand_ins import (
    NOT_UNDERSTOOD,
    ArrayBytes,
    ArrayStub,
    BytesAt,
    GlobalRef,
    Meaning,
    NumpyDtype,
    TensorStub,
)

# numpy's type codes with the names this package uses for element types.
_CODES = {
    "b1": "bool",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}
_STRUCT = {"b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q"}
_STRUCT |= {"f2": "e", "f4": "f", "f8": "d"}
_MOST_DIMENSIONS = 64


def _dtype(args: tuple[object, ...]) -> object:
    if not 1 <= len(args) <= 3:
        return NOT_UNDERSTOOD
    code = args[0].decode("latin-1") if isinstance(args[0], bytes) else args[0]
    if type(code) is not str or len(code) > 40:
        return NOT_UNDERSTOOD
    order = code[0] if code[:1] in ("<", ">", "|", "=") else "="
    return NumpyDtype(code.lstrip("<>|="), order)


def _reconstruct(args: tuple[object, ...]) -> object:
    if len(args) != 3 or not isinstance(args[0], GlobalRef):
        return NOT_UNDERSTOOD
    return ArrayStub(kind=args[0].full)


def _raw(value: object) -> bytes | BytesAt | None:
    if isinstance(value, bytes | BytesAt):
        return value
    if type(value) is str:  # Python 2 wrote array data as text.
        try:
            return value.encode("latin-1")
        except UnicodeEncodeError:
            return None
    return None


def _scalar(args: tuple[object, ...]) -> object:
    if len(args) != 2 or not isinstance(args[0], NumpyDtype):
        return NOT_UNDERSTOOD
    form, raw = _STRUCT.get(args[0].code), _raw(args[1])
    if form is None or not isinstance(raw, bytes) or len(raw) != struct.calcsize("=" + form):
        return NOT_UNDERSTOOD
    return struct.unpack((">" if args[0].order == ">" else "<") + form, raw)[0]


def _frombuffer(args: tuple[object, ...]) -> object:
    """_frombuffer(buffer, dtype, shape, order): protocol 5."""
    if len(args) != 4 or not isinstance(args[1], NumpyDtype):
        return NOT_UNDERSTOOD
    made = ArrayStub()
    filled = _fill(made, args[1], args[2], args[3] == "F", args[0])
    return made if filled else NOT_UNDERSTOOD


def _fill(array: ArrayStub, dtype: NumpyDtype, shape: object, fortran: bool, data: object) -> bool:
    raw = _raw(data)
    name = None if dtype.structured else _CODES.get(dtype.code)
    if not isinstance(shape, tuple) or len(shape) > _MOST_DIMENSIONS:
        return False
    sizes = [n for n in shape if type(n) is int and 0 <= n < 1 << 62]
    if len(sizes) != len(shape):
        return False
    if name is None or raw is None:
        array.note = f"numpy dtype {dtype.code}, shape {'x'.join(map(str, sizes)) or 'scalar'}"
        array.extra.append(data)
        return True
    have = raw.nbytes if isinstance(raw, BytesAt) else len(raw)
    if math.prod(sizes) * int(dtype.code[1:]) != have:
        return False
    strides = [0] * len(sizes)
    step = 1
    order = range(len(sizes)) if fortran else range(len(sizes) - 1, -1, -1)
    for axis in order:
        strides[axis] = step
        step *= max(1, sizes[axis])
    array.tensor = TensorStub(
        storage=ArrayBytes(raw, big_endian=dtype.order == ">"),
        dtype=name,
        shape=tuple(sizes),
        stride=tuple(strides),
        kind=array.kind,
        note="numpy array inside the pickle",
    )
    return True


def build_array(target: object, state: object) -> bool:
    """What BUILD does on numpy's records. False when the state is not what numpy writes."""
    if isinstance(target, NumpyDtype) and isinstance(state, tuple) and len(state) >= 3:
        order = state[1].decode("latin-1") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "|", "="):
            return False
        target.order = order
        target.structured = state[2] is not None or (len(state) > 3 and state[3] is not None)
        return True
    if isinstance(target, ArrayStub) and isinstance(state, tuple) and len(state) == 5 and target.tensor is None:
        _, shape, dtype, fortran, data = state
        return isinstance(dtype, NumpyDtype) and _fill(target, dtype, shape, fortran is True, data)
    return False


ARRAY_MEANINGS: dict[str, Meaning] = {
    "numpy.dtype": _dtype,
    "numpy.core.multiarray._reconstruct": _reconstruct,
    "numpy._core.multiarray._reconstruct": _reconstruct,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
    "numpy.core.numeric._frombuffer": _frombuffer,
    "numpy._core.numeric._frombuffer": _frombuffer,
}
