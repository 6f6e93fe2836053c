"""Further files as a stranger would make them: other writers, odd values, bytes where none belong, names alone.

Chosen after `files`, without a look at what is said of those; every one that was said wrongly once is still here.
"""

from __future__ import annotations

import argparse
import bz2
import collections
import decimal
import functools
import io
import json
import lzma
import os
import pickle
import tarfile
import types
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save, save_file
from torch import Tensor, nn

from benchmarks.plain_load.files import (
    LEGACY,
    Runs,
    Writer,
    beginning_with,
    cast,
    exported,
    network,
    npz,
    numpy_values,
    of_a_gpu,
    onnx_model,
    plain,
    saved,
    script,
    state,
    trained,
)

HOSTILE = pickle.dumps(Runs(), 2)
_SYSTEM, _TRUE = b"cposix\nsystem\n", b"U\x04true"
_KEPT = b"r\x10\x27\0\0"


class Mine(dict):  # type: ignore[type-arg]
    """A dict of a class that only its writer has."""


def changed(change: Callable[[Tensor], Any], name: str = "fc.weight") -> dict[str, Any]:
    """The state dict with one of its tensors made into something else."""
    return {n: change(t) if n == name else t for n, t in state().items()}


def views() -> dict[str, Tensor]:
    flat, made, at = torch.cat([t.reshape(-1).float() for t in state().values()]), {}, 0
    for name, tensor in state().items():
        made[name] = flat[at : at + tensor.numel()].view(tensor.shape)
        at += tensor.numel()
    return made


def quantised_rows(weight: Tensor) -> Tensor:
    n = weight.shape[0]
    return torch.quantize_per_channel(weight, torch.full((n,), 0.1), torch.zeros(n, dtype=torch.long), 0, torch.quint8)


def with_a_note(tensor: Tensor) -> Tensor:
    made = tensor.clone()
    made.note = "hi"  # type: ignore[attr-defined]
    return made


def of_the_machine(weight: Tensor) -> np.ndarray:
    return weight.numpy()


def hostile_numbers() -> dict[str, Tensor]:
    numbers = torch.zeros(100, dtype=torch.uint8)
    numbers[: len(HOSTILE)] = torch.tensor(list(HOSTILE), dtype=torch.uint8)
    return {**state(), "x": numbers}


def lightning_2() -> dict[str, Any]:
    return {
        "pytorch-lightning_version": "2.4.0", "epoch": 1, "global_step": 10, "loops": {}, "lr_schedulers": [],
        "state_dict": {f"net.{n}": t for n, t in state().items()}, "hyper_parameters": {"lr": 0.1},
        "callbacks": {"ModelCheckpoint{'monitor': None}": {"best_model_score": torch.tensor(0.3)}},
        "optimizer_states": [trained().state_dict()],
    }  # fmt: skip


def half_of_shards(folder: Path) -> None:
    """As a folder is whose second shard was not downloaded."""
    names = list(state())
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    half = names[: len(names) // 2]
    save_file({name: state()[name] for name in half}, folder / first)
    places = {name: first if name in half else second for name in names}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


def shard() -> bytes:
    return saved({name: state()[name] for name in list(state())[:100]})


def tarred() -> bytes:
    buffer, data = io.BytesIO(), saved(state())
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("model.pth")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def packed(
    data: bytes,
    rename: Callable[[str], str] = str,
    *,
    method: int = zipfile.ZIP_STORED,
    leave_out: str = "no such name",
    comment: bytes = b"",
    backwards: bool = False,
) -> bytes:
    """The same archive, packed again by zipfile."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist()[:: -1 if backwards else 1]:
            if not name.endswith(leave_out):
                info = zipfile.ZipInfo()
                info.filename, info.compress_type = rename(name), method
                new.writestr(info, old.read(name))
        new.comment = comment
    return buffer.getvalue()


def backslashed(name: str) -> str:
    return name.replace("/", "\\")


def without_folder(name: str) -> str:
    return name.partition("/")[2]


def with_member(name: str) -> bytes:
    buffer = io.BytesIO(saved(state()))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(name, HOSTILE)
    return buffer.getvalue()


def _of(value: Callable[[], Any], name: str = "m.pth", of: str = "network", **options: Any) -> Writer:
    return name, lambda: saved(value(), **options), of


def _raw(make: Callable[[], bytes], name: str = "m.pth", of: str = "network") -> Writer:
    return name, make, of


def _beside(value: Any) -> Writer:
    return _of(lambda: {"model": state(), "beside": value})


STRANGERS: dict[str, Writer] = {
    **{f"pickle.dump, {n}": _raw(lambda n=n: pickle.dumps(state(), n), "m.pkl") for n in range(6)},
    **{f"arrays, pickle.dump, {n}": _raw(lambda n=n: pickle.dumps(numpy_values(), n), "m.pkl") for n in range(6)},
    **{f"torch.save, protocol {n}": _of(state, pickle_protocol=n) for n in (0, 1, 3, 5)},
    **{f"legacy, protocol {n}": _of(state, pickle_protocol=n, **LEGACY) for n in (0, 1, 3, 4, 5)},
}
# Values.
STRANGERS |= {
    "with _metadata": _of(lambda: network().state_dict()),
    "with _metadata, nested": _of(lambda: collections.OrderedDict(state_dict=network().state_dict(), epoch=3)),
    "a quantised row": _of(lambda: changed(quantised_rows)),
    "sparse": _of(lambda: changed(Tensor.to_sparse)),
    "sparse rows": _of(lambda: changed(Tensor.to_sparse_csr)),
    "complex": _of(lambda: changed(lambda t: t.to(torch.complex64))),
    "bool": _of(lambda: changed(lambda t: t > 0)),
    "int8": _of(lambda: changed(lambda t: t.to(torch.int8))),
    "int64": _of(lambda: changed(lambda t: t.to(torch.int64))),
    "one on meta": _of(lambda: changed(lambda t: t.to("meta"))),
    "expanded": _of(lambda: changed(lambda t: torch.zeros(1, 1).expand(t.shape))),
    "transposed": _of(lambda: changed(lambda t: t.t().contiguous().t())),
    "conjugated": _of(lambda: changed(lambda t: torch.zeros(10, dtype=torch.complex64).conj(), "fc.bias")),
    "negated": _of(lambda: changed(torch._neg_view, "fc.bias")),  # type: ignore[attr-defined]
    "a number for a row": _of(lambda: changed(lambda t: torch.tensor(1.0), "fc.bias")),
    "a row of a row": _of(lambda: changed(lambda t: t[None], "fc.bias")),
    "None for a tensor": _of(lambda: changed(lambda t: None, "fc.bias")),
    "a list for a tensor": _of(lambda: changed(Tensor.tolist, "fc.bias")),
    "an array for a tensor": _of(lambda: changed(of_the_machine, "fc.bias")),
    "a tensor with an attribute": _of(lambda: changed(with_a_note, "fc.bias")),
    "parameters": _of(lambda: {n: nn.Parameter(t) if t.is_floating_point() else t for n, t in state().items()}),
    "buffers": _of(lambda: {n: nn.Buffer(t) for n, t in state().items()}),
    "views of one storage": _of(views),
    "views of one storage, legacy": _of(views, **LEGACY),
    "counters as floats": _of(lambda: {n: t.float() for n, t in state().items()}),
    **{
        f"cast to {d}": _of(lambda d=d: cast(d))
        for d in (torch.float64, torch.bfloat16, torch.float8_e5m2)
    },
    "8-bit floats, safetensors": _raw(lambda: save(cast(torch.float8_e4m3fn)), "m.safetensors"),
    "a nested tensor beside": _of(lambda: {**state(), "x": torch.nested.nested_tensor([torch.zeros(2)])}),
}  # fmt: skip
# What a file holds instead of one state dict.
STRANGERS |= {
    "nothing": _of(lambda: None),
    "an empty dict": _of(dict),
    "an empty ordered dict": _of(collections.OrderedDict),
    "an empty list": _of(list),
    "a number": _of(lambda: 7),
    "a text": _of(lambda: "hello"),
    "a tensor": _of(lambda: torch.zeros(3, 4)),
    "a parameter": _of(lambda: nn.Parameter(torch.zeros(3, 4))),
    "numbers for names": _of(lambda: dict(enumerate(state().values()))),
    "tuples for names": _of(lambda: {tuple(n.split(".")): t for n, t in state().items()}),
    "storages": _of(lambda: {n: t.untyped_storage() for n, t in state().items()}),
    "None beside": _of(lambda: {**state(), "ema": None}),
    "an epoch beside": _of(lambda: {**state(), "epoch": 3}),
    "extra state beside": _of(lambda: {**state(), "_extra_state": {"a": 1}}),
    "a wrapper and an epoch": _of(lambda: {**{f"module.{n}": t for n, t in state().items()}, "epoch": 1}),
    "a pair": _of(lambda: (state(), {"epoch": 3})),
    "a list of one": _of(lambda: [state()]),
    "under a number": _of(lambda: {0: state()}),
    "four dicts deep": _of(lambda: {"a": {"b": {"c": {"state_dict": state()}}}}),
    "two networks": _of(lambda: {"generator": state(), "discriminator": state()}),
    "averages beside": _of(lambda: {"model": state(), "ema": {n: t + 1 for n, t in state().items()}}),
    "an optimizer": _of(trained),
    "an optimizer's state": _of(lambda: trained().state_dict()),
    "a schedule": _of(lambda: {"step_size": 3, "last_epoch": 4, "_last_lr": [0.1]}),
    "Lightning 2": _of(lightning_2, "m.ckpt"),
    "a dict of one's own": _of(lambda: Mine(state())),
    "a default dict": _of(lambda: collections.defaultdict(list, state())),
    "a module under DataParallel": _of(lambda: nn.DataParallel(plain()), of="plain"),
    "a module under a key": _of(lambda: {"net": plain(), "epoch": 2}, of="plain"),
    "half a module": _of(lambda: plain().half(), of="plain"),
    "a script's state dict": _of(lambda: torch.jit.script(plain()).state_dict(), of="plain"),
}
_BESIDE = {
    "counter": collections.Counter("aab"), "set": {1, 2}, "frozen set": frozenset({1}), "complex": 1j, "bytes": b"ab",
    "bytearray": bytearray(b"ab"), "slice": slice(1, 2), "range": range(3), "dtype": torch.float16,
    "device": torch.device("cuda:0"), "size": torch.Size([1, 2]), "numpy's numbers": np.zeros(3),
    "numpy's random state": np.random.RandomState(0).get_state(), "path": Path("x/y"), "uuid": uuid.UUID(int=3),
    "namespace": argparse.Namespace(lr=1), "simple namespace": types.SimpleNamespace(lr=1),
    "partial": functools.partial(int, 3), "decimal": decimal.Decimal("1.5"), "class": nn.Linear, "function": print,
    "system": os.system, "hostile bytes": HOSTILE,
}  # fmt: skip
STRANGERS |= {f"{kind} beside": _beside(value) for kind, value in _BESIDE.items()}
# Files of other kinds, and of one kind under the name of another.
STRANGERS |= {
    "half of the shards": ("half_of_shards", half_of_shards, "network"),
    "one shard": _raw(shard, "pytorch_model-00001-of-00002.bin"),
    "bz2": _raw(lambda: bz2.compress(saved(state())), "m.pth.bz2"),
    "xz": _raw(lambda: lzma.compress(saved(state())), "m.pth.xz"),
    "tar": _raw(tarred, "m.tar"),
    "tar named pth": _raw(tarred),
    "safetensors named bin": _raw(lambda: save(state()), "m.bin"),
    "pth named safetensors": _raw(lambda: saved(state()), "m.safetensors"),
    "npz named pth": _raw(lambda: npz(state())),
    "ONNX named pth": _raw(onnx_model, of="plain"),
    "export named pth": _raw(exported, of="plain"),
    "of a GPU, legacy": _raw(lambda: saved(state(), **LEGACY).replace(b"X\3\0\0\0cpu", b"X\6\0\0\0cuda:0")),
    "of a GPU, packed again": _raw(lambda: packed(of_a_gpu())),
    "a web page": _raw(lambda: b"<!DOCTYPE html><html><body>404</body></html>"),
    "a web page named safetensors": _raw(lambda: b"<!DOCTYPE html><html></html>", "m.safetensors"),
    "a server's answer": _raw(lambda: b'{"error":"Repository not found"}'),
    "empty": _raw(bytes),
    "zeros": _raw(lambda: bytes(4096)),
}
# Bytes where none belong, and archives packed again.
STRANGERS |= {
    "little behind": _raw(lambda: saved(state()) + b"\n"),
    "much behind": _raw(lambda: saved(state()) + b"hello" * 40_000),
    "twice": _raw(lambda: saved(state()) + saved(state())),
    "zeros before": _raw(lambda: bytes(200_000) + saved(state())),
    "a byte before": _raw(lambda: b"\n" + saved(state())),
    "a pickle before": _raw(lambda: pickle.dumps({"a": 1}, 2) + saved(state())),
    "behind legacy": _raw(lambda: saved(state(), **LEGACY) + bytes(200_000)),
    "behind safetensors": _raw(lambda: save(state()) + bytes(2000), "m.safetensors"),
    "little behind a script": _raw(lambda: script() + b"\n", "m.pt", "plain"),
    "much behind a script": _raw(lambda: script() + bytes(200_000), "m.pt", "plain"),
    "zeros before a script": _raw(lambda: bytes(200_000) + script(), "m.pt", "plain"),
    "half a script": _raw(lambda: script()[:-3000], "m.pt", "plain"),
    "backslashes": _raw(lambda: packed(saved(state()), backslashed)),
    "backslashes in a script": _raw(lambda: packed(script(), backslashed), "m.pt", "plain"),
    "deflated": _raw(lambda: packed(saved(state()), method=zipfile.ZIP_DEFLATED)),
    "bzip2 inside": _raw(lambda: packed(saved(state()), method=zipfile.ZIP_BZIP2)),
    "backwards": _raw(lambda: packed(saved(state()), backwards=True)),
    "with a comment": _raw(lambda: packed(saved(state()), comment=b"hi there")),
    "without data.pkl": _raw(lambda: packed(saved(state()), leave_out="data.pkl")),
    "without a storage": _raw(lambda: packed(saved(state()), leave_out="data/3")),
    "without a version": _raw(lambda: packed(saved(state()), leave_out="version")),
    "without a folder": _raw(lambda: packed(saved(state()), without_folder)),
    "a folder more": _raw(lambda: packed(saved(state()), lambda name: f"a/{name}")),
}
# Names that can run code: run, handed on, named, never read.
STRANGERS |= {
    "thrown away": _raw(lambda: beginning_with(_SYSTEM + b"0")),
    "called": _raw(lambda: beginning_with(_SYSTEM + b"(" + _TRUE + b"tR0")),
    "called from the memo": _raw(lambda: beginning_with(_SYSTEM + _KEPT + b"0j" + _KEPT[1:] + b"(" + _TRUE + b"tR0")),
    "INST": _raw(lambda: beginning_with(b"(" + _TRUE + b"iposix\nsystem\n0")),
    "OBJ": _raw(lambda: beginning_with(b"(" + _SYSTEM + _TRUE + b"o0")),
    "a known name, thrown away": _raw(lambda: beginning_with(b"ccollections\nOrderedDict\n0")),
    "a long text of Python 2": _raw(lambda: beginning_with(b"T\0\1\0\0" + b"a" * 256 + b"0")),
    "a hostile member": _raw(lambda: with_member("archive/other.pkl")),
    "a hostile member elsewhere": _raw(lambda: with_member("other/data.pkl")),
    "hostile numbers": _of(hostile_numbers),
    "hostile behind legacy": _raw(lambda: saved(state(), **LEGACY) + HOSTILE),
    "hostile, legacy": _of(lambda: {**state(), "x": Runs()}, **LEGACY),
}
