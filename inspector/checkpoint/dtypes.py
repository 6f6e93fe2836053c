"""Element types: one spelling (torch's, without "torch.") and their size, for everybody who reads or writes bytes.

No torch import: readers use this. numpy lacks bfloat16 and the 8-bit floats, so those are handled as raw bits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """One element type.

    name: torch's name ("float32", "bfloat16", "float8_e4m3fn").
    bits: per element; sub-byte types are packed, two or four in a byte.
    raw: numpy's name of the type with the same bits, for reading bytes ("uint16" for bfloat16).
    native: numpy has the type itself, so that `raw` is also its meaning.
    floating: a real or complex float, as opposed to integers, booleans and quantised payloads.
    safetensors: its code in a safetensors header, "" where that format has none.
    """

    name: str
    bits: int
    raw: str
    native: bool
    floating: bool
    safetensors: str = ""

    @property
    def itemsize(self) -> int:
        """Bytes per element; sub-byte types count as one byte, which is how torch stores them."""
        return max(1, self.bits // 8)


# Release of torch that first had the type and could save it.
SINCE_TORCH = {
    "complex32": "2.3",  # Saved at all since pytorch/pytorch#120388.
    "quint4x2": "1.8",
    "quint2x4": "1.11",
    "uint16": "2.3",
    "uint32": "2.3",
    "uint64": "2.3",
    "float8_e4m3fn": "2.2",  # In 2.1 already, but saved only since pytorch/pytorch#114662.
    "float8_e5m2": "2.2",
    "float8_e4m3fnuz": "2.2",
    "float8_e5m2fnuz": "2.2",
    "float8_e8m0fnu": "2.7",
    "float4_e2m1fn_x2": "2.8",
}


def release_number(release: str) -> tuple[int, ...]:
    """ "2.10" -> (2, 10), to be compared."""
    return tuple(map(int, release.split(".")))


def _native(name: str, bits: int, code: str = "", *, floating: bool = False, raw: str = "") -> DType:
    return DType(name=name, bits=bits, raw=raw or name, native=True, floating=floating, safetensors=code)


def _bits(name: str, bits: int, code: str = "", *, floating: bool = True) -> DType:
    raw = {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}[max(8, bits)]
    return DType(name=name, bits=bits, raw=raw, native=False, floating=floating, safetensors=code)


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        _native("float64", 64, "F64", floating=True),
        _native("float32", 32, "F32", floating=True),
        _native("float16", 16, "F16", floating=True),
        _bits("bfloat16", 16, "BF16"),
        _native("complex128", 128, floating=True),
        _native("complex64", 64, "C64", floating=True),
        _bits("complex32", 32),
        _bits("bcomplex32", 32),
        _native("int64", 64, "I64"),
        _native("int32", 32, "I32"),
        _native("int16", 16, "I16"),
        _native("int8", 8, "I8"),
        _native("uint64", 64, "U64"),
        _native("uint32", 32, "U32"),
        _native("uint16", 16, "U16"),
        _native("uint8", 8, "U8"),
        _native("bool", 8, "BOOL", raw="bool"),
        _bits("float8_e4m3fn", 8, "F8_E4M3"),
        _bits("float8_e5m2", 8, "F8_E5M2"),
        _bits("float8_e4m3fnuz", 8, "F8_E4M3FNUZ"),
        _bits("float8_e5m2fnuz", 8, "F8_E5M2FNUZ"),
        _bits("float8_e8m0fnu", 8, "F8_E8M0"),
        _bits("float4_e2m1fn_x2", 8, "F4"),
        _bits("qint8", 8, floating=False),
        _bits("quint8", 8, floating=False),
        _bits("qint32", 32, floating=False),
        _bits("quint4x2", 8, floating=False),
        _bits("quint2x4", 8, floating=False),
        _bits("bits8", 8, floating=False),
        _bits("bits16", 16, floating=False),
        _bits("bits1x8", 8, floating=False),
        _bits("bits2x4", 8, floating=False),
        _bits("bits4x2", 8, floating=False),
    )
}

# torch accepts these spellings of the same types; pickles carry either.
ALIASES: dict[str, str] = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "chalf": "complex32",
}

# The class names of storages, as persistent ids spell them: torch.<Name>Storage.
STORAGE_DTYPES: dict[str, str] = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2",
    "QUInt2x4Storage": "quint2x4",
}

SAFETENSORS_DTYPES: dict[str, str] = {d.safetensors: d.name for d in DTYPES.values() if d.safetensors}


def find_dtype(name: str) -> DType | None:
    """The type of that name or alias, with or without "torch."; None if torch has no such type."""
    short = name.removeprefix("torch.")
    return DTYPES.get(ALIASES.get(short, short))
