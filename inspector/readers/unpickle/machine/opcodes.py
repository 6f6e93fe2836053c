"""All 68 opcodes as one table: framing, containers, memo, globals and calls here, constants from their own file.

Source: CPython's `pickletools` and `pickle._Unpickler`, for what each opcode takes off the stack and puts on it.
"""

from __future__ import annotations

from inspector.readers.unpickle.machine.constant_opcodes import CONSTANTS
from inspector.readers.unpickle.machine.machine import (
    CALL_NBYTES,
    LIST_NBYTES,
    MAPPING_NBYTES,
    PERSISTENT_NBYTES,
    SLOT_NBYTES,
    Handler,
    Machine,
    Stop,
    read_text,
    read_uint,
    registrar,
)
from inspector.readers.unpickle.machine.operands import TORCHS
from inspector.readers.unpickle.machine.steps import MARK_NBYTES, TUPLE_NBYTES
from inspector.readers.unpickle.machine.stream import Broken
from inspector.readers.unpickle.stand_ins import (
    ArrayStub,
    Call,
    GlobalRef,
    Group,
    Mapping,
    Named,
    NumpyDtype,
    TensorStub,
    WrappedArray,
    text_of,
)

_NAME_NBYTES = 200
_HERE: dict[int, Handler] = {}
_op = registrar(_HERE)


def _unknown(m: Machine) -> None:
    raise Broken(f"byte {m.position - 1:,} is no pickle opcode (0x{m.data[m.pos - 1]:02x})")


# -- framing -----------------------------------------------------------------------------------------------------


@_op(b"\x80")
def _proto(m: Machine) -> None:
    m.protocol = max(m.protocol, read_uint(m, 1))


@_op(b"\x95")
def _frame(m: Machine) -> None:
    # A hint for buffering, which says nothing about the opcodes; only joblib's arrays lie behind a frame, never in it.
    m.frame_end = read_uint(m, 8) + m.position


@_op(b".")
def _stop(m: Machine) -> None:
    if not m.stack:
        raise Broken(f"STOP at byte {m.position - 1:,} with nothing on the stack")
    raise Stop


@_op(b"(")
def _mark(m: Machine) -> None:
    m.spent += MARK_NBYTES
    m.slots_below += len(m.stack)
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


# -- containers --------------------------------------------------------------------------------------------------


@_op(b")")
def _empty_tuple(m: Machine) -> None:
    m.stack.append(())


@_op(b"t")
def _tuple(m: Machine) -> None:
    items = m.mark()
    m.spend(TUPLE_NBYTES + 8 * len(items))
    m.stack.append(tuple(items))


@_op(b"\x85")
def _tuple1(m: Machine) -> None:
    m.spent += TUPLE_NBYTES + 8
    m.stack[-1] = (m.stack[-1],)


def _last(m: Machine, n: int) -> tuple[object, ...]:
    if len(m.stack) < n:
        raise Broken(f"the opcode at byte {m.position - 1:,} needs {n} values and finds {len(m.stack)}")
    m.spent += TUPLE_NBYTES + 8 * n
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
    m.made += 1
    m.spent += LIST_NBYTES
    m.stack.append([])


@_op(b"l")
def _list(m: Machine) -> None:
    items = m.mark()
    m.spent += LIST_NBYTES + SLOT_NBYTES * len(items)
    m.stack.append(items)


@_op(b"}")
def _empty_dict(m: Machine) -> None:
    m.made += 1
    m.spent += MAPPING_NBYTES
    m.stack.append(Mapping())


@_op(b"d")
def _dict(m: Machine) -> None:
    items = m.mark()
    made = Mapping()
    m.spent += MAPPING_NBYTES
    m.add_pairs(made, items)
    m.stack.append(made)


@_op(b"\x8f")
def _empty_set(m: Machine) -> None:
    m.spent += MAPPING_NBYTES
    m.stack.append(Group("set"))


@_op(b"\x91")
def _frozenset(m: Machine) -> None:
    items = m.mark()
    m.spent += MAPPING_NBYTES + SLOT_NBYTES * len(items)
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
    value, key = m.stack.pop(), m.stack.pop()
    m.add_pairs(m.stack[-1], [key, value])


@_op(b"u")
def _setitems(m: Machine) -> None:
    items = m.mark()
    m.add_pairs(m.stack[-1], items)


# -- memo --------------------------------------------------------------------------------------------------------


@_op(b"p")
def _put(m: Machine) -> None:
    m.remember(int(m.line()))


@_op(b"q")
def _binput(m: Machine) -> None:
    m.remember(m.take(1)[0])


@_op(b"r")
def _long_binput(m: Machine) -> None:
    m.remember(int.from_bytes(m.take(4), "little"))


@_op(b"\x94")
def _memoize(m: Machine) -> None:
    m.remember(len(m.memo) + len(m.sparse))


def _recall(m: Machine, index: int) -> None:
    if 0 <= index < len(m.memo):
        m.stack.append(m.memo[index])
    elif index in m.sparse:
        m.stack.append(m.sparse[index])
    else:
        raise Broken(f"memo entry {index} is used before byte {m.position:,} but was never made")


@_op(b"g")
def _get(m: Machine) -> None:
    _recall(m, int(m.line()))


@_op(b"h")
def _binget(m: Machine) -> None:
    _recall(m, m.take(1)[0])


@_op(b"j")
def _long_binget(m: Machine) -> None:
    _recall(m, int.from_bytes(m.take(4), "little"))


# -- globals and calls -------------------------------------------------------------------------------------------


@_op(b"c")
def _global(m: Machine) -> None:
    module = read_text(m.line())
    try:
        name = m.line()
    except Broken:
        # The file ends inside the name: what there is of it is told all the same.
        rest = m.data[m.pos :][:_NAME_NBYTES]
        if rest:
            m.ref(module, read_text(rest))
        raise
    m.stack.append(m.ref(module, read_text(name)))


@_op(b"\x93")
def _stack_global(m: Machine) -> None:
    module, name = _last(m, 2)
    if type(module) is str and type(name) is str:
        m.stack.append(m.ref(module, name))
        return
    # A real unpickler refuses names that are not text; ours goes on, so that nothing after it stays hidden.
    m.oddities += 1
    m.stack.append(m.ref(_as_name(module), _as_name(name)))


def _as_name(item: object) -> str:
    """What a lenient loader would take for a name: bytes are the text of Python 2."""
    return item.decode("latin-1") if isinstance(item, bytes) else text_of(item, 60)


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
    module, name = read_text(m.line()), read_text(m.line())
    args = tuple(m.mark())
    m.spent += TUPLE_NBYTES + 8 * len(args)
    m.stack.append(m.call(m.ref(module, name), args, "new"))


@_op(b"o")
def _obj(m: Machine) -> None:
    items = m.mark()
    if not items:
        raise Broken(f"OBJ at byte {m.position - 1:,} without a class")
    m.spent += TUPLE_NBYTES + 8 * len(items)
    m.stack.append(m.call(items[0], tuple(items[1:]), "new"))


@_op(b"b")
def _build(m: Machine) -> None:
    state = m.stack.pop()
    target = m.stack[-1]
    m.spent += SLOT_NBYTES
    if isinstance(target, Call):
        target.states.append(state)
    elif isinstance(target, Mapping):
        target.attributes = state
    elif isinstance(target, WrappedArray):
        pass
    elif not (isinstance(target, TensorStub | ArrayStub | NumpyDtype | Named) and _built(m, target, state)):
        m.odd_target(target)
        if isinstance(target, TensorStub | ArrayStub):
            target.extra.append(state)
        elif isinstance(target, GlobalRef):
            m.spent += CALL_NBYTES
            m.stack[-1] = Call(target, (), "build", states=[state])
    if m.replaced is not None:
        m.stack[-1] = m.replaced(m, target, state)


def _built(m: Machine, target: object, state: object) -> bool:
    return m.affordable(state if isinstance(state, tuple) else (state,)) and m.build(target, state)


def _extension(m: Machine, code: int) -> None:
    # What a code means is in the process-wide copyreg table of whoever loads the file; here it is only named.
    m.stack.append(m.ref("copyreg extension", str(code)))


@_op(b"\x82")
def _ext1(m: Machine) -> None:
    _extension(m, read_uint(m, 1))


@_op(b"\x83")
def _ext2(m: Machine) -> None:
    _extension(m, read_uint(m, 2))


@_op(b"\x84")
def _ext4(m: Machine) -> None:
    _extension(m, read_uint(m, 4))


@_op(b"P")
def _persid(m: Machine) -> None:
    m.spent += PERSISTENT_NBYTES
    m.stack.append(m.persistent(read_text(m.line())))


@_op(b"Q")
def _binpersid(m: Machine) -> None:
    m.spent += PERSISTENT_NBYTES
    m.stack[-1] = m.persistent(m.stack[-1])


OPCODES: dict[int, Handler] = {**CONSTANTS, **_HERE}


def _noting(code: int, handler: Handler) -> Handler:
    """The same, noting the first opcode that torch's restricted unpickler has not, and how much was named before."""

    def noting(m: Machine) -> None:
        if m.operand is None:
            m.operand, m.named_before = code, len(m.refs)
        handler(m)

    return noting


TABLE: tuple[Handler, ...] = tuple(
    OPCODES[code] if code in TORCHS else _noting(code, OPCODES.get(code, _unknown)) for code in range(256)
)
