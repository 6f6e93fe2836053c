"""numpy's arrays, scalars and dtypes as pickles write them.

Arrays of numbers become tensors over their bytes. Structured, textual, dated and object arrays are shown as what they
are. Source: `__reduce__` of ndarray, dtype and the scalars (numpy/_core/src/multiarray/methods.c, descriptor.c).
"""

from __future__ import annotations

import datetime
import math
import struct

from inspector.readers.unpickle.stand_ins import (
    NOT_UNDERSTOOD,
    ArrayBytes,
    ArrayStub,
    BytesAt,
    GlobalRef,
    Labelled,
    Mapping,
    Meaning,
    Named,
    NumpyDtype,
    TensorStub,
    text_of,
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


MEMMAP = "numpy.memmap"
_MOST_FIELDS = 64
_PREVIEW = 8


def _dtype(args: tuple[object, ...]) -> object:
    if not 1 <= len(args) <= 3:
        return NOT_UNDERSTOOD
    code = args[0].decode("latin-1") if isinstance(args[0], bytes) else args[0]
    if isinstance(code, GlobalRef):  # dtype(object) and the like, by older numpy
        code = code.name
    if type(code) is not str or len(code) > 40:
        return NOT_UNDERSTOOD
    order = code[0] if code[:1] in ("<", ">", "|", "=") else "="
    return NumpyDtype(code.lstrip("<>|="), order)


def _reconstruct(args: tuple[object, ...]) -> object:
    if len(args) != 3 or not isinstance(args[0], GlobalRef):
        return NOT_UNDERSTOOD
    note_class(args[0])
    return ArrayStub(kind=args[0].full)


def note_class(cls: GlobalRef) -> None:
    """An array of a class that would open a file, were it called: numpy and joblib make it without calling it."""
    if cls.full == MEMMAP:
        cls.use.calls += 1
        cls.use.followed += 1


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
    dtype, raw = args[0], _raw(args[1])
    if not isinstance(raw, bytes) or dtype.structured:
        return NOT_UNDERSTOOD
    order = ">" if dtype.order == ">" else "<"
    form = _STRUCT.get(dtype.code)
    if form is not None:
        return struct.unpack(order + form, raw)[0] if len(raw) == struct.calcsize("=" + form) else NOT_UNDERSTOOD
    if dtype.code in ("c8", "c16") and len(raw) == int(dtype.code[1:]):
        real, imaginary = struct.unpack(order + ("ff" if dtype.code == "c8" else "dd"), raw)
        return Named(f"numpy.{_CODES[dtype.code]}", f"{real}{imaginary:+}j")
    return _item_text(dtype, raw) or NOT_UNDERSTOOD


def _item_text(dtype: NumpyDtype, raw: bytes) -> object:
    """One text, byte string, date or duration; None for other types."""
    letter = dtype.code[:1]
    order = "big" if dtype.order == ">" else "little"
    if letter == "U" and len(raw) % 4 == 0:
        coded = "utf-32-be" if order == "big" else "utf-32-le"
        return raw.decode(coded, "replace").rstrip("\0")[:4096] or Named("numpy.str_", "")
    if letter in "SaV" and letter:
        return raw.rstrip(b"\0") if letter != "V" else raw
    if dtype.code in ("M8", "m8") and len(raw) == 8:
        count = int.from_bytes(raw, "little" if order == "little" else "big", signed=True)
        return Named("numpy.datetime64" if letter == "M" else "numpy.timedelta64", _moment(dtype, count))
    return None


_MICROSECONDS = {"W": 604_800_000_000, "D": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000}
_MICROSECONDS |= {"ms": 1000, "us": 1}


def _moment(dtype: NumpyDtype, count: int) -> str:
    if count == -(1 << 63):
        return "NaT"
    if dtype.code == "M8" and dtype.unit in (*_MICROSECONDS, "ns"):
        micro = count // 1000 if dtype.unit == "ns" else count * _MICROSECONDS[dtype.unit]
        try:
            moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micro)
        except OverflowError:
            return f"{count} {dtype.unit} since 1970"
        return moment.date().isoformat() if dtype.unit in ("D", "W") else moment.isoformat()
    return f"{count} {dtype.unit}".strip() + (" since 1970" if dtype.code == "M8" else "")


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
        array.note = f"{_dtype_text(dtype)}, shape {'x'.join(map(str, sizes)) or 'scalar'}{_preview(dtype, raw)}"
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


def array_of(kind: str, dtype: NumpyDtype, shape: tuple[int, ...], *, fortran: bool, data: object) -> ArrayStub | None:
    """An array over these bytes, None when they do not make one."""
    made = ArrayStub(kind=kind)
    return made if _fill(made, dtype, shape, fortran, data) else None


def _dtype_text(dtype: NumpyDtype) -> str:
    if dtype.code.startswith("O"):
        return "numpy array of Python objects"
    if dtype.structured:
        named = ", ".join(f"{name} {order.strip('=|')}{code}" for name, order, code in dtype.fields[:8])
        return f"numpy structured array ({named or dtype.code})" + (" …" if len(dtype.fields) > 8 else "")
    return f"numpy dtype {dtype.code}" + (f"[{dtype.unit}]" if dtype.unit else "")


def _preview(dtype: NumpyDtype, raw: bytes | BytesAt | None) -> str:
    """The first texts or dates of a short array."""
    width = int(dtype.code[1:]) if dtype.code[1:].isdecimal() and len(dtype.code) < 8 else 0
    step = width * 4 if dtype.code[:1] == "U" else width
    if dtype.structured or not isinstance(raw, bytes) or not step or dtype.code[:1] not in "USaMm":
        return ""
    items = [_item_text(dtype, raw[at : at + step]) for at in range(0, min(len(raw), step * _PREVIEW), step)]
    return ": " + ", ".join(text_of(item, 30) for item in items) + (" …" if len(raw) > step * _PREVIEW else "")


def _masked(args: tuple[object, ...]) -> object:
    """numpy.ma's _mareconstruct(class, base class, shape, type)."""
    if len(args) != 4 or not isinstance(args[0], GlobalRef):
        return NOT_UNDERSTOOD
    return ArrayStub(kind=args[0].full)


def build_array(target: object, state: object) -> bool:
    """What BUILD does on numpy's records. False when the state is not what numpy writes."""
    if isinstance(target, NumpyDtype) and isinstance(state, tuple) and len(state) >= 3:
        order = state[1].decode("latin-1") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "|", "="):
            return False
        target.order = order
        target.state = () if target.state else state
        target.structured = state[2] is not None or (len(state) > 3 and state[3] is not None)
        if len(state) > 4 and isinstance(state[4], Mapping):
            target.fields = _fields(state[4])
        unit = state[8] if len(state) > 8 else None
        if isinstance(unit, tuple) and len(unit) == 2 and isinstance(unit[1], tuple) and unit[1]:
            target.unit = _unit(unit[1])
        return True
    if isinstance(target, ArrayStub) and isinstance(state, tuple) and target.tensor is None:
        items: list[object] = list(state)
        if len(items) == 2 and isinstance(items[0], tuple):  # a subclass with attributes of its own
            target.extra.append(items[1])
            items = list(items[0])
        if len(items) not in (4, 5, 7):
            return False
        # The oldest numpy wrote no version; masked arrays add their mask and their fill value.
        shape, dtype, fortran, data = items[:4] if len(items) == 4 else items[1:5]
        if not isinstance(dtype, NumpyDtype) or not _fill(target, dtype, shape, fortran in (True, 1), data):
            return False
        if len(items) == 7:
            _mask(target, items[5], items[6])
        return True
    return False


def _mask(array: ArrayStub, mask: object, fill_value: object) -> None:
    found = [Labelled("mask", mask), Labelled("fill value", fill_value)]
    if array.tensor is None:
        array.extra += found
        return
    array.tensor.note = "masked numpy array inside the pickle; the mask is not applied"
    array.tensor.extra += found


def _fields(found: Mapping) -> tuple[tuple[str, str, str], ...]:
    """(name, byte order, code) of a structured dtype's fields."""
    fields = []
    for name, entry in found.pairs[:_MOST_FIELDS]:
        dtype = entry[0] if isinstance(entry, tuple) and entry else None
        if isinstance(dtype, NumpyDtype):
            fields.append((text_of(name, 40).removeprefix("b").strip("'"), dtype.order, dtype.code))
    return tuple(fields)


def _unit(metadata: tuple[object, ...]) -> str:
    unit = metadata[0].decode("latin-1") if isinstance(metadata[0], bytes) else metadata[0]
    times = metadata[1] if len(metadata) > 1 else 1
    if not isinstance(unit, str) or len(unit) > 8:
        return ""
    return unit if times == 1 else f"{text_of(times, 20)}{unit}"


ARRAY_MEANINGS: dict[str, Meaning] = {
    "numpy.dtype": _dtype,
    "numpy.core.multiarray._reconstruct": _reconstruct,
    "numpy._core.multiarray._reconstruct": _reconstruct,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
    "numpy.ma.core._mareconstruct": _masked,
    "numpy.core.numeric._frombuffer": _frombuffer,
    "numpy._core.numeric._frombuffer": _frombuffer,
}
