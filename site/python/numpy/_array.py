"""An array as strided bytes. What moves bytes goes at the speed of slices; what counts goes number by number."""

from __future__ import annotations

import builtins
import itertools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from numpy._types import as_dtype, dtype, refuse, round_to, wrap

Shape = tuple[int, ...]


def row_major(shape: Sequence[int], itemsize: int) -> Shape:
    """Bytes from one place to the next along each axis."""
    steps, step = [], itemsize
    for size in reversed(shape):
        steps.append(step)
        step *= builtins.max(1, size)
    return tuple(reversed(steps))


class Flags:
    """Of an array: as much as anybody asks for."""

    def __init__(self, array: ndarray) -> None:
        self._array = array
        self.writeable = True

    @property
    def c_contiguous(self) -> bool:
        return self._array.in_order


class ndarray:
    """memory: bytes of one buffer. start: of the first element in it, in bytes. strides: in bytes."""

    __slots__ = ("_shape", "dtype", "memory", "start", "strides")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, memory: memoryview, kind: dtype, shape: Shape, strides: Shape | None = None, start: int = 0):
        self.memory, self.dtype, self._shape, self.start = memory, kind, tuple(shape), start
        self.strides = row_major(shape, kind.itemsize) if strides is None else strides

    @property
    def shape(self) -> Shape:
        # Another tuple each time, as NumPy gives it: a pickle writes what is one object once.
        return tuple(size for size in self._shape)

    @property
    def flags(self) -> Flags:
        # Made when asked for: held, it would keep the array, and its bytes, until Python looks for circles.
        return Flags(self)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def T(self) -> ndarray:
        return self.transpose()

    @property
    def in_order(self) -> bool:
        """Row-major without gaps, as NumPy says it: steps along axes of one place do not count."""
        step = self.itemsize
        if 0 in self.shape:
            return True
        for size, own in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and own != step:
                return False
            step *= size
        return True

    @property
    def data(self) -> memoryview:
        return self.packed()

    @property
    def __array_interface__(self) -> dict[str, object]:
        # No address is known: that two views share a memory is told by their places in it.
        return {"data": (self.start, False)}

    @property
    def flat(self) -> ndarray:
        return self.reshape(-1)

    def packed(self) -> memoryview:
        """The elements' bytes in row-major order; a view where they lie so."""
        if self.in_order:
            return self.memory[self.start : self.start + self.nbytes]
        made = bytearray(self.nbytes)
        _gather(self, made)
        return memoryview(made)

    def tobytes(self) -> bytes:
        return bytes(self.packed())

    def numbers(self) -> list[Any]:
        """Every element as a Python number, row-major."""
        if not self.dtype.char:
            raise refuse(f"numbers of the type {self.dtype.name}")
        raw = self.packed()
        return list(struct.unpack(f"{self.dtype.order}{len(raw) // self.itemsize}{self.dtype.char}", raw))

    def tolist(self) -> Any:
        flat = iter(self.numbers())

        def nested(shape: Shape) -> Any:
            return next(flat) if not shape else [nested(shape[1:]) for _ in range(shape[0])]

        return nested(self.shape)

    def item(self) -> Any:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.numbers()[0]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    # Views and copies.

    def transpose(self, *axes: Any) -> ndarray:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = tuple(order) if order else tuple(reversed(range(self.ndim)))
        shape, strides = tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order)
        return ndarray(self.memory, self.dtype, shape, strides, self.start)

    def reshape(self, *shape: Any) -> ndarray:
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        known = math.prod(size for size in wanted if size >= 0)
        sizes = tuple(size if size >= 0 else self.size // builtins.max(1, known) for size in wanted)
        if math.prod(sizes) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {tuple(wanted)}")
        if self.in_order:
            return ndarray(self.memory, self.dtype, sizes, None, self.start)
        return ndarray(self.packed(), self.dtype, sizes)

    def ravel(self) -> ndarray:
        return self.reshape(-1)

    def view(self, kind: Any) -> ndarray:
        new = as_dtype(kind)
        if new.itemsize == self.itemsize:
            return ndarray(self.memory, new, self.shape, self.strides, self.start)
        if not self.in_order or not self.shape:
            raise ValueError("the last axis must be contiguous to be seen as another type")
        nbytes = self.shape[-1] * self.itemsize
        if nbytes % new.itemsize:
            raise ValueError("the last axis is no multiple of the new type's size")
        return ndarray(self.memory, new, (*self.shape[:-1], nbytes // new.itemsize), None, self.start)

    def copy(self, order: str = "C") -> ndarray:
        return ndarray(memoryview(bytearray(self.packed())), self.dtype, self.shape)

    def astype(self, kind: Any, copy: bool = True) -> ndarray:
        new = as_dtype(kind)
        if new == self.dtype:
            return self.copy() if copy else self
        raw = self.packed()
        old = self.dtype
        if (new.kind, new.itemsize) == (old.kind, old.itemsize):
            return ndarray(memoryview(_swapped(raw, new.itemsize, old.kind)), new, self.shape)
        if old.order == new.order == "<" and old.kind in "ub" and new.kind in "iu" and new.itemsize > old.itemsize:
            # Wider whole numbers: the same bytes with zeros behind each.
            made = bytearray(self.size * new.itemsize)
            for byte in range(old.itemsize):
                made[byte :: new.itemsize] = raw[byte :: old.itemsize]
            return ndarray(memoryview(made), new, self.shape)
        return from_numbers([_cast(number, old, new) for number in self.numbers()], new, self.shape)

    # Places.

    def _place(self, key: Any) -> tuple[int, Shape, Shape]:
        """(start, shape, strides) of a view by whole numbers and slices."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys[at : at + 1] = [slice(None)] * (self.ndim - sum(k is not None for k in keys) + 1)
        start, shape, strides, axis = self.start, [], [], 0
        for one in keys:
            if one is None:
                shape.append(1)
                strides.append(0)
                continue
            size, step = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(one, slice):
                first, last, by = one.indices(size)
                shape.append(len(range(first, last, by)))
                strides.append(step * by)
                start += first * step if shape[-1] else 0
            elif isinstance(one, int):
                if not -size <= one < size:
                    raise IndexError(f"index {one} is out of bounds for size {size}")
                start += (one % size) * step
            else:
                raise refuse("indexing by arrays")
        return start, (*shape, *self.shape[axis:]), (*strides, *self.strides[axis:])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, list):
            rows = [self[int(i) : int(i) + 1 or None] for i in key]
            made = b"".join(row.packed() for row in rows)
            return ndarray(memoryview(made), self.dtype, (len(key), *self.shape[1:]))
        if isinstance(key, ndarray):
            if key.dtype.kind == "b" and key.shape == self.shape:
                kept = list(itertools.compress(self.numbers(), key.numbers()))
                return from_numbers(kept, self.dtype, (len(kept),))
            raise refuse("indexing by arrays")
        start, shape, strides = self._place(key)
        if not shape and not (isinstance(key, tuple) and Ellipsis in key):
            return ndarray(self.memory, self.dtype, (), (), start).item()
        return ndarray(self.memory, self.dtype, shape, strides, start)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, ndarray | list):
            raise refuse("writing by arrays of places")
        start, shape, strides = self._place(key)
        place = ndarray(self.memory, self.dtype, shape, strides, start)
        if not isinstance(value, ndarray):
            value = from_numbers([value], self.dtype, ())
        if value.dtype != self.dtype:
            value = value.astype(self.dtype)
        _scatter(place, broadcast(value, shape))

    # Counting.

    def _with(self, other: Any, by: Callable[[Any, Any], Any], *, turned: bool = False, kind: Any = None) -> ndarray:
        mine, theirs, common = paired(self, other)
        shape = joint_shape(mine.shape, theirs.shape)
        one, two = broadcast(mine, shape).numbers(), broadcast(theirs, shape).numbers()
        if turned:
            one, two = two, one
        made = as_dtype(kind) if kind is not None else common
        return from_numbers(list(map(by, one, two)), made, shape)

    def __add__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a - b, turned=True)

    def __mul__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __lt__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a < b, kind=bool)

    def __le__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a <= b, kind=bool)

    def __gt__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a > b, kind=bool)

    def __ge__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a >= b, kind=bool)

    def __eq__(self, other: Any) -> ndarray:  # type: ignore[override]
        return self._with(other, lambda a, b: a == b, kind=bool)

    def __ne__(self, other: Any) -> ndarray:  # type: ignore[override]
        return self._with(other, lambda a, b: a != b, kind=bool)

    def __and__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a & b)

    def __or__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a | b)

    def __xor__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: a ^ b)

    def __ixor__(self, other: Any) -> ndarray:
        self[...] = self ^ other
        return self

    def __invert__(self) -> ndarray:
        if self.dtype.kind != "b":
            raise refuse("turning bits round")
        return from_numbers([not one for one in self.numbers()], self.dtype, self.shape)

    def __lshift__(self, other: Any) -> ndarray:
        if self.dtype.kind != "u" or not isinstance(other, int) or other % 8 or self.dtype.order != "<":
            return self._with(other, lambda a, b: a << b)
        raw, size, by = self.packed(), self.itemsize, other // 8
        made = bytearray(len(raw))
        for byte in range(size - by):
            made[byte + by :: size] = raw[byte::size]
        return ndarray(memoryview(made), self.dtype, self.shape)

    def __neg__(self) -> ndarray:
        return from_numbers([-one for one in self.numbers()], self.dtype, self.shape)

    def __abs__(self) -> ndarray:
        return from_numbers([abs(one) for one in self.numbers()], self.dtype, self.shape)

    def any(self) -> bool:
        raw = self.packed()
        if self.dtype.kind in "iub":
            return raw.nbytes > 0 and bytes(raw).count(0) != raw.nbytes
        return builtins.any(self.numbers())

    def all(self) -> bool:
        return bytes(self.packed()).count(0) == 0 if self.dtype.kind == "b" else builtins.all(self.numbers())

    def sum(self, dtype: Any = None) -> Any:
        if self.dtype.kind == "b":
            return bytes(self.packed()).count(1)
        if self.dtype.kind in "iu":
            return builtins.sum(self.numbers())
        if as_dtype(dtype or self.dtype).itemsize != 8:
            raise refuse("sums in less than double precision")
        return math.fsum(self.numbers()) if builtins.all(map(math.isfinite, self.numbers())) else _plain(self.numbers())

    def min(self) -> Any:
        return builtins.min(_no_nan(self.numbers()))

    def max(self) -> Any:
        return builtins.max(_no_nan(self.numbers()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise refuse(f"ndarray.{name}")


def _refused(name: str) -> Callable[..., Any]:
    def refusal(*_: object) -> Any:
        raise refuse(f"ndarray.{name}")

    return refusal


_REFUSED = (
    *("truediv", "rtruediv", "floordiv", "mod", "pow", "rpow", "matmul", "rshift", "iadd", "isub", "imul", "itruediv"),
    *("iand", "ior", "ilshift", "irshift", "array_ufunc", "rmod", "rand", "ror", "rxor"),
)
for _name in _REFUSED:
    setattr(ndarray, f"__{_name}__", _refused(f"__{_name}__"))


def _plain(numbers: list[Any]) -> float:
    total = 0.0
    for one in numbers:
        total += one
    return total


def _no_nan(numbers: list[Any]) -> list[Any]:
    if builtins.any(one != one for one in numbers):
        raise refuse("extremes among NaN")
    return numbers


def from_numbers(numbers: list[Any], kind: dtype, shape: Shape) -> ndarray:
    """An array of Python numbers, rounded and wrapped as the type does."""
    if not kind.char:
        raise refuse(f"numbers of the type {kind.name}")
    if kind.kind in "iu":
        numbers = [wrap(int(one), kind.kind, kind.itemsize) for one in numbers]
    elif kind.kind == "f" and kind.itemsize < 8:
        numbers = [round_to(kind.char, float(one)) for one in numbers]
    elif kind.kind == "b":
        numbers = [bool(one) for one in numbers]
    made = struct.pack(f"{kind.order}{len(numbers)}{kind.char}", *numbers)
    return ndarray(memoryview(bytearray(made)), kind, shape)


def paired(one: ndarray, other: Any) -> tuple[ndarray, ndarray, dtype]:
    """Both as arrays, and the type of what comes of them; only where NumPy's answer is beyond doubt."""
    if not isinstance(other, ndarray):
        if isinstance(other, float) and one.dtype.kind != "f":
            kind = as_dtype(float)
        elif isinstance(other, bool | int | float):
            kind = one.dtype
        else:
            raise refuse(f"an array with {type(other).__name__}")
        # A whole number that the type has not would be an error, or another comparison, in NumPy.
        if kind.kind in "iu" and wrap(int(other), kind.kind, kind.itemsize) != other:
            raise refuse("a number outside its type")
        return one, from_numbers([other], kind, ()), kind
    if one.dtype == other.dtype:
        return one, other, one.dtype
    if one.dtype.kind == other.dtype.kind:
        return one, other, one.dtype if one.itemsize > other.itemsize else other.dtype
    if "b" in (one.dtype.kind, other.dtype.kind):
        return one, other, other.dtype if one.dtype.kind == "b" else one.dtype
    if 8 in (one.itemsize, other.itemsize) and "f" in (one.dtype.kind, other.dtype.kind):
        return one, other, as_dtype(float)
    raise refuse(f"{one.dtype.name} with {other.dtype.name}")


def joint_shape(one: Shape, other: Shape) -> Shape:
    """Of two that are stretched to each other. Raises ValueError where they do not go together."""
    pairs = list(itertools.zip_longest(reversed(one), reversed(other), fillvalue=1))
    if builtins.any(a != b and 1 not in (a, b) for a, b in pairs):
        raise ValueError(f"operands could not be broadcast together with shapes {one} {other}")
    return tuple(reversed([b if a == 1 else a for a, b in pairs]))


def broadcast(array: ndarray, shape: Shape) -> ndarray:
    """The array as if it had this shape."""
    if array.shape == shape:
        return array
    lead = len(shape) - array.ndim
    if lead < 0 or joint_shape(array.shape, shape) != shape:
        raise ValueError(f"could not broadcast {array.shape} into {shape}")
    steps = [0 if own == 1 else step for own, step in zip(array.shape, array.strides, strict=True)]
    return ndarray(array.memory, array.dtype, shape, (*[0] * lead, *steps), array.start)


def _cast(number: Any, old: dtype, new: dtype) -> Any:
    if new.kind in "iu" and isinstance(number, float) and not math.isfinite(number):
        raise refuse("whole numbers of what is not finite")
    return number


def _swapped(raw: memoryview, size: int, kind: str) -> bytearray:
    """Each element's bytes the other way round; of a complex number each half."""
    made, width = bytearray(len(raw)), size // 2 if kind == "c" else size
    for byte in range(width):
        made[byte::width] = raw[width - 1 - byte :: width]
    return made


def _runs(array: ndarray) -> tuple[list[int], int, int, int]:
    """(starts, count, step): runs along the axis that is longest, so that few of them are copied one by one; and which
    axis that is."""
    axis = builtins.max(range(array.ndim), key=lambda i: array.shape[i])
    starts = [array.start]
    for other, (size, step) in enumerate(zip(array.shape, array.strides, strict=True)):
        if other != axis:
            starts = [start + i * step for start in starts for i in range(size)]
    return starts, array.shape[axis], array.strides[axis], axis


def _gather(array: ndarray, made: bytearray) -> None:
    """Strided elements into row-major bytes, one slice for each byte of each run."""
    if not array.size:
        return
    to = ndarray(memoryview(made), array.dtype, array.shape)
    _copy(array, to, made, bytes_of(array))


def _scatter(place: ndarray, value: ndarray) -> None:
    if not place.size:
        return
    if value.memory.obj is place.memory.obj and value.size > 1:
        value = value.copy()
    _copy(value, place, place.memory, value.memory)


def bytes_of(array: ndarray) -> memoryview:
    return array.memory


def _copy(source: ndarray, target: ndarray, made: Any, raw: memoryview) -> None:
    size = source.itemsize
    if not source.shape:
        made[target.start : target.start + size] = raw[source.start : source.start + size]
        return
    starts, count, step, axis = _runs(source)
    there = [target.start]
    for other, (n, own) in enumerate(zip(target.shape, target.strides, strict=True)):
        if other != axis:
            there = [start + i * own for start in there for i in range(n)]
    by = target.strides[axis]
    for start, to in zip(starts, there, strict=True):
        if step == by == size:
            made[to : to + count * size] = raw[start : start + count * size]
            continue
        for byte in range(size):
            piece = (
                bytes(raw[start + byte : start + byte + 1]) * count
                if not step
                else _slice(raw, start + byte, step, count)
            )
            if by > 0:
                made[to + byte : to + byte + (count - 1) * by + 1 : by] = bytes(piece)
            else:
                raise refuse("writing along negative steps")


def _slice(raw: memoryview, start: int, step: int, count: int) -> Any:
    last = start + (count - 1) * step
    if step > 0:
        return raw[start : last + 1 : step]
    return raw[last : start + 1 : -step][::-1]
