"""Where several things in a pickle are refused by torch's restricted unpickler, the first one is what torch says."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.plain_load.files import beginning_with, saved
from inspector.keys.loading import refusal_of
from inspector.readers import open_checkpoint


def state() -> dict[str, Any]:
    return dict(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict())


def arrays() -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in state().items()}


def begun(steps: bytes) -> bytes:
    """The small file with further steps at the beginning of its pickle."""
    return beginning_with(steps, saved(state()))


FILES = {
    **{f"pickle.dump, protocol {n}": lambda n=n: pickle.dumps(state(), n) for n in range(6)},
    **{f"arrays, protocol {n}": lambda n=n: pickle.dumps(arrays(), n) for n in range(6)},
    **{f"torch.save, protocol {n}": lambda n=n: saved(state(), pickle_protocol=n) for n in range(1, 6)},
    **{
        f"legacy, protocol {n}": lambda n=n: saved(state(), pickle_protocol=n, _use_new_zipfile_serialization=False)
        for n in range(6)
    },
    "numpy's number, protocol 4": lambda: saved({**state(), "x": np.float64(1)}, pickle_protocol=4),
    "a long text of Python 2": lambda: begun(b"T\x00\x01\x00\x00" + b"a" * 256 + b"0"),
    "a name, then an opcode": lambda: begun(b"cnobody\nThing\n0"),
    "an opcode, then a name": lambda: begun(b"I1\n0cnobody\nThing\n0"),
    "a name that torch takes, then an opcode": lambda: begun(b"ccollections\nOrderedDict\n0"),
    "INST": lambda: begun(b"(icollections\nOrderedDict\n0"),
    "a short text of protocol 4": lambda: begun(b"\x8c\x01a0"),
    "a memo of protocol 4": lambda: begun(b"N\x940"),
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
