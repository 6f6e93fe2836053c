"""A pickle machine that executes nothing.

All 68 opcodes of protocols 0 to 5 as documented in CPython's `pickletools`, on a stack of inert records. Nothing is
imported, called or looked up in copyreg; the memo is sparse; every length is checked against the bytes left before it
is believed. A stream that breaks still gives what was on the stack and every global named so far, because a real
unpickler has run those by then.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from inspector.checkpoint.source import ByteSource
from inspector.limits import Limits
from inspector.readers.unpickle.stand_ins import (
    NOT_UNDERSTOOD,
    ArrayStub,
    BytesAt,
    Call,
    GlobalRef,
    Group,
    Mapping,
    Meaning,
    NumpyDtype,
    PersistentRef,
    TensorStub,
    Use,
    text_of,
)
from inspector.readers.unpickle.stream import Broken, OverLimit, Window

_BLOCK = 4096
_PYTHON_2 = {"__builtin__": "builtins", "copy_reg": "copyreg", "cPickle": "_pickle", "exceptions": "builtins"}
# A pickle may name any attribute of `torch.tensor`; torch.load itself renames the module (torch/serialization.py).
_RENAMED = {"torch.tensor": "torch._tensor"}

Persistent = Callable[[object], object]
Build = Callable[[object, object], bool]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What one pickle held.

    value: the object on top at STOP, or the lowest one on the stack of a broken stream. end: offset after STOP.
    broken: why the stream could not be followed to its end, "" when it could. protocol: highest announced.
    oddities: operations that a real unpickler would refuse.
    """

    value: object
    end: int
    uses: dict[tuple[str, str], Use]
    broken: str
    over_limit: bool
    protocol: int
    opcodes: int
    oddities: int


class _Stop(Exception):
    """STOP was reached."""


class Machine(Window):
    """Runs one pickle. One machine, one run."""

    def __init__(
        self,
        source: ByteSource,
        start: int,
        stop: int,
        *,
        limits: Limits,
        meanings: MappingABC[str, Meaning],
        build: Build,
        persistent: Persistent = PersistentRef,
        keep_below: int = 4096,
    ) -> None:
        super().__init__(source, start, stop, limits)
        self.meanings = meanings
        self.build = build
        self.persistent = persistent
        self.keep_below = keep_below
        self.stack: list[object] = []
        self.below: list[list[object]] = []
        self.memo: dict[int, object] = {}
        self.refs: dict[tuple[str, str], GlobalRef] = {}
        self.unplaced: list[Use] = []
        self.protocol = 0
        self.oddities = 0
        self.copied = 0

    def run(self) -> Outcome:
        """Follow the stream to STOP or to where it breaks. Never raises for what the stream contains."""
        broken, over, steps, table = "", False, 0, _TABLE
        budget = self.limits.opcodes
        opcode = 0
        try:
            while True:
                for _ in range(min(_BLOCK, budget - steps)):
                    if self.pos >= len(self.data):
                        self._more(1)
                    opcode = self.data[self.pos]
                    self.pos += 1
                    table[opcode](self)
                steps += _BLOCK
                if steps >= budget:
                    raise OverLimit(f"more than {budget:,} steps")
                if len(self.memo) > self.limits.memo:
                    raise OverLimit(f"more than {self.limits.memo:,} memo entries")
        except _Stop:
            value = self.stack[-1] if self.stack else None
        except IndexError:
            broken = f"opcode 0x{opcode:02x} at byte {self.position - 1:,} needs a value that is not there"
        except OverLimit as problem:
            broken, over = str(problem), True
        except Broken as problem:
            broken = str(problem)
        except (ValueError, OverflowError) as problem:
            broken = f"opcode 0x{opcode:02x} before byte {self.position:,} has an unreadable argument ({problem})"[:300]
        if broken:
            bottom = self.below[0] if self.below else self.stack
            value = bottom[0] if bottom else None
        uses = {key: ref.use for key, ref in self.refs.items()}
        return Outcome(
            value=value,
            end=self.position,
            uses=uses,
            broken=broken,
            over_limit=over,
            protocol=self.protocol,
            opcodes=steps,
            oddities=self.oddities,
        )

    # -- calls that are not made --------------------------------------------------------------------------------

    def ref(self, module: str, name: str) -> GlobalRef:
        key = (module, name)
        found = self.refs.get(key)
        if found is None:
            if len(module) > 1000 or len(name) > 1000:
                raise OverLimit(f"a global name of {len(module) + len(name):,} characters")
            shown = _RENAMED.get(_PYTHON_2.get(module, module), _PYTHON_2.get(module, module))
            use = Use(shown, name)
            found = GlobalRef(shown, name, use, self.meanings.get(f"{shown}.{name}"))
            self.refs[key] = found
            self.unplaced.append(use)
        found.use.count += 1
        return found

    def call(self, callee: object, args: object, how: str, kwargs: object = None) -> object:
        """What stands for callee(*args): a known meaning's record, or an inert Call."""
        result: object = NOT_UNDERSTOOD
        if type(callee) is GlobalRef:
            use = callee.use
            use.calls += 1
            if not use.arguments:
                use.arguments = text_of(args, 200)
            if callee.meaning is not None and type(args) is tuple and kwargs is None and self.affordable(args):
                result = callee.meaning(args)
        if result is NOT_UNDERSTOOD:
            result = Call(callee, args, how, kwargs)
        if type(callee) is GlobalRef and callee.use.calls == 1:
            callee.use.holder = result
        if self.unplaced:
            for use in self.unplaced:
                use.holder = result if use.holder is None else use.holder
            self.unplaced.clear()
        return result

    def affordable(self, args: tuple[object, ...]) -> bool:
        """Whether a meaning may copy these arguments.

        A real file hands every constant over once; a hostile one recalls a long one from the memo again and again, ten
        bytes a time. So all copies together may be about as long as the stream.
        """
        cost = 0
        for arg in args:
            if isinstance(arg, str | bytes | list | tuple):
                cost += len(arg)
            elif isinstance(arg, Mapping):
                cost += len(arg.pairs)
            elif isinstance(arg, Group):
                cost += len(arg.items)
        if cost < 64:
            return True
        self.copied += cost
        return self.copied <= 2 * (self.stop - self.start) + 4096

    def mark(self) -> list[object]:
        """The items above the last MARK, which is taken off."""
        items = self.stack
        if not self.below:
            raise Broken(f"no MARK for the opcode at byte {self.position - 1:,}")
        self.stack = self.below.pop()
        return items

    def add_items(self, target: object, items: list[object]) -> None:
        if type(target) is list:
            target.extend(items)
        elif isinstance(target, Group | Call):
            target.items.extend(items)
        else:
            self.oddities += 1

    def add_pairs(self, target: object, flat: list[object]) -> None:
        if len(flat) % 2:
            raise Broken(f"an odd number of keys and values at byte {self.position:,}")
        if isinstance(target, Mapping | Call):
            target.pairs.extend(zip(flat[::2], flat[1::2], strict=True))
        else:
            self.oddities += 1

    def long_constant(self, n: int) -> object:
        return self.long_bytes(n, keep_below=self.keep_below)


Handler = Callable[[Machine], None]
_TABLE: list[Handler] = []


def _unknown(m: Machine) -> None:
    raise Broken(f"byte {m.position - 1:,} is no pickle opcode (0x{m.data[m.pos - 1]:02x})")


_TABLE.extend([_unknown] * 256)


def _op(code: bytes) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        _TABLE[code[0]] = handler
        return handler

    return register


def _uint(m: Machine, n: int) -> int:
    return int.from_bytes(m.take(n), "little")


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace")


def _python_2_text(raw: bytes) -> object:
    # Python 2 wrote bytes and text alike; what is not ASCII may be array data, so it stays bytes.
    return raw.decode("ascii") if raw.isascii() else raw


# -- framing -----------------------------------------------------------------------------------------------------


@_op(b"\x80")
def _proto(m: Machine) -> None:
    m.protocol = max(m.protocol, _uint(m, 1))


@_op(b"\x95")
def _frame(m: Machine) -> None:
    m.take(8)  # The length is a hint for buffering; believing it gains nothing.


@_op(b".")
def _stop(m: Machine) -> None:
    if not m.stack:
        raise Broken(f"STOP at byte {m.position - 1:,} with nothing on the stack")
    raise _Stop


@_op(b"(")
def _mark(m: Machine) -> None:
    m.below.append(m.stack)
    m.stack = []


@_op(b"0")
def _pop(m: Machine) -> None:
    if m.stack:
        m.stack.pop()
    else:
        m.mark()


@_op(b"1")
def _pop_mark(m: Machine) -> None:
    m.mark()


@_op(b"2")
def _dup(m: Machine) -> None:
    m.stack.append(m.stack[-1])


# -- constants ---------------------------------------------------------------------------------------------------


@_op(b"N")
def _none(m: Machine) -> None:
    m.stack.append(None)


@_op(b"\x88")
def _true(m: Machine) -> None:
    m.stack.append(True)


@_op(b"\x89")
def _false(m: Machine) -> None:
    m.stack.append(False)


@_op(b"I")
def _int(m: Machine) -> None:
    line = m.line()
    m.stack.append(line == b"01" if line in (b"00", b"01") else int(line, 0))


@_op(b"L")
def _long(m: Machine) -> None:
    m.stack.append(int(m.line().removesuffix(b"L"), 0))


@_op(b"J")
def _binint(m: Machine) -> None:
    m.stack.append(int.from_bytes(m.take(4), "little", signed=True))


@_op(b"K")
def _binint1(m: Machine) -> None:
    if m.pos < len(m.data):
        m.stack.append(m.data[m.pos])
        m.pos += 1
    else:
        m.stack.append(m.take(1)[0])


@_op(b"M")
def _binint2(m: Machine) -> None:
    m.stack.append(_uint(m, 2))


@_op(b"\x8a")
def _long1(m: Machine) -> None:
    m.stack.append(int.from_bytes(m.take(_uint(m, 1)), "little", signed=True))


@_op(b"\x8b")
def _long4(m: Machine) -> None:
    n = int.from_bytes(m.take(4), "little", signed=True)
    if n < 0:
        raise Broken("a negative length of an integer")
    m.stack.append(int.from_bytes(m.take(n), "little", signed=True))


@_op(b"F")
def _float(m: Machine) -> None:
    m.stack.append(float(m.line()))


@_op(b"G")
def _binfloat(m: Machine) -> None:
    m.stack.append(struct.unpack(">d", m.take(8))[0])


@_op(b"S")
def _string(m: Machine) -> None:
    line = m.line().strip()
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise Broken(f"a string without quotes before byte {m.position:,}")
    m.stack.append(_python_2_text(_unescape(line[1:-1])))


def _unescape(raw: bytes) -> bytes:
    if b"\\" not in raw:
        return raw
    # latin-1 keeps every byte; unicode_escape reads the escapes; what is above 255 was no byte escape.
    return raw.decode("latin-1").encode("latin-1").decode("unicode_escape").encode("latin-1", "replace")


@_op(b"T")
def _binstring(m: Machine) -> None:
    n = int.from_bytes(m.take(4), "little", signed=True)
    if n < 0:
        raise Broken("a negative length of a string")
    m.stack.append(_python_2_text(m.take(n)))


@_op(b"U")
def _short_binstring(m: Machine) -> None:
    m.stack.append(_python_2_text(m.take(_uint(m, 1))))


@_op(b"V")
def _unicode(m: Machine) -> None:
    m.stack.append(m.line().decode("raw-unicode-escape"))


@_op(b"X")
def _binunicode(m: Machine) -> None:
    m.stack.append(_text(m.take(_uint(m, 4))))


@_op(b"\x8c")
def _short_binunicode(m: Machine) -> None:
    m.stack.append(_text(m.take(_uint(m, 1))))


@_op(b"\x8d")
def _binunicode8(m: Machine) -> None:
    m.stack.append(_text(m.take(_uint(m, 8))))


@_op(b"B")
def _binbytes(m: Machine) -> None:
    m.stack.append(m.long_constant(_uint(m, 4)))


@_op(b"C")
def _short_binbytes(m: Machine) -> None:
    m.stack.append(m.take(_uint(m, 1)))


@_op(b"\x8e")
@_op(b"\x96")
def _binbytes8(m: Machine) -> None:
    m.stack.append(m.long_constant(_uint(m, 8)))


@_op(b"\x97")
def _next_buffer(m: Machine) -> None:
    # The bytes are handed over beside the stream (pickle 5, out of band), so they are not in this file.
    m.stack.append(Group("out-of-band buffer"))


@_op(b"\x98")
def _readonly_buffer(m: Machine) -> None:
    if not m.stack:
        raise Broken("READONLY_BUFFER with nothing on the stack")


# -- containers --------------------------------------------------------------------------------------------------


@_op(b")")
def _empty_tuple(m: Machine) -> None:
    m.stack.append(())


@_op(b"t")
def _tuple(m: Machine) -> None:
    items = m.mark()
    m.stack.append(tuple(items))


@_op(b"\x85")
def _tuple1(m: Machine) -> None:
    m.stack[-1] = (m.stack[-1],)


def _last(m: Machine, n: int) -> tuple[object, ...]:
    if len(m.stack) < n:
        raise Broken(f"the opcode at byte {m.position - 1:,} needs {n} values and finds {len(m.stack)}")
    items = tuple(m.stack[-n:])
    del m.stack[-n:]
    return items


@_op(b"\x86")
def _tuple2(m: Machine) -> None:
    m.stack.append(_last(m, 2))


@_op(b"\x87")
def _tuple3(m: Machine) -> None:
    m.stack.append(_last(m, 3))


@_op(b"]")
def _empty_list(m: Machine) -> None:
    m.stack.append([])


@_op(b"l")
def _list(m: Machine) -> None:
    items = m.mark()
    m.stack.append(items)


@_op(b"}")
def _empty_dict(m: Machine) -> None:
    m.stack.append(Mapping())


@_op(b"d")
def _dict(m: Machine) -> None:
    items = m.mark()
    made = Mapping()
    m.add_pairs(made, items)
    m.stack.append(made)


@_op(b"\x8f")
def _empty_set(m: Machine) -> None:
    m.stack.append(Group("set"))


@_op(b"\x91")
def _frozenset(m: Machine) -> None:
    items = m.mark()
    m.stack.append(Group("frozenset", items))


@_op(b"a")
def _append(m: Machine) -> None:
    item = m.stack.pop()
    m.add_items(m.stack[-1], [item])


@_op(b"e")
@_op(b"\x90")
def _appends(m: Machine) -> None:
    items = m.mark()
    m.add_items(m.stack[-1], items)


@_op(b"s")
def _setitem(m: Machine) -> None:
    pair = _last(m, 2)
    m.add_pairs(m.stack[-1], list(pair))


@_op(b"u")
def _setitems(m: Machine) -> None:
    items = m.mark()
    m.add_pairs(m.stack[-1], items)


# -- memo --------------------------------------------------------------------------------------------------------


@_op(b"p")
def _put(m: Machine) -> None:
    m.memo[int(m.line())] = m.stack[-1]


@_op(b"q")
def _binput(m: Machine) -> None:
    if m.pos < len(m.data):
        m.memo[m.data[m.pos]] = m.stack[-1]
        m.pos += 1
    else:
        m.memo[m.take(1)[0]] = m.stack[-1]


@_op(b"r")
def _long_binput(m: Machine) -> None:
    m.memo[_uint(m, 4)] = m.stack[-1]


@_op(b"\x94")
def _memoize(m: Machine) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


def _recall(m: Machine, index: int) -> None:
    try:
        m.stack.append(m.memo[index])
    except KeyError:
        raise Broken(f"memo entry {index} is used before byte {m.position:,} but was never made") from None


@_op(b"g")
def _get(m: Machine) -> None:
    _recall(m, int(m.line()))


@_op(b"h")
def _binget(m: Machine) -> None:
    _recall(m, m.take(1)[0])


@_op(b"j")
def _long_binget(m: Machine) -> None:
    _recall(m, _uint(m, 4))


# -- globals and calls -------------------------------------------------------------------------------------------


@_op(b"c")
def _global(m: Machine) -> None:
    module, name = _text(m.line()), _text(m.line())
    m.stack.append(m.ref(module, name))


@_op(b"\x93")
def _stack_global(m: Machine) -> None:
    module, name = _last(m, 2)
    if type(module) is str and type(name) is str:
        m.stack.append(m.ref(module, name))
        return
    # A real unpickler refuses names that are not text; ours goes on, so that nothing after it stays hidden.
    m.oddities += 1
    m.stack.append(m.ref(text_of(module, 60), text_of(name, 60)))


@_op(b"R")
def _reduce(m: Machine) -> None:
    args = m.stack.pop()
    m.stack[-1] = m.call(m.stack[-1], args, "reduce")


@_op(b"\x81")
def _newobj(m: Machine) -> None:
    args = m.stack.pop()
    m.stack[-1] = m.call(m.stack[-1], args, "new")


@_op(b"\x92")
def _newobj_ex(m: Machine) -> None:
    kwargs, args = m.stack.pop(), m.stack.pop()
    empty = isinstance(kwargs, Mapping) and not kwargs.pairs
    m.stack[-1] = m.call(m.stack[-1], args, "new", None if empty else kwargs)


@_op(b"i")
def _inst(m: Machine) -> None:
    module, name = _text(m.line()), _text(m.line())
    args = tuple(m.mark())
    m.stack.append(m.call(m.ref(module, name), args, "new"))


@_op(b"o")
def _obj(m: Machine) -> None:
    items = m.mark()
    if not items:
        raise Broken(f"OBJ at byte {m.position - 1:,} without a class")
    m.stack.append(m.call(items[0], tuple(items[1:]), "new"))


@_op(b"b")
def _build(m: Machine) -> None:
    state = m.stack.pop()
    target = m.stack[-1]
    if isinstance(target, Call):
        target.states.append(state)
    elif isinstance(target, Mapping):
        target.attributes = state
    elif not (isinstance(target, TensorStub | ArrayStub | NumpyDtype | GlobalRef) and _built(m, target, state)):
        m.oddities += 1
        if isinstance(target, TensorStub | ArrayStub):
            target.extra.append(state)
        elif isinstance(target, GlobalRef):
            m.stack[-1] = Call(target, (), "build", states=[state])


def _built(m: Machine, target: object, state: object) -> bool:
    return isinstance(state, tuple) and m.affordable(state) and m.build(target, state)


def _extension(m: Machine, code: int) -> None:
    # What a code means is in the process-wide copyreg table of whoever loads the file; here it is only named.
    m.stack.append(m.ref("copyreg extension", str(code)))


@_op(b"\x82")
def _ext1(m: Machine) -> None:
    _extension(m, _uint(m, 1))


@_op(b"\x83")
def _ext2(m: Machine) -> None:
    _extension(m, _uint(m, 2))


@_op(b"\x84")
def _ext4(m: Machine) -> None:
    _extension(m, _uint(m, 4))


@_op(b"P")
def _persid(m: Machine) -> None:
    m.stack.append(m.persistent(_text(m.line())))


@_op(b"Q")
def _binpersid(m: Machine) -> None:
    m.stack[-1] = m.persistent(m.stack[-1])


OPCODES = frozenset(code for code, handler in enumerate(_TABLE) if handler is not _unknown)
__all__ = ["OPCODES", "BytesAt", "Machine", "Outcome"]
