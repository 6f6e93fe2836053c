"""A stand-in for NumPy in the browser, where there is none: what moves, compares and counts the bytes of tensors.

Pyodide's NumPy comes from its own network of servers alone, and a page that asks for nothing but its own files cannot
have it. What is here gives NumPy's results to the bit (tests/browser_page compares the two); everything else raises
`MissingLibrary`, which is an answer of the program: refused, never guessed.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy._array import Shape, broadcast, from_numbers, joint_shape, ndarray
from numpy._types import SCALARS, as_dtype, dtype, generic, refuse

__version__ = "0 (stand-in)"

float16, float32, float64 = (SCALARS[f"float{n}"] for n in (16, 32, 64))
int8, int16, int32, int64 = (SCALARS[f"int{n}"] for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (SCALARS[f"uint{n}"] for n in (8, 16, 32, 64))
bool_, complex64, complex128, intp = SCALARS["bool"], SCALARS["complex64"], SCALARS["complex128"], int64
bool = bool_
nan, inf = math.nan, math.inf


class _Dtype:
    def __call__(self, given: object) -> dtype:
        return as_dtype(given)

    def __instancecheck__(self, one: object) -> builtins.bool:
        return isinstance(one, dtype)


globals()["dtype"] = _Dtype()


class finfo:
    """Of the float types."""

    def __init__(self, kind: Any) -> None:
        size = as_dtype(kind).itemsize
        self.max = {2: 65504.0, 4: 3.4028234663852886e38, 8: 1.7976931348623157e308}[size]
        self.min = -self.max
        self.eps = {2: 2.0**-10, 4: 2.0**-23, 8: 2.0**-52}[size]
        self.tiny = self.smallest_normal = {2: 2.0**-14, 4: 2.0**-126, 8: 2.0**-1022}[size]


@contextmanager
def errstate(**_: object) -> Iterator[None]:
    yield


def frombuffer(raw: Any, dtype: Any = float) -> ndarray:
    kind, memory = as_dtype(dtype), memoryview(raw).cast("B")
    if len(memory) % kind.itemsize:
        raise ValueError("buffer size must be a multiple of element size")
    return ndarray(memory, kind, (len(memory) // kind.itemsize,))


def _shape(shape: Any) -> Shape:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    # As many bytes as an array may have in 64 bits; with a 0 beside, too.
    if any(size < 0 for size in sizes) or math.prod(size for size in sizes if size) >= 1 << 63:
        raise ValueError("array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.")
    return sizes


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    kind, sizes = as_dtype(dtype), _shape(shape)
    return ndarray(memoryview(bytearray(math.prod(sizes) * kind.itemsize)), kind, sizes)


empty = zeros


def full(shape: Any, value: Any, dtype: Any = None) -> ndarray:
    kind = as_dtype(type(value) if dtype is None else dtype)
    return broadcast(from_numbers([value], kind, ()), _shape(shape)).copy()


def ones(shape: Any, dtype: Any = float) -> ndarray:
    return full(shape, 1, dtype)


def arange(*bounds: int, dtype: Any = None) -> ndarray:
    if not all(isinstance(one, int) for one in bounds):
        raise refuse("counting in fractions")
    numbers = list(range(*bounds))
    return from_numbers(numbers, as_dtype(int if dtype is None else dtype), (len(numbers),))


def array(given: Any, dtype: Any = None) -> ndarray:
    if isinstance(given, ndarray):
        return given.copy() if dtype is None else given.astype(dtype)
    if isinstance(given, int | float):
        return from_numbers([given], as_dtype(type(given) if dtype is None else dtype), ())
    numbers = list(given)
    if not all(isinstance(one, int | float) for one in numbers):
        raise refuse("arrays of nested lists")
    widest = float if any(isinstance(one, float) for one in numbers) or not numbers else int
    return from_numbers(numbers, as_dtype(widest if dtype is None else dtype), (len(numbers),))


def asarray(given: Any, dtype: Any = None) -> ndarray:
    made = given if isinstance(given, ndarray) else array(given)
    return made if dtype is None else made.astype(dtype, copy=False)


def ascontiguousarray(given: ndarray) -> ndarray:
    return given if given.in_order else ndarray(given.packed(), given.dtype, given.shape)


def concatenate(parts: Sequence[ndarray], axis: int = 0) -> ndarray:
    if len({part.dtype for part in parts}) != 1:
        raise refuse("joining different types")
    shape = list(parts[0].shape)
    shape[axis] = builtins.sum(part.shape[axis] for part in parts)
    made, at = zeros(tuple(shape), parts[0].dtype), 0
    for part in parts:
        made[(*[slice(None)] * axis, slice(at, at + part.shape[axis]))] = part
        at += part.shape[axis]
    return made


def flip(given: ndarray, axes: Any = None) -> ndarray:
    chosen = range(given.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    turned = {axis % given.ndim for axis in chosen}
    return given[tuple(slice(None, None, -1 if axis in turned else None) for axis in range(given.ndim))]


def array_equal(one: Any, other: Any, equal_nan: builtins.bool = False) -> builtins.bool:
    one, other = asarray(one), asarray(other)
    if one.shape != other.shape:
        return False
    if one.dtype == other.dtype and one.dtype.kind in "iub":
        return one.packed() == other.packed()
    pairs = zip(one.numbers(), other.numbers(), strict=True)
    return all(a == b or (equal_nan and a != a and b != b) for a, b in pairs)


# Of each float type: where the exponent's bits lie, from the last byte of an element on.
_EXPONENTS = {2: (0x7C,), 4: (0x7F, 0x80), 8: (0x7F, 0xF0)}


def isfinite(given: ndarray) -> ndarray:
    if given.dtype.kind in "iub":
        return full(given.shape, True, "bool")
    if given.dtype.kind != "f" or given.dtype.order != "<":
        raise refuse(f"isfinite of {given.dtype.name}")
    # A number is not finite where all bits of its exponent are set: asked of all numbers at once, byte by byte.
    raw, size = bytes(given.packed()), given.itemsize
    found = -1
    for behind, mask in enumerate(_EXPONENTS[size], 1):
        table = bytes(byte & mask == mask for byte in range(256))
        found &= int.from_bytes(raw[size - behind :: size].translate(table), "little")
    made = found.to_bytes(given.size, "little").translate(bytes([1, 0]) + bytes(254)) if given.size else b""
    return ndarray(memoryview(made), as_dtype("bool"), given.shape)


def isnan(given: ndarray) -> ndarray:
    return given != given


def isneginf(given: ndarray) -> ndarray:
    return given == -math.inf


def isin(given: ndarray, among: Sequence[float]) -> ndarray:
    wanted = frozenset(among)
    return array([one in wanted for one in given.numbers()], "bool").reshape(given.shape)


def argmax(given: ndarray) -> int:
    """Of booleans alone: the first that is true, 0 where none is."""
    if given.dtype.kind != "b":
        raise refuse(f"argmax of {given.dtype.name}")
    return builtins.max(0, bytes(given.packed()).find(1))


def equal(one: ndarray, other: Any) -> ndarray:
    return one == other


def less(one: ndarray, other: Any) -> ndarray:
    return one < other


def nanmin(given: ndarray) -> float:
    return builtins.min(one for one in given.numbers() if one == one)


def count_nonzero(given: ndarray) -> int:
    return builtins.sum(map(builtins.bool, given.numbers()))


def flatnonzero(given: ndarray) -> ndarray:
    return array([place for place, one in enumerate(given.numbers()) if one], "int64")


def diagonal(given: ndarray) -> ndarray:
    if given.ndim != 2:
        raise refuse("diagonals of more than two axes")
    return ndarray(given.memory, given.dtype, (min(given.shape),), (sum(given.strides),), given.start)


def _triangle(given: ndarray, keeps: Any) -> ndarray:
    rows, columns = given.shape[-2:]
    kept = [keeps(row, column) for row in range(rows) for column in range(columns)]
    numbers, many = given.numbers(), rows * columns
    return from_numbers(
        [number if kept[place % many] else 0 for place, number in enumerate(numbers)], given.dtype, given.shape
    )


def triu(given: ndarray, k: int = 0) -> ndarray:
    return _triangle(given, lambda row, column: column >= row + k)


def tri(rows: int, columns: int | None = None, dtype: Any = float) -> ndarray:
    return _triangle(ones((rows, columns or rows), dtype), lambda row, column: column <= row)


def ndindex(*shape: int) -> Iterator[Shape]:
    import itertools

    return itertools.product(*map(range, shape))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise refuse(f"numpy.{name}")


__all__ = ["dtype", "generic", "joint_shape", "ndarray"]
