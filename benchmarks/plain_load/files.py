"""Forty files: the twenty kinds that people are sent most, and twenty chosen without knowledge of the code.

Each is written by the program that writes it elsewhere: torch, safetensors, numpy, onnx, pickle. Of libraries that are
not installed (PEFT, Lightning, detectron2) the layout of their own saving code is followed.
"""

from __future__ import annotations

import argparse
import datetime
import enum
import gzip
import io
import json
import os
import pickle
import zipfile
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save, save_file
from torch import Tensor, nn

Path_or_bytes = Path | bytes
LEGACY = {"_use_new_zipfile_serialization": False}


class Precision(enum.Enum):
    """A setting as training scripts keep it."""

    FULL = 32


class Runs:
    """What a malicious file does, with a harmless command."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("true",)


@cache
def network() -> nn.Module:
    """One that every library knows: a small torchvision network with ten classes."""
    from torchvision.models import shufflenet_v2_x0_5

    torch.manual_seed(3)
    model: nn.Module = shufflenet_v2_x0_5(num_classes=10)
    return model.eval()


def plain() -> nn.Module:
    """One without a name, of torch's own classes alone."""
    torch.manual_seed(3)
    layers = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    return nn.Sequential(*layers).eval()


def state() -> dict[str, Tensor]:
    return dict(network().state_dict())


def saved(value: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def beginning_with(steps: bytes, archive: bytes | None = None) -> bytes:
    """torch.save's archive (None: the plain file) with further steps at the beginning of its pickle of protocol 2."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive or saved(state()))) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data[:2] + steps + data[2:] if name.endswith("data.pkl") else data)
    return buffer.getvalue()


def under(prefix: str) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in state().items()}


def cast(dtype: torch.dtype) -> dict[str, Tensor]:
    return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in state().items()}


def trained() -> torch.optim.Optimizer:
    model = plain()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3, 8, 8)).sum().backward()
    optimizer.step()
    return optimizer


def checkpoint(**more: Any) -> dict[str, Any]:
    return {"epoch": 3, "model_state_dict": state(), "optimizer_state_dict": trained().state_dict(), **more}


def lightning() -> dict[str, Any]:
    return {
        "epoch": 3,
        "global_step": 100,
        "pytorch-lightning_version": "2.5.0",
        "state_dict": OrderedDict(under("model.")),
        "loops": {"fit_loop": {"state_dict": {}}},
        "callbacks": {"ModelCheckpoint{'monitor': None}": {"best_model_score": torch.tensor(0.9), "dirpath": "/runs"}},
        "optimizer_states": [trained().state_dict()],
        "lr_schedulers": [],
        "hparams_name": "kwargs",
        "hyper_parameters": {"lr": 0.1, "num_classes": 10},
    }


def timm_checkpoint() -> dict[str, Any]:
    args = argparse.Namespace(model="shufflenet_v2_x0_5", lr=0.1, data_dir="/data")
    return {"epoch": 3, "arch": "shufflenet_v2_x0_5", "state_dict": state(), "args": args, "version": 2, "metric": 0.9}


def sharded(folder: Path) -> None:
    names = list(state())
    cut = len(names) // 2
    files = {f"model-0000{i + 1}-of-00002.safetensors": part for i, part in enumerate((names[:cut], names[cut:]))}
    for file, part in files.items():
        save_file({name: state()[name] for name in part}, folder / file, metadata={"format": "pt"})
    places = {name: file for file, part in files.items() for name in part}
    total = sum(tensor.numel() * tensor.element_size() for tensor in state().values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def script() -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(plain()), buffer)
    return buffer.getvalue()


def exported() -> bytes:
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(plain(), (torch.ones(1, 3, 8, 8),)), buffer)
    return buffer.getvalue()


def onnx_model() -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    weights = [numpy_helper.from_array(tensor.numpy(), name) for name, tensor in plain().state_dict().items()]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3, 8, 8]) for name in ("x", "y")]
    nodes = [helper.make_node("Conv", ["x", "0.weight", "0.bias"], ["y"])]
    graph = helper.make_graph(nodes, "main_graph", ports[:1], ports[1:], weights)
    return helper.make_model(graph, producer_name="pytorch", producer_version="2.15.0").SerializeToString()


def npz(values: dict[str, Tensor]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: tensor.numpy() for name, tensor in values.items()})
    return buffer.getvalue()


def adapter(folder: Path) -> None:
    layers = [f"base_model.model.model.layers.{i}.self_attn.{name}" for i in range(2) for name in ("q_proj", "v_proj")]
    pairs = {f"{layer}.lora_A.weight": torch.ones(4, 64) for layer in layers}
    pairs |= {f"{layer}.lora_B.weight": torch.zeros(64, 4) for layer in layers}
    save_file(pairs, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))


def averaged() -> dict[str, Tensor]:
    return dict(torch.optim.swa_utils.AveragedModel(network()).state_dict())


def quantised() -> dict[str, Any]:
    from torch.ao.quantization import quantize_dynamic

    return dict(quantize_dynamic(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 5)), {nn.Linear}).state_dict())


def numpy_values() -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in state().items()}


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model.pth", data)
    return buffer.getvalue()


def of_a_gpu() -> bytes:
    """The same archive with the place that torch writes on a machine with a GPU."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(state()))) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("data.pkl"):
                data = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            new.writestr(name, data)
    return buffer.getvalue()


def lfs_pointer() -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 5612345\n".encode()


def channels_last() -> dict[str, Tensor]:
    return {n: t.to(memory_format=torch.channels_last) if t.ndim == 4 else t for n, t in state().items()}


def whole_in_a_class() -> bytes:
    """As YOLO's checkpoints are: a module of classes that live in the repository that trained it."""
    name = "models.yolo"
    kind = type("DetectionModel", (nn.Sequential,), {"__module__": name})
    import sys
    import types

    sys.modules["models"], sys.modules[name] = types.ModuleType("models"), types.ModuleType(name)
    sys.modules[name].DetectionModel = kind  # type: ignore[attr-defined]
    try:
        return saved({"epoch": -1, "model": kind(*plain()).half(), "ema": None, "updates": 7, "date": "2026-01-01"})
    finally:
        del sys.modules["models"], sys.modules[name]


def dcp(folder: Path) -> None:
    from torch.distributed import checkpoint as distributed

    distributed.save(state(), checkpoint_id=folder, no_dist=True)


# Name of the kind -> (name of the file, its bytes or what writes its folder, whether it is of `network` or of `plain`).
Writer = tuple[str, Callable[[], bytes] | Callable[[Path], None], str]
MOST_SENT: dict[str, Writer] = {
    "state dict": ("model.pth", lambda: saved(network().state_dict()), "network"),
    "DataParallel": ("parallel.pth", lambda: saved(under("module.")), "network"),
    "whole module": ("whole.pth", lambda: saved(plain()), "plain"),
    "checkpoint with optimizer": ("checkpoint.pt", lambda: saved(checkpoint(loss=0.3)), "network"),
    "Lightning": ("epoch=3.ckpt", lambda: saved(lightning()), "network"),
    "timm's training": ("last.pth.tar", lambda: saved(timm_checkpoint()), "network"),
    "safetensors": ("model.safetensors", lambda: save(state(), {"format": "pt"}), "network"),
    "shards with an index": ("sharded", sharded, "network"),
    "TorchScript": ("script.pt", script, "plain"),
    "torch.export": ("program.pt2", exported, "plain"),
    "ONNX": ("model.onnx", onnx_model, "plain"),
    "npz": ("model.npz", lambda: npz(state()), "network"),
    "PEFT adapter": ("adapter", adapter, "network"),
    "averaged model": ("swa.pth", lambda: saved(averaged()), "network"),
    "half precision": ("half.pth", lambda: saved(cast(torch.float16)), "network"),
    "bfloat16": ("bf16.safetensors", lambda: save(cast(torch.bfloat16)), "network"),
    "quantised": ("quantised.pth", lambda: saved(quantised()), "network"),
    "compiled under DDP": ("ddp.pth", lambda: saved({"model": under("module._orig_mod."), "step": 7}), "network"),
    "legacy format": ("legacy.pth", lambda: saved(state(), **LEGACY), "network"),
    "half a file": ("half_a_file.pth", lambda: saved(state())[:-90_000], "network"),
}
OTHERS: dict[str, Writer] = {
    "numpy values": ("numpy.pth", lambda: saved(numpy_values()), "network"),
    "detectron2": (
        "model_final.pkl",
        lambda: pickle.dumps({"model": numpy_values(), "__author__": "me", "matching_heuristics": True}, protocol=2),
        "network",
    ),
    "protocol 4": ("protocol4.pth", lambda: saved(state(), pickle_protocol=4), "network"),
    "pickle.dump": ("dump.pkl", lambda: pickle.dumps(state()), "network"),
    "a number of numpy beside": (
        "best.pth",
        lambda: saved({"state_dict": state(), "best_acc": np.float64(0.9)}),
        "network",
    ),
    "a date and an enum beside": (
        "run.pth",
        lambda: saved({**state(), "when": datetime.date(2026, 1, 1), "precision": Precision.FULL}),
        "network",
    ),
    "class of a repository": ("yolo.pt", whole_in_a_class, "plain"),
    "hostile": ("hostile.pth", lambda: saved({**state(), "x": Runs()}), "network"),
    "of a GPU": ("gpu.pth", of_a_gpu, "network"),
    "no numbers": ("meta.pth", lambda: saved({name: tensor.to("meta") for name, tensor in state().items()}), "network"),
    "parameters alone": ("parameters.pth", lambda: saved(dict(network().named_parameters())), "network"),
    "optimizer alone": ("optimizer.pt", lambda: saved(trained().state_dict()), "network"),
    "list of tensors": ("tensors.pt", lambda: saved(list(state().values())), "network"),
    "8-bit floats": ("fp8.pth", lambda: saved(cast(torch.float8_e4m3fn)), "network"),
    "half a legacy file": ("half_legacy.pth", lambda: saved(state(), **LEGACY)[:-90_000], "network"),
    "gzipped": ("model.pth.gz", lambda: gzip.compress(saved(state()), mtime=0), "network"),
    "in a zip": ("model.zip", lambda: zipped(saved(state())), "network"),
    "channels last": ("channels_last.pth", lambda: saved(channels_last()), "network"),
    "defaultdict of two networks": (
        "gan.pth",
        lambda: saved(defaultdict(dict, netG=state(), netD=dict(plain().state_dict()))),
        "network",
    ),
    "distributed checkpoint": ("dcp", dcp, "network"),
}
FILES: dict[str, Writer] = {**MOST_SENT, **OTHERS}


def write(writer: Writer, folder: Path) -> Path:
    """The file, or its folder, in a folder that is made where there is none."""
    name, make, _ = writer
    folder.mkdir(exist_ok=True)
    path = folder / name
    if path.suffix == "":
        path.mkdir()
        make(path)  # type: ignore[call-arg]
    else:
        path.write_bytes(make())  # type: ignore[call-arg,arg-type]
    return path


def shapes_of(writer: Writer) -> dict[str, tuple[list[int], str]]:
    """The state dict that the file's model has: name -> shape and dtype."""
    model = network() if writer[2] == "network" else plain()
    return {n: (list(t.shape), str(t.dtype).removeprefix("torch.")) for n, t in model.state_dict().items()}
