"""Small files of every format that the readers know: what the fuzzers damage. Folders are packed as archives."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import tempfile
import warnings
import zipfile
from collections import OrderedDict
from pathlib import Path


class Payload:
    """Would make the marker if a mutant were unpickled for real."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, (f"touch {self.marker}",))


def samples(marker: str) -> dict[str, bytes]:
    """Name -> file, made with torch, numpy, pickle and, where they are installed, gguf and onnx."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return {
            **_torch_saves(marker),
            **_safetensors(),
            **_folders(),
            **_torchscript(),
            **_exported(),
            **_old_tar(),
            **_numpy(marker),
            **_gguf(),
            **_onnx(),
            **_wrong(),
            # Last: the tests find the plain pickles by their place.
            **{f"pickle, protocol {p}": pickle.dumps({"a": [1, (2, 3)], "p": Payload(marker)}, p) for p in range(6)},
        }


def _torch_saves(marker: str) -> dict[str, bytes]:
    import numpy as np
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 2))
    optimizer = torch.optim.Adam(net.parameters())
    base = torch.arange(24.0)
    quantised = torch.quantize_per_tensor(torch.ones(6), 0.25, 3, torch.qint8)
    values: dict[str, object] = {
        "module": net,
        "state dict": net.state_dict(),
        "training": {"state_dict": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3},
        "views": OrderedDict(a=base.view(4, 6).t(), b=base[3:9], c=torch.eye(3).to_sparse(), d=torch.zeros(2)),
        "layouts": {"csr": torch.eye(3).to_sparse_csr(), "q": quantised, "m": torch.zeros(2, device="meta")},
        "types": [
            torch.ones(2, dtype=torch.bfloat16),
            torch.ones(2).to(torch.float8_e4m3fn),
            None,
            1.5,
            {1},
            b"x" * 40,
        ],
        "arrays": {"w": np.arange(6.0).reshape(2, 3), "s": np.float32(2), "evil": Payload(marker)},
    }
    made: dict[str, bytes] = {}
    for name, value in values.items():
        for legacy in (False, True):
            buffer = io.BytesIO()
            torch.save(value, buffer, _use_new_zipfile_serialization=not legacy)
            made[f"{name}, {'legacy' if legacy else 'zip'}"] = buffer.getvalue()
    made["deflated zip"] = _packed_again(made["state dict, zip"])
    made["gzip of a legacy file"] = gzip.compress(made["state dict, legacy"], mtime=0)
    return made


def _packed_again(archive: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name), old.read(name), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _safetensors() -> dict[str, bytes]:
    import torch
    from safetensors.torch import save

    made = save({"a": torch.ones(3, 2), "b": torch.ones(4).half()}, {"format": "pt"})
    header = b'{"f4":{"dtype":"F4","shape":[2,2],"data_offsets":[0,2]},"f6":{"dtype":"F6_E2M3","shape":[4],'
    header += b'"data_offsets":[2,5]}}'
    return {"safetensors": made, "safetensors, small types": struct.pack("<Q", len(header)) + header + bytes(5)}


def zip_of(files: dict[str, bytes]) -> bytes:
    """A stored archive of these."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def tar_of(files: dict[str, bytes]) -> bytes:
    """A tar of these."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def files_below(folder: Path) -> dict[str, bytes]:
    """Relative name -> content."""
    found = sorted(p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in found}


def _folders() -> dict[str, bytes]:
    import torch
    import torch.distributed.checkpoint as dcp
    from safetensors.torch import save

    one, two = {"a.weight": torch.ones(3, 2)}, {"b.weight": torch.ones(4), "b.bias": torch.zeros(1)}
    index: dict[str, object] = {"metadata": {"total_size": 44}}
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    index["weight_map"] = {key: name for name, part in zip(names, (one, two), strict=True) for key in part}
    sharded = {
        names[0]: save(one, {"format": "pt"}),
        names[1]: save(two, {"format": "pt"}),
        "model.safetensors.index.json": json.dumps(index).encode(),
        "config.json": b'{"model_type": "bert", "hidden_size": 8}',
    }
    bins = {}
    for name, part in (("pytorch_model-00001-of-00002.bin", one), ("pytorch_model-00002-of-00002.bin", two)):
        buffer = io.BytesIO()
        torch.save(part, buffer)
        bins[name] = buffer.getvalue()
    places = {key: name for name, part in zip(bins, (one, two), strict=True) for key in part}
    bins["pytorch_model.bin.index.json"] = json.dumps({"metadata": {}, "weight_map": places}).encode()
    adapter = {
        "adapter_config.json": b'{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"]}',
        "adapter_model.safetensors": save(
            {
                "base_model.model.q.lora_A.weight": torch.ones(2, 4),
                "base_model.model.q.lora_B.weight": torch.ones(4, 2),
            }
        ),
    }
    made = {
        "sharded safetensors": zip_of(sharded),
        "sharded bins": zip_of(bins),
        "adapter": zip_of(adapter),
        "adapter, tar": tar_of(adapter),
        "deepspeed": zip_of(_deepspeed()),
    }
    with tempfile.TemporaryDirectory() as folder:
        dcp.save({"model": two, "step": 3}, checkpoint_id=folder, no_dist=True)
        made["distributed"] = zip_of(files_below(Path(folder)))
    return made


def _deepspeed() -> dict[str, bytes]:
    """ZeRO stage 2 of two ranks: flat float32 partitions beside the module's own names and shapes."""
    import torch

    shapes = [OrderedDict([("a.weight", torch.Size([3, 2])), ("b.bias", torch.Size([2]))])]
    model = {"module": {"a.weight": torch.ones(3, 2).half()}, "param_shapes": shapes, "buffer_names": []}
    made: dict[str, object] = {"mp_rank_00_model_states.pt": {**model, "shared_params": {}, "ds_version": "0.16.0"}}
    for rank in range(2):
        state = {
            "zero_stage": 2,
            "partition_count": 2,
            "single_partition_of_fp32_groups": [torch.ones(4)],
            "base_optimizer_state": {"state": {0: {"exp_avg": torch.ones(4)}}},
        }
        made[f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"] = {"optimizer_state_dict": state}
    files = {"latest": b"global_step1"}
    for name, value in made.items():
        buffer = io.BytesIO()
        torch.save(value, buffer)
        files[f"global_step1/{name}"] = buffer.getvalue()
    return files


def _torchscript() -> dict[str, bytes]:
    import torch
    from torch import nn

    buffer = io.BytesIO()
    traced = torch.jit.trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2))
    torch.jit.save(traced, buffer)
    return {"torchscript": buffer.getvalue()}


def _exported() -> dict[str, bytes]:
    import torch
    import torch.package
    from torch import nn

    buffer = io.BytesIO()
    torch.export.save(torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),)), buffer)
    package = io.BytesIO()
    with torch.package.PackageExporter(package) as exporter:
        exporter.save_pickle("model", "model.pkl", {"w": torch.ones(2)})
    return {"exported program": buffer.getvalue(), "package": package.getvalue()}


def _old_tar() -> dict[str, bytes]:
    """torch 0.1: a tar of pickles, with storages and tensors behind theirs (torch/serialization.py, legacy_load)."""

    def row(key: int, second: object, cls: bytes) -> bytes:
        return b"\x80\x02" + pickle.dumps(key, 2)[2:-1] + pickle.dumps(second, 2)[2:-1] + b"ctorch\n" + cls + b"\n\x87."

    storages = pickle.dumps(1, 2) + row(11, "cpu", b"FloatStorage") + struct.pack("<q12f", 12, *range(12))
    storages += pickle.dumps([(13, 11, 4, 6)], 2)
    tensors = pickle.dumps(1, 2) + row(1001, 11, b"FloatTensor") + struct.pack("<ii2q2qq", 2, 0, 3, 4, 4, 1, 0)
    info = {"protocol_version": 1000, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    members = {
        "sys_info": pickle.dumps(info, 2),
        "pickle": b"\x80\x02}U\x01wU\x041001Qs.",
        "storages": storages,
        "tensors": tensors,
    }
    return {"torch 0.1 tar": tar_of(members)}


def _numpy(marker: str) -> dict[str, bytes]:
    import numpy as np

    one, several, pickled = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(one, np.arange(6.0).reshape(2, 3))
    np.savez_compressed(several, a=np.ones(3, np.float32), b=np.zeros((2, 2), np.int64, order="F"))
    np.save(pickled, np.array([1, Payload(marker)], dtype=object), allow_pickle=True)
    return {"npy": one.getvalue(), "npz": several.getvalue(), "npy with objects": pickled.getvalue()}


def _gguf() -> dict[str, bytes]:
    """By hand: the header is simple, and the package that writes it is not always there."""

    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    def entry(key: bytes, kind: int, value: bytes) -> bytes:
        return text(key) + struct.pack("<I", kind) + value

    metadata = entry(b"general.architecture", 8, text(b"llama")) + entry(b"general.alignment", 4, struct.pack("<I", 32))
    metadata += entry(b"tokens", 9, struct.pack("<IQ", 8, 2) + text(b"a") + text(b"b"))
    tensors = text(b"blk.0.attn_q.weight") + struct.pack("<IQQIQ", 2, 4, 2, 0, 0)
    tensors += text(b"output.weight") + struct.pack("<IQIQ", 1, 32, 8, 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, 2, 3) + metadata + tensors
    return {"gguf": head + bytes(-len(head) % 32) + bytes(32 + 34)}


def _onnx() -> dict[str, bytes]:
    try:
        import numpy as np
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        return {}
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])
    weights = [numpy_helper.from_array(np.ones((2, 2), np.float32), "w"), helper.make_tensor("b", 1, [2], [1.0, 2.0])]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Add", ["y", "b"], ["z"])]
    graph = helper.make_graph(nodes, "g", [value], [helper.make_tensor_value_info("z", 1, [1, 2])], weights)
    return {"onnx": onnx.ModelProto.SerializeToString(helper.make_model(graph))}


def _wrong() -> dict[str, bytes]:
    return {
        "HTML": b"<!DOCTYPE html><html></html>",
        "PNG": b"\x89PNG\r\n\x1a\n",
        "LFS pointer": b"version https://git-lfs.github.com/spec/v1\n",
        "JSON": b"{}",
    }
