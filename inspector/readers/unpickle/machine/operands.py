"""Which opcodes of a pickle torch's restricted unpickler has.

34 of Python's 68 (torch/_weights_only_unpickler.py, `Unpickler.load`), so files of protocol 4 are refused at their
second byte.
"""

from __future__ import annotations

TORCHS = frozenset(b"\x81Rbaesu(t\x85\x86\x87N\x89\x88)]}\x8fQKhq\x80MJjrGXU\x8ac.")
