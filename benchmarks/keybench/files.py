"""A checkpoint and a target made of names and shapes, and of numbers where there are some, without any file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.source import BufferSource, ByteSource
from inspector.checkpoint.types import Checkpoint, ModuleNode, Origin, StateDict, StateRole, Storage, TensorInfo
from inspector.checkpoint.values import Value, ValueKind

Shape = tuple[int, ...]


def checkpoint_of(
    shapes: Mapping[str, Shape],
    *,
    tensors: tuple[TensorInfo, ...] = (),
    storages: Mapping[str, Storage] = MappingProxyType({}),
    source: ByteSource | None = None,
) -> Checkpoint:
    """A checkpoint with one state dict of these tensors. tensors: the same with their places in `source`."""
    infos = tensors or tuple(
        TensorInfo(name=name, path=(name,), shape=shape, dtype="float32", nbytes=0, storage_id=None)
        for name, shape in shapes.items()
    )
    state = StateDict(
        path=(), role=StateRole.WEIGHTS, why="", kind="dict", tensors=infos, modules=ModuleNode(name="", path="")
    )
    return Checkpoint(
        origin=Origin(name="case.pth", nbytes=0),
        format="torch-zip",
        format_says="",
        root=Value(kind=ValueKind.MAPPING, type_name="dict", says=""),
        tensors=infos,
        state_dicts=(state,),
        source=source or BufferSource(b""),
        storages=dict(storages),
    )


def plain_target(shapes: Mapping[str, Shape], label: str = "the target") -> Target:
    tensors = tuple(TargetTensor(name=name, shape=shape, dtype="float32") for name, shape in shapes.items())
    return Target(label=label, kind=TargetKind.FILE, tensors=tensors)
