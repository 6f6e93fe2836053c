"""Which opcode of a pickle torch's restricted unpickler stumbles over first.

It has 34 of Python's 68 opcodes (torch/_weights_only_unpickler.py, `Unpickler.load`), so files of protocol 4 are
refused at their second byte. Arguments are skipped, not read.
"""

from __future__ import annotations

from inspector.checkpoint.source import ByteSource

_WINDOW_NBYTES = 1 << 20
_MOST_STEPS = 200_000
# Opcode: bytes of its argument; -n: a length of n bytes, then so many.
_KNOWN = {
    **dict.fromkeys(b"\x81Rbaesu(t\x85\x86\x87N\x89\x88)]}\x8fQ", 0),
    **dict.fromkeys(b"Khq\x80", 1),
    ord("M"): 2,
    **dict.fromkeys(b"Jjr", 4),
    ord("G"): 8,
    ord("X"): -4,
    ord("U"): -1,
    0x8A: -1,
}


def first_refused_operand(source: ByteSource, start: int, stop: int) -> int | None:
    """The opcode's number, None when there is none among the first 200,000 steps or the first megabyte."""
    data = source.read(start, max(0, min(stop, source.size, start + _WINDOW_NBYTES) - start))
    at = 0
    for _ in range(_MOST_STEPS):
        if at >= len(data) or data[at] == ord("."):
            return None
        opcode = data[at]
        at += 1
        if opcode == ord("c"):
            for _line in range(2):
                end = data.find(b"\n", at)
                if end < 0:
                    return None
                at = end + 1
            continue
        width = _KNOWN.get(opcode)
        if width is None:
            return opcode
        at += width if width >= 0 else -width + int.from_bytes(data[at : at - width], "little")
    return None
