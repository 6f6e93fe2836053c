"""The arrays of `joblib.dump`: their bytes, or a whole pickle, lie in the stream behind the BUILD of a stand-in object.

joblib reads them when the object under BUILD is its NumpyArrayWrapper. pickle.load knows nothing of that and runs on
into the same bytes as opcodes, so both readings are followed: the first makes the array, of the second only the names
count. What is not as joblib writes it ends the reading, since from there on nobody knows what joblib would run.
Source: joblib/numpy_pickle.py (NumpyArrayWrapper.read_array, NumpyUnpickler.load_build).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from inspector.checkpoint.types import GlobalVerdict
from inspector.readers.unpickle.globals.verdicts import judge
from inspector.readers.unpickle.machine.machine import CALL_NBYTES, PAIR_NBYTES, Handler, Machine, Outcome, Semantics
from inspector.readers.unpickle.machine.opcodes import OPCODES, TABLE
from inspector.readers.unpickle.machine.stream import Broken, OverLimit
from inspector.readers.unpickle.meanings.arrays import array_of, note_class
from inspector.readers.unpickle.nested.encoded import LONG, may_hide_pickle
from inspector.readers.unpickle.stand_ins import (
    NOT_UNDERSTOOD,
    WRAPPERS,
    Call,
    GlobalRef,
    Mapping,
    Meaning,
    NumpyDtype,
    WrappedArray,
    text_of,
)

_KEYS = frozenset({"subclass", "shape", "order", "dtype", "allow_mmap"})
_ALIGNMENT = "numpy_array_alignment_bytes"  # Since joblib 1.2.
_MOST_DIMENSIONS = 64
_MOST_LENGTH = 1 << 62
_FIXED = {
    "b1": 1,
    "i1": 1,
    "i2": 2,
    "i4": 4,
    "i8": 8,
    "u1": 1,
    "u2": 2,
    "u4": 4,
    "u8": 8,
    "f2": 2,
    "f4": 4,
    "f8": 8,
    "f12": 12,
    "f16": 16,
    "c8": 8,
    "c16": 16,
    "c24": 24,
    "c32": 32,
    "M8": 8,
    "m8": 8,
}
_SIZED = re.compile(r"([SUV])([1-9][0-9]{0,8})")
_HAS_OBJECTS = 1  # NPY_ITEM_HASOBJECT, which numpy takes from the state that BUILD sets.
_IMPORTABLE = re.compile(r"[A-Za-z_][\w.]*")
_ASTRAY_STEPS = 1_000_000
_MOST_ASTRAY_STEPS = 3_000_000
_MOST_COPIED = 50_000_000
_FIRST_NBYTES = 512

# Follows the pickle of an array of objects from a byte on, and keeps its names.
Follow = Callable[[int], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrapped:
    """What a wrapper says of its array. objects: its elements are a pickle of their own."""

    subclass: GlobalRef
    shape: tuple[int, ...]
    fortran: bool
    dtype: NumpyDtype
    nbytes: int
    objects: bool
    aligned: bool


@dataclass(slots=True, kw_only=True)
class WrappedArrays:
    """Reads the arrays of one pickle. read: how many, by the name of the class that stood for them.

    astray: (where, outcome) of what another unpickler would run in their stead.
    """

    follow: Follow
    read: Counter[str] = field(default_factory=Counter)
    astray: list[tuple[str, Outcome]] = field(default_factory=list)
    steps: int = _MOST_ASTRAY_STEPS
    slots: int = _MOST_COPIED

    @property
    def meanings(self) -> dict[str, Meaning]:
        """For the machine that is to know the wrapper."""

        def meaning(name: str) -> Meaning:
            return lambda args: NOT_UNDERSTOOD if args else WrappedArray(name)

        return {name: meaning(name) for name in WRAPPERS}

    def __call__(self, m: Machine, target: object, state: object) -> object:
        """What joblib puts in the place of the object that BUILD has just filled. Raises Broken."""
        if not isinstance(target, WrappedArray):
            if isinstance(target, Call) and _may_be_wrapper(m, target):
                raise Broken(f"the object at byte {m.position - 1:,} may be an array of joblib, made in an unusual way")
            return target
        at = m.position
        try:
            array = _parsed(m, target, state)
        except _Unlike as unlike:
            raise Broken(f"the array of joblib at byte {at:,} is not as joblib writes it: {unlike}") from None
        target.built = True
        if array.objects:
            self._go_astray(m, at, "pickle.load", most=m.limits.opcodes)
            made = self._of_objects(m, at)
        else:
            if array.nbytes or array.aligned:
                self._go_astray(m, at, "pickle.load")
            made = _of_bytes(m, array)
            if array.aligned:
                # It takes the padding for the first elements, and the last elements for opcodes.
                self._go_astray(m, at + array.nbytes, "joblib before 1.2")
        self.read[target.name] += 1
        note_class(array.subclass)
        return made

    def _of_objects(self, m: Machine, at: int) -> object:
        outcome = self.follow(at)
        if outcome.broken:
            problem = f"the array of objects at byte {at:,} is a pickle that cannot be followed: {outcome.broken}"
            raise OverLimit(problem) if outcome.over_limit else Broken(problem)
        if outcome.end < outcome.frame_end:
            raise Broken(f"the pickle of the array of objects at byte {at:,} ends inside a frame")
        m.skip(outcome.end - at)
        return outcome.value

    def _go_astray(self, m: Machine, at: int, whom: str, most: int = _ASTRAY_STEPS) -> None:
        """Follow another unpickler that reads opcodes where an array lies, and keep the names that it would run."""
        if at >= m.whole or m.source.read(at, 1)[0] not in OPCODES:
            return
        self.slots -= len(m.stack) + sum(map(len, m.below)) + len(m.sparse)
        if self.slots < 0 or self.steps <= 0:
            raise OverLimit("the bytes of too many arrays can be read as opcodes of a pickle")
        n = len(m.memo)
        run = _Astray(m, at, min(most, self.steps) if most <= _ASTRAY_STEPS else most)
        outcome = run.run(_ASTRAY_TABLE)
        run.undo(m.memo, n)
        if most <= _ASTRAY_STEPS:
            self.steps -= outcome.opcodes
        if outcome.over_limit:
            raise OverLimit(f"the bytes of the array at byte {at:,} are opcodes of a pickle too: {outcome.broken}")
        uses = {
            key: use
            for key, use in outcome.uses.items()
            if f"{use.module}.{use.name}" not in WRAPPERS
            and (use.calls or judge(use.module, use.name)[0] is GlobalVerdict.DANGEROUS)
        }
        if uses:
            place = f"the array at byte {at:,}: numbers to joblib, opcodes to {whom}"
            self.astray.append((place, replace(outcome, uses=uses, value=None, nbytes=0)))


def _may_be_wrapper(m: Machine, target: Call) -> bool:
    """Whether an object that was made in another way than joblib's own could be a wrapper all the same."""
    if type(target.callee) is GlobalRef:
        if not target.args:
            return False
        if target.callee.full in WRAPPERS:
            return True
        return isinstance(target.args, tuple) and any(_is_wrapper(arg) for arg in target.args)
    return any(ref.full in WRAPPERS for ref in m.refs.values())


def _is_wrapper(arg: object) -> bool:
    if isinstance(arg, tuple | list):
        return any(isinstance(item, WrappedArray | GlobalRef) and _is_wrapper(item) for item in arg)
    return isinstance(arg, WrappedArray) or (type(arg) is GlobalRef and arg.full in WRAPPERS)


class _Unlike(Exception):
    """What joblib does not write, in a few words."""


def _parsed(m: Machine, target: WrappedArray, state: object) -> _Wrapped:
    """What the state says, every part of it checked."""
    if target.built:
        raise _Unlike("it is filled a second time")
    if m.oddities:
        raise _Unlike("a step before it makes no sense")
    if m.position < m.frame_end:
        raise _Unlike("it lies inside a frame")
    if not isinstance(state, Mapping) or state.kind != "dict" or state.attributes is not None:
        raise _Unlike(f"its state is {text_of(state, 40)}")
    values = {key: value for key, value in state.pairs if type(key) is str}
    if len(values) != len(state.pairs) or values.keys() - {_ALIGNMENT} != _KEYS:
        raise _Unlike(f"its attributes are {text_of(tuple(key for key, _ in state.pairs[:8]), 120)}")
    subclass, shape, dtype = values["subclass"], values["shape"], values["dtype"]
    alignment, mapped = values.get(_ALIGNMENT), values["allow_mmap"]
    if not isinstance(subclass, GlobalRef) or values["order"] not in ("C", "F") or type(mapped) is not bool:
        raise _Unlike("its class, order or allow_mmap is something else")
    if alignment is not None and type(alignment) is not int:
        raise _Unlike(f"its alignment is {text_of(alignment, 40)}")
    if type(shape) is not tuple or len(shape) > _MOST_DIMENSIONS:
        raise _Unlike(f"its shape is {text_of(shape, 60)}")
    sizes = tuple(n for n in shape if type(n) is int and 0 <= n < _MOST_LENGTH)
    if len(sizes) != len(shape):
        raise _Unlike(f"its shape is {text_of(shape, 60)}")
    if not isinstance(dtype, NumpyDtype):
        raise _Unlike(f"its dtype is {text_of(dtype, 60)}")
    itemsize, objects = _itemsize(dtype)
    if objects and mapped:
        raise _Unlike("it holds Python objects and allows a memory map of them")
    return _Wrapped(
        subclass=subclass, shape=sizes, fortran=values["order"] == "F", dtype=dtype,
        nbytes=math.prod(sizes) * itemsize, objects=objects, aligned=alignment is not None,
    )  # fmt: skip


def _itemsize(dtype: NumpyDtype) -> tuple[int, bool]:
    """Bytes of one element, and whether it has Python objects in it: by the code and by what BUILD set, which agree.

    numpy believes the state: it can turn any dtype into one with objects, and lengthen texts.
    """
    state, code = dtype.state, dtype.code
    if len(state) not in (8, 9) or state[0] not in (3, 4):
        raise _Unlike(f"its dtype {code[:20]} has a state that is not numpy's")
    subdtype, names, fields, nbytes, _, flags = state[2:8]
    if type(nbytes) is not int or type(flags) is not int or subdtype is not None:
        raise _Unlike(f"its dtype {code[:20]} has a state that is not numpy's")
    objects = bool(flags & _HAS_OBJECTS)
    plain = names is None and fields is None
    sized = _SIZED.fullmatch(code)
    if sized:
        size = int(sized[2]) * (4 if sized[1] == "U" else 1)
        if nbytes == size and ((plain and not objects) or (sized[1] == "V" and not plain)):
            return size, objects
    elif plain and (objects if code in ("O", "O4", "O8") else code in _FIXED and not objects):
        return _FIXED.get(code, 8), objects
    raise _Unlike(f"its dtype {code[:20]} is not known here, or its state does not fit it")


def _of_bytes(m: Machine, array: _Wrapped) -> object:
    """The array over the bytes that follow."""
    if array.aligned:
        padding = m.take(m.take(1)[0])
        if padding.strip(b"\xff"):
            raise Broken(f"the padding before byte {m.position:,} is not as joblib writes it")
    at, n = m.position, array.nbytes
    if at + n > m.whole:
        raise Broken(f"the stream ends at byte {m.whole:,}, inside an array of {n:,} bytes at byte {at:,}")
    if n < m.keep_below:
        data: object = m.take(n)
        m.spent += 120 + n
    else:
        data = m.skip(n)
    made = array_of(array.subclass.full, array.dtype, array.shape, fortran=array.fortran, data=data)
    if made is None:
        raise Broken(f"the {n:,} bytes at byte {at:,} are no array of joblib")
    if may_hide_pickle(m.source.read(at, min(n, LONG))):
        m.watch(data)
    return made


class _Astray(Machine):
    """Another unpickler on its way through the bytes of an array.

    It starts from what another machine has made so far, changes nothing of that but how often names are called, and
    keeps no values.
    """

    def __init__(self, m: Machine, at: int, steps: int) -> None:
        limits = replace(m.limits, opcodes=steps, pickle_nbytes=m.whole - at)
        super().__init__(m.source, at, m.whole, limits=limits, semantics=Semantics(meanings={}, build=_no_build))
        self.stack = list(m.stack)
        self.below = [list(items) for items in m.below]
        self.slots_below = m.slots_below
        # The memo may be long: it is lent, and what is written into it is undone.
        self.memo, self.sparse = m.memo, dict(m.sparse)
        self.overwritten: list[tuple[int, object]] = []
        self._chunk = _FIRST_NBYTES

    def undo(self, memo: list[object], n: int) -> None:
        for index, item in reversed(self.overwritten):
            memo[index] = item
        del memo[n:]

    def remember(self, index: int) -> None:
        if 0 <= index < len(self.memo):
            self.overwritten.append((index, self.memo[index]))
            self.spend(PAIR_NBYTES)
        super().remember(index)

    def take(self, n: int) -> bytes:
        if self.position + n > self.stop:
            raise Broken("the stream ends")  # Numbers that begin like a text are no text that is too long.
        if n > self.limits.text_nbytes:
            self.skip(n)
            return b""
        return super().take(n)

    def line(self) -> bytes:
        try:
            return super().line()
        except OverLimit:
            if self.opcode in b"ci":
                raise Broken("a name of a megabyte") from None
            raise

    def ref(self, module: str, name: str) -> GlobalRef:
        if not _IMPORTABLE.fullmatch(f"{module}.{name}"):
            raise Broken("a name that nothing has")  # A real one stops there, too.
        return super().ref(module, name)

    def call(self, callee: object, args: object, how: str, kwargs: object = None) -> object:
        if not isinstance(callee, GlobalRef | Call):
            raise Broken("a call of what cannot be called")
        self.made += 1
        self.spent += CALL_NBYTES
        # A wrapper that another unpickler makes is only an object; what counts its arrays must not see it.
        if type(callee) is GlobalRef and callee.full not in WRAPPERS:
            callee.use.calls += 1
            callee.use.arguments = callee.use.arguments or text_of(args, 200)
        return Call(callee, None, how)

    def watch(self, constant: object, callee: str = "") -> None:
        return

    def add_items(self, target: object, items: list[object]) -> None:
        return

    def add_pairs(self, target: object, flat: list[object]) -> None:
        return

    def odd_target(self, target: object) -> None:
        return


def _no_build(target: object, state: object) -> bool:
    return False


def _build(m: Machine) -> None:
    m.stack.pop()
    if type(m.stack[-1]) is GlobalRef:
        m.stack[-1].use.altered = True


_ASTRAY_TABLE: tuple[Handler, ...] = tuple(_build if code == ord("b") else TABLE[code] for code in range(256))
