"""The opcodes that push a constant: numbers, text and bytes of protocols 0 to 5 (CPython's `pickletools`)."""

from __future__ import annotations

import struct
from sys import getsizeof

from inspector.readers.unpickle.machine.machine import (
    MAPPING_NBYTES,
    Handler,
    Machine,
    read_text,
    read_uint,
    registrar,
)
from inspector.readers.unpickle.machine.steps import NUMBER_NBYTES
from inspector.readers.unpickle.machine.stream import Broken
from inspector.readers.unpickle.nested.encoded import LEAST, may_hide_pickle
from inspector.readers.unpickle.stand_ins import Group

CONSTANTS: dict[int, Handler] = {}
_op = registrar(CONSTANTS)


def _push(m: Machine, constant: object) -> None:
    """A constant whose size the file decides."""
    m.spent += getsizeof(constant)
    m.stack.append(constant)
    if type(constant) is str and len(constant) >= LEAST:
        m.watch_text(constant)


def _number(m: Machine, number: float) -> None:
    m.spent += NUMBER_NBYTES
    m.stack.append(number)


def _python_2_text(raw: bytes) -> object:
    # Python 2 wrote bytes and text alike; what is not ASCII may be array data, so it stays bytes.
    return raw.decode("ascii") if raw.isascii() else raw


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
    _push(m, line == b"01" if line in (b"00", b"01") else int(line, 0))


@_op(b"L")
def _long(m: Machine) -> None:
    _push(m, int(m.line().removesuffix(b"L"), 0))


@_op(b"J")
def _binint(m: Machine) -> None:
    _number(m, int.from_bytes(m.take(4), "little", signed=True))


@_op(b"K")
def _binint1(m: Machine) -> None:
    m.stack.append(m.take(1)[0])


@_op(b"M")
def _binint2(m: Machine) -> None:
    _number(m, int.from_bytes(m.take(2), "little"))


@_op(b"\x8a")
def _long1(m: Machine) -> None:
    _push(m, int.from_bytes(m.take(read_uint(m, 1)), "little", signed=True))


@_op(b"\x8b")
def _long4(m: Machine) -> None:
    n = int.from_bytes(m.take(4), "little", signed=True)
    if n < 0:
        raise Broken("a negative length of an integer")
    _push(m, int.from_bytes(m.take(n), "little", signed=True))


@_op(b"F")
def _float(m: Machine) -> None:
    _number(m, float(m.line()))


@_op(b"G")
def _binfloat(m: Machine) -> None:
    _number(m, struct.unpack(">d", m.take(8))[0])


@_op(b"S")
def _string(m: Machine) -> None:
    line = m.line().strip()
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise Broken(f"a string without quotes before byte {m.position:,}")
    _push(m, _python_2_text(_unescape(line[1:-1])))


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
    _push(m, _python_2_text(m.take(n)))


@_op(b"U")
def _short_binstring(m: Machine) -> None:
    _push(m, _python_2_text(m.take(m.take(1)[0])))


@_op(b"V")
def _unicode(m: Machine) -> None:
    # The escapes may spell half a surrogate pair; see machine.read_text.
    _push(m, m.line().decode("raw-unicode-escape").encode("utf-8", "backslashreplace").decode("utf-8"))


@_op(b"X")
def _binunicode(m: Machine) -> None:
    _push(m, read_text(m.take(int.from_bytes(m.take(4), "little"))))


@_op(b"\x8c")
def _short_binunicode(m: Machine) -> None:
    _push(m, read_text(m.take(m.take(1)[0])))


@_op(b"\x8d")
def _binunicode8(m: Machine) -> None:
    _push(m, read_text(m.take(read_uint(m, 8))))


@_op(b"B")
def _binbytes(m: Machine) -> None:
    m.stack.append(m.long_constant(read_uint(m, 4)))


@_op(b"C")
def _short_binbytes(m: Machine) -> None:
    raw = m.take(m.take(1)[0])
    _push(m, raw)
    if may_hide_pickle(raw[:100]):
        m.watch(raw)


@_op(b"\x8e")
@_op(b"\x96")
def _binbytes8(m: Machine) -> None:
    m.stack.append(m.long_constant(read_uint(m, 8)))


@_op(b"\x97")
def _next_buffer(m: Machine) -> None:
    # The bytes are handed over beside the stream (pickle 5, out of band), so they are not in this file.
    m.spent += MAPPING_NBYTES
    m.stack.append(Group("out-of-band buffer"))


@_op(b"\x98")
def _readonly_buffer(m: Machine) -> None:
    if not m.stack:
        raise Broken("READONLY_BUFFER with nothing on the stack")
