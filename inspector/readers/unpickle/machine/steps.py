"""The steps of a pickle machine, with a short way for the dozen opcodes that nine tenths of a real file consist of.

A file of 20,000 tensors has 700,000 steps, and a call of a handler costs more than what most of them do. So those are
done here on local variables, under conditions that leave nothing to check. Whatever is not the ordinary case, an empty
stack, a memo out of line, a constant across the end of the window, goes to its handler in `opcodes.TABLE`, which knows
every opcode and is the only place that says what is wrong. So do the two opcodes here that torch's restricted unpickler
has not, until one such was noted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getsizeof
from typing import Protocol, TypeVar

from inspector.readers.unpickle.nested.encoded import LEAST, is_plain_name

MARK_NBYTES = 88
TUPLE_NBYTES = 56
NUMBER_NBYTES = 32
_ARGUMENT = 5  # Bytes of an opcode with a four-byte argument; this close to the end of the window handlers take over.
_FEW = 64


class Running(Protocol):
    """What of a machine is needed here; `machine.Machine` says what each is."""

    data: bytes
    pos: int
    opcode: int
    operand: int | None
    stack: list[object]
    below: list[list[object]]
    memo: list[object]
    sparse: dict[int, object]
    spent: int
    slots_below: int

    def refill(self) -> None:
        """Make the next byte available."""
        ...

    def watch_text(self, text: str) -> None:
        """Note a text that may spell a pickle."""
        ...


AnyMachine = TypeVar("AnyMachine", bound=Running)


def follow(m: AnyMachine, table: Sequence[Callable[[AnyMachine], None]], n: int) -> None:
    """n steps. `m.opcode` is the last one that a handler had; whatever handlers raise passes through."""
    data, pos, memo, below = m.data, m.pos, m.memo, m.below
    last = len(data) - _ARGUMENT
    stack = m.stack
    spent = 0
    for _ in range(n):
        if pos <= last:
            opcode = data[pos]
            if opcode == 0x68:  # BINGET
                index = data[pos + 1]
                if index < len(memo):
                    stack.append(memo[index])
                    pos += 2
                    continue
            elif opcode == 0x72:  # LONG_BINPUT
                if int.from_bytes(data[pos + 1 : pos + 5], "little") == len(memo) and stack and not m.sparse:
                    memo.append(stack[-1])
                    pos += 5
                    continue
            elif opcode == 0x4B:  # BININT1
                stack.append(data[pos + 1])
                pos += 2
                continue
            elif opcode == 0x86:  # TUPLE2
                if len(stack) >= 2:
                    second = stack.pop()
                    stack[-1] = (stack[-1], second)
                    spent += TUPLE_NBYTES + 16
                    pos += 1
                    continue
            elif opcode == 0x58:  # BINUNICODE
                end = pos + 5 + data[pos + 1]
                raw = data[pos + 5 : end]
                if data[pos + 2 : pos + 5] == b"\0\0\0" and end <= len(data) and raw.isascii():
                    text = raw.decode("ascii")
                    spent += getsizeof(text)
                    stack.append(text)
                    if len(raw) >= LEAST and not is_plain_name(raw):
                        m.watch_text(text)
                    pos = end
                    continue
            elif opcode == 0x28:  # MARK
                m.slots_below += len(stack)
                below.append(stack)
                m.stack = stack = []
                spent += MARK_NBYTES
                pos += 1
                continue
            elif opcode == 0x74:  # TUPLE
                if below and len(stack) < _FEW:
                    items = tuple(stack)
                    m.stack = stack = below.pop()
                    m.slots_below -= len(stack)
                    stack.append(items)
                    spent += TUPLE_NBYTES + 8 * len(items) - MARK_NBYTES
                    pos += 1
                    continue
            elif opcode == 0x71:  # BINPUT
                if data[pos + 1] == len(memo) and stack and not m.sparse:
                    memo.append(stack[-1])
                    pos += 2
                    continue
            elif opcode == 0x94:  # MEMOIZE
                if stack and not m.sparse and m.operand is not None:
                    memo.append(stack[-1])
                    pos += 1
                    continue
            elif opcode == 0x6A:  # LONG_BINGET
                index = int.from_bytes(data[pos + 1 : pos + 5], "little")
                if index < len(memo):
                    stack.append(memo[index])
                    pos += 5
                    continue
            elif opcode == 0x4D:  # BININT2
                stack.append(data[pos + 1] | data[pos + 2] << 8)
                spent += NUMBER_NBYTES
                pos += 3
                continue
            elif opcode == 0x8C:  # SHORT_BINUNICODE
                end = pos + 2 + data[pos + 1]
                raw = data[pos + 2 : end]
                if end <= len(data) and raw.isascii() and m.operand is not None:
                    text = raw.decode("ascii")
                    spent += getsizeof(text)
                    stack.append(text)
                    if len(raw) >= LEAST and not is_plain_name(raw):
                        m.watch_text(text)
                    pos = end
                    continue
            elif opcode == 0x29:  # EMPTY_TUPLE
                stack.append(())
                pos += 1
                continue
            elif opcode == 0x89:  # NEWFALSE
                stack.append(False)
                pos += 1
                continue
        m.pos = pos
        m.spent += spent
        spent = 0
        if pos >= len(m.data):
            m.refill()
        m.opcode = m.data[m.pos]
        m.pos += 1
        table[m.opcode](m)
        pos, stack = m.pos, m.stack
        if m.data is not data:
            data = m.data
            last = len(data) - _ARGUMENT
    m.pos = pos
    m.spent += spent
