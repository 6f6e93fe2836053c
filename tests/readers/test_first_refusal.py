"""Where several things in a pickle are refused by torch's restricted unpickler, the first one is what torch says."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from inspector.keys.loading import refusal_of
from inspector.readers import open_checkpoint


def state() -> dict[str, Any]:
    return dict(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict())


def arrays() -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in state().items()}


def saved(value: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def beginning_with(steps: bytes) -> bytes:
    """torch.save's archive with further steps at the beginning of its pickle of protocol 2."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(state()))) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data[:2] + steps + data[2:] if name.endswith("data.pkl") else data)
    return buffer.getvalue()


FILES = {
    **{f"pickle.dump, protocol {n}": lambda n=n: pickle.dumps(state(), n) for n in range(6)},
    **{f"arrays, protocol {n}": lambda n=n: pickle.dumps(arrays(), n) for n in range(6)},
    **{f"torch.save, protocol {n}": lambda n=n: saved(state(), pickle_protocol=n) for n in range(1, 6)},
    **{
        f"legacy, protocol {n}": lambda n=n: saved(state(), pickle_protocol=n, _use_new_zipfile_serialization=False)
        for n in range(6)
    },
    "numpy's number, protocol 4": lambda: saved({**state(), "x": np.float64(1)}, pickle_protocol=4),
    "a long text of Python 2": lambda: beginning_with(b"T\x00\x01\x00\x00" + b"a" * 256 + b"0"),
    "a name, then an opcode": lambda: beginning_with(b"cnobody\nThing\n0"),
    "an opcode, then a name": lambda: beginning_with(b"I1\n0cnobody\nThing\n0"),
    "a name that torch takes, then an opcode": lambda: beginning_with(b"ccollections\nOrderedDict\n0"),
    "INST": lambda: beginning_with(b"(icollections\nOrderedDict\n0"),
    "a short text of protocol 4": lambda: beginning_with(b"\x8c\x01a0"),
    "a memo of protocol 4": lambda: beginning_with(b"N\x940"),
}


@pytest.mark.parametrize("kind", FILES)
def test_the_first_of_what_torch_refuses_is_said(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.pth"
    path.write_bytes(FILES[kind]())
    says = refusal_of(open_checkpoint(path))
    try:
        torch.load(path)
    except Exception as error:  # noqa: BLE001 whatever a file makes torch raise
        assert says and says.rstrip(".") in str(error).replace("``", ""), (says, str(error)[-300:])
    else:
        assert says == ""
