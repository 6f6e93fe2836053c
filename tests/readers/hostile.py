"""Pickles and archives that no ordinary program writes. Every payload would only create a marker file."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from pathlib import Path


class Payload:
    """Unpickled for real, it would create the marker."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, (f"touch {self.marker}",))


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def call(module: str, name: str, *args: str) -> bytes:
    """GLOBAL and REDUCE with text arguments, protocol 2."""
    return f"c{module}\n{name}\n".encode() + b"(" + b"".join(map(text, args)) + b"tR"


def short(value: str) -> bytes:
    """SHORT_BINUNICODE, protocol 4."""
    raw = value.encode()
    return b"\x8c" + bytes([len(raw)]) + raw


def stack_global(module: str, name: str) -> bytes:
    """STACK_GLOBAL: from protocol 4 on, a name with dots is followed attribute by attribute."""
    return short(module) + short(name) + b"\x93"


def torch_zip(data_pkl: bytes, members: dict[str, bytes] | None = None, *, deflate: bool = False) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", data_pkl)
        for name, content in {"archive/version": b"3\n", **(members or {})}.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def variants(marker: Path) -> dict[str, bytes]:
    """The same command by every route into a call that pickle has. Source: the opcode list of pickletools."""
    command = f"touch {marker}"
    quoted = f"S'{command}'\n".encode()
    return {
        "reduce, protocol 0": b"cos\nsystem\n(" + quoted + b"tR.",
        "reduce, protocol 2": b"\x80\x02" + call("posix", "system", command) + b".",
        "stack global, protocol 4": pickle.dumps(Payload(marker), protocol=4),
        "inst": b"(" + quoted + b"ios\nsystem\n.",
        "obj": b"(cos\nsystem\n" + quoted + b"o.",
        "newobj": b"\x80\x02cos\nsystem\n(" + quoted + b"t\x81.",
        "newobj_ex": b"\x80\x04cos\nsystem\n(" + quoted + b"t}\x92.",
        "result thrown away": b"\x80\x02" + call("os", "system", command) + b"0N.",
        "behind a memo": b"\x80\x02cos\nsystem\nq\x050" + text(command) + b"\x85q\x060h\x05h\x06R.",
        "broken after the call": b"\x80\x02" + call("os", "system", command) + b"\xff\xff",
        "stack underflow after the call": b"\x80\x02" + call("os", "system", command) + b"0R.",
        "as a dict key": b"\x80\x02}" + call("os", "system", command) + b"Ns.",
        "in backward hooks": b"\x80\x02]ctorch._utils\n_rebuild_parameter\n(N\x89"
        + call("os", "system", command)
        + b"tRa.",
        "in a state": b"\x80\x02cfoo\nBar\n)\x81" + call("os", "system", command) + b"b.",
        "a class with a list": b"\x80\x02cfoo\nBar\n)\x81" + call("os", "system", command) + b"a.",
        "persistent id": b"\x80\x02" + call("os", "system", command) + b"Q.",
        "second pickle of the file": b"\x80\x02N.\x80\x02" + call("os", "system", command) + b".",
        "global name not text": b"\x80\x04" + call("os", "system", command) + b"0K\x01K\x02\x93.",
    }
